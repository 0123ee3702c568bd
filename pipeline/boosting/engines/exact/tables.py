"""A prepared matrix as flat arrays for compiled code, with a round's f or without."""

from __future__ import annotations

import numpy as np

from pipeline.boosting.arrays import Float32s, Floats
from pipeline.boosting.engines.exact.columns import Blocks, Codes, Layout, as_float32, cut
from pipeline.boosting.engines.exact.structures import Table


def with_f(layout: Layout, f: Floats) -> Table:
    """Return the layout with the column of f (n,) sorted, cut and coded."""
    n = layout.features.shape[1]
    if f.shape != (n,):
        raise ValueError(f"f: has shape {f.shape} instead of ({n},)")
    values = as_float32(f, "f")
    blocks = cut(values, layout.n_blocks)
    column = layout.n_fine
    codes = layout.codes.copy()
    codes[:, column] = 2 * (layout.first_bin[column] + blocks.bins)
    return _table(layout, codes, values, blocks)


def without_f(layout: Layout) -> Table:
    """Return the layout as it is, for trees over x alone."""
    return _table(layout, layout.codes, np.empty(0, np.float32), Blocks.empty())


def _table(layout: Layout, codes: Codes, f: Float32s, blocks: Blocks) -> Table:
    n_fine = layout.n_fine + (layout.f_width > 0)
    unused = np.full(layout.f_width - len(blocks.starts) + 1, len(f))  # empty blocks after all rows
    return Table(
        features=layout.features,
        f=f,
        codes=codes,
        first_bin=layout.first_bin,
        groups=layout.groups,
        n_fine=n_fine,
        n_numeric=n_fine + len(layout.coarse_features),
        fine_features=layout.fine_features,
        coarse_features=layout.coarse_features,
        bin_feature=layout.bin_feature,
        bin_low=layout.bin_low,
        bin_high=layout.bin_high,
        order=layout.order,
        values=layout.values,
        f_order=blocks.order,
        f_values=blocks.values,
        block_start=np.concatenate([layout.block_start, blocks.starts[:-1], unused]),
        block_end=np.concatenate([layout.block_end, blocks.starts[1:], unused]),
        divisible=np.concatenate([layout.divisible, blocks.divisible, unused < 0]),
    )
