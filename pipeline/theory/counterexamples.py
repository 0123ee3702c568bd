"""Small instances that settle a statement: it fails there as stated, or its rate is attained."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pipeline.boosting.arrays import Floats
from pipeline.boosting.rescaling import Adaptive
from pipeline.theory.checks import residual_lemma
from pipeline.theory.dynamics import Trajectory, run
from pipeline.theory.learners import Factorised, product, project


def domino(n_rounds: int, eta: float, steepness: float = 1e6) -> Trajectory:
    """One hard learner that moves one point per round: every gap is η‖y − f_0‖/√T.

    y = 1, f_0 = 0, n = T. The learner is h(x_i) g(f_i) with h(x_i) = steepness^(−i) and g one while
    |f_i| is small, zero afterwards: almost all of it sits on the first point that has not moved.
    """
    heights = steepness ** -np.arange(n_rounds, dtype=float)

    def learners(f: Floats) -> Floats:
        column = np.where(np.abs(f) < eta / 2, heights, 0.0)
        largest = column.max()
        return (column / largest if largest > 0 else column)[:, None]

    return run(np.ones(n_rounds), np.zeros(n_rounds), learners, eta, n_rounds)


def negative_first_weight() -> float:
    """ω_0 for f_0 = −3y and weak learners that see nothing of y: φ_0 = f_0, so ω_0 = −1/3."""
    y = np.array([1.0, 1.0, 0.0])
    blind: Callable[[Floats], Floats] = lambda _: np.array([[0.0], [0.0], [1.0]])  # noqa: E731
    return float(run(y, -3 * y, blind, 1.0, 1, Adaptive()).w[0])


def not_quadratic(epsilon: float) -> tuple[float, float]:
    """A = e₁e₁ᵀ, y = (1, 1, 0), f_0 = y − ε e₃: ‖r_1‖/‖r_0‖ as it is, and as the lemma has it."""
    A = np.diag([1.0, 0.0, 0.0])
    y, f = np.array([1.0, 1.0, 0.0]), np.array([1.0, 1.0, -epsilon])
    actual, stated, _ = residual_lemma(y, f, A)
    return float(np.linalg.norm(actual)) / epsilon, float(np.linalg.norm(stated)) / epsilon


def discontinuous_projector(epsilon: float) -> tuple[float, float]:
    """g(u) = u near f = 0: two predictions ε√2 apart whose projectors are at distance 1."""
    learners: Factorised = product(np.ones((2, 1)))
    u, v = np.array([epsilon, 0.0]), np.array([0.0, epsilon])
    difference = project(learners(u)).matrix() - project(learners(v)).matrix()
    return float(np.linalg.norm(u - v)), float(np.linalg.norm(difference, 2))
