"""What all attacks use: a small grid, its undisturbed result, processes, and a tally."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pandas as pd

from pipeline.config.compose import load
from pipeline.runs.grid import run_plan
from pipeline.runs.plan import Plan, make_plan

SMALL = (
    "experiment=smoke", "experiment.datasets=[diabetes,german]", "experiment.seeds=[0,1,2]",
    "boosting.rounds=4", "boosting.trees=30", "initial.trees=10",
)  # fmt: skip
AT_ONCE = 2  # attacks with processes of their own


@dataclass
class Tally:
    """How one kind of attack went: tries, and what was wrong with those that did not survive."""

    kind: str
    tries: int = 0
    wrong: list[str] = field(default_factory=list)
    identical: str = ""
    seconds: float = 0.0

    def judge(self, name: str, fault: str | None) -> None:
        """Count a try; ``fault`` says what was wrong with it."""
        self.tries += 1
        if fault:
            self.wrong.append(f"{name}: {fault}")


def plan_of(folder: Path, *overrides: str) -> Plan:
    """The small grid, writing to ``folder``."""
    lines = [*SMALL, *overrides, f"output_dir={folder}"]
    return make_plan(load(lines), lines)


def undisturbed(folder: Path) -> pd.DataFrame:
    """The small grid's rounds, computed in peace."""
    run_plan(plan_of(folder, "grid.workers=1"))
    return rounds_in(folder)


def rounds_in(folder: Path) -> pd.DataFrame:
    """All stored rounds of the small grid."""
    plan = plan_of(folder)
    stored = [plan.store.load(run) for run in plan.run_ids()]
    return pd.concat([s.rounds for s in stored if s is not None], ignore_index=True)


def same(folder: Path, truth: pd.DataFrame) -> str:
    """Finish the grid in ``folder`` and say whether it is the undisturbed one, bit for bit."""
    run_plan(plan_of(folder, "grid.workers=1"))
    return "yes" if rounds_in(folder).equals(truth) else "NO"


@contextmanager
def process(*arguments: str, **options: object) -> Iterator[subprocess.Popen[str]]:
    """``python -m pipeline`` in a session of its own, of which nothing is left afterwards."""
    child: subprocess.Popen[str] = subprocess.Popen(
        [sys.executable, "-m", "pipeline", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        **options,  # type: ignore[call-overload]
    )  # fmt: skip
    try:
        yield child
    finally:
        for pid in session(child.pid):
            with_suppressed(partial(os.kill, pid, 9))
        child.wait()


def with_suppressed(action: Callable[[], object]) -> None:
    """Do something that may be too late."""
    with suppress(OSError):
        action()


def session(leader: int) -> list[int]:
    """The processes of a session that are not zombies, its leader too."""
    found = subprocess.run(
        ["ps", "-o", "pid=,stat=", "-s", str(leader)], capture_output=True, text=True, check=False
    )
    pairs = [line.split() for line in found.stdout.splitlines()]
    return [int(pid) for pid, state in pairs if not state.startswith("Z")]


def ended_well(child: subprocess.Popen[str], within: float, allowed: Sequence[int]) -> str | None:
    """What was wrong with how a process ended: a hang, a traceback, a status, an orphan."""
    try:
        output, _ = child.communicate(timeout=within)
    except subprocess.TimeoutExpired:
        return f"still there after {within:g} s"
    if "Traceback" in output:
        return f"traceback: {output.strip().splitlines()[-1][:200]}"
    if child.returncode not in allowed:
        return f"status {child.returncode}: {output.strip().splitlines()[-1:]}"
    deadline = time.monotonic() + 5
    while session(child.pid):
        if time.monotonic() > deadline:
            return f"left {len(session(child.pid))} processes behind"
        time.sleep(0.1)
    return None


def in_parallel(
    tally: Tally, tries: Sequence[tuple[str, Callable[[], str | None]]], at_once: int = AT_ONCE
) -> None:
    """Try all; each gives what was wrong, or None."""
    with ThreadPoolExecutor(at_once) as pool:
        for (name, _), fault in zip(tries, pool.map(lambda t: _guarded(t[1]), tries), strict=True):
            tally.judge(name, fault)


def _guarded(attempt: Callable[[], str | None]) -> str | None:
    try:
        return attempt()
    except Exception as error:  # the attack itself failed, which counts against the pipeline
        return f"{type(error).__name__}: {error}"
