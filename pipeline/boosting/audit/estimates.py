"""The multicalibration error from the sums of an audit's leaves, its noise floor, and its square
without bias.

The paper estimates ‖Ê(f)‖₂, Ê_j = mean((y − f) b_j(x, f)), over random regression trees on (x, f);
`trees` tells how they are drawn. What a tree contributes depends on how one reads "weak learner";
with S_k the sum of the residuals in leaf k, n_k its rows, and n all rows:

- ``leaf_indicators``: each leaf is a weak learner. The tree gives Σ_k (S_k / n)².
- ``random_leaf_values``: the tree is one weak learner with leaf values v_k uniform on [−1, 1].
  It gives (Σ_k v_k S_k / n)², a third of the above on average, only noisier.
- ``fitted_leaf_values``: the tree is one weak learner whose leaf values are the mean residuals
  S_k / n_k. It gives (Σ_k S_k² / (n_k n))².

The error is the root of the mean over trees.

**Its noise floor.** Rows are a sample, so S_k / n is an estimate, and its square adds its variance:
the error of a perfect predictor is not zero. Let the audited rows be independent of the predictor
(held-out rows, that is), r_i = y_i − f_i, and let a row have a weight w_i (else 1), W = Σ w_i. A
weak learner b has ε = E[r b] and the estimate ε̂ = Σ w_i r_i b_i / W. Multiplying out,

    E[(Σ w_i r_i b_i)²] = ε² (W² − Σ w_i²) + E[Σ w_i² r_i² b_i²],

since two different rows contribute ε² each time and a row with itself its second moment. So

    ((Σ w_i r_i b_i)² − Σ w_i² r_i² b_i²) / (W² − Σ w_i²)

is unbiased for ε². The leaves of a tree are disjoint: summed over them, Σ_k b_k² = 1, and
with the three sums T = mean over trees of Σ_k S_k², Q = Σ w_i² r_i², W of ``leaf_indicators``

    plug-in T / W²,   floor Q / W²,   debiased (T − Q) / (W² − Σ w_i²);

without weights these are MCE², MSE / n and (n MCE² − MSE) / (n − 1). For ``random_leaf_values`` a
leaf counts with v_k²: Q = mean over trees of Σ_k v_k² Q_k, Q_k = Σ_{i in k} w_i² r_i². For
``fitted_leaf_values`` the learner itself is estimated from the same rows; its inner mean
Σ_k (n_k / n) μ_k², μ_k the leaf's mean residual, has the unbiased estimate
Σ_k (S_k² − Q_k) / (n (n_k − 1)), of which the reading takes the square, here with its sign (the
square of an unbiased number is not unbiased itself: this one is debiased in its inner part alone).

The debiased square may be negative, and its mean over samples is right only if it may. On training
rows none of this holds: there r_i depends on y_i through f, the terms i ≠ j do not average to ε²
(boosting drives them below it), and the correction would be applied to the wrong number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..arrays import Floats
from .trees import draw_leaf_values

Reading = Literal["leaf_indicators", "random_leaf_values", "fitted_leaf_values"]
READINGS: tuple[Reading, ...] = ("leaf_indicators", "random_leaf_values", "fitted_leaf_values")


@dataclass(frozen=True)
class Leaves:
    """The residual sums and row counts of an audit's leaves, both (n_trees, 2 ** depth)."""

    sums: Floats
    counts: Floats
    n: float  # the number of rows, or the sum of their weights
    seed: int
    # The sums of squared (weighted) residuals, if they were asked for
    squares: Floats | None = None


def mean_square(sums: Floats) -> float:
    """Return T, the mean over trees of Σ_k S_k²."""
    return float(np.square(sums).sum(axis=1).mean())


def error_of(leaves: Leaves, reading: Reading = "leaf_indicators") -> float:
    """Return the plug-in error of audited leaves under a reading of "weak learner"."""
    return float(np.sqrt(_tree_squares(leaves, reading).mean()))


def errors_of(leaves: Leaves, readings: Sequence[Reading]) -> dict[Reading, float]:
    """Return `error_of` for several readings of the same audit."""
    return {reading: error_of(leaves, reading) for reading in readings}


def debiased_square_of(leaves: Leaves, reading: Reading) -> float:
    """Return the debiased square of audited leaves without weights, under a reading."""
    if leaves.squares is None:
        raise ValueError("leaves: were audited without squares=True")
    n, squares = leaves.n, leaves.squares
    if reading == "fitted_leaf_values":
        several = leaves.counts > 1
        pairs = np.where(several, np.square(leaves.sums) - squares, 0.0)
        inner = (pairs / (n * np.maximum(leaves.counts - 1.0, 1.0))).sum(axis=1)
        return float((np.sign(inner) * np.square(inner)).mean())
    values = np.square(_leaf_values(leaves)) if reading == "random_leaf_values" else 1.0
    own = (values * squares).sum(axis=1).mean()
    return float((n**2 * _tree_squares(leaves, reading).mean() - own) / (n * (n - 1.0)))


def signed_root(square: float) -> float:
    """Return √square, or −√(−square) if it is negative."""
    return float(np.sign(square) * np.sqrt(np.abs(square)))


def _tree_squares(leaves: Leaves, reading: Reading) -> Floats:
    """Return what each tree contributes to the squared error, (n_trees,)."""
    epsilon = leaves.sums / leaves.n
    if reading == "leaf_indicators":
        return np.square(epsilon).sum(axis=1)
    if reading == "random_leaf_values":
        return np.square((epsilon * _leaf_values(leaves)).sum(axis=1))
    if reading == "fitted_leaf_values":
        means = leaves.sums / np.maximum(leaves.counts, 1.0)
        return np.square((epsilon * means).sum(axis=1))
    raise ValueError(f"reading={reading!r}: must be one of {', '.join(READINGS)}")


def _leaf_values(leaves: Leaves) -> Floats:
    n_trees, n_leaves = leaves.sums.shape
    return draw_leaf_values(n_trees, n_leaves, np.uint64(leaves.seed))
