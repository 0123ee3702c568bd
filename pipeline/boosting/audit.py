"""Multicalibration error over random trees.

The paper estimates ‖Ê(f)‖₂, Ê_j = mean((y − f) b_j(x, f)), over random regression trees on (x, f).
A tree is drawn node by node: a uniformly random feature among those that are not constant on the
node's rows, and a uniform threshold inside their range there. What a tree contributes depends on
how one reads "weak learner"; with S_k the sum of the residuals in leaf k, n_k its rows, and n all
rows:

- ``leaf_indicators``: each leaf is a weak learner. The tree gives Σ_k (S_k / n)².
- ``random_leaf_values``: the tree is one weak learner with leaf values v_k uniform on [−1, 1].
  It gives (Σ_k v_k S_k / n)², a third of the above on average, only noisier.
- ``fitted_leaf_values``: the tree is one weak learner whose leaf values are the mean residuals
  S_k / n_k. It gives (Σ_k S_k² / (n_k n))².

The error is the root of the mean over trees.

Every random number is a hash of (seed, tree, node, purpose, attempt) and not the next of a stream.
So the trees of two rounds differ only where the predictions force them to, whatever was drawn
before, and curves over rounds and strategies differ by the predictor alone.

Speed: a node is a label per row, so choosing and applying splits are passes over whole columns
without branches; float32 values are mapped to int32 in the same order, because integer minimum and
maximum vectorise while floating-point ones do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pipeline.boosting.arrays import Floats
from pipeline.boosting.splitmix import GOLDEN_GAMMA, mix

Reading = Literal["leaf_indicators", "random_leaf_values", "fitted_leaf_values"]
READINGS: tuple[Reading, ...] = ("leaf_indicators", "random_leaf_values", "fitted_leaf_values")
MAX_DEPTH = 8  # a row's leaf fits a byte

_FEATURE, _THRESHOLD, _VALUE = 0, 1, 2  # purposes of a random number
_LOWEST, _HIGHEST = np.iinfo(np.int32).min, np.iinfo(np.int32).max
_BANKS = 8  # independent accumulators hide the latency of adding to one leaf again and again
_SMALL = 16  # where a node has less than a sixteenth of the rows and its first few features are
_PATIENCE = 4  # constant, its rows are listed; looking at a list is quick, making one is not
_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Leaves:
    """What an audit saw: residual sums and row counts, both (n_trees, 2 ** depth)."""

    sums: Floats
    counts: Floats
    n: int
    seed: int


class Auditor:
    """Random-tree audits of predictors on fixed rows X (n, d).

    ``audit(f, residual)`` may be called for any number of predictors on these rows; the trees are
    the same up to what f itself, which is one of the features, changes.
    """

    def __init__(self, X: Floats, *, n_trees: int = 100, depth: int = 3, seed: int = 0) -> None:
        if not 1 <= depth <= MAX_DEPTH:
            raise ValueError(f"depth={depth}: must be from 1 to {MAX_DEPTH}")
        if n_trees < 1:
            raise ValueError(f"n_trees={n_trees}: must be at least 1")
        if X.ndim != 2 or len(X) == 0:
            raise ValueError(f"X: must have rows and columns; its shape is {X.shape}")
        _require_finite(X, "X")
        self._keys = np.ascontiguousarray(ordered_keys(X).T)
        self._low, self._high = self._keys.min(axis=1), self._keys.max(axis=1)
        self._n_trees, self._depth = n_trees, depth
        self._seed = int(seed) & _MASK

    def audit(self, f: Floats, residual: Floats) -> Leaves:
        """The leaf sums of ``residual`` (n,) in the trees drawn for predictions ``f`` (n,)."""
        n = self._keys.shape[1]
        for name, values in (("f", f), ("residual", residual)):
            if values.shape != (n,):
                raise ValueError(f"{name}: has shape {values.shape} instead of ({n},)")
            _require_finite(values, name)
        f_keys = ordered_keys(f)
        sums, counts = np.zeros((2, self._n_trees, 1 << self._depth))
        _leaf_sums(
            self._keys,
            f_keys,
            np.append(self._low, f_keys.min()),
            np.append(self._high, f_keys.max()),
            np.ascontiguousarray(residual),
            self._depth,
            np.uint64(self._seed),
            sums,
            counts,
        )
        return Leaves(sums, counts, n, self._seed)

    def error(self, f: Floats, residual: Floats, reading: Reading = "leaf_indicators") -> float:
        """The multicalibration error of predictions ``f`` with ``residual`` = y − f."""
        return multicalibration_error(self.audit(f, residual), reading)


def multicalibration_error(leaves: Leaves, reading: Reading = "leaf_indicators") -> float:
    """The error of audited leaves under a reading of "weak learner"; see the module's text."""
    epsilon = leaves.sums / leaves.n
    if reading == "leaf_indicators":
        squares = np.square(epsilon).sum(axis=1)
    elif reading == "random_leaf_values":
        squares = np.square((epsilon * _leaf_values(leaves)).sum(axis=1))
    elif reading == "fitted_leaf_values":
        means = leaves.sums / np.maximum(leaves.counts, 1.0)
        squares = np.square((epsilon * means).sum(axis=1))
    else:
        raise ValueError(f"reading={reading!r}: must be one of {', '.join(READINGS)}")
    return float(np.sqrt(squares.mean()))


