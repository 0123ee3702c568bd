"""Rounds of Algorithm 1 on a table in parts: those of `DistributedFit` as rows.

All training rows count in losses, weights and gaps; what is said of held-out rows, and all of the
audit, is of a random sample of about ``audit.rows`` rows of each side.
"""

import logging
import math
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

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
from pipeline.boosting.losses import SquaredLoss
from pipeline.boosting.rescaling import Reduced
from pipeline.config.schema import Config, Custom, Dataset, Lightgbm
from pipeline.datasets.library import Library
from pipeline.datasets.parts import table_in_parts
from pipeline.errors import ConfigError, DataError, UserError
from pipeline.runs.engines import engine_of
from pipeline.runs.keys import Key, key_hash, seeds
from pipeline.runs.kinds.base import OnRound, Row, Run, Setting, record_of
from pipeline.runs.kinds.rounds import Measured, Rounds, loss_of, rounds_run
from pipeline.runs.strategies import rescaling_of

log = logging.getLogger("pipeline")


def run(config: Config, table: Table, data_sha256: str, checkpoint: Path, on_round: OnRound) -> Run:
    """Fit and record the rounds, each of which is kept in ``checkpoint``."""
    started = time.perf_counter()
    rows: list[Row] = []
    try:
        with holders_of(config, checkpoint) as holders:
            fit = DistributedFit(table, holders, settings_of(config), checkpoint, log.info)
            for step in fit.run():
                if step.t == 0:  # the rows to measure on are known now
                    train, test = (
                        (fit.encoding.expanded(some.X), some.y, some.weights)
                        for some in (fit.sample, fit.held_out)
                    )
                    measured = Measured(config, train, test)
                f = step.f_sample, step.f_held_out
                rows.append(measured.row(config, step.t, *f, step.gap, step.weight, step.loss))
                if step.t <= fit.n_known:  # rounds of a checkpoint take no time
                    begun = time.monotonic()
                on_round(rows[-1])
                _tell(step, fit, time.monotonic() - begun)
            seconds = time.perf_counter() - started
            record = record_of(config, data_sha256, seconds, _sizes(fit), seeds=seeds(config))
    except Unfit as error:
        raise DataError(f"{config.dataset.label}: {error}") from None
    except ShardsLost as error:
        raise UserError(
            f"grid.scheduler={config.grid.scheduler}: the cluster lost shards again and again "
            f"({error}); rounds are kept, and the same command goes on"
        ) from None
    return rounds_run(rows, record)


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
        loss=loss_of(config),
    )


def holders_of(config: Config, checkpoint: Path) -> AbstractContextManager[Holders]:
    """The holders of the shards: this process, or the workers of a cluster."""
    if not config.grid.on_dask:
        assert isinstance(config.engine, Lightgbm)
        return InThisProcess(config.engine.threads, checkpoint)
    import cloudpickle  # an optional extra, as are the next

    from pipeline.runs.workers.dask import shard_holders

    if isinstance(config.strategy, Custom):  # its module may be this machine's alone
        module = type(rescaling_of(config.strategy)).__module__
        cloudpickle.register_pickle_by_value(sys.modules[module])
    n_shards = Checkpoint.shards_in(checkpoint) or config.grid.workers
    return shard_holders(config.grid, n_shards)


def _tell(step: DistributedStep, fit: DistributedFit, seconds: float) -> None:
    """Log a round that was computed; ``seconds`` is the time of all of these so far."""
    done, rounds = step.t - fit.n_known, fit.settings.n_rounds
    if done > 0:
        log.info(
            "round %d of %d, %s rows, loss %.6g, %.1f s a round, about %.0f s left%s",
            step.t, rounds, f"{fit.table.n_rows:,}", step.loss, seconds / done,
            seconds / done * (rounds - step.t),
            f"; lost and repeated {fit.repeated} times" if fit.repeated else "",
        )  # fmt: skip


def _sizes(fit: DistributedFit) -> dict[str, Any]:
    squared = isinstance(fit.settings.loss, SquaredLoss)
    return {
        "n_train": fit.n_rows,
        "n_test": len(fit.held_out.y),
        "n_features": len(fit.encoding.names),
        **({"norm_residual0": math.sqrt(fit.losses[0] * fit.mass)} if squared else {}),
        "n_rows": fit.table.n_rows,
        "n_train_audited": len(fit.sample.y),
        "n_shards": fit.holders.n_shards,
    }


class Parts(Rounds):
    """Rounds on tables in parts, each run led by this process.

    numerics : raised by hand when the same config starts to give other numbers; stored runs then
    count as stale.
    """

    name = "parts"
    title = "tables in parts (dataset.source=parquet with engine=lightgbm)"
    otherwise = "dataset=file reads a table whole"
    stages = ("run", "reproduce", "report", "figures", "compare")
    alternatives = ()
    keeps_initial = False
    in_driver = True
    keeps_checkpoints = True
    numerics = 1

    def applies(self, config: Config) -> bool:
        return config.dataset.source == "parquet" and isinstance(config.engine, Lightgbm)

    def check(self, config: Config) -> None:
        dataset = config.dataset
        engine_of(config)  # may not be installed
        if dataset.target_scaling != "none":
            raise ConfigError("dataset.target_scaling: must be none for a table in parts")
        if config.boosting.loss == "log" and dataset.positive is None:
            raise ConfigError("boosting.loss=log: needs a dataset with dataset.positive")
        if config.boosting.gamma:
            raise ConfigError("boosting.gamma: is not for a table in parts")
        if dataset.missing == "reject":
            raise ConfigError("dataset.missing: LightGBM takes missing cells of a table in parts")
        if not isinstance(rescaling_of(config.strategy), Reduced):
            raise ConfigError(
                "strategy: no process sees all rows of a table in parts; it takes unit, relaxed, "
                "adaptive, and strategies with a reduced_weight(t, each) method (see "
                "pipeline/boosting/rescaling.py)"
            )

    def key(self, config: Config, data_sha256: str) -> Key:
        parts = {"rows": config.audit.rows, "prediction": config.dataset.prediction}
        return super().key(config, data_sha256) | {"in_parts": {"numerics": self.numerics, **parts}}

    def ground_key(self, config: Config) -> str:
        return key_hash(self.key(config, ""))  # runs that take long are stored as they end

    def checkpoint_key(self, config: Config, data_sha256: str) -> Key:
        key = self.key(config, data_sha256)
        return key | {"boosting": {**key["boosting"], "rounds": "any"}}

    def digest(self, library: Library, dataset: Dataset) -> str:
        return library.files_sha256(dataset)

    def material(self, library: Library, dataset: Dataset) -> Table:  # noqa: ARG002
        return table_in_parts(dataset)

    def size(self, material: Any) -> float:
        return float(material.n_rows)

    def ground(self, setting: Setting) -> Any:
        return setting

    def run(self, config: Config, ground: Any, on_round: OnRound) -> Run:
        folder = ground.checkpoints
        return run(config, ground.material, ground.data_sha256, folder, on_round)


KIND = Parts()
