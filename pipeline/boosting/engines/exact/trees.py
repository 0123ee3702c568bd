"""Trees as arrays, and their predictions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .structures import ENTRY, INNER

_ONE = np.uint64(1)


class Trees(NamedTuple):
    """Complete binary trees in heap order: node k's children are 2k + 1 and 2k + 2.

    A row goes left where its feature is at most the threshold. Nodes below a leaf send all rows to
    the left, and the leaf's value is that of its left-most descendant in the last level.

    feature, threshold : (n_trees, 2^depth − 1);  value : (n_trees, 2^depth).
    gain : (n_trees, 2^depth − 1) how much each split reduces the sum of squares; 0 for no split.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    value: NDArray[np.float64]
    gain: NDArray[np.float64]

    @classmethod
    def empty(cls, n_trees: int, depth: int) -> Trees:
        """Return trees that send every row to a leaf of value 0."""
        inner = (1 << depth) - 1
        return cls(
            np.zeros((n_trees, inner), np.int32),
            np.full((n_trees, inner), np.inf),
            np.zeros((n_trees, inner + 1)),
            np.zeros((n_trees, inner)),
        )

    def some(self, which: slice) -> Trees:
        """Return a view of some of the trees."""
        return Trees(
            self.feature[which], self.threshold[which], self.value[which], self.gain[which]
        )

    def gains(self, n_features: int) -> NDArray[np.float64]:
        """Return the total gain of each feature's splits, (n_features,)."""
        gains: NDArray[np.float64] = np.zeros(n_features)
        np.add.at(gains, self.feature, self.gain)
        return gains


@njit(**ENTRY)
def predict(trees, learning_rate, rows, out):
    """Add Σ lr · leaf value for float32 ``rows`` (n, d), with f last if any, to ``out`` (n,)."""
    feature, threshold, leaf_value = trees.feature, trees.threshold, trees.value
    n_inner = np.uint64(feature.shape[1])
    for i in range(np.uint64(rows.shape[0])):
        for tree in range(np.uint64(feature.shape[0])):
            node = np.uint64(0)
            while node < n_inner:
                value = rows[i, np.uint64(feature[tree, node])]
                node = node + node + _ONE + np.uint64(value > threshold[tree, node])
            out[i] += learning_rate * leaf_value[tree, node - n_inner]


@njit(**ENTRY)
def find_leaves(table, trees, out):
    """Fill ``out`` (n,) with each training row's leaf of the first of ``trees``."""
    for i in range(out.shape[0]):
        out[i] = leaf_of(table, trees, 0, i)


@njit(**INNER)
def leaf_of(table, trees, tree, i):
    """Return a training row's leaf of a tree."""
    n_inner, node = trees.feature.shape[1], 0
    while node < n_inner:
        j = trees.feature[tree, node]
        value = table.features[j, i] if j < table.features.shape[0] else table.f[i]
        node = 2 * node + 1 + (value > trees.threshold[tree, node])
    return node - n_inner
