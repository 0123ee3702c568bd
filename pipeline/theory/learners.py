"""Weak-learner classes B(f) = h(x) ⊗ g(f), and the projector on the span of their columns.

A class is a matrix H = (h(x_1), …, h(x_n))ᵀ of shape (n, m) and k functions of the prediction.
Row i of B(f) is h(x_i) ⊗ g(f_i), so B(f) has shape (n, m k).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipeline.boosting.arrays import Floats
from pipeline.boosting.logloss import sigmoid as logistic

RANK_TOLERANCE = 1e-10  # singular values below this share of the largest count as zero


@dataclass(frozen=True)
class Factorised:
    """B(f) = h(x) ⊗ g(f)."""

    H: Floats  # (n, m)
    g: Callable[[Floats], Floats]  # f (n,) → (n, k)
    slope: float  # sup_u ‖g'(u)‖₂ of the vector g, infinite for a class with jumps
    lipschitz: float  # the largest Lipschitz constant of a single g_j

    def __call__(self, f: Floats) -> Floats:
        """B(f), (n, m k)."""
        G = self.g(f)
        return (self.H[:, :, None] * G[:, None, :]).reshape(len(f), -1)


@dataclass(frozen=True)
class Projector:
    """The orthogonal projector A = B B⁺, kept as an orthonormal basis U (n, rank) of B's span."""

    U: Floats
    smallest: float  # the smallest singular value of B that counts as non-zero
    largest: float

    def __call__(self, v: Floats) -> Floats:
        """A v."""
        return self.U @ (self.U.T @ v)

    def matrix(self) -> Floats:
        """A itself, (n, n)."""
        return self.U @ self.U.T


def project(B: Floats) -> Projector:
    """The projector on the span of B's columns, by singular values; see `RANK_TOLERANCE`."""
    U, s, _ = np.linalg.svd(B, full_matrices=False)
    if s[0] == 0:
        return Projector(U[:, :0], 0.0, 0.0)
    kept = s > RANK_TOLERANCE * s[0]
    return Projector(U[:, kept], float(s[kept][-1]), float(s[0]))


# --- functions of the prediction -----------------------------------------------------------------


def rbf(H: Floats, centres: Floats, width: float) -> Factorised:
    """g_j(u) = exp(−(u − c_j)² / (2 width²))."""

    def g(f: Floats) -> Floats:
        return np.exp(-np.square((f[:, None] - centres) / width) / 2)

    u = np.linspace(centres.min() - 4 * width, centres.max() + 4 * width, 20_001)
    slopes = -(u[:, None] - centres) / width**2 * g(u)
    # Between two points of the grid the norm of g' changes by less than its second derivative,
    # at most √k / width², times half the step.
    margin = (u[1] - u[0]) / 2 * np.sqrt(len(centres)) / width**2
    return Factorised(H, g, _sup(slopes) + margin, float(np.exp(-0.5)) / width)


def sigmoid(H: Floats, centres: Floats, width: float) -> Factorised:
    """g_0 = 1 and g_j(u) = 1 / (1 + exp(−(u − c_j) / width)): the gates of a soft tree."""

    def gates(f: Floats) -> Floats:
        return logistic((f[:, None] - centres) / width)

    def g(f: Floats) -> Floats:
        return np.column_stack([np.ones(len(f)), gates(f)])

    u = np.linspace(centres.min() - 20 * width, centres.max() + 20 * width, 20_001)
    slopes = gates(u) * (1 - gates(u)) / width
    margin = (u[1] - u[0]) / 2 * np.sqrt(len(centres)) / (10 * width**2)  # |s''| < 0.0963 / width²
    return Factorised(H, g, _sup(slopes) + margin, 1 / (4 * width))


def linear(H: Floats) -> Factorised:
    """g(u) = (1, u)."""
    return Factorised(H, lambda f: np.column_stack([np.ones(len(f)), f]), 1.0, 1.0)


def bins(H: Floats, edges: Floats) -> Factorised:
    """g_j(u) = 1 if u lies between two neighbouring edges (open at the ends): hard splits."""

    def g(f: Floats) -> Floats:
        return np.eye(len(edges) + 1)[np.searchsorted(edges, f)]

    return Factorised(H, g, np.inf, np.inf)


def soft_tree(X: Floats, cuts: Floats, width: float) -> Floats:
    """Leaf weights of a complete tree of soft gates on the columns of X: H (n, 2^depth).

    cuts : (depth,) thresholds, one per level, on the first columns of X.
    """
    H = np.ones((len(X), 1))
    for j, cut in enumerate(cuts):
        gate = logistic((X[:, j] - cut) / width)
        H = np.concatenate([H * gate[:, None], H * (1 - gate)[:, None]], axis=1)
    return H


def _sup(slopes: Floats) -> float:
    return float(np.linalg.norm(slopes, axis=1).max())
