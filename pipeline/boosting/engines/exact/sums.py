"""Collecting the sums of a node's rows in all bins.

Sums per bin. A node keeps, for every bin of every column (see `columns`), the sum of residuals and
the row count. They are running sums along fine and coarse columns, so that bin j's entry describes
the split after bin j, and plain sums in bundles, where it describes "bin j against the rest". One
child's sums are collected from its rows, always the smaller child's; the other's are the
parent's minus those.
"""

import numpy as np
from numba import njit

from .intrinsics import add_pair, prefetch
from .structures import AHEAD, CACHED_ROWS, INNER, ONE, TWO, multiplicity, prefetch_row


@njit(**INNER)
def collect_sums(table, residual, scratch, start, end, packing, n_columns, sums, parent, rest):
    """Fill ``sums`` with those of a range of the list of rows, in the first ``n_columns`` columns.

    ``rest`` is filled with the sums of the ``parent``'s other rows.
    """
    first_bin, n_fine, n_numeric = table.first_bin, table.n_fine, table.n_numeric
    sums[: 2 * first_bin[n_columns]] = 0.0
    codes, rows, unit, scale = table.codes, scratch.rows, packing.unit, packing.scale
    fine = range(np.uint64(n_fine))
    others = range(np.uint64(n_fine), np.uint64(n_columns))
    large, stop = residual.shape[0] > CACHED_ROWS, np.uint64(end)
    for q in range(np.uint64(start), stop):
        i = rows[q]
        if large and q + AHEAD < stop:
            prefetch(residual, np.uint64(rows[q + AHEAD]))
            prefetch_row(codes, rows[q + AHEAD])
        value = residual[i]
        plain = unit * multiplicity(scratch.draws, i)
        weight = plain + np.ceil(abs(value) * scale)
        for c in fine:
            add_pair(sums, np.uint64(codes[i, c]), value, weight)
        for c in others:
            add_pair(sums, np.uint64(codes[i, c]), value, plain)
    _collect_masses(table, scratch, start, end, sums, parent, rest, scratch.masses)
    _accumulate(sums, first_bin, min(n_columns, n_numeric), parent, rest)
    for at in range(2 * first_bin[n_numeric], 2 * first_bin[n_columns]):
        rest[at] = parent[at] - sums[at]


@njit(**INNER)
def _collect_masses(table, scratch, start, end, sums, parent, rest, masses):
    """Fill the masses of bins, as `collect_sums` does the sums; does nothing without masses."""
    if masses is not None:
        first_bin, codes, rows, mass = table.first_bin, table.codes, scratch.rows, scratch.mass
        first, n_bins = np.uint64(masses), np.uint64(first_bin[-1])
        sums[masses:] = 0.0
        for q in range(np.uint64(start), np.uint64(end)):
            i = rows[q]
            for c in range(np.uint64(codes.shape[1])):
                sums[first + (np.uint64(codes[i, c]) >> ONE)] += mass[i]
        for c in range(table.n_numeric):
            total = 0.0
            for j in range(np.uint64(first_bin[c]), np.uint64(first_bin[c + 1])):
                total += sums[first + j]
                sums[first + j] = total
        for j in range(first, first + n_bins):
            rest[j] = parent[j] - sums[j]


@njit(**INNER)
def _accumulate(sums, first_bin, n_columns, parent, rest):
    """Turn the sums of numeric columns into running sums; the rest is the ``parent``'s minus those.

    Each addition of a running sum waits for the one before, so two columns are done side by side.
    """
    for c in range(0, n_columns, 2):
        a, b = np.uint64(2 * first_bin[c]), np.uint64(2 * first_bin[c + 1])
        a_end, b_end = b, b
        if c + 1 < n_columns:
            b_end = np.uint64(2 * first_bin[c + 2])
        value_a, weight_a, value_b, weight_b = 0.0, 0.0, 0.0, 0.0
        for _ in range(min(a_end - a, b_end - b) // TWO):
            value_a, weight_a = value_a + sums[a], weight_a + sums[a + ONE]
            value_b, weight_b = value_b + sums[b], weight_b + sums[b + ONE]
            _write(sums, a, value_a, weight_a, parent, rest)
            _write(sums, b, value_b, weight_b, parent, rest)
            a += TWO
            b += TWO
        _accumulate_column(sums, a, a_end, value_a, weight_a, parent, rest)
        _accumulate_column(sums, b, b_end, value_b, weight_b, parent, rest)


@njit(**INNER)
def _accumulate_column(sums, start, end, value, weight, parent, rest):
    for at in range(start, end, TWO):
        value, weight = value + sums[at], weight + sums[at + ONE]
        _write(sums, at, value, weight, parent, rest)


@njit(**INNER)
def _write(sums, at, value, weight, parent, rest):
    sums[at], sums[at + ONE] = value, weight
    rest[at], rest[at + ONE] = parent[at] - value, parent[at + ONE] - weight
