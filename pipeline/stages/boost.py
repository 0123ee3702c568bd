"""Boost: one run = (dataset, strategy, seed) → a table with a row per round.

What the strategies of one (dataset, seed) have in common (the split, f_0, the engine's view of X,
the audit's trees and round 0's ensemble, which no weight has touched yet) is made once, in
`Workbench`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor

from pipeline import config as schema
from pipeline import provenance
from pipeline.boosting.algorithm import advance, boost, mean_squared_error, norm, round_seed
from pipeline.boosting.audit import READINGS, Auditor, multicalibration_errors
from pipeline.boosting.engines import Ensemble, TreeSettings, make_engine
from pipeline.boosting.rescaling import Adaptive, Relaxed, Rescaling, Unit
from pipeline.keys import audit_seed, seeds
from pipeline.stages.preprocess import Design, Split, split
from pipeline.store import Initial

log = logging.getLogger("pipeline")

Floats = NDArray[np.float64]
Row = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """A finished run: its rounds, and what ``run.json`` says beside the key."""

    rounds: pd.DataFrame
    record: dict[str, Any]


class Workbench:
    """All that the strategies of one (dataset, seed) share."""

    def __init__(self, config: schema.Config, design: Design, initial: Initial | None = None):
        self.config = config
        self.split: Split = split(design, config.dataset, config.seed)
        self.initial = initial or fit_initial(config, self.split)
        self.data_sha256 = design.data_sha256
        boosting = config.boosting
        settings = TreeSettings(boosting.trees, boosting.max_depth, boosting.learning_rate)
        self.fitter = make_engine(config.engine.name, settings).bind(self.split.X_train)
        audit = config.audit
        seed = audit_seed(config.dataset.label, config.seed)
        self.auditor_train, self.auditor_test = (
            Auditor(X, n_trees=audit.trees, depth=audit.depth, seed=seed)
            for X in (self.split.X_train, self.split.X_test)
        )

    @cached_property
    def _first_round(self) -> tuple[Ensemble, Floats]:
        f = self.initial.train
        return self.fitter.fit(f, self.split.y_train - f, round_seed(self.config.seed, 0))

    def fit_round(self, t: int, f: Floats, residual: Floats) -> tuple[Ensemble, Floats]:
        """Round t's ensemble and its values on the training rows."""
        if t == 0:
            return self._first_round
        return self.fitter.fit(f, residual, round_seed(self.config.seed, t))

    def measure(self, f_train: Floats, f_test: Floats) -> tuple[Row, Row]:
        """A round's errors on both sides of the split, and further readings of the MCE."""
        audit = self.config.audit
        further: Row = {}
        row: Row = {
            "mse_train": mean_squared_error(self.split.y_train, f_train),
            "mse_test": mean_squared_error(self.split.y_test, f_test),
        }
        for side, auditor, y, f in (
            ("train", self.auditor_train, self.split.y_train, f_train),
            ("test", self.auditor_test, self.split.y_test, f_test),
        ):
            readings = (audit.reading, *audit.also)
            errors = multicalibration_errors(auditor.audit(f, y - f), readings)
            row[f"mce_{side}"] = errors[audit.reading]
            further |= {f"mce_{side}_{reading}": errors[reading] for reading in audit.also}
        return row, further


def fit_initial(config: schema.Config, data: Split) -> Initial:
    """f_0: the paper's random forest, on the training rows."""
    forest = RandomForestRegressor(
        n_estimators=config.initial.trees,
        max_depth=config.initial.max_depth,
        random_state=config.seed,
    ).fit(data.X_train, data.y_train)
    return Initial(forest.predict(data.X_train), forest.predict(data.X_test))


def run(
    config: schema.Config, bench: Workbench, on_round: Callable[[Row], None] = lambda _: None
) -> Run:
    """Run a strategy on a workbench; ``on_round`` hears of every round as it ends."""
    started = time.perf_counter()
    eta = config.boosting.eta
    f_test = bench.initial.test
    rows: list[Row] = []

    def record(t: int, f_train: Floats, gap: float, weight: float) -> None:
        errors, further = bench.measure(f_train, f_test)
        row = {
            "dataset": config.dataset.label,
            "strategy": config.strategy.name,
            "seed": config.seed,
            "round": t,
            **errors,
            "gap": gap,
            "weight": weight,
            **further,
        }
        rows.append(row)
        on_round(row)

    record(0, bench.initial.train, np.nan, np.nan)
    for step in boost(
        bench.split.y_train,
        bench.initial.train,
        config.boosting.rounds,
        eta,
        rescaling_of(config.strategy),
        bench.fit_round,
    ):
        f_test = advance(f_test, bench.split.X_test, step, eta)
        record(step.t + 1, step.f, step.gap, step.weight)
    return Run(pd.DataFrame(rows), _record(config, bench, time.perf_counter() - started))


def compile_kernels() -> None:
    """Compile what a run needs, or load it compiled; says so where that takes a while.

    Called before workers start, so that they find it done. (A table of over 32,000 bins has wider
    codes, for which each process compiles again.)
    """
    from pipeline.boosting.engines.exact import kernel

    compiled = Path(kernel.grow_trees.stats.cache_path)
    if not any(compiled.glob("kernel.grow_trees-*.nbi")):
        log.info("compiling the exact engine and the audit (once, about half a minute) ...")
    X, f, y = np.array([[0.0, 0.0], [1.0, 1.0]]), np.zeros(2), np.array([0.0, 1.0])
    ensemble, _ = make_engine("exact", TreeSettings(1)).bind(X).fit(f, y, 0)
    ensemble.predict(X, f)
    multicalibration_errors(Auditor(X).audit(f, y), READINGS)


def rescaling_of(strategy: schema.Unit | schema.Relaxed | schema.Adaptive) -> Rescaling:
    """The rescaling a config describes."""
    if isinstance(strategy, schema.Relaxed):
        return Relaxed(strategy.offset, strategy.exponent)
    return Unit() if isinstance(strategy, schema.Unit) else Adaptive()


def _record(config: schema.Config, bench: Workbench, seconds: float) -> dict[str, Any]:
    data = bench.split
    return {
        "config": config.model_dump(mode="json"),
        "data_sha256": bench.data_sha256,
        "seeds": seeds(config),
        "duration_seconds": round(seconds, 4),
        # Enough to evaluate the paper's bounds without the data.
        "sizes": {
            "n_train": len(data.y_train),
            "n_test": len(data.y_test),
            "n_features": data.X_train.shape[1],
            "norm_y": norm(data.y_train),
            "norm_f0": norm(bench.initial.train),
            "norm_residual0": norm(data.y_train - bench.initial.train),
            "distinct_f0": len(np.unique(bench.initial.train)),
        },
        **provenance.describe(),
    }
