"""Files that are written whole or not at all: under another name, then renamed."""

import glob
import hashlib
import os
import re
import shutil
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

SCRATCH = ".partial-"
# How pandas reads every bit of a number: since 3.1 it does so by itself, and deprecates the option.
_EXACT = tuple(map(int, version("pandas").split(".")[:2])) >= (3, 1)
EXACT_FLOATS: dict[str, Any] = {} if _EXACT else {"float_precision": "round_trip"}


def slug(text: str, longest: int = 120) -> str:
    """A text as part of a file's name: letters, digits and ``._=,+-``, the rest as ``_``.

    What is cut off is told by a hash.
    """
    bare = re.sub(r"[\[\]{}'\" ]", "", text)
    name = re.sub(r"[^A-Za-z0-9._=,+-]+", "_", bare).strip("_.+-")
    if len(name) <= longest:
        return name
    return f"{name[:longest]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def scratch_name() -> str:
    """A name for something half-written: it tells the machine and the process that writes it."""
    return f"{SCRATCH}{_machine()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file next to ``path`` to write to, which replaces it if all went well.

    Whatever fails on the way, what was at ``path`` before is there still.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # With the suffix, from which libraries tell the format.
    scratch = path.with_name(f"{scratch_name()}{path.suffix}")
    try:
        yield scratch
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Put ``text`` into a file, in the place of an earlier one."""
    with replacing(path) as scratch:
        scratch.write_text(text, encoding="utf-8")


def find(folder: Path, pattern: str) -> list[Path]:
    """What matches below ``folder``, sorted, while others may write and remove things there.

    (`Path.glob` fails on a folder that is gone before it was looked into.) Hidden folders, such as
    half-written ones, are looked into only where the pattern names them.
    """
    return sorted(folder / name for name in glob.glob(pattern, root_dir=folder))  # noqa: PTH207


def sweep(folder: Path) -> None:
    """Remove what processes of this machine that are gone left half-written in ``folder``."""
    machine = _machine()
    for scratch in find(folder, f"{SCRATCH}*"):
        owner = re.fullmatch(r"(.+)-([1-9][0-9]{0,9})-[0-9a-f]{8}(\.\w+)?", scratch.name)
        if owner is None or owner[1] != f"{SCRATCH}{machine}" or _alive(int(owner[2])):
            continue
        if scratch.is_dir() and not scratch.is_symlink():
            shutil.rmtree(scratch, ignore_errors=True)
        else:
            with suppress(OSError):  # somebody else's folder
                scratch.unlink()


def _machine() -> str:
    """The host and, where there are such, the namespace in which process numbers mean something."""
    try:
        space = f".{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        space = ""
    return f"{socket.gethostname()}{space}"


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass  # somebody else's
    return True
