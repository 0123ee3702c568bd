"""Leaves: their values, their steps of the residuals, and the root's sums that follow from these.

The root's sums are carried from tree to tree: a tree changes residuals by one number per leaf, so
the change of a bin's sum follows from row counts that are known already, and single rows are
visited in the smaller of two sibling leaves only.
"""

import numpy as np
from numba import njit

from .intrinsics import add_pair
from .structures import AHEAD, CACHED_ROWS, FAST, INNER, ONE, prefetch_row


@njit(**INNER)
def set_leaf(value_at, label, value):
    """Write a leaf's value at its left-most descendant in the last level."""
    n_leaves = value_at.shape[0]
    place = label
    while place + 1 < n_leaves:
        place = 2 * place + 1
    value_at[place + 1 - n_leaves] = value


@njit(**INNER)
def set_leaves(value_at, node, split):
    """Write the values of a node's two children in the last level, and return them."""
    left = split.left_sum / split.left_mass
    right = (node.total - split.left_sum) / (node.mass - split.left_mass)
    set_leaf(value_at, 2 * node.label + 1, left)
    set_leaf(value_at, 2 * node.label + 2, right)
    return left, right


@njit(**INNER)
def finish_leaves(table, residual, scratch, sums, unit, node, split, column, values, learning_rate):
    """Subtract the steps of two siblings in the last level from their rows, and record them.

    All rows are recorded with the larger leaf's value, from the parent's counts; then the smaller
    leaf's rows are corrected one by one.
    """
    rows, spare, low = scratch.rows, scratch.spare, split.low
    small_is_right = 2 * split.left_n > node.n
    small, large = (values[1], values[0]) if small_is_right else values
    # The loop has no branch, because half of the branches would be predicted wrongly.
    steps, flip = scratch.steps, np.uint64(not small_is_right)
    steps[0], steps[1] = learning_rate * values[0], learning_rate * values[1]
    n_small = np.uint64(0)
    for q in range(np.uint64(node.start), np.uint64(node.end)):
        i = rows[q]
        goes_right = np.uint64(column[i] > low)
        residual[i] -= steps[goes_right]
        spare[n_small] = i
        n_small += goes_right ^ flip
    record_node(sums, unit, large, scratch.drop, scratch.growth)
    _record_rows(table, scratch, n_small, small - large, abs(small) - abs(large))


@njit(**INNER)
def subtract_step(residual, rows, node, step):
    """Subtract a leaf's step from the residuals of its rows."""
    for q in range(np.uint64(node.start), np.uint64(node.end)):
        residual[rows[q]] -= step


@njit(**INNER)
def _record_rows(table, scratch, n_rows, change, change_abs):
    """Add a change to the bins of the first rows in ``spare``.

    The change of |r| is needed in fine columns only.
    """
    codes, rows, pairs = table.codes, scratch.spare, scratch.row_changes
    fine = range(np.uint64(table.n_fine))
    others = range(np.uint64(table.n_fine), np.uint64(codes.shape[1]))
    large = codes.shape[0] > CACHED_ROWS
    for q in range(n_rows):
        i = rows[q]
        if large and q + AHEAD < n_rows:
            prefetch_row(codes, rows[q + AHEAD])
        for c in fine:
            add_pair(pairs, np.uint64(codes[i, c]), change, change_abs)
        for c in others:
            pairs[np.uint64(codes[i, c])] += change


@njit(**FAST)
def record_node(sums, unit, value, drop, growth):
    """Record one leaf value for all rows of a node."""
    inverse, size = 1.0 / unit, abs(value)
    for j in range(np.uint64(drop.shape[0])):
        drop[j] += value * np.floor(sums[j + j + ONE] * inverse)
    for j in range(np.uint64(growth.shape[0])):
        growth[j] += size * np.floor(sums[j + j + ONE] * inverse)


@njit(**INNER)
def carry_sums(table, scratch, packing, learning_rate):
    """Update the root's sums to the new residuals, and clear ``scratch.row_changes``."""
    first_bin, n_fine, n_numeric = table.first_bin, table.n_fine, table.n_numeric
    pairs, sums = scratch.row_changes, scratch.carried
    drop, growth = scratch.drop, scratch.growth
    for c in range(first_bin.shape[0] - 1):
        change, change_abs = 0.0, 0.0
        for j in range(np.uint64(first_bin[c]), np.uint64(first_bin[c + 1])):
            change += pairs[j + j]
            pairs[j + j] = 0.0
            drop[j] += change
            if c >= n_numeric:
                change = 0.0
        if c < n_fine:
            for j in range(np.uint64(first_bin[c]), np.uint64(first_bin[c + 1])):
                change_abs += pairs[j + j + ONE]
                pairs[j + j + ONE] = 0.0
                growth[j] += change_abs
    for j in range(np.uint64(drop.shape[0])):
        sums[j + j] -= learning_rate * drop[j]
    _raise_bounds(growth, sums, packing, learning_rate)


@njit(**FAST)
def _raise_bounds(growth, sums, packing, learning_rate):
    """Update the root's packed sums of |r|.

    That of a row grows by at most lr |value| · scale, rounded up: one more per row, and one per bin
    for the rounding of running sums here.
    """
    inverse, scale = 1.0 / packing.unit, learning_rate * packing.scale
    for j in range(np.uint64(growth.shape[0])):
        added = np.ceil(max(growth[j], 0.0) * scale)
        sums[j + j + ONE] += added + np.floor(sums[j + j + ONE] * inverse) + (j + 1.0)
