"""The seam between Algorithm 1 and whoever fits its trees.

An engine is bound once to the training rows X, which never change; then every round asks it for an
ensemble on (X, f_t). What can be computed from X alone is computed at the binding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pipeline.boosting.arrays import Floats


@dataclass(frozen=True)
class TreeSettings:
    """The size of a round's ensemble."""

    n_trees: int = 100
    max_depth: int = 3
    learning_rate: float = 0.1


class Ensemble(Protocol):
    """A fitted round."""

    def predict(self, X: Floats, f: Floats) -> Floats:
        """h(x, f) for the rows of X (n, d) with their predictions f (n,)."""
        ...


class Grower(Protocol):
    """A round whose leaf values are somebody else's: trees on (X, f), one at a time."""

    def grow(self, residual: Floats) -> NDArray[np.intp]:
        """Grow a tree to residual (n,); gives each training row's leaf (n,), any numbers ≥ 0."""
        ...

    def ensemble(self, values: Sequence[Floats]) -> Ensemble:
        """The trees grown so far, each with the values of its leaves."""
        ...


class Fitter(Protocol):
    """An engine bound to training rows."""

    def grower(self, f: Floats, seed: int) -> Grower:
        """Start a round on (X, f) under another loss."""
        ...

    def fit(self, f: Floats, residual: Floats, seed: int) -> tuple[Ensemble, Floats]:
        """Fit to residual (n,) on (X, f); gives the ensemble and its values on these rows (n,)."""
        ...


class Engine(Protocol):
    """A way to fit rounds."""

    def bind(self, X: Floats) -> Fitter:
        """Prepare for the training rows X (n, d)."""
        ...
