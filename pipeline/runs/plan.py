"""What a command works on: its configs, seeds, store and data, put together once and handed on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.config.compose import load_grid, varied
from pipeline.config.schema import AXES, Config, Dataset
from pipeline.datasets.library import Library
from pipeline.datasets.manifest import manifest
from pipeline.errors import ConfigError, UserError
from pipeline.paths import REFERENCE
from pipeline.runs.keys import key_hash
from pipeline.runs.kinds import kind_named, kind_of
from pipeline.runs.kinds.base import Kind
from pipeline.runs.store import CorruptRun, RunId, RunStore, StoredRun
from pipeline.runs.tasks import Task

PAPER, OWN = "paper", "own"  # where runs go that name no experiment
RESERVED = ("audit", "compare", "figures")  # folders that stages write to
CHECKPOINTS = "checkpoints"


class MissingRunsError(UserError):
    """The store lacks runs of the experiment."""


@dataclass(frozen=True)
class Plan:
    """The runs of a command."""

    config: Config  # what the command line composed to
    overrides: tuple[str, ...]  # the command line's, to name the command again
    kind: Kind  # the kind of all runs
    configs: tuple[Config, ...]  # those of all runs but for their seeds
    seeds: tuple[int, ...]
    store: RunStore
    library: Library = field(default_factory=Library)
    notes: Path | None = None  # of a job of a multirun: where it leaves what its run came to

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
        return {config.dataset.label: config.dataset for config in self.configs}

    @property
    def titles(self) -> dict[str, str]:
        """Display names by label, in order."""
        return {label: dataset.display for label, dataset in self.datasets.items()}

    def tasks(self) -> Iterator[Task]:
        """All runs, those together that share their ground."""
        grounds: dict[tuple[str, str], list[Config]] = {}
        for config in self.configs:
            place = (config.dataset.label, self.kind.ground_key(config))
            grounds.setdefault(place, []).append(config)
        for configs in grounds.values():
            digest = self.kind.digest(self.library, configs[0].dataset)
            for seed in self.seeds:
                seeded = tuple(c.model_copy(update={"seed": seed}) for c in configs)
                yield Task(self.kind, seeded, digest, self.store.root / CHECKPOINTS)

    def run_ids(self) -> list[RunId]:
        """The places of all runs, without computing anything."""
        return [run_id for run_id, _ in self._runs()]

    def stored(self) -> list[tuple[RunId, Config, StoredRun]]:
        """All runs from the store; raises `MissingRunsError` if some are not there."""
        loaded, missing = [], []
        for run_id, config in self._runs():
            try:
                stored = self.store.load(run_id)
            except CorruptRun:
                stored = None
            if stored is None:
                missing.append(str(run_id))
            else:
                loaded.append((run_id, config, stored))
        if missing:
            raise MissingRunsError(
                f"{len(missing)} of {len(missing) + len(loaded)} runs are not in {self.store.root} "
                f"(the first is {missing[0]}); compute them with stage=run"
            )
        return loaded

    def _runs(self) -> Iterator[tuple[RunId, Config]]:
        for task in self.tasks():
            for config in task.configs:
                yield task.run_id(config), config


def make_plan(config: Config, overrides: Sequence[str] = (), notes: Path | None = None) -> Plan:
    """The plan of a command whose ``overrides`` compose to ``config``."""
    experiment = config.experiment
    named = kind_named(experiment.kind)
    _check_axes(config, named)
    chosen = load_grid(config, overrides, named.axes) if experiment.is_grid else {(): config}
    kind = kind_of(list(chosen.values()))
    if config.stage not in kind.stages:
        raise ConfigError(
            f"stage={config.stage}: is not for {kind.title}, which have {', '.join(kind.stages)}"
            + (f"; {kind.otherwise}" if kind.otherwise else "")
        )
    variants = {names: varied(one) for names, one in chosen.items()}
    _check_choices(variants, kind)
    configs = tuple(c for some in variants.values() for c in some)
    for one in configs:
        kind.check(one)
    seeds, store = experiment.seeds or (config.seed,), RunStore(_folder(config), kind.folder)
    return Plan(config, tuple(overrides), kind, configs, seeds, store, Library(), notes)


def _check_axes(config: Config, kind: Kind) -> None:
    """Raise `ConfigError` unless all axes of the kind are given, or none, and no others."""
    experiment = config.experiment
    needed = {AXES[group]: bool(experiment.axis(group)) for group in kind.axes}
    given = needed | {"seeds": experiment.is_grid}
    *some, last = given
    if any(given.values()) and not all(given.values()):
        raise ConfigError(
            f"experiment: {', '.join(some)} and {last} must all be given for a grid of kind "
            f"{kind.name}, or all be empty for one run"
        )
    others = [axis for axis in AXES.values() if axis not in needed and getattr(experiment, axis)]
    if others:
        raise ConfigError(
            f"experiment.{others[0]}: a grid of kind {kind.name} has {', '.join(needed)} instead"
        )


def _check_choices(variants: Mapping[tuple[str, ...], Sequence[Config]], kind: Kind) -> None:
    """Raise `ConfigError` for two choices of an axis that describe the same runs."""
    seen: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for names, configs in variants.items():
        for config in configs:
            place = (config.dataset.label, kind.label(config), key_hash(kind.key(config, "")))
            for group, a, b in zip(kind.axes, seen.setdefault(place, names), names, strict=False):
                if a != b:
                    raise ConfigError(
                        f"experiment.{AXES[group]}: {a} and {b} describe the same runs"
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
