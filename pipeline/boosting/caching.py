"""Options of compiled functions, and a folder for compiled code, chosen before numba is imported.

numba stores it next to the source or in the user's cache folder, and cannot be imported where it
can write to neither (a read-only checkout and home). Then a private folder among temporary files is
used; ``NUMBA_CACHE_DIR`` names another.

numba compiles a function again if its own file has changed, but not if a file has changed whose
functions it calls; `forget_outdated` takes care of that.
"""

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

# Of a function that Python calls.
ENTRY: dict[str, Any] = {"cache": True, "nogil": True}
# Of a function that only compiled code calls. Without wrappers for Python and C, which take longer
# to compile than small functions do, calling it from Python crashes.
INNER: dict[str, Any] = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# What is said when a module is compiled, with the seconds that it took on a machine of 2024.
PARTS = {
    "audit": "the audit (once, some 5 seconds)",
    "segments": "the audit (once, some 5 seconds)",
    "bias_tests": "the audit (once, some 5 seconds)",
    "nodes": "prediction (once, a second)",
    "exact": "the exact engine (once, some 15 seconds)",
}


def announce_compilation() -> None:
    """From now on, say on the error stream when a part of the library is compiled."""
    from numba.core import event  # must come after `find_cache`

    class Announcement(event.Listener):
        def on_start(self, event: Any) -> None:
            module = event.data["dispatcher"].py_func.__module__.split(".")
            part = next((PARTS[name] for name in module if name in PARTS), None)
            if part is not None and part not in told:
                told.add(part)
                print(f"mcgb: compiling {part} ...", file=sys.stderr)

        def on_end(self, event: Any) -> None:
            pass

    told: set[str] = set()
    event.register("numba:compile", Announcement())  # type: ignore[no-untyped-call]


def find_cache() -> None:
    """Set ``NUMBA_CACHE_DIR`` if the usual places cannot be written to."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        return
    next_to_source = Path(__file__).parent / "__pycache__"
    home = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    if not (_writable(next_to_source) or _writable(home / "numba")):
        os.environ["NUMBA_CACHE_DIR"] = _private_folder()


def forget_outdated(entry: Any, sources: Iterable[Path]) -> None:
    """Delete the compiled code of a numba function that is older than one of some source files."""
    newest = max(path.stat().st_mtime for path in sources)
    name = f"{Path(entry.py_func.__code__.co_filename).stem}.{entry.py_func.__qualname__}-*.nbi"
    for index in Path(entry.stats.cache_path).glob(name):
        with contextlib.suppress(OSError):
            if index.stat().st_mtime < newest:
                index.unlink()


def _writable(folder: Path) -> bool:
    try:
        folder = folder.expanduser()  # a user may have no home at all
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except (OSError, RuntimeError):
        return False


def _private_folder() -> str:
    """Return a folder that only this user can have written to: its content is executed."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"mcgb-{user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
        if private and found.st_uid == user:
            return str(folder)
    except OSError:
        pass
    return tempfile.mkdtemp(prefix="mcgb-")


find_cache()
