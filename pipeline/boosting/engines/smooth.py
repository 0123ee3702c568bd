"""Weak learners that are smooth in f: linear ones, cosines of a Gaussian kernel, soft trees.

A round's ensemble is a combination B(f) θ of fixed functions b_j(x, f), found by ridge regression
of the residuals, h = A(f) r with A(f) = B (BᵀB + λ)⁻¹ Bᵀ: up to λ the exact oracle of the paper's
equation (3), on a class for which A(f) is Lipschitz continuous (Theorem 4.2). The functions are the
same in all rounds; they see the columns of X and f standardised, and are between −1 and 1 except
for the linear ones. The constant is always among them, and is not penalised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..arrays import Floats
from ..logloss import curvature, log_losses, sigmoid
from .base import Engine, Ensemble, FitsLogLoss, Fitter, Projects, TreeSettings

ROUNDING = 1e-11  # of the mean diagonal of BᵀB, added to λ so that the system can be solved
NEWTON_STEPS = 50
POWER_STEPS = 30
DEEPEST = 8  # soft tree
CLASS_SEED = 0  # the class of functions is one, whatever the run's seed is


# The functions b_j(x, f) of a class: standardised rows Z (n, d + 1), f being the last column, to
# B (n, p).
Basis = Callable[[Floats], Floats]


@dataclass(frozen=True)
class CosineBasis:
    """cos(zᵀω_j + c_j): random features (Rahimi and Recht) of a Gaussian kernel."""

    frequencies: Floats  # (d + 1, p) ω_j as columns
    phases: Floats  # (p,) c_j

    def __call__(self, Z: Floats) -> Floats:
        """Return B."""
        return np.cos(Z @ self.frequencies + self.phases)

    @classmethod
    def draw(cls, X: Floats, settings: TreeSettings, width: float) -> CosineBasis:
        """Draw the functions; the kernel's standard deviation is width · √(d + 1)."""
        random, columns = np.random.default_rng(CLASS_SEED), X.shape[1] + 1
        frequencies = random.standard_normal((columns, settings.n_trees))
        phases = random.uniform(0.0, 2 * np.pi, settings.n_trees)
        return cls(frequencies / (width * np.sqrt(columns)), phases)


@dataclass(frozen=True)
class SoftTrees:
    """Leaves of random trees whose splits are sigmoid((z_j − c) / width); width 0 is a hard split.

    columns, cuts : (trees, 2^depth − 1) the feature j and the threshold c of each inner node, level
    by level. A leaf's function is the product of the gates on its path.
    """

    columns: np.ndarray
    cuts: Floats
    width: float

    def __call__(self, Z: Floats) -> Floats:
        """Return the leaves, (n, trees · 2^depth)."""
        moved = Z[:, self.columns] - self.cuts
        right = sigmoid(moved / self.width) if self.width > 0 else (moved > 0).astype(np.float64)
        leaves = np.ones((*right.shape[:2], 1))
        for level in range(int(np.log2(self.columns.shape[1] + 1))):
            gate = right[:, :, 2**level - 1 : 2 ** (level + 1) - 1]
            leaves = np.concatenate([leaves * (1 - gate), leaves * gate], axis=2)
        return leaves.reshape(len(Z), -1)

    @classmethod
    def draw(cls, X: Floats, settings: TreeSettings, width: float) -> SoftTrees:
        """Draw the trees: any feature, f among them, and thresholds between two rows' values.

        X : (n, d) the training rows, standardised; f is taken to be standard normal.
        """
        random, nodes = np.random.default_rng(CLASS_SEED), 2**settings.max_depth - 1
        shape, n_columns = (settings.n_trees, nodes), X.shape[1]
        columns = random.integers(0, n_columns + 1, shape)
        cuts = random.standard_normal(shape)
        share, first, second = random.random(shape), *random.integers(0, len(X), (2, *shape))
        of_x = columns < n_columns
        j = columns[of_x]
        a, b = X[first[of_x], j], X[second[of_x], j]
        cuts[of_x] = a + share[of_x] * (b - a)
        return cls(columns, cuts, width)


def _columns(Z: Floats) -> Floats:
    return Z


BASES: dict[str, Callable[[Floats, TreeSettings, float], Basis]] = {
    "linear": lambda *_: _columns,
    "cosines": CosineBasis.draw,
    "soft_trees": SoftTrees.draw,
}


