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

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

Float32s = NDArray[np.float32]
Rows = NDArray[np.uint32]

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
    starts: NDArray[np.int64]

    @property
    def divisible(self) -> NDArray[np.bool_]:
        """(m,) whether a block has more than one value."""
        return self.values[self.starts[:-1]] < self.values[self.starts[1:] - 1]

    @property
    def codes(self) -> NDArray[np.int64]:
        """(n,) the block of every row."""
        codes = np.empty(len(self.order), np.int64)
        codes[self.order] = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        return codes


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
    first_bin: NDArray[np.int64]
    fine_features: NDArray[np.int64]
    coarse_features: NDArray[np.int64]
    bin_feature: NDArray[np.int64]
    bin_low: Float32s
    bin_high: Float32s
    order: Rows
    values: Float32s
    block_start: NDArray[np.int64]
    block_end: NDArray[np.int64]
    divisible: NDArray[np.bool_]
    n_blocks: int
    f_width: int

    @property
    def n_fine(self) -> int:
        """Fine columns, f not counted; it is also f's place among the columns."""
        return len(self.fine_features)


def prepare(X: NDArray[np.float64]) -> Layout:
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
    bundles = _bundle(features, binary)
    f_width = 2 * n_blocks + 2
    widths = [
        *(len(b.starts) - 1 for b in blocks),
        f_width,
        *(len(levels) for _, levels in coarse),
        *(len(bundle) + 1 for bundle in bundles),
    ]
    first_bin = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    n_bins = int(first_bin[-1])
    codes = np.zeros((n, len(widths)), np.uint16 if 2 * n_bins < 2**16 else np.uint32)
    bin_feature = np.full(n_bins, -1, np.int64)
    bin_low, bin_high = np.zeros(n_bins, np.float32), np.zeros(n_bins, np.float32)

    for column, block in enumerate(blocks):
        codes[:, column] = 2 * (first_bin[column] + block.codes)
    column = len(blocks) + 1
    for j, levels in coarse:
        start = first_bin[column]
        codes[:, column] = 2 * (start + np.searchsorted(levels, features[j]))
        bin_low[start : start + len(levels)] = levels
        column += 1
    for bundle in bundles:
        start = first_bin[column]
        codes[:, column] = 2 * (start + len(bundle))
        for position, j in enumerate(bundle):
            low, high = features[j].min(), features[j].max()
            codes[features[j] == high, column] = 2 * (start + position)
            bin_feature[start + position] = j
            bin_low[start + position], bin_high[start + position] = low, high
        column += 1
    return Layout(
        features=features,
        codes=codes,
        first_bin=first_bin,
        fine_features=np.array(fine, np.int64),
        coarse_features=np.array([j for j, _ in coarse], np.int64),
        bin_feature=bin_feature,
        bin_low=bin_low,
        bin_high=bin_high,
        order=np.array([b.order for b in blocks], np.uint32).reshape(-1, n),
        values=np.array([b.values for b in blocks], np.float32).reshape(-1, n),
        block_start=np.array([q for b in blocks for q in b.starts[:-1]], np.int64),
        block_end=np.array([q for b in blocks for q in b.starts[1:]], np.int64),
        divisible=np.array([v for b in blocks for v in b.divisible], np.bool_),
        n_blocks=n_blocks,
        f_width=f_width,
    )


def as_float32(values: NDArray[np.float64], name: str) -> Float32s:
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
