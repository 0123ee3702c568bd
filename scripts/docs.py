"""Write the library's reference, outputs/docs/mcgb.html: its README and everything public."""

import importlib
import sys
import tempfile
from pathlib import Path

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
        library.__doc__ = (source / "README.md").read_text()
        configure(docformat="numpy", show_source=False, include_undocumented=False)
        pdoc.pdoc("mcgb", "!mcgb[.].*", output_directory=folder)
    return folder / "mcgb.html"


if __name__ == "__main__":
    print(write_docs(ROOT / "outputs" / "docs"))
