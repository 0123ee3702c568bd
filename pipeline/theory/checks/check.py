"""A check: a measured value beside its bound.

An inequality holds if ``measured ≤ bound``; an identity's ``measured`` is its relative error and
its bound is rounding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from pipeline.boosting.arrays import Floats

ROUNDING = 1e-12


@dataclass(frozen=True)
class Check:
    """A measured value beside its bound.

    regime : the kind of instance it was measured on, where a statement is tried in several.
    """

    measured: float
    bound: float
    regime: str = ""

    @property
    def ratio(self) -> float:
        """measured / bound: how much of the bound is used."""
        return self.measured / self.bound if self.bound > 0 else float(self.measured > 0)

    @property
    def holds(self) -> bool:
        """Up to rounding."""
        room = 1e-9 * max(abs(self.bound), abs(self.measured), 1e-300)
        return bool(self.measured <= self.bound + room)


def identity(left: Floats | float, right: Floats | float, scale: float | None = None) -> Check:
    """An identity's error relative to the size of its sides (or to ``scale``)."""
    left, right = np.asarray(left), np.asarray(right)
    size = scale or max(float(np.abs(left).max()), float(np.abs(right).max()), 1e-300)
    return Check(float(np.abs(left - right).max()) / size, ROUNDING)


def labelled(regime: str, checks: Iterable[Check]) -> Iterator[Check]:
    """The same checks, of a named regime."""
    return (replace(check, regime=regime) for check in checks)


def worst_prefix(values: Floats, bounds: Floats) -> Check:
    """A bound on the smallest of the first T values, for the T that uses most of it.

    values : (T,), of each round;  bounds : (T,), of every number of rounds.
    """
    smallest = np.minimum.accumulate(values)
    k = int((smallest / bounds).argmax())
    return Check(float(smallest[k]), float(bounds[k]))
