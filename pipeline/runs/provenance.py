"""What a result was made with: versions, commit, hardware."""

import platform
import subprocess
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path

from pipeline.paths import ROOT

SENT_COMMIT = "COMMIT"  # a file next to a package that was sent to a worker
PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "numba", "hydra-core", "matplotlib")


@cache
def versions() -> dict[str, str]:
    """Versions of Python and of the packages that can change a number or a picture."""
    return {"python": platform.python_version()} | {p: metadata.version(p) for p in PACKAGES}


@cache
def git_commit() -> str | None:
    """The checkout's commit, with ``-dirty`` where files differ from it; None outside git.

    A worker that was sent the package is told its driver's.
    """
    sent = ROOT / SENT_COMMIT
    if sent.is_file():
        return sent.read_text(encoding="utf-8") or None
    try:
        if Path(_git("rev-parse", "--show-toplevel")) != ROOT:
            return None  # some other repository that this folder lies in
        commit = _git("rev-parse", "HEAD")
        dirty = _git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{commit}-dirty" if dirty else commit


@cache
def cpu_model() -> str:
    """The processor's name."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def describe() -> dict[str, object]:
    """Everything above as one JSON-ready mapping."""
    return {
        "versions": versions(),
        "git_commit": git_commit(),
        "cpu": cpu_model(),
        "platform": f"{platform.system()} {platform.machine()}",
    }


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
