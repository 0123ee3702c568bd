"""The interface between Algorithm 1 and the engines that fit its trees.

An engine is bound once to the training rows X, which never change; then every round asks it for an
ensemble on (X, f_t). What depends on X alone is computed when the engine is bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats


@dataclass(frozen=True)
class TreeSettings:
    """The parameters of a round's ensemble, as in scikit-learn's GradientBoostingRegressor.

    Of the engines of trees, only LightGBM has ``max_leaves`` and ``l2``.
    """

    n_trees: int = 100
    max_depth: int = 3
    learning_rate: float = 0.1
    min_samples_leaf: int = 1
    # Share of the rows that each tree is fitted to, drawn without replacement
    subsample: float = 1.0
    max_features: float = 1.0  # share of the features (f among them) that each split chooses from
    max_leaves: int | None = None  # the largest number of leaves; None is 2^max_depth
    l2: float = 0.0  # as many rows of residual 0 are added to each leaf

    def check_plain(self, engine: str) -> None:
        """Raise ValueError for settings that only LightGBM has."""
        if self.max_leaves is not None or self.l2 > 0:
            raise ValueError(
                f"engine={engine!r}: needs max_leaf_nodes=None (and a max_depth) and "
                "l2_regularization=0; only engine='lightgbm' has them"
            )


class Ensemble(Protocol):
    """The fitted trees of a round."""

    def predict(self, X: Floats, f: Floats) -> Floats:
        """Return h(x, f) (n,) for the rows of X (n, d) with their predictions f (n,)."""
        ...

    def gains(self) -> Floats:
        """Return how much the splits of each feature, f last, reduce the trees' sums of squares."""
        ...


class Grower(Protocol):
    """Grows the trees of a round on (X, f) one at a time; the caller chooses their leaf values."""

    def grow(self, residual: Floats, mass: Floats | None = None) -> NDArray[np.intp]:
        """Fit a tree to residual (n,) and return each training row's leaf (n,), an integer ≥ 0.

        ``mass`` (n,) holds the rows' weights for this tree, 0 for rows that it does not see; None
        means all 1.
        """
        ...

    def ensemble(self, values: Sequence[Floats]) -> Ensemble:
        """Return the trees grown so far, each with the given values of its leaves."""
        ...


class Fitter(Protocol):
    """An engine bound to training rows; for the log-loss it also has one of the next two."""

    def fit(self, f: Floats, residual: Floats, seed: int) -> tuple[Ensemble, Floats]:
        """Fit to residual (n,) on (X, f); return the ensemble and its values on these rows (n,)."""
        ...


@runtime_checkable
class GrowsTrees(Protocol):
    """A `Fitter` of trees one at a time; ``settings`` are the parameters of its ensembles."""

    settings: TreeSettings

    def grower(self, f: Floats, seed: int) -> Grower:
        """Start a round on (X, f) whose leaf values the caller chooses."""
        ...


@runtime_checkable
class FitsLogLoss(Protocol):
    """A `Fitter` that minimises the log-loss by itself."""

    def fit_log_loss(
        self, feature: Floats, y: Floats, f: Floats, seed: int
    ) -> tuple[Ensemble, Floats]:
        """Fit to y (n,) of 0 and 1 on (X, feature), from logits f (n,); return as `Fitter.fit`."""
        ...


@runtime_checkable
class Projects(Protocol):
    """A `Fitter` whose ensembles are linear in the residuals: h = A(f) r."""

    def movement(self, before: Floats, after: Floats) -> float:
        """Return ‖A(after) − A(before)‖₂, the largest singular value, for two predictions (n,)."""
        ...


class Engine(Protocol):
    """A way to fit the trees of rounds."""

    def bind(self, X: Floats, weights: Floats | None = None) -> Fitter:
        """Prepare the training rows X (n, d) with weights (n,); None means all 1."""
        ...


def draw_sample(seed: int, tree: int, n: int, share: float) -> NDArray[np.uint8]:
    """Draw the rows that a tree is fitted to, without replacement: (n,) zeros and ones."""
    chosen = np.zeros(n, np.uint8)
    random = np.random.default_rng([seed, tree])
    chosen[random.permutation(n)[: max(1, int(share * n))]] = 1
    return chosen
