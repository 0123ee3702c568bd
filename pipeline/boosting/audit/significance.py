"""How certain an audit is: p-value and standard error.

In the letters of `estimates`, T − Q = Σ_{i≠j} r_i r_j K_ij, K_ij the share of trees in which rows i
and j share a leaf: a U-statistic. *p-value*: under "no miscalibration" E[r | x, f] = 0, and
flipping signs of residuals at random keeps that, r² and the trees. T of ``n_flips`` such flips
gives p = (1 + #{T_b ≥ T}) / (1 + n_flips): exact for symmetric residuals, right for others as the
sample grows, because the limit depends on second moments alone. *Standard error*: with
g_i = Σ_{j≠i} K_ij r_j / n, the jackknife of a U-statistic gives 4 Var(r g) / n, in which the
degenerate part, known from the flips' variance, counts twice: it is taken out once.
"""

from __future__ import annotations

import numpy as np

from pipeline.boosting.arrays import Floats
from pipeline.boosting.audit.estimates import mean_square
from pipeline.boosting.audit.trees import SIGNS_PER_HASH, Labels, add_flipped, add_leaf_sums

FLIPS = 99
FLIPPED_CELLS = 50_000_000  # the largest number of rows times trees that are flipped


def significance(
    labels: Labels, sums: Floats, residual: Floats, pairs: float, seed: int, n_flips: int
) -> tuple[float, float]:
    """Return the p-value, and the standard error of (T − Q) / pairs.

    labels : (n_trees, n) each row's leaf.  sums : (n_trees, 2 ** depth).  residual : (n,) weighted.
    """
    some = labels[: max(FLIPPED_CELLS // len(residual), 1)]
    flipped = _flipped_squares(some, residual, sums.shape[1], seed, n_flips)
    observed = mean_square(sums[: len(some)])
    # A tie within rounding counts as reached: zero residuals are no evidence.
    p_value = (1 + int((flipped >= observed * (1 - 1e-6)).sum())) / (1 + n_flips)
    return p_value, _standard_error(labels, sums, residual, float(np.var(flipped)), pairs)


def _flipped_squares(
    labels: Labels, residual: Floats, n_leaves: int, seed: int, n_flips: int
) -> Floats:
    """Return T of ``n_flips`` random signs of the residuals, (n_flips,)."""
    scale = np.abs(residual).max() or 1.0  # single precision is enough for a p-value
    narrow = (residual / scale).astype(np.float32).view(np.uint32)
    width = -(-n_flips // SIGNS_PER_HASH) * SIGNS_PER_HASH
    sums = np.zeros((labels.shape[0], n_leaves, width), np.float32)
    add_flipped(labels, narrow, np.uint64(seed), sums)
    squares = np.square(sums[:, :, :n_flips], dtype=np.float64).sum(axis=(0, 1))
    return squares / labels.shape[0] * scale**2


def _standard_error(
    labels: Labels, sums: Floats, residual: Floats, flip_variance: float, pairs: float
) -> float:
    """Return that of (T − Q) / pairs: the jackknife, with the degenerate part counted once."""
    n = len(residual)
    shared = np.zeros(n)
    add_leaf_sums(labels, sums, shared)
    psi = residual * (shared / len(labels) - residual)
    jackknife = 4.0 * n * float(psi.var(ddof=1)) if n > 1 else 0.0
    return float(np.sqrt(max(jackknife - flip_variance, flip_variance))) / pairs
