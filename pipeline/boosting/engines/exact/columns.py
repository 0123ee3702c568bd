"""The layout of a training matrix for the exact kernel, made once per split.

scikit-learn sees features as float32 and never splits between two neighbouring values of a node
that are within 1e-7 of each other. A feature becomes one of

- *fine*: many values. Rows are sorted once and cut into blocks of neighbouring rows. Two
  neighbouring blocks are always further apart than 1e-7, so that the border between them is a legal
  split in every node; the kernel looks inside a block only where a better split may hide. What may
  hide in a block of m rows goes with m, and what must be beaten, after c of the n rows, with the
  square root of c (n − c); so blocks are the smaller the nearer they are to either end.
- *coarse*: at most 256 values, all further apart than 1e-7. Every value is a bin.
- *bundle*: two-valued features whose upper values never occur together, such as the indicators of
  one category. They share a column; each feature is a bin and is split off against all other rows.

The prediction f_t is a fine feature that changes every round; it is the last fine column. (A forest
has none.)

Bins of all columns are numbered in one row: fine columns, f, coarse columns, bundles. A bundle's
last bin collects the rows where none of its features has its upper value; it is no split.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ...arrays import Flags, Float32s, Floats, Ints
from ...caching import ENTRY, INNER
from .structures import Table

Rows = NDArray[np.uint32]
Bins = NDArray[np.uint16]

# scikit-learn's: closer values count as equal.
FEATURE_THRESHOLD = np.float32(1e-7)
COARSE_LIMIT = 256
BUNDLE_LIMIT = 255
GROUP_BINS = 128  # about how many bins the kernel tests at once
MAX_ROWS = 2**24 - 1  # the kernel packs a row count and a sum into one float64


@dataclass(frozen=True)
class Blocks:
    """A fine column: rows in the order of their values, cut into blocks."""

    order: Rows  # (n,) rows
    values: Float32s  # (n,) their values, ascending
    starts: Ints  # (m + 1,) block borders

    @property
    def divisible(self) -> Flags:
        """(m,) whether a block has more than one value."""
        return self.values[self.starts[:-1]] < self.values[self.starts[1:] - 1]

    @property
    def bins(self) -> Bins:
        """(n,) the block of every row."""
        bins = np.empty(len(self.order), np.uint16)
        bins[self.order] = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        return bins


@dataclass(frozen=True)
class Column:
    """A column whose bins are not yet numbered together with those of all columns."""

    bins: Bins  # (n,) the bin of every row, from 0
    # feature, low, high: (width,) as ``bin_feature``, ``bin_low`` and ``bin_high`` of `Table`; −1,
    # 0 and 0 where they are not used
    feature: Ints
    low: Float32s
    high: Float32s

    @classmethod
    def plain(cls, bins: Bins, width: int) -> Column:
        """Return a column that needs none of feature, low and high."""
        zeros = np.zeros(width, np.float32)
        return cls(bins, np.full(width, -1, np.int64), zeros, zeros)


def prepare(X: Floats, *, for_f: bool = True) -> Table:
    """Lay out a finite training matrix X (n, d), with a column that `with_f` fills or without."""
    n = len(X)
    if n > MAX_ROWS:
        raise ValueError(
            f"engine='exact': takes at most {MAX_ROWS} rows, not {n}; use engine='sklearn'"
        )
    features = as_float32(X.T, "X")
    n_blocks = _n_blocks(n)
    fine, coarse, binary, order, values = _kinds(features)
    blocks = [_cut_sorted(*column, n_blocks) for column in zip(order, values, strict=True)]
    f_columns = [Column.plain(np.zeros(n, np.uint16), most_blocks(n, n_blocks))] if for_f else []
    columns = [
        *(Column.plain(b.bins, len(b.starts) - 1) for b in blocks),
        *f_columns,
        *(_coarse_column(features[j], levels) for j, levels in coarse),
        *(_bundle_column(features, bundle) for bundle in _bundle(features, binary)),
    ]
    first_bin = np.cumsum([0, *(len(c.feature) for c in columns)])
    narrow = 2 * first_bin[-1] < 2**16
    codes = np.empty((n, len(columns)), np.uint16 if narrow else np.uint32)
    for k, column in enumerate(columns):
        codes[:, k] = 2 * (first_bin[k] + column.bins)
    n_fine = len(fine) + len(f_columns)
    return Table(
        features=features,
        f=np.empty(0, np.float32),
        codes=codes,
        first_bin=first_bin,
        groups=np.append(
            np.flatnonzero(np.diff(first_bin[:-1] // GROUP_BINS, prepend=-1)), len(columns)
        ),
        n_fine=n_fine,
        n_numeric=n_fine + len(coarse),
        fine_features=np.array(fine, np.int64),
        coarse_features=np.array([j for j, _ in coarse], np.int64),
        bin_feature=np.concatenate([np.empty(0, np.int64), *(c.feature for c in columns)]),
        bin_low=np.concatenate([np.empty(0, np.float32), *(c.low for c in columns)]),
        bin_high=np.concatenate([np.empty(0, np.float32), *(c.high for c in columns)]),
        order=order,
        values=values,
        f_order=np.empty(0, np.uint32),
        f_values=np.empty(0, np.float32),
        block_start=np.array([q for b in blocks for q in b.starts[:-1]], np.int64),
        block_end=np.array([q for b in blocks for q in b.starts[1:]], np.int64),
        divisible=np.array([v for b in blocks for v in b.divisible], np.bool_),
    )


def with_f(table: Table, f: Floats) -> Table:
    """Return a prepared table with the column of a round's f (n,) sorted, cut and coded."""
    n, column = table.features.shape[1], len(table.fine_features)
    if f.shape != (n,):
        raise ValueError(f"f: has shape {f.shape} instead of ({n},)")
    values, (first, last) = as_float32(f, "f"), table.first_bin[column : column + 2]
    blocks = cut(values, _n_blocks(n))
    codes = table.codes.copy()
    codes[:, column] = 2 * (first + blocks.bins)
    unused = np.full(last - first - len(blocks.starts) + 1, n)  # empty blocks after all rows
    return table._replace(
        codes=codes,
        f=values,
        f_order=blocks.order,
        f_values=blocks.values,
        block_start=np.concatenate([table.block_start, blocks.starts[:-1], unused]),
        block_end=np.concatenate([table.block_end, blocks.starts[1:], unused]),
        divisible=np.concatenate([table.divisible, blocks.divisible, unused < 0]),
    )


