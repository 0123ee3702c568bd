"""The runs of tables in parts: their keys, tasks and place. Each is led by this process."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pipeline.config.compose import varied
from pipeline.config.schema import Config, Custom, Dataset, Lightgbm
from pipeline.datasets.library import Library
from pipeline.datasets.parts import require_exact
from pipeline.errors import ConfigError
from pipeline.runs.keys import Key, run_key
from pipeline.runs.large.run import run
from pipeline.runs.plan import Plan
from pipeline.runs.run import OnRound, unheard
from pipeline.runs.store import Initial, RunId
from pipeline.runs.tasks import Outcome, Task, tried
from pipeline.runs.workers import Workers
from pipeline.runs.workers.local import in_this_process

# Bump by hand when the same config starts to give other numbers; stored runs then count as stale.
NUMERICS = 1
STAGES = ("run", "reproduce", "report", "figures", "compare")  # what there is for such tables
CHECKPOINTS = "checkpoints"


def large_key(config: Config, data_sha256: str) -> Key:
    """All that a run's numbers depend on."""
    parts = {
        "numerics": NUMERICS,
        "rows": config.audit.rows,
        "prediction": config.dataset.prediction,
    }
    return run_key(config, data_sha256) | {"in_parts": parts}


@dataclass(frozen=True)
class LargeTask(Task):
    """One run: runs that take long are stored as they end.

    checkpoints : a folder for rounds of runs that are not finished.
    """

    checkpoints: Path

    keeps_initial: ClassVar[bool] = False

    def run_id(self, config: Config) -> RunId:
        """See `Task`."""
        key = large_key(config, self.data_sha256)
        return RunId(self.dataset, config.strategy.label, self.seed, key)

    def compute(
        self,
        design: Any,  # here a table in parts
        initial: Initial | None,  # noqa: ARG002
        on_round: OnRound = unheard,
    ) -> Outcome:
        """See `Task`."""
        started = time.perf_counter()
        runs = tuple(
            tried(lambda c: run(c, design, self.data_sha256, self._checkpoint(c), on_round), c)
            for c in self.configs
        )
        return Outcome(runs, None, time.perf_counter() - started)

    def stored(self, config: Config) -> None:
        """See `Task`."""
        shutil.rmtree(self._checkpoint(config), ignore_errors=True)

    def _checkpoint(self, config: Config) -> Path:
        return self.checkpoints / self.run_id(config).folder


@dataclass(frozen=True)
class LargePlan(Plan):
    """All runs of a command whose tables come in parts."""

    def material(self, config: Config) -> Any:
        """See `Plan`."""
        return self.library.parts(config.dataset)

    def size(self, material: Any) -> float:
        """See `Plan`."""
        return float(material.n_rows)

    def workers(
        self,
        materials: Mapping[str, Any],
        n_tasks: int,  # noqa: ARG002
        on_round: OnRound,
    ) -> AbstractContextManager[Workers]:
        """See `Plan`; the workers of a cluster take part in each fit instead."""
        return in_this_process(materials, on_round)

    def tasks(self) -> Iterator[LargeTask]:
        """See `Plan`."""
        by_dataset: dict[Dataset, list[Config]] = {}
        for pair in self.pairs.values():
            by_dataset.setdefault(pair.dataset, []).extend(varied(pair))
        for dataset, configs in by_dataset.items():
            digest = self.library.files_sha256(dataset)
            for seed in self.seeds:
                for config in configs:
                    yield LargeTask(
                        (config.model_copy(update={"seed": seed}),),
                        digest,
                        self.store.root / CHECKPOINTS,
                    )


def large_plan(plan: Plan) -> Plan:
    """The plan itself, or for tables in parts that of their runs."""
    large = [is_large(config) for config in plan.pairs.values()]
    if not any(large):
        for pair in plan.pairs.values():
            _require_whole(pair, plan.library)
        return plan
    if not all(large):
        raise ConfigError("experiment.datasets: some are in parts and some are not; make two grids")
    config = plan.config
    if config.stage not in STAGES:
        raise ConfigError(
            f"stage={config.stage}: is not for tables in parts (dataset.source=parquet with "
            f"engine=lightgbm), which have {', '.join(STAGES)}; dataset=file reads a table whole"
        )
    for pair in plan.pairs.values():
        _require(pair)
    return LargePlan(
        config, plan.overrides, plan.pairs, plan.seeds, plan.store, plan.library, plan.beside
    )


def is_large(config: Config) -> bool:
    """Whether a table is fitted in parts."""
    return config.dataset.source == "parquet" and isinstance(config.engine, Lightgbm)


def _require(config: Config) -> None:
    """Raise `ConfigError` for what is not done with tables in parts."""
    dataset = config.dataset
    if dataset.target_scaling != "none":
        raise ConfigError("dataset.target_scaling: must be none for a table in parts")
    if dataset.positive is not None:
        raise ConfigError("dataset.positive: must be null for a table in parts")
    if dataset.missing == "reject":
        raise ConfigError("dataset.missing: LightGBM takes missing cells of a table in parts")
    if isinstance(config.strategy, Custom):
        raise ConfigError(
            "strategy: a table in parts takes unit, relaxed and adaptive, whose weights are known "
            "from sums over its shards"
        )


def _require_whole(config: Config, library: Library) -> None:
    """Raise `UserError` for what cannot be done with a table in memory."""
    dataset = config.dataset
    if dataset.prediction is not None:
        raise ConfigError("dataset.prediction: is for dataset.source=parquet with engine=lightgbm")
    if dataset.source == "parquet" and config.engine.name == "exact":
        require_exact(dataset.label, library.parts(dataset).n_rows)
