"""A check: a measured value beside its bound.

An inequality holds if ``measured ≤ bound``. Of an identity the relative error is measured, and
rounding is the bound.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from pipeline.boosting.arrays import Floats

ROUNDING = 1e-12


@dataclass(frozen=True)
class Check:
    """A measured value beside its bound."""

    measured: float
    bound: float
    # The kind of instance it was measured on, where a statement is tried in several
    regime: str = ""

    @property
    def ratio(self) -> float:
        """measured / bound: the share of the bound that is used."""
        return self.measured / self.bound if self.bound > 0 else float(self.measured > 0)

    @property
    def holds(self) -> bool:
        """Whether measured ≤ bound, up to rounding."""
        room = 1e-9 * max(abs(self.bound), abs(self.measured), 1e-300)
        return bool(self.measured <= self.bound + room)


T = TypeVar("T")
CheckOf = Callable[[T], Check | tuple[Check, ...]]  # what checks a run, once or in several ways


def norm(v: Floats) -> float:
    """‖v‖₂ of a vector."""
    return float(np.linalg.norm(v))


def distance(A: Floats, B: Floats) -> float:
    """The spectral norm ‖A − B‖₂ of two matrices."""
    return float(np.linalg.norm(A - B, 2))


def identity(left: Floats | float, right: Floats | float, scale: float | None = None) -> Check:
    """An identity's error relative to the size of its sides (or to ``scale``)."""
    size = scale or max(np.abs(left).max(), np.abs(right).max(), 1e-300)
    return Check(np.abs(left - right).max() / size, ROUNDING)


def worst(values: Floats, bounds: Floats) -> Check:
    """The check of the round that uses the largest share of its bound; both (T,)."""
    k = int((values / bounds).argmax())
    return Check(values[k], bounds[k])


def worst_prefix(values: Floats, bounds: Floats) -> Check:
    """A bound on the smallest of the first T values, for the T that uses the largest share of it.

    values : (T,), of each round;  bounds : (T,), of every number of rounds.
    """
    return worst(np.minimum.accumulate(values), bounds)


def by_regime(checks: Mapping[str, Iterable[Check]]) -> list[Check]:
    """Checks, each marked with the regime under whose name it is given."""
    return [replace(check, regime=name) for name, some in checks.items() for check in some]


def check_runs(check: CheckOf[T], runs: Iterable[T] | Mapping[str, Iterable[T]]) -> list[Check]:
    """The checks of all runs.

    runs : in a list or, in a mapping of lists, by the regime that their checks are marked with.
    """
    found = []
    for name, some in runs.items() if isinstance(runs, Mapping) else [("", runs)]:
        for run in some:
            checks = check(run)
            several = checks if isinstance(checks, tuple) else (checks,)
            found += [replace(c, regime=name) if name else c for c in several]
    return found
