"""Three drivers on one store at once, of which some are killed or stopped at random moments."""

import os
import random
import signal
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pandas as pd

from scripts.attack.ground import (
    SMALL,
    Tally,
    ended_well,
    in_parallel,
    process,
    rounds_in,
    session,
    with_suppressed,
)

DRIVERS = 3
SECONDS = 8.0
BLOWS = (signal.SIGKILL, signal.SIGSTOP, signal.SIGSTOP, signal.SIGCONT, signal.SIGCONT)


def attack(folder: Path, truth: pd.DataFrame, tries: int) -> Tally:
    """``tries`` storms; one more driver must find, or make, the undisturbed numbers."""
    tally = Tally("storms of drivers")
    storms = [(f"storm {k}", partial(_one, folder / str(k), truth, k)) for k in range(tries)]
    in_parallel(tally, storms, at_once=1)
    tally.identical = "yes" if not tally.wrong else "NO"
    return tally


def _one(folder: Path, truth: pd.DataFrame, seed: int) -> str | None:
    rng = random.Random(seed)
    lines = [*SMALL, "boosting.rounds=4", f"output_dir={folder}"]
    with ExitStack() as stack:
        drivers = [
            stack.enter_context(process(*lines, f"grid.workers={1 + rng.randrange(2)}"))
            for _ in range(DRIVERS)
        ]
        end = time.monotonic() + SECONDS
        time.sleep(rng.uniform(1.0, 4.0))
        while time.monotonic() < end and any(d.poll() is None for d in drivers):
            time.sleep(rng.uniform(0.05, 0.4))
            one = rng.choice(drivers)
            victims = session(one.pid) or [one.pid]
            with_suppressed(partial(os.kill, rng.choice(victims), rng.choice(BLOWS)))
        for driver in drivers:
            for pid in session(driver.pid):
                with_suppressed(partial(os.kill, pid, signal.SIGCONT))
        faults = [ended_well(driver, 30, [0, -9]) for driver in drivers]
    with process(*lines, "grid.workers=1") as last:
        faults.append(ended_well(last, 60, [0]))
    if not rounds_in(folder).equals(truth):
        faults.append("other numbers")
    left = list(folder.rglob(".partial-*"))
    return next((fault for fault in faults if fault), None) or (
        f"{left[0]} is left" if left else None
    )
