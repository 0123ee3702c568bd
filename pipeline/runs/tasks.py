"""The unit of work: runs of one (dataset, seed) that share their ground."""

from __future__ import annotations

import shutil
import time
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipeline.config.schema import Config
from pipeline.errors import UserError
from pipeline.runs.keys import Key, initial_key
from pipeline.runs.kinds.base import Kind, OnRound, Run, Setting, ignore_round
from pipeline.runs.store import Initial, RunId


@dataclass(frozen=True)
class Task:
    """Some runs of one (dataset, seed)."""

    kind: Kind
    configs: tuple[Config, ...]
    data_sha256: str
    checkpoints: Path = Path()  # a folder for what unfinished runs leave

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
        key = self.kind.key(config, self.data_sha256)
        return RunId(self.dataset, self.kind.label(config), self.seed, key)

    def compute(
        self, material: Any, initial: Initial | None, on_round: OnRound = ignore_round
    ) -> Outcome:
        """All of its runs; one that fails does not harm the others."""
        started = time.perf_counter()
        first = self.configs[0]
        try:
            ground = self.kind.ground(
                Setting(first, self.data_sha256, material, initial, self._checkpoint(first))
            )
        except Exception as error:
            return Outcome((Failure.of(error),) * len(self.configs))
        runs = tuple(self._tried(config, ground, on_round) for config in self.configs)
        fitted = ground.initial if self.kind.keeps_initial and initial is None else None
        return Outcome(runs, fitted, time.perf_counter() - started)

    def forget(self, config: Config) -> None:
        """Remove what one of its runs left on the way, because the run is stored."""
        if not self.kind.keeps_checkpoints:
            shutil.rmtree(self._checkpoint(config), ignore_errors=True)

    def _tried(self, config: Config, ground: Any, on_round: OnRound) -> Run | Failure:
        try:
            return self.kind.run(config, ground, on_round)
        except Exception as error:
            return Failure.of(error)

    def _checkpoint(self, config: Config) -> Path:
        key = self.kind.checkpoint_key(config, self.data_sha256)
        return self.checkpoints / replace(self.run_id(config), key=key).folder


@dataclass(frozen=True)
class Failure:
    """Why there is no run: a sentence, and the traceback for a file."""

    sentence: str
    traceback: str
    foreseen: bool = False  # the sentence tells the user all there is to know

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """The failure behind an exception that is being handled."""
        foreseen = isinstance(error, UserError)
        name = "" if foreseen else f"{type(error).__name__}: "
        return cls(f"{name}{error}", traceback.format_exc(), foreseen)


@dataclass(frozen=True)
class Outcome:
    """What a worker sends back: a run or a failure per config, and f_0 if it was fitted."""

    runs: tuple[Run | Failure, ...]
    initial: Initial | None = None
    seconds: float = 0.0
