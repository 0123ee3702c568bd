"""What a command works on: its configs, seeds, store and data, put together once and handed on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.config.compose import Pairs, load_pairs, varied
from pipeline.config.schema import Config, Dataset
from pipeline.datasets.library import Library
from pipeline.datasets.manifest import manifest
from pipeline.errors import ConfigError
from pipeline.paths import REFERENCE
from pipeline.runs.engines import engine_of
from pipeline.runs.keys import ground_key, key_hash, run_key
from pipeline.runs.run import OnRound
from pipeline.runs.store import RunId, RunStore
from pipeline.runs.strategies import labels_of, rescaling_of
from pipeline.runs.tasks import Task, cost, size
from pipeline.runs.workers import Workers, open_workers

PAPER, OWN = "paper", "own"  # where runs go that name no experiment
RESERVED = ("audit", "compare", "figures", "tune")  # what stages write beside experiments


@dataclass(frozen=True)
class Plan:
    """The runs of a command.

    config : what the command line composed to.
    overrides : the command line's, to name the command again.
    pairs : a config for every (dataset, strategy); of a single run, one.
    beside : other commands write to the same terminal at the same time.
    """

    config: Config
    overrides: tuple[str, ...]
    pairs: Pairs
    seeds: tuple[int, ...]
    store: RunStore
    library: Library = field(default_factory=Library)
    beside: bool = False

    @property
    def is_grid(self) -> bool:
        """Whether an experiment was asked for rather than one run."""
        return self.config.experiment.is_grid

    @property
    def n_runs(self) -> int:
        """How many runs there are."""
        return len(self.configs) * len(self.seeds)

    @property
    def datasets(self) -> dict[str, Dataset]:
        """The datasets by their labels, in order."""
        return {config.dataset.label: config.dataset for config in self.pairs.values()}

    @property
    def titles(self) -> dict[str, str]:
        """Display names by label, in order."""
        return {label: dataset.display for label, dataset in self.datasets.items()}

    @property
    def configs(self) -> list[Config]:
        """The configs of all runs but for their seeds."""
        return [config for pair in self.pairs.values() for config in varied(pair)]

    @property
    def strategy_labels(self) -> dict[str, str]:
        """What to call each strategy in tables and figures; see `labels_of`."""
        return labels_of(config.strategy for config in self.configs)

    def tasks(self) -> Iterator[Task]:
        """Every (dataset, seed) with all its strategies; apart, what shares no common ground."""
        grounds: dict[tuple[str, str], list[Config]] = {}
        for (dataset, _), pair in self.pairs.items():
            for config in varied(pair):
                grounds.setdefault((dataset, ground_key(config)), []).append(config)
        for configs in grounds.values():
            digest = self.library.sha256(configs[0].dataset)
            for seed in self.seeds:
                yield Task(tuple(c.model_copy(update={"seed": seed}) for c in configs), digest)

    def material(self, config: Config) -> Any:
        """What the runs of a dataset are computed from."""
        return self.library.design(config.dataset)

    def size(self, material: Any) -> float:
        """How large a dataset's `material` is; see `tasks.size`."""
        return size(material)

    def workers(
        self, materials: Mapping[str, Any], n_tasks: int, on_round: OnRound
    ) -> AbstractContextManager[Workers]:
        """Whoever computes the tasks."""
        return open_workers(self.config.grid, materials, n_tasks, on_round)

    def cost(self, config: Config, size: float) -> float:
        """A guess of a run's time on a table of some `tasks.size`."""
        return cost(config, size)

    def run_ids(self) -> list[RunId]:
        """The places of all runs, without computing anything."""
        return [task.run_id(config) for task in self.tasks() for config in task.configs]


def make_plan(config: Config, overrides: Sequence[str] = (), *, beside: bool = False) -> Plan:
    """The plan of a command whose ``overrides`` compose to ``config``."""
    if config.experiment.is_practice != (config.stage == "practice") and config.experiment.is_grid:
        raise ConfigError(
            f"stage={config.stage}: needs a grid of strategies, such as experiment=paper"
            if config.experiment.is_practice
            else "stage=practice: needs a grid of situations and methods, such as "
            "experiment=practice"
        )
    if config.experiment.is_grid and not config.experiment.is_practice:
        pairs, seeds = load_pairs(config, overrides), config.experiment.seeds
    else:
        pairs = {(config.dataset.label, config.strategy.label): config}
        seeds = config.experiment.seeds or (config.seed,)
    engine_of(config)  # it may not be installed
    _check_strategies(pairs)
    store = RunStore(_folder(config))
    return Plan(config, tuple(overrides), pairs, seeds, store, beside=beside)


def _check_strategies(pairs: Pairs) -> None:
    """Raise `ConfigError` for a strategy that is not there, or there twice."""
    seen: dict[tuple[str, str], str] = {}
    for (dataset, choice), pair in pairs.items():
        for config in varied(pair):
            rescaling_of(config.strategy)
            other = seen.setdefault((dataset, key_hash(run_key(config, ""))), choice)
            if other != choice:
                raise ConfigError(
                    f"experiment.strategies: {other} and {choice} describe the same runs"
                )


def _folder(config: Config) -> Path:
    """Where the runs of a command are kept; never in the committed reference."""
    known = config.dataset.label in manifest()
    name = config.experiment.name or (PAPER if known else OWN)
    if name in RESERVED:
        raise ConfigError(f"experiment.name={name}: is a folder of its own; choose another name")
    folder = Path(config.output_dir) / name
    if folder.resolve().is_relative_to(REFERENCE):
        raise ConfigError(
            f"experiment.name={folder.name}: {folder} holds the committed reference result, which "
            "no experiment writes to; choose another name"
        )
    return folder
