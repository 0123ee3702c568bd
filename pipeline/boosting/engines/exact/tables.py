"""A prepared matrix as the flat arrays of compiled code, with a round's f or without."""

from __future__ import annotations

import numpy as np

from pipeline.boosting.arrays import Float32s, Floats
from pipeline.boosting.engines.exact import kernel
from pipeline.boosting.engines.exact.columns import Blocks, Codes, Layout, as_float32, cut


def with_f(layout: Layout, f: Floats) -> kernel.Table:
    """The layout with the column of f (n,) sorted, cut and coded."""
    n = layout.features.shape[1]
    if f.shape != (n,):
        raise ValueError(f"f: has shape {f.shape} instead of ({n},)")
    values = as_float32(f, "f")
    blocks = cut(values, layout.n_blocks)
    place = layout.n_fine
    codes = layout.codes.copy()
    codes[:, place] = 2 * (layout.first_bin[place] + blocks.bins)
    return _table(layout, codes, values, blocks)


def without_f(layout: Layout) -> kernel.Table:
    """The layout as it is, for trees over x alone."""
    return _table(layout, layout.codes, np.empty(0, np.float32), Blocks.nothing())


def _table(layout: Layout, codes: Codes, f: Float32s, blocks: Blocks) -> kernel.Table:
    n_fine = layout.n_fine + (layout.f_width > 0)
    unused = np.full(layout.f_width - len(blocks.starts) + 1, len(f))  # empty, behind all rows
    return kernel.Table(
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
