"""A folder for compiled code, chosen before numba is imported.

numba stores it next to the source or in the user's cache folder, and cannot be imported where it
can write to neither (a read-only checkout and home). Then a private folder among temporary files is
used; ``NUMBA_CACHE_DIR`` names another.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


def find_cache() -> None:
    """Set ``NUMBA_CACHE_DIR`` if the usual places cannot be written to."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        return
    next_to_source = Path(__file__).parent / "__pycache__"
    home = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    if not (_writable(next_to_source) or _writable(home / "numba")):
        os.environ["NUMBA_CACHE_DIR"] = _private_folder()


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except (OSError, RuntimeError):
        return False


def _private_folder() -> str:
    """Return a folder that only this user can have written to: its content is executed."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"mcboost-replication-{user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
        if private and found.st_uid == user:
            return str(folder)
    except OSError:
        pass
    return tempfile.mkdtemp(prefix="mcboost-replication-")


find_cache()
