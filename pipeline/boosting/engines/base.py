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
    """A round's ensemble, as in scikit-learn's GradientBoostingRegressor.

    subsample : share of the rows that each tree is fitted to, drawn without replacement.
    max_features : share of the features (f among them) that each split chooses from.
    """

    n_trees: int = 100
    max_depth: int = 3
    learning_rate: float = 0.1
    min_samples_leaf: int = 1
    subsample: float = 1.0
    max_features: float = 1.0


class Ensemble(Protocol):
    """A fitted round."""

    def predict(self, X: Floats, f: Floats) -> Floats:
        """h(x, f) for the rows of X (n, d) with their predictions f (n,)."""
        ...

    def gains(self) -> Floats:
        """How much the splits of each feature, f last, reduce their trees' sums of squares."""
        ...


class Grower(Protocol):
    """A round whose leaf values are somebody else's: trees on (X, f), one at a time."""

    def grow(self, residual: Floats, mass: Floats | None = None) -> NDArray[np.intp]:
        """Grow a tree to residual (n,); gives each training row's leaf (n,), any numbers ≥ 0.

        ``mass`` (n,) are weights for this tree, 0 for rows that it does not see; None: all 1.
        """
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

    def bind(self, X: Floats, weights: Floats | None = None) -> Fitter:
        """Prepare for the training rows X (n, d) with weights (n,), None for all 1."""
        ...


def draw_sample(seed: int, tree: int, n: int, share: float) -> NDArray[np.uint8]:
    """Which of n rows a tree is fitted to, (n,) zeros and ones: a share, without replacement."""
    chosen = np.zeros(n, np.uint8)
    random = np.random.default_rng([seed, tree])
    chosen[random.permutation(n)[: max(1, int(share * n))]] = 1
    return chosen
