"""Choosing the split of a node: the best one over all features, and its threshold.

`gains` tells which splits are candidates: those at the borders of bins, and those inside of blocks
that cannot be ruled out.

Ties. Candidates whose gains agree to `TIE` are tied. Within a feature the lowest threshold wins, as
in scikit-learn; between features the seed decides, as there.
"""

import numpy as np
from numba import njit

from ...splitmix import GOLDEN_GAMMA, mix
from .columns import FEATURE_THRESHOLD
from .gains import (
    TIE,
    any_open,
    block_margin,
    block_margins,
    border_gains,
    count_product,
    least_product,
    nearly,
    node_terms,
    split_gain,
)
from .intrinsics import prefetch
from .structures import (
    CACHED_ROWS,
    INNER,
    Candidate,
    Split,
    bin_count,
    bin_mass,
    is_tried,
    multiplicity,
    row_mass,
    running_mass,
    sorted_rows,
)

# scikit-learn makes a leaf of a node whose variance is at most this.
PURE = np.finfo(np.float64).eps


@njit(**INNER)
def best_split(table, residual, scratch, sums, packing, node):
    """Return the split of largest gain; ties between features are broken at random."""
    best = Candidate(-1.0, -1, 0, -1, -1, 0, 0.0, 0.0)
    if node.end - node.start < 2 or node.n < 2.0 * scratch.min_leaf:
        return _complete_split(table, scratch.label, sums, packing.unit, node, best)
    unit, gain = packing.unit, scratch.gain
    first_bin, n_fine, n_numeric = table.first_bin, table.n_fine, table.n_numeric
    node_hash = mix(scratch.random[0] + GOLDEN_GAMMA * np.uint64(node.label + 1))
    least, tried, masses = scratch.min_leaf, scratch.tried, scratch.masses
    some = scratch.n_tried < tried.shape[0]
    if some:
        _draw_features(tried, scratch.shuffled, scratch.n_tried, node_hash)
    terms = node_terms(node, packing)
    of_columns = scratch.column_gain
    known = border_gains(table, sums, terms, least, tried, some, gain, of_columns, masses)
    enough = nearly(known)
    block_margins(first_bin, table.divisible, sums, terms, enough, scratch.margin, least, masses)
    for c in range(of_columns.shape[0]):
        largest, enough = of_columns[c], nearly(max(known, best.gain))
        if c < n_fine:
            if some and not is_tried(table, tried, c):
                continue
            candidate = _best_of_column(table, residual, scratch, sums, terms, node, c, enough)
            best = _better(table, best, candidate, node_hash)
        elif largest < enough:
            continue
        elif c < n_numeric:
            j = _first_reaching(gain, first_bin[c], largest)
            count = bin_count(sums, j, unit)
            mass = bin_mass(sums, j, count, scratch.masses)
            candidate = Candidate(largest, c, j, -1, -1, count, mass, sums[2 * j])
            best = _better(table, best, candidate, node_hash)
        else:
            for j in range(first_bin[c], first_bin[c + 1] - 1):
                if gain[j] >= enough:
                    # The rest has the feature's lower value and goes left.
                    count = bin_count(sums, j, unit)
                    mass = node.mass - bin_mass(sums, j, count, scratch.masses)
                    rest_n, rest = node.n - count, node.total - sums[2 * j]
                    candidate = Candidate(gain[j], c, j, -1, -1, rest_n, mass, rest)
                    best = _better(table, best, candidate, node_hash)
    return _complete_split(table, scratch.label, sums, unit, node, best)


@njit(**INNER)
def _better(table, best, candidate, node_hash):
    """Return the better of two candidates; of tied ones, that whose feature has the lower hash.

    The hash depends on the seed, the tree, the node and the feature, and not on other candidates.
    """
    if candidate.column < 0 or (best.column >= 0 and candidate.gain < best.gain * (1.0 - TIE)):
        return best
    if best.column < 0 or candidate.gain > best.gain * (1.0 + TIE):
        return candidate
    ours = mix(node_hash ^ np.uint64(_feature_of(table, best)))
    theirs = mix(node_hash ^ np.uint64(_feature_of(table, candidate)))
    return candidate if theirs < ours else best


@njit(**INNER)
def _draw_features(tried, shuffled, n_tried, node_hash):
    """Draw the features that a node tries, by the first steps of a shuffle."""
    n = shuffled.shape[0]
    tried[:] = False
    for k in range(n_tried):
        other = k + np.int64(mix(node_hash + GOLDEN_GAMMA * np.uint64(k + 1)) % np.uint64(n - k))
        shuffled[k], shuffled[other] = shuffled[other], shuffled[k]
        tried[shuffled[k]] = True