def multicalibration_errors(leaves: Leaves, readings: Sequence[Reading]) -> dict[Reading, float]:
    """`multicalibration_error` for several readings of the same audit."""
    return {reading: multicalibration_error(leaves, reading) for reading in readings}


def ordered_keys(values: Floats) -> NDArray[np.int32]:
    """int32 images of float32 ``values`` in the same order; 0.0 and −0.0 have one image."""
    with np.errstate(over="ignore"):
        bits = (values.astype(np.float32) + np.float32(0)).view(np.int32)
    return bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))


def _leaf_values(leaves: Leaves) -> Floats:
    n_trees, n_leaves = leaves.sums.shape
    return _draw_leaf_values(n_trees, n_leaves, np.uint64(leaves.seed))


def _require_finite(values: Floats, name: str) -> None:
    if not np.isfinite(values).all():
        raise ValueError(f"{name}: holds NaN or infinity")


@njit(cache=True, nogil=True)
def draw(seed, tree, node, purpose, attempt):
    """A number in [0, 1) that depends on the five integers alone."""
    z = mix(np.uint64(seed) + GOLDEN_GAMMA)
    z = mix(z ^ (np.uint64(tree) << np.uint64(32)) ^ np.uint64(node))
    z = mix(z ^ (np.uint64(attempt) << np.uint64(8)) ^ np.uint64(purpose))
    return np.float64(z >> np.uint64(11)) * 2.0**-53


@njit(cache=True, nogil=True)
def _draw_leaf_values(n_trees, n_leaves, seed):
    values = np.empty((n_trees, n_leaves))
    for tree in range(n_trees):
        for leaf in range(n_leaves):
            values[tree, leaf] = 2.0 * draw(seed, tree, leaf, _VALUE, 0) - 1.0
    return values


@njit(cache=True, nogil=True, error_model="numpy")
def _leaf_sums(x_keys, f_keys, low, high, residual, depth, seed, sums, counts):
    """Fill ``sums`` and ``counts`` (n_trees, 2^depth), which come as zeros."""
    n, (n_trees, n_leaves) = f_keys.shape[0], sums.shape
    place, rows = np.empty(n, np.uint8), np.empty(n + 1, np.uint32)
    banks = np.empty(_BANKS * n_leaves)
    for tree in range(n_trees):
        place[:] = 0
        for level in range(depth):
            # From the last node to the first: a node's children never take the label of a node
            # of this level that is still to be split.
            for k in range((1 << level) - 1, -1, -1):
                label = np.uint8(k)
                count = _count(place, label)
                feature, threshold = np.int64(0), np.int32(_HIGHEST)  # all rows go left
                if count > 1:
                    feature, threshold = _random_split(
                        x_keys, f_keys, low, high, place, label, level, count, rows, tree, seed
                    )
                _descend(place, label, _column(x_keys, f_keys, feature), threshold)
        _accumulate(place, residual, banks, sums[tree], counts[tree])


