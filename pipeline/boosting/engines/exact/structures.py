"""What the compiled functions of the kernel pass to each other, and how it is represented.

Packing. In a fine column a row weighs `unit` + ⌈|r| · scale⌉, where `unit` is a power of two above
all sums of the second term. Both parts are integers and their sums stay below 2⁵³, so that adding
and subtracting them is exact: count = ⌊weight / unit⌋, A ≤ (weight − count · unit) / scale, where A
is the sum of |r| (see `gains`). In the other columns, which need no A, a row weighs `unit`. (A row
that a forest drew k times weighs k units instead of one, and its r is k times as large.)

Masses. Where rows have masses m (`kernel.grow_weighted`), the c and N of `gains` are sums of
masses, s and T sums of m r, and each bin has a third number, its mass; the packed counts are of
rows, and tell which splits leave both sides enough of them.

Optional arguments. An argument that is None or not is known when a function is compiled, so that
what is not needed costs nothing: draws of rows, masses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ... import caching
from ..base import TreeSettings
from .intrinsics import prefetch

ENTRY: dict[str, Any] = caching.ENTRY | {"error_model": "numpy"}
# Inside, numba's reference counting is off: it took a quarter of the time on small tables. Such a
# function must not allocate, nor return a view of an array unless it is inlined. (A tuple of many
# arrays is passed field by field, so what is called for every column takes only what it needs.)
INNER: dict[str, Any] = caching.INNER | {"error_model": "numpy", "_nrt": False}
# Without NaN, infinity and signed zeros to consider, the loops vectorise. Divisions by zero happen,
# in bins without a legal split, whose result is then replaced by −1.
FAST = INNER | {"fastmath": {"nnan", "ninf", "nsz", "contract", "reassoc"}}

# Tables of more rows do not fit the cache; their rows are prefetched some time before their use.
CACHED_ROWS, AHEAD = 2**17, np.uint64(16)
ONE, TWO = np.uint64(1), np.uint64(2)


class Table(NamedTuple):
    """A training matrix as `columns` lays it out; nothing in it changes."""

    features: NDArray[np.float32]  # (d, n) the values, one row per feature
    f: NDArray[np.float32]  # (n,), or empty
    # (n, w) twice the bin of a row in each column (twice, because there are two numbers per bin)
    codes: NDArray[np.uint16] | NDArray[np.uint32]
    first_bin: NDArray[np.int64]  # (w + 1,) the first bin of each column
    # (g + 1,) the first column of each group of columns, and w at the end
    groups: NDArray[np.int64]
    n_fine: int  # the number of fine columns, including f's if it has one
    n_numeric: int  # that of fine and coarse columns
    # fine_features, coarse_features: the feature behind each such column, without f
    fine_features: NDArray[np.int64]
    coarse_features: NDArray[np.int64]
    # bin_feature, bin_low, bin_high: of a bundle's bin, its feature and its two values; of a coarse
    # column's bin, its value in ``bin_low``
    bin_feature: NDArray[np.int64]
    bin_low: NDArray[np.float32]
    bin_high: NDArray[np.float32]
    # order, values: (columns, n) sorted rows and values of the fine columns without f
    order: NDArray[np.uint32]
    values: NDArray[np.float32]
    # f_order, f_values: the same of f, (n,)
    f_order: NDArray[np.uint32]
    f_values: NDArray[np.float32]
    # block_start, block_end: (fine bins,) the place of each fine bin in the sorted rows
    block_start: NDArray[np.int64]
    block_end: NDArray[np.int64]
    divisible: NDArray[np.bool_]  # (fine bins,) whether the bin has more than one value


class Split(NamedTuple):
    """A chosen split: rows with value ≤ ``low`` go left; no row has a value between the two."""

    found: bool
    gain: float
    feature: int
    left_n: int
    left_mass: float
    left_sum: float
    low: float
    high: float


class Candidate(NamedTuple):
    """A possible split whose threshold is not computed yet; ``column`` is −1 for none.

    ``bin`` is the bin that it follows (or, in a bundle, splits off). Inside a block of a fine
    column, ``before`` and ``after`` are the places, in sorted order, of the node's rows around it;
    otherwise they are −1.
    """

    gain: float
    column: int
    bin: int
    before: int
    after: int
    left_n: int
    left_mass: float
    left_sum: float


class Node(NamedTuple):
    """A node: a range of the list of rows, its label, and sums over its rows.

    ``n`` counts a row as often as it was drawn; ``mass`` and ``total`` are the sums of masses
    (without masses, ``n``) and of residuals.
    """

    label: int
    level: int
    start: int
    end: int
    n: int
    mass: float
    total: float


class Packing(NamedTuple):
    """How a row count and a sum of |r| share one number, and the smallest mass of a row."""

    unit: float
    scale: float
    lightest: float


class Terms(NamedTuple):
    """What the gains and margins of a node's splits depend on, computed once."""

    n: float
    mass: float
    mean: float
    unit: float
    inverse: float  # 1 / unit
    half: float  # times a packed sum of |r|: half of that sum, rounded up
    lightest: float


