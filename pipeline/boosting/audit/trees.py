"""Random trees over (x, f), and sums over their leaves; compiled.

A tree is drawn node by node: a uniformly random feature among those that are not constant on the
node's rows, and a uniform threshold inside their range there.

Every random number is a hash of (seed, tree, node, purpose, attempt) and not the next of a stream.
So the trees of two rounds differ only where the predictions force them to, whatever was drawn
before, and curves over rounds and strategies differ by the predictor alone.

Speed: every row has the position of its node in the current level, so choosing and applying splits
are passes over whole columns without branches; float32 values are mapped to int32 keys in the same
order, because integer minimum and maximum vectorise while floating-point ones do not.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..arrays import Floats
from ..caching import ENTRY, INNER
from ..splitmix import GOLDEN_GAMMA, mix

Keys = NDArray[np.int32]
Labels = NDArray[np.uint8]  # each row's leaf, a byte: trees have at most 2^8 leaves

MAX_DEPTH = 8
SIGNS_PER_HASH = 8  # random signs that are taken from one hash

_FEATURE, _THRESHOLD, _VALUE = 0, 1, 2  # purposes of a random number
_LOWEST, _HIGHEST = np.iinfo(np.int32).min, np.iinfo(np.int32).max
_BANKS = 8  # independent accumulators hide the latency of adding to one leaf again and again
# A node's rows are listed if it has less than a sixteenth of all rows and the first four features
# that were drawn are constant there: passes over a list are quick, but making one is not.
_LIST_BELOW, _LIST_AFTER = 16, 4
_BLOCK = 256  # rows whose drawn residuals fit the cache


class Columns(NamedTuple):
    """The features of trees: ordered keys of X (d, n) and of f (n,), and the features' ranges."""

    x_keys: Keys
    f_keys: Keys
    low: Keys
    high: Keys


def ordered_keys(values: Floats) -> Keys:
    """Map float32 ``values`` to int32 keys in the same order; 0.0 and −0.0 have the same key."""
    with np.errstate(over="ignore"):
        bits = (values.astype(np.float32) + np.float32(0)).view(np.int32)
    return bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))


@njit(**ENTRY)
def draw(seed, tree, node, purpose, attempt):
    """Return a number in [0, 1) that depends on the five integers alone."""
    z = mix(np.uint64(seed) + GOLDEN_GAMMA)
    z = mix(z ^ (np.uint64(tree) << np.uint64(32)) ^ np.uint64(node))
    z = mix(z ^ (np.uint64(attempt) << np.uint64(8)) ^ np.uint64(purpose))
    return np.float64(z >> np.uint64(11)) * 2.0**-53


@njit(**ENTRY)
def draw_leaf_values(n_trees, n_leaves, seed):
    """Return values (n_trees, n_leaves), uniform on [−1, 1)."""
    values = np.empty((n_trees, n_leaves))
    for tree in range(n_trees):
        for leaf in range(n_leaves):
            values[tree, leaf] = 2.0 * draw(seed, tree, leaf, _VALUE, 0) - 1.0
    return values


# --- sums over leaves -------------------------------------------------------------------------


@njit(**ENTRY, error_model="numpy")
def draw_trees(columns, residual, depth, seed, sums, counts, labels, known, uses_f):
    """Draw trees and fill the ``sums`` and ``counts`` (n_trees, 2^depth) of their leaves.

    Both come as zeros. ``labels`` takes each row's leaf, (n_trees, n), unless it is empty.
    ``known`` holds the labels of trees that were drawn before, and which trees these are.
    ``uses_f`` is set for trees that looked at f.
    """
    n, (n_trees, n_leaves) = residual.shape[0], sums.shape
    position, rows = np.empty(n, np.uint8), np.empty(n + 1, np.uint32)
    banks = np.empty(_BANKS * n_leaves)
    known_labels, is_known = known
    for tree in range(n_trees):
        if is_known[tree]:
            leaves = known_labels[tree]
        else:
            uses_f[tree] = _draw_tree(columns, position, rows, depth, tree, seed)
            leaves = position
        _add_residuals(leaves, residual, banks, sums[tree], counts[tree])
        if labels.shape[0] > 0:
            for row in range(n):  # (as one assignment it takes three seconds to compile)
                labels[tree, row] = leaves[row]


@njit(**INNER)
def _add_residuals(position, residual, banks, sums, counts):
    banks[:] = 0.0
    n_leaves = sums.shape[0]
    for i in range(np.uint64(position.shape[0])):
        bank = (i % np.uint64(_BANKS)) * np.uint64(n_leaves)
        banks[bank + np.uint64(position[i])] += residual[i]
    for leaf in range(n_leaves):
        counts[leaf] = _count(position, np.uint8(leaf))
        for bank in range(_BANKS):
            sums[leaf] += banks[bank * n_leaves + leaf]