@dataclass(frozen=True)
class Standardised:
    """Columns in units of their standard deviation (1 where that is 0), from their means."""

    mean: Floats
    scale: Floats

    @classmethod
    def of(cls, X: Floats) -> Standardised:
        """Learn both from the rows of X (n, d)."""
        spread = X.std(axis=0)
        return cls(X.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def __call__(self, X: Floats) -> Floats:
        """Return X (n, d) in these units."""
        return (X - self.mean) / self.scale


@dataclass(frozen=True)
class SmoothEnsemble(Ensemble):
    """h(x, f) = constant + b(x, f)ᵀ θ."""

    basis: Basis
    units: Standardised
    theta: Floats
    constant: float

    def predict(self, X: Floats, f: Floats) -> Floats:
        return self.constant + self.basis(self.units(np.column_stack([X, f]))) @ self.theta

    def gains(self) -> Floats:
        return np.full(len(self.units.mean), np.nan)  # nothing is split


@dataclass(frozen=True)
class SmoothFitter(Fitter, FitsLogLoss, Projects):
    """A class of functions bound to training rows."""

    basis: Basis
    X: Floats
    l2: float
    weights: Floats | None

    def fit(self, f: Floats, residual: Floats, seed: int) -> tuple[SmoothEnsemble, Floats]:
        B, units = self.matrix(f)
        theta, constant = self._solve(B, residual, self.weights)
        return self._fitted(B, units, theta, constant)

    def fit_log_loss(
        self, feature: Floats, y: Floats, f: Floats, seed: int
    ) -> tuple[SmoothEnsemble, Floats]:
        # Newton's method: a regression of the working residuals, with the curvatures as weights. A
        # step is halved until it does not raise the penalised loss.
        B, units = self.matrix(feature)
        weights = np.ones(len(y)) if self.weights is None else self.weights
        theta, constant = np.zeros(B.shape[1]), 0.0

        def penalised(theta: Floats, constant: float) -> float:
            losses = log_losses(y, f + constant + B @ theta)
            return float(weights @ losses + self.l2 / 2 * theta @ theta)

        loss = penalised(theta, constant)
        for _ in range(NEWTON_STEPS):
            g = f + constant + B @ theta
            bend = np.maximum(curvature(g), ROUNDING)
            working = B @ theta + constant + (y - sigmoid(g)) / bend
            target, level = self._solve(B, working, weights * bend)
            step, found = 1.0, np.inf
            while step > ROUNDING and not found <= loss:
                new = theta + step * (target - theta), constant + step * (level - constant)
                found, step = penalised(*new), step / 2
            if not found < loss - 1e-10 * abs(loss):
                break
            (theta, constant), loss = new, found
        return self._fitted(B, units, theta, constant)

    def movement(self, before: Floats, after: Floats) -> float:
        # The power method on the symmetric A(after) − A(before).
        first, second = self.projector(before), self.projector(after)
        v = np.random.default_rng(CLASS_SEED).standard_normal(len(after))
        size = 0.0
        for _ in range(POWER_STEPS):
            v = v / (np.linalg.norm(v) or 1.0)
            v = second(v) - first(v)
            size = float(np.linalg.norm(v))
        return size

    def projector(self, f: Floats) -> Callable[[Floats], Floats]:
        """Return A(f), which maps residuals (n,) to the values of the ensemble on these rows."""
        centred, weights, factor = self._system(self.matrix(f)[0], self.weights)

        def project(residual: Floats) -> Floats:
            mean = float(weights @ residual / weights.sum())
            theta = cho_solve(factor, centred.T @ (weights * (residual - mean)))
            return mean + centred @ theta

        return project

    def matrix(self, f: Floats) -> tuple[Floats, Standardised]:
        """Return B(f) (n, p) and the units in which the functions see (X, f)."""
        Z = np.column_stack([self.X, f])
        units = Standardised.of(Z)
        return self.basis(units(Z)), units

    def _solve(self, B: Floats, target: Floats, weights: Floats | None) -> tuple[Floats, float]:
        centred, weights, factor = self._system(B, weights)
        mean = float(weights @ target / weights.sum())
        theta = cho_solve(factor, centred.T @ (weights * (target - mean)))
        return theta, mean - float((B[0] - centred[0]) @ theta)

    def _system(self, B: Floats, weights: Floats | None) -> tuple[Floats, Floats, Any]:
        """Return B minus its mean row, the weights (n,), and the factors of BᵀWB + λ."""
        weights = np.ones(len(B)) if weights is None else weights
        centred = B - weights @ B / weights.sum()
        gram = (centred.T * weights) @ centred
        gram[np.diag_indices_from(gram)] += self.l2 + ROUNDING * (np.trace(gram) / len(gram) or 1)
        return centred, weights, cho_factor(gram)

    def _fitted(
        self, B: Floats, units: Standardised, theta: Floats, constant: float
    ) -> tuple[SmoothEnsemble, Floats]:
        return SmoothEnsemble(self.basis, units, theta, constant), constant + B @ theta


@dataclass(frozen=True)
class SmoothEngine(Engine):
    """``engine="linear"``, ``"cosines"`` and ``"soft_trees"``."""

    name: str
    settings: TreeSettings  # `n_trees` cosines, or soft trees of `max_depth`; `l2` is λ
    width: float = 0.5  # of the kernel, or of a soft split

    def bind(self, X: Floats, weights: Floats | None = None) -> SmoothFitter:
        if self.name == "soft_trees" and self.settings.max_depth > DEEPEST:
            raise ValueError(
                f"engine='soft_trees': needs max_depth, at most {DEEPEST}: a tree has 2^max_depth "
                "leaves, each of which is a column of the design"
            )
        basis = BASES[self.name](Standardised.of(X)(X), self.settings, self.width)
        return SmoothFitter(basis, X, self.settings.l2, weights)
