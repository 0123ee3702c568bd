"""Streams and disks: readers that leave, full and closed streams, limits, files in the way."""

import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd

from scripts.attack.ground import SMALL, Tally, in_parallel, plan_of, rounds_in, same

STREAMS = ("| head -1", "2>&1 | head -1", ">&-", "2>&-", ">&- 2>&-", ">/dev/full", "2>/dev/full")
LIMITS = (2_000, 20_000, 60_000, 150_000)


def attack(folder: Path, truth: pd.DataFrame, tries: int) -> Tally:
    """Grids with broken streams, and reports that do not fit."""
    tally = Tally("streams and disks")
    folder.mkdir(parents=True, exist_ok=True)
    good = folder / "good"
    run = [*SMALL, f"output_dir={good}", "boosting.rounds=6", "grid.workers=1"]
    _pipeline(f"stage=reproduce {_quoted(run)}")
    attempts = [
        (f"{stream} {k}", lambda stream=stream, k=k: _stream(folder / f"s{k}", stream, truth))
        for k, stream in enumerate(STREAMS)
    ] + [(f"limit {n}", lambda n=n: _limit(good, run, n)) for n in LIMITS]
    in_parallel(tally, [attempts[k % len(attempts)] for k in range(tries)], at_once=1)
    tally.identical = same(folder / "s0", truth)
    return tally


def _stream(out: Path, redirection: str, truth: pd.DataFrame) -> str | None:
    shutil.rmtree(out, ignore_errors=True)
    done = _pipeline(f"{_quoted([*SMALL, f'output_dir={out}', 'grid.workers=2'])} {redirection}")
    if "Traceback" in done.stderr or done.returncode not in (0, 141):
        return f"status {done.returncode}: {done.stderr[-200:]}"
    plan = plan_of(out)
    missing = [run for run in plan.run_ids() if not plan.store.has(run)]
    if missing:
        return f"{len(missing)} runs are lost"
    return None if rounds_in(out).equals(truth) else "other numbers"


def _limit(good: Path, run: list[str], size: int) -> str | None:
    """A report under a limit on the size of files: the earlier one stays, whole."""
    before = {p: p.read_bytes() for p in good.rglob("*") if p.is_file()}
    code = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size})); "
        "from pipeline.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, *run, "stage=report"], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != size
    after = {p: p.read_bytes() for p in good.rglob("*") if p.is_file()}
    if "Traceback" in done.stderr:
        return f"traceback: {done.stderr.strip().splitlines()[-1]}"
    changed = [p.name for p in before if after.get(p) != before[p]]
    return f"changed or lost: {changed}" if changed or len(after) != len(before) else None


def _quoted(words: list[str]) -> str:
    return " ".join(f"'{word}'" for word in words)


def _pipeline(tail: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{sys.executable} -m pipeline {tail}"],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