@njit(**ENTRY)
def add_squares(labels, residual, squares):
    """Add each row's squared residual to its leaf of every tree."""
    for tree in range(labels.shape[0]):
        for i in range(residual.shape[0]):
            squares[tree, labels[tree, i]] += residual[i] * residual[i]


@njit(**ENTRY)
def add_leaf_sums(labels, sums, out):
    """Add to each row (n,) the sum of its leaf of every tree."""
    for tree in range(labels.shape[0]):
        for i in range(out.shape[0]):
            out[i] += sums[tree, labels[tree, i]]


@njit(**ENTRY)
def add_cluster_squares(labels, residual, clusters, order, squares):
    """Add to each cluster its squared leaf sums of every tree; ``order`` sorts rows by cluster."""
    leaf_sums = np.zeros(1 << MAX_DEPTH)
    for tree in range(labels.shape[0]):
        start = 0
        while start < order.shape[0]:
            cluster, end = clusters[order[start]], start
            while end < order.shape[0] and clusters[order[end]] == cluster:
                leaf_sums[labels[tree, order[end]]] += residual[order[end]]
                end += 1
            for row in order[start:end]:
                leaf = labels[tree, row]
                squares[cluster] += leaf_sums[leaf] * leaf_sums[leaf]
                leaf_sums[leaf] = 0.0
            start = end