class Scratch(NamedTuple):
    """Working memory of a fit, so that growing a tree allocates nothing."""

    rows: NDArray[np.uint32]  # ordered such that every node has a range of them
    spare: NDArray[np.uint32]
    label: NDArray[np.uint16]  # the node of each row
    draws: NDArray[np.uint8] | None  # how often each row was drawn; None: every row once
    mass: NDArray[np.float64] | None  # of each row; None: all 1
    masses: int | None  # where the masses of bins begin in an array of sums
    min_leaf: float  # the smallest number of rows on each side of a split
    n_tried: int  # how many features a node tries; they are drawn for each node
    tried: NDArray[np.bool_]  # whether the node tries each feature
    shuffled: NDArray[np.int64]  # all features, in the order in which they were last drawn
    places: NDArray[np.uint32]  # of a node's rows in a block
    gain: NDArray[np.float64]  # of the split at each bin, where it matters
    column_gain: NDArray[np.float64]  # the largest of each column
    margin: NDArray[np.float64]  # of each fine bin: not negative if it has to be scanned
    # What the current tree subtracts from the root's sums, and can add to its sums of |r|: for
    # whole nodes (drop and growth), and for single rows (pairs of both).
    drop: NDArray[np.float64]
    growth: NDArray[np.float64]
    row_changes: NDArray[np.float64]
    steps: NDArray[np.float64]  # of two sibling leaves
    random: NDArray[np.uint64]
    waiting: NDArray[np.int64]  # a stack of nodes: the integers of `Node`
    waiting_sums: NDArray[np.float64]  # their masses and totals
    carried: NDArray[np.float64]  # the root's sums
    levels: NDArray[np.float64]  # the sums of the nodes on the stack

    @classmethod
    def create(
        cls, table: Table, settings: TreeSettings, *, drawn: bool = False, weighted: bool = False
    ) -> Scratch:
        """Allocate the working memory of a fit, of rows that are ``drawn`` or ``weighted``."""
        depth = settings.max_depth
        n, n_bins, n_fine_bins = len(table.codes), int(table.first_bin[-1]), len(table.block_start)
        n_sums = 3 * n_bins if weighted else 2 * n_bins
        n_features = len(table.features) + (len(table.f) > 0)
        return cls(
            rows=np.empty(n + 1, np.uint32),
            spare=np.empty(n + 1, np.uint32),
            label=np.zeros(n, np.uint16),
            draws=np.empty(n, np.uint8) if drawn else None,
            mass=np.empty(n) if weighted else None,
            masses=2 * n_bins if weighted else None,
            min_leaf=float(settings.min_samples_leaf),
            n_tried=max(1, int(settings.max_features * n_features)),
            tried=np.ones(n_features, np.bool_),
            shuffled=np.arange(n_features),
            places=np.empty(n + 1, np.uint32),
            gain=np.empty(n_bins),
            column_gain=np.empty(len(table.first_bin) - 1),
            margin=np.empty(n_fine_bins),
            drop=np.empty(n_bins),
            growth=np.empty(n_fine_bins),
            row_changes=np.zeros(n_sums),
            steps=np.empty(2),
            random=np.zeros(1, np.uint64),
            waiting=np.empty((depth + 2, 5), np.int64),
            waiting_sums=np.empty((depth + 2, 2)),
            carried=np.empty(n_sums),
            levels=np.empty((depth + 1, n_sums)),
        )


@njit(**INNER)
def packing_unit(n):
    """Return what one of ``n`` draws adds to a packed weight."""
    return 2.0 ** (52 - np.ceil(np.log2(n + 1.0)))


@njit(**INNER)
def packing_for(n, largest, lightest):
    """Return the packing for ``n`` draws of residuals up to ``largest``."""
    unit = packing_unit(n)
    return Packing(unit, min(unit / 4.0 / (n + 1.0) / largest, 1e200), lightest)


@njit(inline="always", **INNER)
def bin_count(sums, j, unit):
    """Return the row count at bin j."""
    return np.int64(np.floor(sums[2 * j + 1] / unit))


@njit(**FAST)
def bin_mass(sums, j, count, masses):
    """Return the mass at bin j; without masses it is the count."""
    if masses is None:
        return np.float64(count)
    return sums[np.uint64(masses) + np.uint64(j)]


@njit(**INNER)
def multiplicity(draws, i):
    """Return how often row i was drawn."""
    if draws is None:
        return 1
    return np.int64(draws[i])


@njit(**INNER)
def row_mass(mass, i):
    """Return the mass of row i; without masses 1."""
    if mass is None:
        return 1.0
    return mass[i]


@njit(**INNER)
def running_mass(mass, count, masses):
    """Return the mass before a split; without masses it is the count."""
    if masses is None:
        return np.float64(count)
    return mass


@njit(inline="always", **INNER)
def feature_values(table, feature):
    """Return the values of a feature, (n,); f comes after those of X."""
    return table.features[feature] if feature < table.features.shape[0] else table.f


@njit(inline="always", **INNER)
def sorted_rows(table, c):
    """Return the rows of a fine column in sorted order, and their values."""
    if c < table.order.shape[0]:
        return table.order[c], table.values[c]
    return table.f_order, table.f_values


@njit(**INNER)
def is_tried(table, tried, column):
    """Return whether a node tries the feature of a fine or coarse column."""
    if column < table.order.shape[0]:
        return tried[table.fine_features[column]]
    if column < table.n_fine:
        return tried[table.features.shape[0]]  # f
    return tried[table.coarse_features[column - table.n_fine]]


@njit(inline="always", **INNER)
def prefetch_row(codes, row):
    """Prefetch a row: the processor cannot guess a node's next one."""
    width, i = np.uint64(codes.shape[1]), np.uint64(row)
    prefetch(codes, i * width)
    prefetch(codes, i * width + width - ONE)
