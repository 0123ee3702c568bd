"""One run of a table in parts: the rounds of `DistributedFit` as rows, like any run's.

All training rows count in losses, weights and gaps; what is said of held-out rows, and all of the
audit, is of a random sample of about ``audit.rows`` rows of each side.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline.boosting.algorithm import mean_squared_error
from pipeline.boosting.audit import Auditor
from pipeline.boosting.distributed.checkpoint import Checkpoint
from pipeline.boosting.distributed.fit import (
    DistributedFit,
    DistributedStep,
    FitSettings,
    Holders,
    ShardsLost,
)
from pipeline.boosting.distributed.initial import FOREST
from pipeline.boosting.distributed.local import InThisProcess
from pipeline.boosting.distributed.parts import Table, Unfit
from pipeline.boosting.engines.base import TreeSettings
from pipeline.boosting.engines.lightgbm import Bins
from pipeline.config.schema import Config, Lightgbm
from pipeline.errors import DataError, UserError
from pipeline.runs import provenance
from pipeline.runs.keys import audit_seed, seeds
from pipeline.runs.run import OnRound, Row, Run, audit_rows, round_row
from pipeline.runs.strategies import rescaling_of

log = logging.getLogger("pipeline")


def run(config: Config, table: Table, data_sha256: str, checkpoint: Path, on_round: OnRound) -> Run:
    """Fit and record the rounds, each of which is kept in ``checkpoint``."""
    started = time.perf_counter()
    rows: list[Row] = []
    try:
        with holders_of(config, checkpoint) as holders:
            fit = DistributedFit(table, holders, settings_of(config), checkpoint, log.info)
            measured = _Measured(config, fit)
            for step in fit.run():
                rows.append(measured.row(step))
                on_round(rows[-1])
                _tell(step.t, config.boosting.rounds, table.n_rows, measured.since_start())
            record = _record(config, fit, time.perf_counter() - started, data_sha256)
    except Unfit as error:
        raise DataError(f"{config.dataset.label}: {error}") from None
    except ShardsLost as error:
        raise UserError(
            f"grid.scheduler={config.grid.scheduler}: the cluster lost shards again and again "
            f"({error}); rounds are kept, and the same command goes on"
        ) from None
    return Run(pd.DataFrame(rows), record)


def settings_of(config: Config) -> FitSettings:
    """The fit that a config describes."""
    boosting, engine, initial = config.boosting, config.engine, config.initial
    assert isinstance(engine, Lightgbm)
    trees = TreeSettings(
        boosting.trees, boosting.max_depth, boosting.learning_rate, engine.min_rows_in_leaf
    )
    return FitSettings(
        n_rounds=boosting.rounds,
        eta=boosting.eta,
        rescaling=rescaling_of(config.strategy),
        trees=trees,
        bins=Bins(engine.bins, engine.min_rows_in_bin),
        initial="forest" if config.dataset.prediction is None else "given",
        forest=TreeSettings(initial.trees, initial.max_depth, subsample=FOREST.subsample),
        held_out=config.dataset.test_size,
        sample=config.audit.rows,
        seed=config.seed,
    )


@contextmanager
def holders_of(config: Config, checkpoint: Path) -> Iterator[Holders]:
    """Whoever holds the shards: this process, or the workers of a cluster."""
    engine = config.engine
    assert isinstance(engine, Lightgbm)
    if not config.grid.on_dask:
        with InThisProcess(engine.threads, checkpoint) as holder:
            yield holder
        return
    from pipeline.runs.workers.dask import shard_holders  # an optional extra

    n_shards = Checkpoint.shards_in(checkpoint) or config.grid.workers
    with shard_holders(config.grid, n_shards) as holders:
        yield holders


class _Measured:
    """What is recorded of the steps of a fit."""

    def __init__(self, config: Config, fit: DistributedFit) -> None:
        self.config, self.fit = config, fit
        self._auditors: tuple[Auditor, Auditor] | None = None
        self._started: float | None = None

    def since_start(self) -> float:
        """Seconds since the start was recorded."""
        assert self._started is not None
        return time.monotonic() - self._started

    def row(self, step: DistributedStep) -> Row:
        """A step as a row of ``rounds.csv``."""
        fit = self.fit
        errors: Row = {
            "mse_train": step.loss,
            "mse_test": mean_squared_error(fit.held_out.y, step.f_held_out),
        }
        on_train, on_test = self._both()
        audited, further = audit_rows(
            self.config.audit,
            on_train.leaves(prediction=step.f_sample, residual=fit.sample.y - step.f_sample),
            on_test.assess(y=fit.held_out.y, prediction=step.f_held_out),
        )
        weight, gap = (math.nan, math.nan)
        if step.round is not None:
            weight, gap = step.round.weight, step.round.gap
        if self._started is None:
            self._started = time.monotonic()
        return round_row(self.config, step.t, errors | audited, gap, weight, further)

    def _both(self) -> tuple[Auditor, Auditor]:
        """Auditors of the sampled training and held-out rows; made once these are known."""
        if self._auditors is None:
            audit, encoding = self.config.audit, self.fit.encoding
            seed = audit_seed(self.config.dataset.label, self.config.seed)
            both = [encoding.expanded(rows.X) for rows in (self.fit.sample, self.fit.held_out)]
            train, test = (
                Auditor(X, n_trees=audit.trees, depth=audit.depth, seed=seed) for X in both
            )
            self._auditors = train, test
        return self._auditors


def _tell(t: int, rounds: int, rows: int, seconds: float) -> None:
    if 0 < t < rounds:
        left = seconds / t * (rounds - t)
        log.info(
            "round %d of %d, %s rows, %.1f s a round, about %.0f s left",
            t, rounds, f"{rows:,}", seconds / t, left,
        )  # fmt: skip


def _record(
    config: Config, fit: DistributedFit, seconds: float, data_sha256: str
) -> dict[str, Any]:
    n_train = fit.n_rows
    return {
        "config": config.model_dump(mode="json"),
        "data_sha256": data_sha256,
        "seeds": seeds(config),
        "duration_seconds": round(seconds, 4),
        "sizes": {
            "n_train": n_train,
            "n_test": len(fit.held_out.y),
            "n_features": len(fit.encoding.names),
            "norm_residual0": math.sqrt(fit.losses[0] * n_train),
            "n_rows": fit.table.n_rows,
            "n_train_audited": len(fit.sample.y),
            "n_shards": fit.holders.n_shards,
        },
        **provenance.describe(),
    }
