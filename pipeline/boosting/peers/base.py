"""The interface of methods that correct a model's predictions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, get_args, get_origin, get_type_hints

import numpy as np

from ..arrays import Flags, Floats, Ints
from ..rows import PredictedRows

PLAIN = {int, float, bool, type(None)}  # types of options that are checked
SMALLEST_GROUP = 0.01  # share of the rows; predictions are not corrected by smaller groups


@dataclass(frozen=True, kw_only=True)
class Sample(PredictedRows):
    """Rows with a model's predictions, which are to be corrected."""

    X: Floats  # (n, d)
    groups: Flags  # (n, g) whether a row belongs to each of g groups, which may overlap
    cells: Ints  # (n,) the cell of the sensitive columns that a row lies in

    @property
    def with_f(self) -> Floats:
        """(X, f), (n, d + 1)."""
        return np.column_stack([self.X, self.f])

    @property
    def large_groups(self) -> Ints:
        """The groups that have at least a share of `SMALLEST_GROUP` of these rows."""
        return np.flatnonzero(self.groups.mean(axis=0) >= SMALLEST_GROUP)


@dataclass(frozen=True)
class Corrected:
    """A fitted correction."""

    # Returns the corrected predictions of rows; it does not use their y
    predict: Callable[[Sample], Floats]
    rounds: int  # the number of rounds that it uses
    # Yields the predictions after each round, from round 0 on; None if the method has no rounds
    stages: Callable[[Sample], Iterator[Floats]] | None = None
    # What is known of the rows that it was fitted to, by name
    training: Mapping[str, float] = field(default_factory=dict)


class Method(Protocol):
    """A method that corrects a model, as a frozen dataclass of its options.

    The first line of a method's docstring is its summary.
    """

    name: ClassVar[str]  # what configs call it
    needs: ClassVar[str | None] = None  # the optional package that it imports, or None
    cost: ClassVar[float] = 1.0  # roughly how long a fit takes, relative to the other methods
    # Whether `fit` uses the validation rows, or the option that says so
    validates_by: ClassVar[str | bool] = False

    def __init__(self, **options: Any) -> None: ...

    def __post_init__(self) -> None:
        """Raise ValueError for an option that is none of what its type names."""
        for name, kind in get_type_hints(type(self)).items():
            value, allowed = getattr(self, name, None), get_args(kind) or (kind,)
            if get_origin(kind) is Literal and value not in allowed:
                raise ValueError(f"{name}={value}: must be one of {', '.join(allowed)}")
            if set(allowed) <= PLAIN:
                kinds = (*allowed, int) if float in allowed else allowed
                if not isinstance(value, kinds):
                    words = " or ".join(one.__name__ for one in allowed)
                    raise ValueError(f"{name}={value}: must be of type {words}")

    @property
    def validates(self) -> bool:
        """Whether `fit` uses the validation rows; otherwise they may be added to the sample."""
        by = self.validates_by
        return bool(getattr(self, by)) if isinstance(by, str) else by

    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:
        """Fit the correction to a sample; ``validation`` is for choosing and stopping."""
        ...

    @classmethod
    def summary(cls) -> str:
        """Return what the method does, in one line."""
        return (inspect.getdoc(cls) or "").partition("\n")[0]


@dataclass(frozen=True)
class Range:
    """An interval that targets and predictions are mapped from, for methods made for [0, 1]."""

    low: float
    high: float

    @classmethod
    def of(cls, sample: Sample) -> Range:
        """Return the range of the outcomes; [0, 1] for binary ones."""
        if sample.binary:
            return cls(0.0, 1.0)
        return cls(float(sample.y.min()), float(sample.y.max()))

    def shares(self, values: Floats) -> Floats:
        """Map the range to [0, 1], and values outside of it beyond."""
        width = self.high - self.low
        return (values - self.low) / (width if width > 0 else 1.0)

    def to(self, values: Floats) -> Floats:
        """Map values to [0, 1]; those outside of the range are clipped."""
        return np.clip(self.shares(values), 0.0, 1.0)

    def back(self, shares: Floats) -> Floats:
        """Map values of [0, 1] back to the range; the inverse of `to`."""
        return self.low + shares * (self.high - self.low)