def as_float32(values: Floats, name: str) -> Float32s:
    """Return ``values`` in the precision of scikit-learn's trees; raise if that is not finite."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32, order="C")
    if not np.isfinite(narrow).all():
        raise ValueError(f"{name}: holds NaN, infinity or a value too large for float32")
    return narrow


def cut(column: Float32s, n_blocks: int) -> Blocks:
    """Sort a feature (n,) and cut it into about ``n_blocks`` blocks, at most `most_blocks`.

    A block ends before it would exceed its share of the rows, so that a value of many rows has a
    block of its own.
    """
    order, values = np.empty(len(column), np.uint32), np.empty_like(column)
    _sort(column, order, values)
    return _cut_sorted(order, values, n_blocks)


def most_blocks(n: int, n_blocks: int) -> int:
    """Return the largest number of blocks of n rows: two neighbours together exceed a share."""
    return 2 * int(_n_shares(n, *_shares(n, n_blocks))) + 2


def _n_blocks(n: int) -> int:
    return int(np.clip(n // 64, 32, 512))


def _cut_sorted(order: Rows, values: Float32s, n_blocks: int) -> Blocks:
    return Blocks(order, values, _block_starts(values, *_shares(len(values), n_blocks)))


def _shares(n: int, n_blocks: int) -> tuple[int, float]:
    """Return the smallest share, and a factor for the root of a block's distance to the ends."""
    return max(n // (4 * n_blocks), 1), 4.0 * np.sqrt(n / 2.0) / n_blocks


def _kinds(
    features: Float32s,
) -> tuple[list[int], list[tuple[int, Float32s]], list[int], Rows, Float32s]:
    """Return the features that are fine, coarse (with their values) and two-valued.

    Constant ones are none of these. Also returns the sorted rows and values of the fine ones.
    """
    fine: list[int] = []
    coarse: list[tuple[int, Float32s]] = []
    binary: list[int] = []
    order, values = np.empty(features.shape, np.uint32), np.empty_like(features)
    for j, column in enumerate(features):
        # This is the place of the next fine feature; if this one is not fine, it is overwritten.
        own = values[len(fine)]
        _sort(column, order[len(fine)], own)
        if own[-1] <= own[0] + FEATURE_THRESHOLD:
            continue
        first = np.concatenate([[True], own[1:] > own[:-1]])
        n_levels = np.count_nonzero(first)
        levels = own[first] if n_levels <= COARSE_LIMIT else own[:0]
        if n_levels == 2:
            binary.append(j)
        elif len(levels) > 0 and (levels[1:] > levels[:-1] + FEATURE_THRESHOLD).all():
            coarse.append((j, levels))
        else:
            fine.append(j)
    return fine, coarse, binary, order[: len(fine)], values[: len(fine)]


def _coarse_column(values: Float32s, levels: Float32s) -> Column:
    column = Column.plain(np.searchsorted(levels, values).astype(np.uint16), len(levels))
    return replace(column, low=levels)


def _bundle_column(features: Float32s, bundle: list[int]) -> Column:
    """Return a column with a bin for each feature's upper value, and one for all other rows."""
    some = features[bundle]
    low, high = some.min(axis=1), some.max(axis=1)
    bins = np.full(features.shape[1], len(bundle), np.uint16)
    for position, upper in enumerate(some == high[:, None]):
        bins[upper] = position
    rest = np.zeros(1, np.float32)
    return Column(
        bins, np.array([*bundle, -1]), np.concatenate([low, rest]), np.concatenate([high, rest])
    )


def _bundle(features: Float32s, binary: list[int]) -> list[list[int]]:
    """Group two-valued features so that no row has two upper values in one group (first fit)."""
    bundles: list[list[int]] = []
    taken: list[NDArray[np.uint8]] = []
    for j in binary:
        upper = np.packbits(features[j] == features[j].max())
        for bundle, rows in zip(bundles, taken, strict=True):
            if len(bundle) < BUNDLE_LIMIT and not (rows & upper).any():
                bundle.append(j)
                rows |= upper
                break
        else:
            bundles.append([j])
            taken.append(upper)
    return bundles


@njit(**ENTRY)
def _block_starts(values, least, factor):
    n = values.shape[0]
    starts = np.empty(n + 1, np.int64)
    starts[0] = 0
    count = 1
    share = _share(0, n, least, factor)
    run = 0  # start of the current run of values that count as equal
    for q in range(1, n + 1):
        if q == n or values[q] > values[q - 1] + FEATURE_THRESHOLD:
            if run > starts[count - 1] and q - starts[count - 1] > share:
                starts[count] = run
                share = _share(run, n, least, factor)
                count += 1
            run = q
    starts[count] = n
    return starts[: count + 1].copy()


@njit(**INNER)
def _share(start, n, least, factor):
    """Return how many rows a block may have that starts at a given one of n rows."""
    return max(least, np.int64(factor * np.sqrt(min(start, n - start))))


@njit(**ENTRY)
def _n_shares(n, least, factor):
    place, count = 0, 0
    while place < n:
        place += _share(place, n, least, factor)
        count += 1
    return count


@njit(**ENTRY)
def _sort(column, order, values):
    """Fill the rows of a float32 column in the order of their values, and the values.

    A radix sort: stable, so that ties have the same order on every machine, and in linear time.
    """
    n = column.shape[0]
    bits, low = column.view(np.uint32), np.uint64(2**32 - 1)
    rows, spare = np.empty(n, np.uint64), np.empty(n, np.uint64)  # key and row in one number
    counts = np.zeros((3, 2048), np.int64)
    for i in range(n):
        key = np.uint64(_ascending(bits[i]))
        rows[i] = key << np.uint64(32) | np.uint64(i)
        counts[0, key & np.uint64(2047)] += 1
        counts[1, (key >> np.uint64(11)) & np.uint64(2047)] += 1
        counts[2, key >> np.uint64(22)] += 1
    for digit in range(3):
        place, shift = counts[digit], np.uint64(32 + 11 * digit)
        if place.max() == n:
            continue  # all rows agree
        total = 0
        for k in range(2048):
            total, place[k] = total + place[k], total
        for row in rows:
            k = (row >> shift) & np.uint64(2047)
            spare[place[k]] = row
            place[k] += 1
        rows, spare = spare, rows
    for q in range(n):
        i = rows[q] & low
        order[q], values[q] = i, column[i]


@njit(**INNER)
def _ascending(key):
    """Map a float32's bits to an integer in the same order (−0 as 0)."""
    if key == np.uint32(0x80000000):
        key = np.uint32(0)
    return ~key if key >> np.uint32(31) else key | np.uint32(0x80000000)
