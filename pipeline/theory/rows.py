"""Rows of the paper's datasets: exact rounds on some of them, and a GBDT's oracle error.

The classes of weak learners are small, so a few hundred rows of a dataset, its forest and the
leading directions of its features make an instance like the random ones.

A GBDT's rounds are no exact oracle. Read assumption (A3) with all trees of the round's depth on
(x, f) as weak learners; then ε_t = V(f_t + h_t) − min V(f_t + h) over all sums h of such trees, and
it can be bracketed: rows with equal x and f cannot be told apart by any tree, and rows with
different f can be told apart by stumps on f alone. Hence, with W(cells) half the sum of
squares of the residuals around their cell's mean,

    W(cells of equal (x, f)) ≤ min V ≤ W(cells of equal f).
"""

import numpy as np

from pipeline.boosting.arrays import Floats, Ints
from pipeline.boosting.engines.exact.columns import FEATURE_THRESHOLD
from pipeline.boosting.initial import paper_forest
from pipeline.theory.instances import KINDS, Instance, learners_of
from pipeline.theory.learners import project

N_ROWS = 300
ETA = 0.5


def real_instances(X: Floats, y: Floats, seed: int = 0) -> list[Instance]:
    """`N_ROWS` rows of a dataset with each kind of weak learner; f_0 is the paper's forest.

    X : (n, d);  y : (n,). The target is divided by its standard deviation, and not centred.
    """
    rows = np.random.default_rng(seed).permutation(len(y))[:N_ROWS]
    X, y = X[rows], y[rows] / y[rows].std()
    f0 = paper_forest(seed).fit(X, y).predict(X)
    directions = leading_directions(X)
    centre, width = f0.mean(), f0.std() or 1.0
    classes = {kind: learners_of(kind, directions, centre, width) for kind in KINDS}
    return [Instance(kind, y, f0, B, ETA, N_ROWS + seed) for kind, B in classes.items()]


def leading_directions(X: Floats) -> Floats:
    """The three leading principal components of the standardised features, (n, 3), of sd 1.

    Where there are fewer, they repeat; without any, all is zero.
    """
    spread = X.std(axis=0)
    Z = (X - X.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    if Z.shape[1] == 0:
        return np.zeros((len(X), 3))
    A = project(Z)
    return A.U[:, np.arange(3) % A.U.shape[1]] * np.sqrt(len(X))  # centred, of norm 1


def oracle_error(X: Floats, f: Floats, residual: Floats, h: Floats) -> tuple[float, float]:
    """Bounds from below and above on ε_t of a round that fitted h (n,) to ``residual`` y − f."""
    loss = 0.5 * float(np.square(residual - h).sum())
    least = loss_within(equal_values(f), residual), loss_within(equal_rows(X, f), residual)
    return max(loss - least[0], 0.0), max(loss - least[1], 0.0)


def loss_within(cell: Ints, residual: Floats) -> float:
    """Half the sum of squares around the mean of each cell; ``cell`` (n,) numbers the cells."""
    size = np.bincount(cell)
    mean = np.bincount(cell, residual) / size
    return 0.5 * float(np.square(residual - mean[cell]).sum())


def equal_rows(X: Floats, f: Floats) -> Ints:
    """Cells of rows that no tree on (X, f) can tell apart: equal as float32."""
    table = np.column_stack([X, f]).astype(np.float32)
    return np.unique(table, axis=0, return_inverse=True)[1].ravel()


def equal_values(f: Floats) -> Ints:
    """Cells of f between which a stump can always cut: further apart than scikit-learn's 1e-7."""
    values = f.astype(np.float32)
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    apart = ranked[1:] > ranked[:-1] + FEATURE_THRESHOLD
    cell = np.empty(len(f), np.int64)
    cell[order] = np.concatenate([[0], np.cumsum(apart)])
    return cell
