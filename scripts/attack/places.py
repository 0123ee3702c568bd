"""Odd places and environments: paths with spaces, line breaks and signs, no home, other masks."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pandas as pd

from pipeline.paths import ROOT
from scripts.attack.ground import SMALL, Tally, in_parallel, rounds_in

NAMES = ("a b", "a\nb", "ü ∑", "-dash", "50%d%(x)s", "it's", 'say "so"', "a=b", "#1", "[x]")
WITHOUT = ("HOME", "TMPDIR", "LANG", "USER")
MASK = 0o077


def attack(folder: Path, truth: pd.DataFrame, tries: int) -> Tally:
    """``tries`` small grids, each in another place or environment."""
    tally = Tally("odd places")
    kinds = [("path", name) for name in NAMES] + [("without", name) for name in WITHOUT]
    kinds.append(("umask", "077"))
    chosen = [kinds[k % len(kinds)] for k in range(tries)]
    in_parallel(
        tally,
        [
            (f"{kind} {name!r}", partial(_one, folder / str(k), truth, kind, name))
            for k, (kind, name) in enumerate(chosen)
        ],
    )
    tally.identical = "yes" if not tally.wrong else "NO"
    return tally


def _one(folder: Path, truth: pd.DataFrame, kind: str, name: str) -> str | None:
    place = folder / name if kind == "path" else folder
    quoted = str(place).replace("\\", "\\\\").replace("'", "\\'")
    environment = {k: v for k, v in os.environ.items() if kind != "without" or k != name}
    if kind == "umask":
        folder.mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", *SMALL, "grid.workers=1", f"output_dir='{quoted}'"],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False,
        umask=MASK if kind == "umask" else -1,
    )  # fmt: skip
    if done.returncode or "Traceback" in done.stderr:
        return f"status {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"
    if kind == "umask" and any(p.stat().st_mode & MASK for p in folder.rglob("*")):
        return "files that others can read"
    return None if rounds_in(place).equals(truth) else "other numbers"
