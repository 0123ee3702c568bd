"""The runs of ``stage=practice``: their keys, tasks and place."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.boosting.peers.algorithm import estimator_defaults
from pipeline.config.compose import load_cases, varied
from pipeline.config.schema import Config, Dataset
from pipeline.datasets.design import Design
from pipeline.errors import ConfigError
from pipeline.runs.keys import Key, dataset_key, key_hash
from pipeline.runs.plan import Plan
from pipeline.runs.practice import run
from pipeline.runs.practice.methods import candidates, require_package
from pipeline.runs.run import OnRound, unheard
from pipeline.runs.store import Initial, RunId, RunStore
from pipeline.runs.tasks import Failure, Outcome, Task, tried

# Bump by hand when the same config starts to give other numbers; stored runs then count as stale.
NUMERICS = 1
CASES = "cases"  # the folder of the runs: they are of another kind than others
# How long a fit takes beside another, roughly.
WEIGHTS = {"mcgrad": 8.0, "algorithm": 4.0, "histogram": 2.0}
CLASSES = 3.0  # times as long as numbers


def practice_key(config: Config, data_sha256: str) -> Key:
    """All that a run's numbers depend on."""
    method: dict[str, Any] = config.method.model_dump(mode="json", exclude={"name", "title"})
    if config.method.kind == "estimator":  # its defaults are part of what it does
        method["options"] = estimator_defaults() | method["options"]
    return {
        "practice": NUMERICS,
        "data": data_sha256,
        "dataset": dataset_key(config.dataset) | {"sensitive": list(config.dataset.sensitive)},
        "name": config.dataset.label,
        "seed": config.seed,
        "situation": config.situation.model_dump(mode="json", exclude={"name", "title"}),
        "method": method,
        "audit": config.audit.model_dump(mode="json", include={"trees", "depth"}),
    }


@dataclass(frozen=True)
class PracticeTask(Task):
    """Some methods of one (dataset, situation, seed)."""

    keeps_initial: ClassVar[bool] = False

    def run_id(self, config: Config) -> RunId:
        """See `Task`."""
        name = f"{config.situation.name}-{config.method.name}"
        return RunId(self.dataset, name, self.seed, practice_key(config, self.data_sha256))

    def compute(
        self,
        design: Design,
        initial: Initial | None,  # noqa: ARG002
        on_round: OnRound = unheard,  # noqa: ARG002
    ) -> Outcome:
        """See `Task`."""
        started = time.perf_counter()
        try:
            ground = run.Ground.of(self.configs[0], design)
        except Exception as error:
            return Outcome((Failure.of(error),) * len(self.configs))
        runs = tuple(tried(lambda c: run.run(c, ground), c) for c in self.configs)
        return Outcome(runs, None, time.perf_counter() - started)

    def __str__(self) -> str:
        """For logs."""
        return f"{self.dataset} {self.configs[0].situation.name} seed={self.seed}"


@dataclass(frozen=True)
class PracticePlan(Plan):
    """All runs of a dataset × situation × method × seed grid, or one of them."""

    cases: tuple[Config, ...] = ()

    @property
    def is_grid(self) -> bool:
        """Its progress is counted in runs, be it one."""
        return True

    @property
    def configs(self) -> list[Config]:
        """See `Plan`."""
        return list(self.cases)

    @property
    def datasets(self) -> dict[str, Dataset]:
        """See `Plan`."""
        return {config.dataset.label: config.dataset for config in self.cases}

    def cost(self, config: Config, size: float) -> float:
        """See `Plan`."""
        weight = WEIGHTS.get(config.method.kind, 1.0) * (config.method.n_candidates + 1)
        return size * weight * (1.0 if config.dataset.positive is None else CLASSES)

    def tasks(self) -> Iterator[PracticeTask]:
        """Every (dataset, situation, seed) with all its methods."""
        grounds: dict[tuple[str, str], list[Config]] = {}
        for config in self.cases:
            place = (config.dataset.label, key_hash(config.situation.model_dump(mode="json")))
            grounds.setdefault(place, []).append(config)
        for configs in grounds.values():
            digest = self.library.sha256(configs[0].dataset)
            for seed in self.seeds:
                yield PracticeTask(
                    tuple(c.model_copy(update={"seed": seed}) for c in configs), digest
                )


def _require(config: Config) -> None:
    """Raise `ConfigError` for what this stage does not do."""
    others = [key for key in config.experiment.further if not key.startswith("method.options.")]
    if others:
        raise ConfigError(
            f"stage=practice: varies keys of method.options alone, not {', '.join(others)}"
        )
    if config.dataset.target_scaling != "none":
        raise ConfigError("stage=practice: is of targets as they are (dataset.target_scaling=none)")


def practice_plan(plan: Plan) -> PracticePlan:
    """The runs of a command of ``stage=practice``."""
    config = plan.config
    _require(config)
    whole = load_cases(config, plan.overrides) if config.experiment.is_practice else [config]
    cases = tuple(variant for case in whole for variant in varied(case))
    for situation in {c.situation.name: c.situation for c in cases}.values():
        if situation.model in {"boosted", "truth"}:
            require_package("lightgbm", f"situation={situation.name}")
    for method in {key_hash(c.method.model_dump(mode="json")): c.method for c in cases}.values():
        candidates(method)  # it may not be installed, or have no such option
    return PracticePlan(
        config, plan.overrides, plan.pairs, plan.seeds, RunStore(plan.store.root, CASES),
        plan.library, plan.beside, cases,
    )  # fmt: skip
