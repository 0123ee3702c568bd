"""What a command works on: its configs, seeds, store and data, put together once and handed on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pipeline.config.compose import Pairs, load_pairs, varied
from pipeline.config.schema import Config, Dataset
from pipeline.datasets.library import Library
from pipeline.runs.keys import ground_key
from pipeline.runs.store import RunId, RunStore
from pipeline.runs.tasks import Task


@dataclass(frozen=True)
class Plan:
    """The runs of a command.

    config : what the command line composed to.
    overrides : the command line's, to name the command again.
    pairs : a config for every (dataset, strategy); of a single run, one.
    """

    config: Config
    overrides: tuple[str, ...]
    pairs: Pairs
    seeds: tuple[int, ...]
    store: RunStore
    library: Library = field(default_factory=Library)

    @property
    def is_grid(self) -> bool:
        """Whether an experiment was asked for rather than one run."""
        return self.config.experiment.is_grid

    @property
    def n_runs(self) -> int:
        """How many runs there are."""
        return sum(len(varied(c)) for c in self.pairs.values()) * len(self.seeds)

    @property
    def datasets(self) -> dict[str, Dataset]:
        """The datasets by their labels, in order."""
        return {config.dataset.label: config.dataset for config in self.pairs.values()}

    @property
    def titles(self) -> dict[str, str]:
        """Display names by label, in order."""
        return {label: dataset.display for label, dataset in self.datasets.items()}

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

    def run_ids(self) -> list[RunId]:
        """The places of all runs, without computing anything."""
        return [task.run_id(config) for task in self.tasks() for config in task.configs]

    def standardised(self) -> Plan:
        """The same runs with standardised targets."""
        return replace(self, pairs={pair: _standardised(c) for pair, c in self.pairs.items()})


def make_plan(config: Config, overrides: Sequence[str] = ()) -> Plan:
    """The plan of a command whose ``overrides`` compose to ``config``."""
    if config.experiment.is_grid:
        pairs, seeds = load_pairs(config, overrides), config.experiment.seeds
    else:
        pairs, seeds = {(config.dataset.label, config.strategy.name): config}, (config.seed,)
    store = RunStore(Path(config.output_dir) / config.experiment.name)
    return Plan(config, tuple(overrides), pairs, seeds, store)


def _standardised(config: Config) -> Config:
    dataset = config.dataset.model_copy(update={"target_scaling": "standardise"})
    return config.model_copy(update={"dataset": dataset})
