"""What a kind of run says of itself; plans, tasks, grids and stores know no more than this."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from pipeline.config.schema import STAGES, Config, Dataset
from pipeline.datasets.library import Library
from pipeline.runs import provenance
from pipeline.runs.keys import Key
from pipeline.runs.store import Initial

Row = dict[str, Any]
OnRound = Callable[[Row], None]


def ignore_round(_: Row) -> None:
    """The default of ``on_round``."""


@dataclass(frozen=True)
class Run:
    """A finished run."""

    rounds: pd.DataFrame  # the table that is stored
    record: dict[str, Any]  # what ``run.json`` says besides the key
    headline: str  # how it ended, for a progress bar


@dataclass(frozen=True)
class Setting:
    """What the runs of one task are computed from."""

    config: Config  # of the first of them
    data_sha256: str
    material: Any  # see `Kind.material`
    initial: Initial | None  # f_0 as stored, if it is
    checkpoints: Path  # a folder for what unfinished runs leave


class Kind(ABC):
    """A kind of run."""

    name: ClassVar[str]  # of its module, and in ``experiment.kind``
    title: ClassVar[str]  # what its runs are, in words
    # The groups of the configuration that tell its runs apart, besides the seed
    axes: ClassVar[tuple[str, ...]]
    folder: ClassVar[str] = "runs"  # where its runs are stored, below the experiment's folder
    # Those that its runs have; ``otherwise`` says what to do for others
    stages: ClassVar[Sequence[str]] = tuple(STAGES)
    otherwise: ClassVar[str] = ""
    # Names of kinds that take its place for configs to which one `applies`
    alternatives: ClassVar[tuple[str, ...]] = ()
    shows_rounds: ClassVar[bool] = True  # whether a single run is shown round by round
    # Whether f_0 is stored apart, for other runs of the same task
    keeps_initial: ClassVar[bool] = False
    # Whether its runs are computed in the driver's process, because each of them uses workers by
    # itself
    in_driver: ClassVar[bool] = False
    # Whether checkpoints stay when a run is stored, so that a longer one continues it
    keeps_checkpoints: ClassVar[bool] = False

    def applies(self, config: Config) -> bool:  # noqa: ARG002
        """Whether it takes the place of a kind of which it is an alternative."""
        return False

    def check(self, config: Config) -> None:  # noqa: B027
        """Raise `UserError` for a config that cannot be run."""

    @abstractmethod
    def label(self, config: Config) -> str:
        """What a run is called among those of its dataset and seed; part of its folder."""

    @abstractmethod
    def key(self, config: Config, data_sha256: str) -> Key:
        """All that a run's numbers depend on, and nothing else (no paths, workers or sources)."""

    @abstractmethod
    def ground_key(self, config: Config) -> str:
        """What runs of one dataset and seed must have in common to share their ground."""

    def checkpoint_key(self, config: Config, data_sha256: str) -> Key:
        """What runs must have in common to continue each other's checkpoints."""
        return self.key(config, data_sha256)

    def digest(self, library: Library, dataset: Dataset) -> str:
        """A hash of a dataset's content."""
        return library.sha256(dataset)

    def material(self, library: Library, dataset: Dataset) -> Any:
        """What all runs of a dataset are computed from."""
        return library.design(dataset)

    def advice(self, config: Config, material: Any) -> str:  # noqa: ARG002
        """What a user should know before a run of this material begins; nothing: nothing."""
        return ""

    @abstractmethod
    def size(self, material: Any) -> float:
        """How large a dataset's material is, in units of `cost`."""

    @abstractmethod
    def cost(self, config: Config, size: float) -> float:
        """A rough guess of a run's time, to start long ones first and to tell the time left."""

    @abstractmethod
    def ground(self, setting: Setting) -> Any:
        """What the runs of one task share; an attribute ``initial``, if `keeps_initial`."""

    @abstractmethod
    def run(self, config: Config, ground: Any, on_round: OnRound) -> Run:
        """Compute one run; ``on_round`` is called after every round."""


def record_of(
    config: Config, data_sha256: str, seconds: float, sizes: dict[str, Any], **more: Any
) -> dict[str, Any]:
    """What ``run.json`` says of a run besides its key; ``more`` depends on the kind."""
    return {
        "config": config.model_dump(mode="json"),
        "data_sha256": data_sha256,
        "duration_seconds": round(seconds, 4),
        "sizes": sizes,
        **more,
        **provenance.describe(),
    }