@njit(**INNER)
def _best_of_column(table, residual, scratch, sums, terms, node, column, enough):
    """Return the best split of a fine column, on a border or in a block, if it gains ``enough``."""
    best = Candidate(enough, -1, 0, -1, -1, 0, 0.0, 0.0)
    first, end, unit = table.first_bin[column], table.first_bin[column + 1], terms.unit
    border_gain, border = scratch.column_gain[column], end
    if border_gain >= enough:  # the best border is the one after this bin
        border = _first_reaching(scratch.gain, first, border_gain)
    elif not any_open(scratch.margin, first, end):
        return best
    for j in range(first, end):
        # Since the margin was computed, a better split may have been found.
        if scratch.margin[j] >= 0.0 and (
            block_margin(sums, j, j == first, True, terms, best.gain, scratch.masses) >= 0.0
        ):
            best = _scan_block(table, residual, scratch, sums, unit, node, column, j, best)
        if j == border and _improves(border_gain, best):
            count = bin_count(sums, j, unit)
            mass = bin_mass(sums, j, count, scratch.masses)
            best = Candidate(border_gain, column, j, -1, -1, count, mass, sums[2 * j])
    return best


@njit(**INNER)
def _first_reaching(gains, first, gain):
    """Return the first bin from ``first`` on whose split has the ``gain``, up to ties."""
    j = first
    while gains[j] < gain * (1.0 - TIE):
        j += 1
    return j


@njit(**INNER)
def _scan_block(table, residual, scratch, sums, unit, node, column, j, best):
    """Return ``best``, or a better split among the node's rows in block ``j`` of a fine column."""
    order, values = sorted_rows(table, column)
    label, places = scratch.label, scratch.places
    total_mass, mean = node.mass, node.total / node.mass
    inner = j > table.first_bin[column]
    left_sum = sums[2 * j - 2] if inner else 0.0
    count = bin_count(sums, j - 1, unit) if inner else 0
    mass = bin_mass(sums, j - 1, count, scratch.masses) if inner else 0.0
    legal = least_product(node.n, scratch.min_leaf)
    found, large = np.uint64(0), label.shape[0] > CACHED_ROWS
    for q in range(np.uint64(table.block_start[j]), np.uint64(table.block_end[j])):
        places[found] = q
        if large:
            prefetch(residual, np.uint64(order[q]))
        found += np.uint64(label[order[q]] == node.label)
    previous = np.int64(-1)
    for k in range(found):
        q = np.int64(places[k])
        if previous >= 0 and values[q] > values[previous] + FEATURE_THRESHOLD:
            # Most splits are rejected, and rejecting them needs no division.
            left_mass = running_mass(mass, count, scratch.masses)
            excess = left_sum - left_mass * mean
            product = left_mass * (total_mass - left_mass)
            rows_product = count_product(product, total_mass, count, node.n, scratch.masses)
            if excess * excess >= best.gain * product and rows_product > legal:
                gain = split_gain(left_sum, left_mass, total_mass, mean)
                if _improves(gain, best):
                    best = Candidate(gain, column, j, previous, q, count, left_mass, left_sum)
        previous = q
        left_sum += residual[order[q]]
        count += multiplicity(scratch.draws, order[q])
        mass += row_mass(scratch.mass, order[q])
    return best


@njit(inline="always", **INNER)
def _improves(gain, best):
    """Return whether a later split of the same feature replaces ``best``: the first wins ties."""
    return gain > best.gain * (1.0 + TIE) if best.column >= 0 else gain >= best.gain


@njit(**INNER)
def _complete_split(table, label, sums, unit, node, best):
    """Return the split of a candidate: its feature and the node's values on both sides."""
    c, j = best.column, best.bin
    low, high = np.float32(0), np.float32(0)
    if c < 0:
        return Split(False, best.gain, 0, 0, 0.0, 0.0, low, high)
    if c < table.n_fine:
        order, values = sorted_rows(table, c)
        before, after = best.before, best.after
        if before < 0:  # on the border after a block
            before, after = table.block_end[j] - 1, table.block_end[j]
            while label[order[before]] != node.label:
                before -= 1
            while label[order[after]] != node.label:
                after += 1
        low, high = values[before], values[after]
    elif c < table.n_numeric:
        count = bin_count(sums, j, unit)
        below, above = j, j + 1
        while below > table.first_bin[c] and bin_count(sums, below - 1, unit) == count:
            below -= 1
        while bin_count(sums, above, unit) == count:
            above += 1
        low, high = table.bin_low[below], table.bin_low[above]
    else:
        low, high = table.bin_low[j], table.bin_high[j]
    feature = _feature_of(table, best)
    left_n, left_mass = best.left_n, best.left_mass
    return Split(True, best.gain, feature, left_n, left_mass, best.left_sum, low, high)


@njit(**INNER)
def _feature_of(table, candidate):
    c = candidate.column
    if c < table.n_fine:
        return table.fine_features[c] if c < table.order.shape[0] else table.features.shape[0]
    if c < table.n_numeric:
        return table.coarse_features[c - table.n_fine]
    return table.bin_feature[candidate.bin]


@njit(**INNER)
def is_pure(residual, scratch, node, gain):
    """Return whether scikit-learn would make the node a leaf because its residuals are equal.

    The variance is at least the gain, so it is rarely computed. (Where values are huge compared to
    their spread, scikit-learn's variance cancels to nothing and it stops early; this does not.)
    """
    if gain > 2.0 * PURE:
        return False
    total, squares = 0.0, 0.0
    for q in range(node.start, node.end):
        i = scratch.rows[q]
        value = residual[i]
        total += value
        squares += value * value / multiplicity(scratch.draws, i) / row_mass(scratch.mass, i)
    return squares / node.mass - (total / node.mass) ** 2 <= PURE
