"""The unit of work: a (dataset, seed), whose strategies share what `CommonGround` holds."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pipeline.config.schema import Config
from pipeline.datasets.design import Design
from pipeline.errors import UserError
from pipeline.runs import run
from pipeline.runs.keys import Key, initial_key, run_key
from pipeline.runs.store import Initial, RunId


@dataclass(frozen=True)
class Task:
    """Some strategies of one (dataset, seed).

    keeps_initial : whether f_0 is stored apart, for other strategies.
    """

    configs: tuple[Config, ...]
    data_sha256: str

    keeps_initial: ClassVar[bool] = True

    @property
    def dataset(self) -> str:
        """The dataset's short name."""
        return self.configs[0].dataset.label

    @property
    def seed(self) -> int:
        """The seed of all its runs."""
        return self.configs[0].seed

    @property
    def initial_key(self) -> Key:
        """What the f_0 of all its runs depends on."""
        return initial_key(self.configs[0], self.data_sha256)

    def run_id(self, config: Config) -> RunId:
        """The place in the store of one of its runs."""
        return RunId(
            self.dataset, config.strategy.label, self.seed, run_key(config, self.data_sha256)
        )

    def compute(
        self, design: Design, initial: Initial | None, on_round: run.OnRound = run.unheard
    ) -> Outcome:
        """All of its runs; one that fails does not harm the others."""
        started = time.perf_counter()
        try:
            ground = run.CommonGround(self.configs[0], design, initial)
        except Exception as error:
            return Outcome((Failure.of(error),) * len(self.configs))
        runs = tuple(tried(lambda c: run.run(c, ground, on_round), c) for c in self.configs)
        fitted = ground.initial if initial is None else None
        return Outcome(runs, fitted, time.perf_counter() - started)

    def stored(self, config: Config) -> None:
        """One of its runs is in the store; what it left on the way may go."""

    def __str__(self) -> str:
        """For logs."""
        return f"{self.dataset} seed={self.seed}"


def tried(compute: Callable[[Config], run.Run], config: Config) -> run.Run | Failure:
    """The run of a config, or why there is none."""
    try:
        return compute(config)
    except Exception as error:
        return Failure.of(error)


@dataclass(frozen=True)
class Failure:
    """Why there is no run: a sentence, and the whole story for a file.

    foreseen : the sentence tells the user all there is to know.
    """

    sentence: str
    story: str
    foreseen: bool = False

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """The failure behind an exception that is being handled."""
        foreseen = isinstance(error, UserError)
        name = "" if foreseen else f"{type(error).__name__}: "
        return cls(f"{name}{error}", traceback.format_exc(), foreseen)


@dataclass(frozen=True)
class Outcome:
    """What a worker sends back: a run or a failure per config, and f_0 if it was fitted."""

    runs: tuple[run.Run | Failure, ...]
    initial: Initial | None = None
    seconds: float = 0.0


AUDIT_IN_TREES = 50  # a round's audit takes about as long as this many of its trees


def size(design: Design) -> float:
    """What a tree's time goes with, measured on the paper's datasets: rows and histogram bins."""
    bins = sum(min(len(np.unique(column)), 256) for column in design.X[:2000].T)
    return float(len(design.y) + bins)


def cost(config: Config, size_: float) -> float:
    """A rough guess of a run's time, to start long ones first and to tell the time left."""
    return size_ * (config.boosting.rounds + 1) * (config.boosting.trees + AUDIT_IN_TREES)
