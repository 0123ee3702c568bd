"""Write the library's reference, outputs/docs/mcgb.html: its README and everything public."""

import importlib
import sys
import tempfile
from pathlib import Path
from types import FunctionType

import pdoc
from pdoc.render import configure

from pipeline.paths import ROOT


def write_docs(folder: Path) -> Path:
    """Write the pages into a folder; return the one to open."""
    source = ROOT / "pipeline" / "boosting"
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "mcgb").symlink_to(source)  # as the wheel names it
        sys.path.insert(0, place)
        library = importlib.import_module("mcgb")
        # pdoc looks at what a module holds, and ours holds a name once it was used.
        for name in library.__all__:
            setattr(library, name, getattr(library, name))
            if isinstance(getattr(library, name), type):
                _own_methods(getattr(library, name))
        library.__doc__ = (source / "README.md").read_text()
        configure(docformat="numpy", show_source=False, include_undocumented=False)
        pdoc.pdoc("mcgb", "!mcgb[.].*", output_directory=folder)
    return folder / "mcgb.html"


def _own_methods(kind: type) -> None:
    """Show what a class has from a base of this library as its own; hide what nobody looks for."""
    for base in kind.__mro__[1:]:
        if base.__module__.startswith("mcgb"):
            for name, member in list(vars(base).items()):
                public = name == "__init__" or not name.startswith("_")
                if public and isinstance(member, FunctionType) and name not in vars(kind):
                    copy = FunctionType(
                        member.__code__, member.__globals__, name, member.__defaults__
                    )
                    copy.__dict__.update(member.__dict__)
                    copy.__doc__, copy.__kwdefaults__ = member.__doc__, member.__kwdefaults__
                    copy.__annotations__ = member.__annotations__
                    copy.__qualname__, copy.__module__ = f"{kind.__name__}.{name}", kind.__module__
                    setattr(kind, name, copy)
    for name in [n for n in vars(kind) if n.startswith("set_") and n.endswith("_request")]:
        delattr(kind, name)


if __name__ == "__main__":
    print(write_docs(ROOT / "outputs" / "docs"))
