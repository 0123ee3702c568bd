"""The gains of splits at the borders of bins, and bounds on the gains inside of blocks.

The gain. For a node of N rows with residual sum T, a split that sends c rows with sum s to the left
reduces the squared error by N g with g = (s − c T/N)² / (c (N − c)). The best split maximises g.

Why looking only at block borders is exact. Between two borders of a fine column a split takes some
prefix of the block's rows: c lies in [c₀ + 1, c₁ − 1] and s = s₀ + (sum of a prefix of the block).
With A the sum of |r| over the block's rows, every such sum lies within A/2 of the middle of s₀ and
s₁. So (c, s) lies in a rectangle. Since

    N g = s²/c + (T − s)²/(N − c) − T²/N

is convex in (c, s) (each term is a square over a positive linear function), its maximum over the
rectangle is at a corner. If no corner beats the best split known so far, no split inside the block
does, and the block is skipped; otherwise its rows are scanned. Borders of all columns come first,
so that the best known split is usually good enough to skip nearly all blocks.

The bound stays valid if A is too large. So A may be rounded up and go stale, which allows two
savings: counts and A share one float64 (see `structures`), and the root's A is not recomputed after
a tree but increased by what the tree can have added, until that has loosened the bound too much.

With masses, a split strictly inside a block has at least the lightest row's mass more than the
border before it, instead of 1.

Divisions. Whether a split gains more than g needs no division: (s − c T/N)² > g c (N − c). So loops
over all bins, which must vectorise, look for promising ones, and gains are computed only for those.
The *margin* of a block is the left side less the right side at the best corner, for the gain that a
split has to reach; a block of negative margin is skipped.
"""

import numpy as np
from numba import njit

from .structures import FAST, INNER, ONE, TWO, Terms, bin_mass, is_tried

TIE = 1e-11  # candidates whose gains agree to this are tied
_NEGLIGIBLE = 1e-13  # share of a node's mass


@njit(inline="always", **FAST)
def node_terms(node, packing):
    """Return the `Terms` of a node."""
    half, mean = 0.5000000001 / packing.scale, node.total / node.mass
    n, unit, lightest = np.float64(node.n), packing.unit, packing.lightest
    return Terms(n, node.mass, mean, unit, 1.0 / unit, half, lightest)


@njit(inline="always", **FAST)
def split_gain(left_sum, left_mass, mass, mean):
    """Return g of the module's text."""
    excess = left_sum - left_mass * mean
    return excess * excess / (left_mass * (mass - left_mass))


@njit(inline="always", **INNER)
def nearly(gain):
    """Return a little less than a gain, so that what ties with it is not lost (more than −1)."""
    return gain * (1.0 - TIE)


@njit(**INNER)
def border_gains(table, sums, terms, least, tried, some, gains, column_gain, masses):
    """Fill ``column_gain`` with the best gain at a border of each column; return the best of all.

    It is −1 for columns that cannot have the best. ``some`` : not all features are ``tried``.
    Groups of columns are tested at once, so that small columns cost little.
    """
    first_bin, groups, known = table.first_bin, table.groups, -1.0
    for group in range(groups.shape[0] - 1):
        columns = range(groups[group], groups[group + 1])
        start, end = first_bin[columns.start], first_bin[columns.stop]
        enough = nearly(known)
        if known >= 0.0 and not _any_reaches(sums, start, end, terms, least, enough, masses):
            for c in columns:
                column_gain[c] = -1.0
            continue
        _bin_gains(sums, start, end, terms, least, gains, masses)
        if some:
            _discard_untried(table, tried, columns.start, columns.stop, gains)
        for c in columns:
            # A bundle's last bin is not a split.
            end = first_bin[c + 1] - (c >= table.n_numeric)
            column_gain[c] = _maximum(gains, first_bin[c], end)
            known = max(known, column_gain[c])
    return known


@njit(**INNER)
def _discard_untried(table, tried, first, last, gains):
    """Set the gains of features of some columns that the node does not try to −1."""
    for c in range(first, last):
        numeric = c < table.n_numeric
        untried = numeric and not is_tried(table, tried, c)
        for j in range(table.first_bin[c], table.first_bin[c + 1] - (not numeric)):
            if untried or (not numeric and not tried[table.bin_feature[j]]):
                gains[j] = -1.0


@njit(**FAST)
def _any_reaches(sums, start, end, terms, least, enough, masses):
    """Return whether a split at some bins gains ``enough`` (a maximum would not vectorise)."""
    found, n, mass, mean, inverse = 0, terms.n, terms.mass, terms.mean, terms.inverse
    legal = least_product(n, least)
    for j in range(np.uint64(start), np.uint64(end)):
        count = np.floor(sums[j + j + ONE] * inverse)
        left_mass = bin_mass(sums, j, count, masses)
        product = left_mass * (mass - left_mass)
        excess = sums[j + j] - left_mass * mean
        reaches = excess * excess >= enough * product
        found += np.int64(reaches & (count_product(product, mass, count, n, masses) > legal))
    return found > 0


