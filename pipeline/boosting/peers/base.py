"""What methods that correct a model are given, and what they give back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from pipeline.boosting.arrays import Flags, Floats, Ints
from pipeline.boosting.logloss import log_losses, logit

FEWEST = 0.01  # of the rows: a smaller group is not one to correct by


@dataclass(frozen=True)
class Sample:
    """Rows with a model's predictions of them.

    X : (n, d).  y : (n,) outcomes, 0 and 1 if ``binary``.  f : (n,) the model's predictions
    (probabilities, if binary).  groups : (n, g) whether a row belongs to each of some groups that
    may overlap.  cells : (n,) the cell of the sensitive columns that a row lies in.
    """

    X: Floats
    y: Floats
    f: Floats
    groups: Flags
    cells: Ints
    binary: bool = False

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.y)

    def take(self, rows: Ints) -> Sample:
        """Some of the rows."""
        return replace(
            self, X=self.X[rows], y=self.y[rows], f=self.f[rows], groups=self.groups[rows],
            cells=self.cells[rows],
        )  # fmt: skip

    def __add__(self, other: Sample) -> Sample:
        """These rows, then others."""
        return replace(
            self,
            X=np.vstack([self.X, other.X]),
            y=np.concatenate([self.y, other.y]),
            f=np.concatenate([self.f, other.f]),
            groups=np.vstack([self.groups, other.groups]),
            cells=np.concatenate([self.cells, other.cells]),
        )

    @property
    def with_f(self) -> Floats:
        """(X, f), (n, d + 1)."""
        return np.column_stack([self.X, self.f])

    @property
    def large_groups(self) -> Ints:
        """The groups with enough of these rows."""
        return np.flatnonzero(self.groups.mean(axis=0) >= FEWEST)

    def losses(self, prediction: Floats) -> Floats:
        """Each row's squared error, or log-loss, of which probabilities stay 1e-6 from 0 and 1."""
        if self.binary:
            return log_losses(self.y, logit(prediction))
        return np.square(self.y - prediction)

    def loss(self, prediction: Floats) -> float:
        """Their mean."""
        return float(self.losses(prediction).mean())


@dataclass(frozen=True)
class Corrected:
    """A fitted correction.

    predict : the corrected predictions of rows; their y is not looked at.  rounds : how many it
    took.  stages : the predictions after each round, from round 0 on, where a method has such.
    """

    predict: Callable[[Sample], Floats]
    rounds: int
    stages: Callable[[Sample], Iterator[Floats]] | None = None


class Method(Protocol):
    """A way to correct a model; its options are the fields of a dataclass."""

    def __init__(self, **options: Any) -> None:
        """With options by name."""
        ...

    @property
    def validates(self) -> bool:
        """Whether validation rows are kept apart; else they are rows like the others."""
        ...

    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:
        """Learn from rows to correct; ``validation`` is for choosing and stopping."""
        ...


@dataclass(frozen=True)
class Range:
    """Targets and predictions as shares of an interval, for methods that are made for [0, 1]."""

    low: float
    high: float

    @classmethod
    def of(cls, sample: Sample) -> Range:
        """The range of the outcomes; of classes, [0, 1]."""
        if sample.binary:
            return cls(0.0, 1.0)
        return cls(float(sample.y.min()), float(sample.y.max()))

    def to(self, values: Floats) -> Floats:
        """Values as shares, without those outside."""
        width = self.high - self.low
        return np.clip((values - self.low) / (width if width > 0 else 1.0), 0.0, 1.0)

    def back(self, shares: Floats) -> Floats:
        """The inverse of `to`."""
        return self.low + shares * (self.high - self.low)