@njit(cache=True, nogil=True, error_model="numpy")
def _random_split(x_keys, f_keys, low, high, place, label, level, count, rows, tree, seed):
    """A feature that varies on the node's rows and a threshold key; all rows go left if none."""
    n_features, members = low.shape[0], rows[:0]
    node = (1 << level) + np.int64(label)
    tries = 4 * n_features
    for attempt in range(tries):
        if attempt == _PATIENCE and count * _SMALL <= place.shape[0]:
            members = _members(place, label, rows)
        feature = np.int64(draw(seed, tree, node, _FEATURE, attempt) * n_features)
        smallest, largest = _range(x_keys, f_keys, low, high, place, label, level, members, feature)
        if smallest < largest:
            return feature, _threshold(smallest, largest, draw(seed, tree, node, _THRESHOLD, 0))
    # Almost all features are constant here: choose among the others directly.
    varying = np.empty(n_features, np.int64)
    n_varying = 0
    for other in range(n_features):
        smallest, largest = _range(x_keys, f_keys, low, high, place, label, level, members, other)
        if smallest < largest:
            varying[n_varying] = other
            n_varying += 1
    if n_varying == 0:
        return np.int64(0), np.int32(_HIGHEST)
    chosen = varying[np.int64(draw(seed, tree, node, _FEATURE, tries) * n_varying)]
    smallest, largest = _range(x_keys, f_keys, low, high, place, label, level, members, chosen)
    return chosen, _threshold(smallest, largest, draw(seed, tree, node, _THRESHOLD, 0))


@njit(cache=True, nogil=True)
def _column(x_keys, f_keys, feature):
    return x_keys[feature] if feature < x_keys.shape[0] else f_keys


@njit(cache=True, nogil=True)
def _count(place, label):
    """A node's rows; counted in bytes by the hundred, as many at once as possible."""
    count = 0
    for start in range(0, place.shape[0], 128):
        some = np.uint8(0)
        for i in range(start, min(start + 128, place.shape[0])):
            some = np.uint8(some + np.uint8(place[i] == label))
        count += np.int64(some)
    return count


@njit(cache=True, nogil=True)
def _members(place, label, rows):
    """A node's rows, in the buffer ``rows``."""
    filled = np.uint64(0)
    for i in range(np.uint64(place.shape[0])):
        rows[filled] = i
        filled += np.uint64(place[i] == label)
    return rows[: np.int64(filled)]


@njit(cache=True, nogil=True)
def _range(x_keys, f_keys, low, high, place, label, level, members, feature):
    """Smallest and largest key of a feature among the rows at a node."""
    if level == 0:
        return low[feature], high[feature]
    column = _column(x_keys, f_keys, feature)
    if members.shape[0] == 0:
        return _masked_range(column, place, label)
    smallest = largest = column[members[0]]
    for i in members:
        smallest, largest = min(smallest, column[i]), max(largest, column[i])
    return smallest, largest


@njit(cache=True, nogil=True)
def _masked_range(column, place, k):
    """Smallest and largest key among the rows at node k."""
    smallest, largest = np.int32(_HIGHEST), np.int32(_LOWEST)
    for i in range(column.shape[0]):
        inside = place[i] == k
        smallest = min(smallest, column[i] if inside else np.int32(_HIGHEST))
        largest = max(largest, column[i] if inside else np.int32(_LOWEST))
    return smallest, largest


@njit(cache=True, nogil=True)
def _threshold(smallest, largest, u):
    """The key of a uniform value in [smallest, largest), so that both sides have rows."""
    a, b = _value(smallest), _value(largest)
    key = _key(a + u * (b - a))
    return min(max(key, smallest), largest - np.int32(1))


@njit(cache=True, nogil=True)
def _value(key):
    """The float64 value of an ordered key."""
    buffer = np.empty(1, np.int32)
    buffer[0] = key ^ ((key >> np.int32(31)) & np.int32(0x7FFFFFFF))
    return np.float64(buffer.view(np.float32)[0])


@njit(cache=True, nogil=True)
def _key(value):
    """The ordered key of a float64 value rounded to float32."""
    buffer = np.empty(1, np.float32)
    buffer[0] = np.float32(value) + np.float32(0)
    bits = buffer.view(np.int32)[0]
    return np.int32(bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF)))


@njit(cache=True, nogil=True)
def _descend(place, k, column, threshold):
    """Send the rows at node k to node 2k (key ≤ threshold) or 2k + 1 of the next level."""
    left = np.uint8(2 * k)
    for i in range(place.shape[0]):
        child = left + np.uint8(column[i] > threshold)
        place[i] = child if place[i] == k else place[i]


@njit(cache=True, nogil=True)
def _accumulate(place, residual, banks, sums, counts):
    banks[:] = 0.0
    n_leaves = sums.shape[0]
    for i in range(np.uint64(place.shape[0])):
        banks[(i % np.uint64(_BANKS)) * np.uint64(n_leaves) + np.uint64(place[i])] += residual[i]
    for leaf in range(n_leaves):
        counts[leaf] = _count(place, np.uint8(leaf))
        for bank in range(_BANKS):
            sums[leaf] += banks[bank * n_leaves + leaf]
