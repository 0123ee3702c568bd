"""The rescaling weights w_t of Algorithm 1: f_{t+1} = w_t φ_t with φ_t = f_t + η h_t.

The fields of a strategy say what they allow, which the configuration of the experiments reads. A
strategy of your own is any object with a ``weight(t, y, phi)`` method (where rows have weights,
they are the fourth argument):

>>> class Halfway:
...     def weight(self, t, y, phi):
...         return 1.0 if t else 0.5

For a table in parts, whose rows no process holds together, it needs a ``reduced_weight(t, each)``
method as well, or instead; see `Reduced`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .arrays import Floats


@runtime_checkable
class Rescaling(Protocol):
    """A strategy that turns a round's candidate φ_t into the next predictor."""

    def weight(self, t: int, y: Floats, phi: Floats, sample_weight: Floats | None = None) -> float:
        """Return the weight of a round.

        Parameters
        ----------
        t : int
            The round, from 0.
        y : array of shape (n,)
            The outcomes of the training rows.
        phi : array of shape (n,)
            Their candidate φ_t = f_t + η h_t.
        sample_weight : array of shape (n,), optional
            Their weights.

        Returns
        -------
        float
            The weight w_t.
        """
        ...


# Maps a function of (y, phi, sample_weight) to its results on the rows of each shard, in order.
Each = Callable[[Callable[[Floats, Floats, Floats | None], Any]], list[Any]]


@runtime_checkable
class Reduced(Protocol):
    """A strategy whose weight follows from sums, or the like, over the shards of a table.

    ``each(function)`` returns the list of ``function(y, phi, sample_weight)`` of all shards; the
    last argument is None without weights. The function travels to the workers.
    """

    def reduced_weight(self, t: int, each: Each) -> float:
        """Return the weight w_t of a round."""
        ...


@dataclass(frozen=True)
class Unit(Rescaling, Reduced):
    """The strategy w_t = 1."""

    name = "unit"

    def weight(self, t: int, y: Floats, phi: Floats, sample_weight: Floats | None = None) -> float:
        return 1.0

    def reduced_weight(self, t: int, each: Each) -> float:
        return 1.0


@dataclass(frozen=True)
class Relaxed(Rescaling, Reduced):
    """The strategy w_t = 1 − (t + offset)^(−exponent); the paper takes 1 − (t + 2)⁻³ with t from 0.

    Parameters
    ----------
    offset : float, default=2.0
        A number above 1.
    exponent : float, default=3.0
        A number above 1, or the weights' sum diverges.
    """

    name = "relaxed"

    offset: float = field(
        default=2.0, metadata={"gt": 1, "description": "a number above 1 (the paper: 2)"}
    )
    exponent: float = field(
        default=3.0,
        metadata={"gt": 1, "description": "a number above 1, or the weights' sum diverges"},
    )

    def weight(self, t: int, y: Floats, phi: Floats, sample_weight: Floats | None = None) -> float:
        return float(1.0 - (t + self.offset) ** -self.exponent)

    def reduced_weight(self, t: int, each: Each) -> float:
        return self.weight(t, np.empty(0), np.empty(0))


@dataclass(frozen=True)
class Adaptive(Rescaling, Reduced):
    """The strategy w_t = yᵀφ_t / ‖φ_t‖², the minimiser of ‖y − w φ_t‖.

    Where φ_t = 0 every w is a minimiser and gives the same f_{t+1} = 0; w_t is then 1. (The paper
    sets f_{t+1} = f_t there and excludes the case as degenerate; staying would raise the loss above
    that of φ_t whenever f_t ≠ 0.)
    """

    name = "adaptive"

    def weight(self, t: int, y: Floats, phi: Floats, sample_weight: Floats | None = None) -> float:
        scale = np.abs(phi).max(initial=0.0)
        if scale < np.finfo(np.float64).tiny:  # zero, or too small to divide by
            return 1.0
        unit = phi / scale  # keeps the squares away from overflow and underflow
        weighted = unit if sample_weight is None else sample_weight * unit
        return float((y * weighted).sum() / (unit * weighted).sum() / scale)

    def reduced_weight(self, t: int, each: Each) -> float:
        # The weight of a single row that has the sums Σ y φ and Σ φ² of all.
        y_phi, phi_phi = (math.fsum(sums) for sums in zip(*each(_products), strict=True))
        norm = math.sqrt(phi_phi)
        return self.weight(t, np.array([y_phi / norm if norm else 0.0]), np.array([norm]))


def _products(y: Floats, phi: Floats, sample_weight: Floats | None) -> tuple[float, float]:
    weighted = phi if sample_weight is None else sample_weight * phi
    return float((y * weighted).sum()), float((phi * weighted).sum())


STRATEGIES: tuple[type[Unit] | type[Relaxed] | type[Adaptive], ...] = (Unit, Relaxed, Adaptive)
BY_NAME = {strategy.name: strategy for strategy in STRATEGIES}


def resolve(rescaling: str | Rescaling) -> Rescaling:
    """Return the strategy of a name, or the object itself."""
    if isinstance(rescaling, str):
        if rescaling not in BY_NAME:
            raise ValueError(
                f"rescaling={rescaling!r}: must be one of {', '.join(BY_NAME)}, "
                "or an object with a weight(t, y, phi) method"
            )
        return BY_NAME[rescaling]()
    if not isinstance(rescaling, Rescaling):
        raise TypeError(f"rescaling={rescaling!r}: has no weight(t, y, phi) method")
    return rescaling
