"""The layout of a training matrix for the exact kernel, made once per split.

scikit-learn sees features as float32 and never splits between two neighbouring values of a node
that are within 1e-7 of each other. A feature becomes one of

- *fine*: many values. Rows are sorted once and cut into blocks of neighbouring rows. Two
  neighbouring blocks are always further apart than 1e-7, so that the border between them is a legal
  split in every node; the kernel looks inside a block only where a better split may hide.
- *coarse*: at most 256 values, all further apart than 1e-7. Every value is a bin.
- *bundle*: two-valued features whose upper values never occur together, such as the indicators of
  one category. They share a column; each feature is a bin and is split off against all other rows.

The prediction f_t is a fine feature that changes every round; it is the last fine column.

Bins of all columns are numbered in one row: fine columns, f, coarse columns, bundles. A bundle's
last bin collects the rows where none of its features has its upper value; it is no split.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pipeline.boosting.arrays import Flags, Float32s, Floats, Ints

Rows = NDArray[np.uint32]
Bins = NDArray[np.uint16]

# scikit-learn's: closer values count as equal. (Compiled into the kernel, whose cache does not see
# this file change: `make clean` after changing it.)
FEATURE_THRESHOLD = np.float32(1e-7)
COARSE_LIMIT = 256
BUNDLE_LIMIT = 255
MAX_ROWS = 2**24 - 1  # the kernel packs a row count and a sum into one float64


@dataclass(frozen=True)
class Blocks:
    """A fine column: rows in the order of their values, cut into blocks.

    order : (n,) rows;  values : (n,) their values, ascending;  starts : (m + 1,) block borders.
    """

    order: Rows
    values: Float32s
    starts: Ints

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
    """A column whose bins have no number yet among those of all columns.

    bins : (n,) the bin of every row, from 0.
    feature, low, high : (width,) as in `Layout`; where they mean nothing, −1 and 0.
    """

    bins: Bins
    feature: Ints
    low: Float32s
    high: Float32s

    @classmethod
    def plain(cls, bins: Bins, width: int) -> Column:
        """A column whose bins need no explanation."""
        nothing = np.zeros(width, np.float32)
        return cls(bins, np.full(width, -1, np.int64), nothing, nothing)


@dataclass(frozen=True)
class Layout:
    """A prepared training matrix; see the module's text. Nothing in it changes after `prepare`.

    features : (d, n) float32 values, one row per feature.
    codes : (n, w) twice the bin of a row in each column, f's still empty (twice, because the
        kernel keeps two numbers per bin).
    first_bin : (w + 1,) the first bin of each column.
    fine_features, coarse_features : the feature behind each such column.
    bin_feature, bin_low, bin_high : for a bundle's bin its feature and its two values; for a coarse
        column's bin its value in ``bin_low``.
    order, values : (n_fine, n) sorted rows and values of the fine columns without f.
    block_start, block_end : (fine bins,) the place of each fine bin in ``order``, without f.
    divisible : (fine bins,) whether the bin has more than one value, without f.
    n_blocks : about how many blocks a fine column has.
    f_width : how many bins are set aside for f.
    """

    features: Float32s
    codes: NDArray[np.uint16] | NDArray[np.uint32]
    first_bin: Ints
    fine_features: Ints
    coarse_features: Ints
    bin_feature: Ints
    bin_low: Float32s
    bin_high: Float32s
    order: Rows
    values: Float32s
    block_start: Ints
    block_end: Ints
    divisible: Flags
    n_blocks: int
    f_width: int

    @property
    def n_fine(self) -> int:
        """Fine columns, f not counted; it is also f's place among the columns."""
        return len(self.fine_features)