@njit(**ENTRY, fastmath=True)
def add_flipped(labels, residual, clusters, seed, sums):
    """Fill the leaf sums (n_trees, 2^depth, flips), which come as zeros, of random signs.

    residual : (n,) the bits of float32 values. A row's signs are bits of hashes of its number or,
    unless ``clusters`` (n,) is empty, of its cluster's; they are the same for every tree.
    """
    n, n_flips = residual.shape[0], sums.shape[2]
    bits = np.empty((_BLOCK, n_flips), np.uint32)
    start_of_stream = mix(seed + GOLDEN_GAMMA)
    for start in range(0, n, _BLOCK):
        size = min(_BLOCK, n - start)
        for i in range(size):
            value, source = residual[start + i], _source(clusters, start + i)
            for word in range(n_flips // SIGNS_PER_HASH):
                place = np.uint64(source * 1024 + word)
                random = np.uint32(mix(start_of_stream ^ mix(place + GOLDEN_GAMMA)))
                for b in range(np.uint32(SIGNS_PER_HASH)):
                    flip = ((random >> b) & np.uint32(1)) << np.uint32(31)
                    bits[i, word * SIGNS_PER_HASH + b] = value ^ flip
        _add_block(labels, start, size, bits.view(np.float32), sums)


@njit(**ENTRY, fastmath=True)
def add_drawn(labels, low, high, below, clusters, seed, sums, squares):
    """Fill the leaf sums (n_trees, 2^depth, draws) and Σ r² (draws,) of residuals low or high.

    A row is high where a random number of 32 bits is less than ``below`` (n,); clusters as in
    `add_flipped`.
    """
    n, n_draws = low.shape[0], sums.shape[2]
    values = np.empty((_BLOCK, n_draws), np.float32)
    start_of_stream = mix(seed + GOLDEN_GAMMA)
    for start in range(0, n, _BLOCK):
        size = min(_BLOCK, n - start)
        for i in range(size):
            row, source = start + i, _source(clusters, start + i)
            for b in range(n_draws):
                place = np.uint64(source * 1024 + b)
                random = mix(start_of_stream ^ mix(place + GOLDEN_GAMMA)) >> np.uint64(32)
                value = high[row] if random < below[row] else low[row]
                values[i, b] = value
                squares[b] += value * value
        _add_block(labels, start, size, values, sums)


@njit(**INNER)
def _source(clusters, row):
    """Return the number from which a row's random numbers are made."""
    return clusters[row] if clusters.shape[0] > 0 else row


@njit(**INNER, fastmath=True)
def _add_block(labels, start, size, values, sums):
    """Add the values (block, draws) of rows from ``start`` on to their leaves of all trees.

    Rows are taken in blocks, all trees of a block before the next, so that its values stay in the
    cache; the inner loop vectorises.
    """
    for tree in range(labels.shape[0]):
        for i in range(size):
            leaf_sums, row = sums[tree, labels[tree, start + i]], values[i]
            for b in range(sums.shape[2]):
                leaf_sums[b] += row[b]


# --- drawing a tree ---------------------------------------------------------------------------


@njit(**INNER, error_model="numpy")
def _draw_tree(columns, position, rows, depth, tree, seed):
    """Fill ``position`` with each row's leaf; return whether the tree looked at f."""
    uses_f = False
    position[:] = 0
    for level in range(depth):
        # From the last node to the first: a node's children never take the position of a node of
        # this level that is still to be split.
        for k in range((1 << level) - 1, -1, -1):
            node = np.uint8(k)
            count = _count(position, node)
            feature, threshold = np.int64(0), np.int32(_HIGHEST)  # all rows go left
            if count > 1:
                feature, threshold, used = _random_split(
                    columns, position, node, level, count, rows, tree, seed
                )
                uses_f |= used
            _descend(position, node, _column(columns, feature), threshold)
    return uses_f


@njit(**INNER, error_model="numpy")
def _random_split(columns, position, node, level, count, rows, tree, seed):
    """Return a feature that varies on the node's rows, a threshold key, and whether it looked at f.

    All rows go left if no feature varies.
    """
    n_features, members = columns.low.shape[0], rows[:0]
    number, uses_f = (1 << level) + np.int64(node), False
    tries = 4 * n_features
    for attempt in range(tries):
        if attempt == _LIST_AFTER and count * _LIST_BELOW <= position.shape[0]:
            members = _members(position, node, rows)
        feature = np.int64(draw(seed, tree, number, _FEATURE, attempt) * n_features)
        uses_f |= feature == n_features - 1
        smallest, largest = _range(columns, position, node, level, members, feature)
        if smallest < largest:
            u = draw(seed, tree, number, _THRESHOLD, 0)
            return feature, _threshold(smallest, largest, u), uses_f
    # Almost all features are constant here: choose among the others directly.
    varying = np.empty(n_features, np.int64)
    n_varying = 0
    for other in range(n_features):
        smallest, largest = _range(columns, position, node, level, members, other)
        if smallest < largest:
            varying[n_varying] = other
            n_varying += 1
    if n_varying == 0:
        return np.int64(0), np.int32(_HIGHEST), True
    chosen = varying[np.int64(draw(seed, tree, number, _FEATURE, tries) * n_varying)]
    smallest, largest = _range(columns, position, node, level, members, chosen)
    return chosen, _threshold(smallest, largest, draw(seed, tree, number, _THRESHOLD, 0)), True


@njit(**INNER)
def _column(columns, feature):
    return columns.x_keys[feature] if feature < columns.x_keys.shape[0] else columns.f_keys


@njit(**INNER)
def _count(position, node):
    """Return the number of a node's rows; bytes are counted in blocks, many at once."""
    count = 0
    for start in range(0, position.shape[0], 128):
        some = np.uint8(0)
        for i in range(start, min(start + 128, position.shape[0])):
            some = np.uint8(some + np.uint8(position[i] == node))
        count += np.int64(some)
    return count


@njit(**INNER)
def _members(position, node, rows):
    """Return a node's rows, in the buffer ``rows``."""
    filled = np.uint64(0)
    for i in range(np.uint64(position.shape[0])):
        rows[filled] = i
        filled += np.uint64(position[i] == node)
    return rows[: np.int64(filled)]


@njit(**INNER)
def _range(columns, position, node, level, members, feature):
    """Return the smallest and largest key of a feature among the rows of a node."""
    if level == 0:
        return columns.low[feature], columns.high[feature]
    column = _column(columns, feature)
    if members.shape[0] == 0:
        return _masked_range(column, position, node)
    smallest = largest = column[members[0]]
    for i in members:
        smallest, largest = min(smallest, column[i]), max(largest, column[i])
    return smallest, largest


@njit(**INNER)
def _masked_range(column, position, node):
    smallest, largest = np.int32(_HIGHEST), np.int32(_LOWEST)
    for i in range(column.shape[0]):
        inside = position[i] == node
        smallest = min(smallest, column[i] if inside else np.int32(_HIGHEST))
        largest = max(largest, column[i] if inside else np.int32(_LOWEST))
    return smallest, largest


@njit(**INNER)
def _threshold(smallest, largest, u):
    """Return the key of a uniform value in [smallest, largest), so that both sides have rows."""
    a, b = _value(smallest), _value(largest)
    key = _key(a + u * (b - a))
    return min(max(key, smallest), largest - np.int32(1))


@njit(**INNER)
def _value(key):
    """Return the float64 value of an ordered key."""
    buffer = np.empty(1, np.int32)
    buffer[0] = key ^ ((key >> np.int32(31)) & np.int32(0x7FFFFFFF))
    return np.float64(buffer.view(np.float32)[0])


@njit(**INNER)
def _key(value):
    """Return the ordered key of a float64 value rounded to float32."""
    buffer = np.empty(1, np.float32)
    buffer[0] = np.float32(value) + np.float32(0)
    bits = buffer.view(np.int32)[0]
    return np.int32(bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF)))


@njit(**INNER)
def _descend(position, node, column, threshold):
    """Send the rows at node k to node 2k (key ≤ threshold) or 2k + 1 of the next level."""
    left = np.uint8(2 * node)
    for i in range(position.shape[0]):
        child = left + np.uint8(column[i] > threshold)
        position[i] = child if position[i] == node else position[i]
