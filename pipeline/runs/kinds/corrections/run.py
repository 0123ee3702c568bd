"""One correction: a method corrects the model of a case, and the result is measured."""

import contextlib
import ctypes
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipeline.boosting.arrays import Floats
from pipeline.boosting.peers.base import Corrected
from pipeline.config.schema import Config
from pipeline.datasets.design import Design
from pipeline.errors import UserError
from pipeline.runs.kinds.base import Run, record_of
from pipeline.runs.kinds.corrections.cases import make_case
from pipeline.runs.kinds.corrections.measures import NUMBERS, Measures
from pipeline.runs.kinds.corrections.methods import correct

OWN = "own"  # what the method itself ends with
ORACLE = "oracle"  # its round with the smallest test loss, which nobody can know
START = "start"  # the model as it is


class Ground:
    """What the methods of one (dataset, situation, seed) share."""

    def __init__(self, config: Config, design: Design) -> None:
        self.case = make_case(config, design)
        self.measures = Measures(self.case, config)
        self.data_sha256 = design.data_sha256


def run(config: Config, ground: Ground) -> Run:
    """Correct, predict and measure; a method that fails has failed, which is a result."""
    case = ground.case
    started, before, meter = time.perf_counter(), time.process_time(), _Memory()
    failed, rows, options = "", [], {}
    try:
        fitted, chosen = correct(config, case)
        own = fitted.predict(case.test)
        spent = {
            "cpu_seconds": time.process_time() - before,
            "peak_mb": meter.peak(),
            **fitted.training,
        }
        rows = list(_rows(fitted, own, ground, spent))
        options = json.loads(json.dumps(dict(chosen)))
    except (UserError, ImportError, MemoryError, OSError):
        raise  # of where it runs, not of the method
    except Exception as error:  # an error of the method
        failed = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        rows = [{"rule": OWN, "rounds": -1, **dict.fromkeys(NUMBERS, np.nan)}]
    names = {
        "dataset": config.dataset.label,
        "situation": config.situation.name,
        "method": config.method.name,
        "seed": config.seed,
    }
    table = pd.DataFrame([{**names, **row, "failed": failed} for row in rows])
    sizes = {
        "n_correct": len(case.correct),
        "n_validation": len(case.validation),
        "n_test": len(case.test),
        "n_features": case.test.X.shape[1],
    }
    seconds = time.perf_counter() - started
    record = record_of(config, ground.data_sha256, seconds, sizes, chosen=options)
    return Run(table, record, failed or f"test loss {rows[0]['loss']:.4g}")


def _rows(
    fitted: Corrected, own: Floats, ground: Ground, spent: dict[str, float]
) -> Iterator[dict[str, Any]]:
    """A row for the method's own end and, where it has rounds, for its best round and its start."""
    case = ground.case
    if not np.isfinite(own).all():
        raise ValueError("predicts NaN or infinity")
    measured = {fitted.rounds: ground.measures.of(own)}
    yield {"rule": OWN, "rounds": fitted.rounds, **measured[fitted.rounds], **spent}
    if fitted.stages is None:
        return
    stages = list(fitted.stages(case.test))
    best = int(np.argmin([case.test.loss(f) for f in stages]))
    for rule, t in {ORACLE: best, START: 0}.items():
        if t not in measured:
            measured[t] = ground.measures.of(stages[t], segments=rule == ORACLE)
        yield {"rule": rule, "rounds": t, **measured[t], **spent}


class _Memory:
    """The most memory that this process took since, beyond what it had; NaN where unknown."""

    def __init__(self) -> None:
        self._before = np.nan
        # What was freed is given back first, or memory that is used again would not be seen.
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
        with contextlib.suppress(OSError):  # Linux lets the mark be reset
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
            self._before = _status("VmRSS")

    def peak(self) -> float:
        """In megabytes."""
        return float(_status("VmHWM") - self._before) if self._before == self._before else np.nan


def _status(name: str) -> float:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    return np.nan
