"""Signals at random moments: to the driver, to its group, to workers, and to stopped ones."""

import os
import random
import signal
import time
from functools import partial
from pathlib import Path

import pandas as pd

from scripts.attack.ground import (
    SMALL,
    Tally,
    ended_well,
    in_parallel,
    process,
    same,
    session,
    with_suppressed,
)

ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP)
KINDS = ("driver", "group", "kill", "stopped worker", "killed worker", "twice")
# Long enough that every signal comes before the end.
LONG = (*SMALL, "experiment.seeds=[0,1,2,3,4,5,6,7,8,9]", "boosting.rounds=40")


def attack(folder: Path, truth: pd.DataFrame, tries: int) -> Tally:
    """``tries`` signals; what was stored meanwhile must be the undisturbed numbers."""
    tally = Tally("signals")
    plans = [(KINDS[k % len(KINDS)], k) for k in range(tries)]
    in_parallel(
        tally,
        [(f"{kind} {k}", partial(_one, folder, kind, k)) for kind, k in plans],
    )
    tally.identical = same(folder, truth)
    return tally


def _one(folder: Path, kind: str, seed: int) -> str | None:
    rng = random.Random(seed)
    number = rng.choice(ASKING)
    arguments = SMALL if seed % 3 == 0 else LONG  # some end by themselves meanwhile
    lines = [*arguments, "grid.workers=2", f"output_dir={folder}"]
    with process(*lines) as child:
        time.sleep(rng.uniform(0.3, 5.0))
        if child.poll() is None:
            _send(kind, child.pid, number, rng)
        allowed = {0, 130, -number, -9}
        if kind == "killed worker":
            time.sleep(0.5)
            with_suppressed(lambda: os.kill(child.pid, number))
        return ended_well(child, 20, sorted(allowed))


def _send(kind: str, driver: int, number: int, rng: random.Random) -> None:
    workers = [pid for pid in session(driver) if pid != driver]
    if kind == "kill":
        with_suppressed(lambda: os.kill(driver, signal.SIGKILL))
    elif kind == "group":
        with_suppressed(lambda: os.killpg(driver, number))
    elif kind == "killed worker" and workers:
        with_suppressed(lambda: os.kill(rng.choice(workers), signal.SIGKILL))
    else:
        if kind == "stopped worker" and workers:
            with_suppressed(lambda: os.kill(rng.choice(workers), signal.SIGSTOP))
        with_suppressed(lambda: os.kill(driver, number))
        if kind == "twice":
            time.sleep(rng.uniform(0, 0.3))
            with_suppressed(lambda: os.kill(driver, number))