@njit(**FAST)
def _bin_gains(sums, start, end, terms, least, gains, masses):
    """Fill the gain of the split at each bin of a range; −1 if a side has too few rows."""
    n, mass, mean, inverse = terms.n, terms.mass, terms.mean, terms.inverse
    legal = least_product(n, least)
    for j in range(np.uint64(start), np.uint64(end)):
        count = np.floor(sums[j + j + ONE] * inverse)
        left_mass = bin_mass(sums, j, count, masses)
        product = left_mass * (mass - left_mass)
        excess = sums[j + j] - left_mass * mean
        enough = count_product(product, mass, count, n, masses) > legal
        gains[j] = excess * excess / product if enough else -1.0


@njit(inline="always", **FAST)
def least_product(n, least):
    """Return what c (n − c) has to exceed so that both sides of c rows and the rest are legal."""
    return least * (n - least) - 0.5


@njit(**FAST)
def count_product(product, mass, count, n, masses):
    """Return the product of the row counts on both sides; without masses, ``product`` itself.

    A side counts as empty if its mass is lost in the rounding of the other side's.
    """
    if masses is None:
        return product
    return count * (n - count) if product > _NEGLIGIBLE * mass * mass else -1.0


@njit(**FAST)
def _maximum(values, start, end):
    largest = -1.0
    for j in range(np.uint64(start), np.uint64(end)):
        largest = max(largest, values[j])
    return largest


@njit(**FAST)
def block_margins(first_bin, divisible, sums, terms, enough, margins, least, masses):
    """Fill the margin of each block of the fine columns for a gain of ``enough``."""
    inverse = terms.inverse
    for j in range(ONE, np.uint64(margins.shape[0])):
        at = j + j
        sum0, weight0, sum1, weight1 = sums[at - TWO], sums[at - ONE], sums[at], sums[at + ONE]
        before, after = np.floor(weight0 * inverse), np.floor(weight1 * inverse)
        mass0, mass1 = bin_mass(sums, j - ONE, before, masses), bin_mass(sums, j, after, masses)
        margins[j] = _margin(
            sum0, weight0, before, mass0, sum1, weight1, after, mass1, divisible[j], terms, enough
        )
    for c in range(first_bin.shape[0]):
        j = first_bin[c]
        if j >= margins.shape[0]:
            break
        margins[j] = block_margin(sums, j, True, divisible[j], terms, enough, masses)
    if least > 1.0:
        _close_illegal_blocks(first_bin, sums, inverse, least, terms.n - least, margins)


@njit(**INNER)
def _close_illegal_blocks(first_bin, sums, inverse, least, most, margins):
    """Skip blocks of which all splits leave a side too few rows."""
    for c in range(first_bin.shape[0] - 1):
        before = 0.0
        for j in range(first_bin[c], min(first_bin[c + 1], margins.shape[0])):
            after = np.floor(sums[2 * j + 1] * inverse)
            if after <= least or before >= most:
                margins[j] = -1.0
            before = after


@njit(**FAST)
def block_margin(sums, j, is_first, divisible, terms, enough, masses):
    """Return the margin of one block, which may be the first of its column."""
    sum0, weight0, before, mass0 = 0.0, 0.0, 0.0, 0.0
    if not is_first:
        sum0, weight0 = sums[2 * j - 2], sums[2 * j - 1]
        before = np.floor(weight0 * terms.inverse)
        mass0 = bin_mass(sums, j - 1, before, masses)
    after = np.floor(sums[2 * j + 1] * terms.inverse)
    sum1, weight1, mass1 = sums[2 * j], sums[2 * j + 1], bin_mass(sums, j, after, masses)
    return _margin(
        sum0, weight0, before, mass0, sum1, weight1, after, mass1, divisible, terms, enough
    )


@njit(inline="always", **FAST)
def _margin(sum0, weight0, count0, mass0, sum1, weight1, count1, mass1, divisible, terms, enough):
    """Return the margin of the splits strictly inside a block, at the corners of the rectangle."""
    mass, mean = terms.mass, terms.mean
    reach = ((weight1 - weight0) - (count1 - count0) * terms.unit) * terms.half
    middle = 0.5 * (sum0 + sum1)
    low, high = mass0 + terms.lightest, mass1 - terms.lightest
    excess_low = abs(middle - low * mean) + reach
    excess_high = abs(middle - high * mean) + reach
    margin = max(
        excess_low * excess_low - enough * (low * (mass - low)),
        excess_high * excess_high - enough * (high * (mass - high)),
    )
    return margin if divisible and count1 - count0 > 1.5 else -1.0


@njit(**FAST)
def any_open(margins, start, end):
    """Return whether a block of a range has to be scanned."""
    found = 0
    for j in range(np.uint64(start), np.uint64(end)):
        found += np.int64(margins[j] >= 0.0)
    return found > 0