def prepare(X: Floats) -> Layout:
    """Lay out a finite training matrix X (n, d)."""
    n = len(X)
    if n > MAX_ROWS:
        raise ValueError(
            f"engine='exact': takes at most {MAX_ROWS} rows, not {n}; use engine='sklearn'"
        )
    features = as_float32(X, "X").T.copy()
    n_blocks = int(np.clip(n // 64, 16, 512))
    fine, coarse, binary = _kinds(features)
    blocks = [cut(features[j], n_blocks) for j in fine]
    f_width = 2 * n_blocks + 2
    columns = [
        *(Column.plain(b.bins, len(b.starts) - 1) for b in blocks),
        Column.plain(np.zeros(n, np.uint16), f_width),
        *(_coarse_column(features[j], levels) for j, levels in coarse),
        *(_bundle_column(features, bundle) for bundle in _bundle(features, binary)),
    ]
    first_bin = np.cumsum([0, *(len(c.feature) for c in columns)])
    narrow = 2 * first_bin[-1] < 2**16
    codes = np.empty((n, len(columns)), np.uint16 if narrow else np.uint32)
    for k, column in enumerate(columns):
        codes[:, k] = 2 * (first_bin[k] + column.bins)
    return Layout(
        features=features,
        codes=codes,
        first_bin=first_bin,
        fine_features=np.array(fine, np.int64),
        coarse_features=np.array([j for j, _ in coarse], np.int64),
        bin_feature=np.concatenate([c.feature for c in columns]),
        bin_low=np.concatenate([c.low for c in columns]),
        bin_high=np.concatenate([c.high for c in columns]),
        order=np.array([b.order for b in blocks], np.uint32).reshape(-1, n),
        values=np.array([b.values for b in blocks], np.float32).reshape(-1, n),
        block_start=np.array([q for b in blocks for q in b.starts[:-1]], np.int64),
        block_end=np.array([q for b in blocks for q in b.starts[1:]], np.int64),
        divisible=np.array([v for b in blocks for v in b.divisible], np.bool_),
        n_blocks=n_blocks,
        f_width=f_width,
    )


def as_float32(values: Floats, name: str) -> Float32s:
    """What scikit-learn's trees see of ``values``; raises where that is not finite."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    if not np.isfinite(narrow).all():
        raise ValueError(f"{name}: holds NaN, infinity or a value too large for float32")
    return narrow


def cut(column: Float32s, n_blocks: int) -> Blocks:
    """Sort a feature (n,) and cut it into about ``n_blocks`` blocks, at most twice as many and one.

    A block ends before it would grow beyond its share of the rows, so that a heavily tied value
    stands alone.
    """
    order = np.argsort(column).astype(np.uint32)
    values = column[order]
    return Blocks(order, values, _block_starts(values, max(len(values) // n_blocks, 1)))


def _kinds(
    features: Float32s,
) -> tuple[list[int], list[tuple[int, Float32s]], list[int]]:
    """The features that are fine, coarse (with their values) and two-valued; not constant ones."""
    fine, coarse, binary = [], [], []
    for j, column in enumerate(features):
        levels = np.unique(column)
        if levels[-1] <= levels[0] + FEATURE_THRESHOLD:
            continue
        apart = levels[1:] > levels[:-1] + FEATURE_THRESHOLD
        if len(levels) == 2:
            binary.append(j)
        elif len(levels) <= COARSE_LIMIT and apart.all():
            coarse.append((j, levels))
        else:
            fine.append(j)
    return fine, coarse, binary


def _coarse_column(values: Float32s, levels: Float32s) -> Column:
    """A bin for every value."""
    column = Column.plain(np.searchsorted(levels, values).astype(np.uint16), len(levels))
    return replace(column, low=levels)


def _bundle_column(features: Float32s, bundle: list[int]) -> Column:
    """A bin for the rows with each feature's upper value, and a last one for all others."""
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


@njit(cache=True, nogil=True)
def _block_starts(values, share):
    n = values.shape[0]
    starts = np.empty(n + 1, np.int64)
    starts[0] = 0
    count = 1
    run = 0  # start of the current run of values that count as equal
    for q in range(1, n + 1):
        if q == n or values[q] > values[q - 1] + FEATURE_THRESHOLD:
            if run > starts[count - 1] and q - starts[count - 1] > share:
                starts[count] = run
                count += 1
            run = q
    starts[count] = n
    return starts[: count + 1].copy()
