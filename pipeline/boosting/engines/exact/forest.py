"""A random forest on the exact kernel: scikit-learn's bootstrap samples, scikit-learn's trees."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import Floats
from ..base import TreeSettings
from . import kernel
from .columns import as_float32, prepare
from .engine import LARGEST_RESIDUAL, NO_SAMPLES, SAMPLES_BYTES, check_depth, check_finite, relative
from .structures import Scratch
from .trees import Trees, predict

Draws = NDArray[np.uint8] | NDArray[np.int64]


@dataclass(frozen=True)
class ExactForest:
    """Fitted trees over x; their values are offsets from ``mean``."""

    trees: Trees
    n_features: int
    mean: float

    def predict(self, X: Floats) -> Floats:
        """Return the mean of the trees, (n,)."""
        return self._sum(X, self.trees, 1.0 / len(self.trees.value))

    def predict_tree(self, X: Floats, tree: int) -> Floats:
        """Return one tree's values, (n,)."""
        return self._sum(X, self.trees.some(slice(tree, tree + 1)), 1.0)

    def _sum(self, X: Floats, trees: Trees, share: float) -> Floats:
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(f"X: has shape {X.shape} instead of (n, {self.n_features})")
        out = np.full(len(X), self.mean)
        predict(trees, share, as_float32(X, "X"), out)
        return out


def bootstrap(random_states: Sequence[int], n: int, weights: Floats | None = None) -> Draws:
    """Return how often each of n rows is in the sample that scikit-learn draws for each tree.

    weights : (n,) rows are drawn with probabilities in proportion to these, as scikit-learn does
    from version 1.8 on.  (Seeding a generator again is 30 times faster than creating one.)
    """
    kind = np.uint8 if weights is None else np.int64  # a heavy row may be drawn every time
    random, draws = np.random.RandomState(0), np.empty((len(random_states), n), kind)
    for tree, state in enumerate(random_states):
        random.seed(state)
        drawn: NDArray[Any] = (
            random.randint(0, n, n, dtype=np.int32)
            if weights is None
            else random.choice(n, n, replace=True, p=weights / weights.sum())
        )
        draws[tree] = np.bincount(drawn, minlength=n)
    return draws


def grow_forest(
    X: Floats,
    y: Floats,
    random_states: Sequence[int],
    max_depth: int,
    n_threads: int = 1,
    weights: Floats | None = None,
) -> ExactForest:
    """Grow a tree per random state, each on its own bootstrap sample of X (n, d) and y (n,).

    A random state draws the sample, by the rows' weights (n,) if there are any, and decides ties
    between features. A row counts as often as it was drawn.
    """
    check_depth(max_depth)
    table = prepare(X, for_f=False)
    n = table.features.shape[1]
    check_finite(y, n, "y", LARGEST_RESIDUAL)
    mean = float(np.average(y, weights=weights))
    centred = y - mean
    trees, settings = Trees.empty(len(random_states), max_depth), TreeSettings(max_depth=max_depth)
    at_once = max(1, min(SAMPLES_BYTES // max(n, 1), -(-len(random_states) // n_threads)))

    def grow(first: int) -> None:
        some = slice(first, first + at_once)
        states = random_states[some]
        draws, seeds = bootstrap(states, n, weights), np.array(states, np.uint64)
        if weights is None:
            scratch = Scratch.create(table, settings, drawn=True)
            kernel.grow_forest(table, centred, draws, trees.some(some), seeds, scratch)
            return
        scratch = Scratch.create(table, settings, weighted=True)
        for k, own in enumerate(draws.astype(np.float64)):
            tree = trees.some(slice(first + k, first + k + 1))
            kernel.grow_weighted(
                table, centred.copy(), relative(own), NO_SAMPLES, tree, 0.0, seeds[k : k + 1],
                scratch,
            )  # fmt: skip

    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(grow, range(0, len(random_states), at_once)))
    return ExactForest(trees, X.shape[1], mean)
