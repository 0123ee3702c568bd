"""The discrete-time dynamical systems of the paper with the squared loss, run exactly.

f_{t+1} = w_t φ_t with φ_t = f_t + η h_t and h_t = A(f_t)(y − f_t) + e_t. The oracle's error e_t is
in the span of B(f_t), so that ε_t = ½‖e_t‖² is exactly the ε_t of assumption (A3).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pipeline.boosting.arrays import Floats, Ints
from pipeline.boosting.rescaling import Rescaling, Unit
from pipeline.theory.learners import Projector, project

Learners = Callable[[Floats], Floats]
Oracle = Callable[[int, Floats, Projector], tuple[Floats, float]]  # of t, f_t, A(f_t): h_t, ε_t
Direction = Literal["random", "along", "against"]


@dataclass(frozen=True, kw_only=True)
class Trajectory:
    """A run of T rounds on n points."""

    y: Floats
    eta: float
    f: Floats  # (T + 1, n)
    r: Floats  # (T + 1, n) residuals, the negative gradient of the loss V at f_t
    loss: Floats  # (T + 1,) V(f_t)
    # B, A: per round the class and its projector at f_t
    B: tuple[Floats, ...]
    A: tuple[Projector, ...]
    h: Floats  # (T, n) the oracle's answers
    epsilon: Floats  # (T,) its errors
    phi: Floats  # (T, n)
    w: Floats  # (T,) the weights
    convexity: float = 1.0  # m, and
    smoothness: float = 1.0  # L, between which the curvature of V lies on the way

    @property
    def n_rounds(self) -> int:
        """T."""
        return len(self.w)

    @property
    def counts(self) -> Ints:
        """All numbers of rounds: 1, …, T."""
        return np.arange(1, self.n_rounds + 1)

    @property
    def gaps(self) -> Floats:
        """‖f_{t+1} − f_t‖₂, (T,)."""
        return np.linalg.norm(np.diff(self.f, axis=0), axis=1)

    @property
    def projected(self) -> Floats:
        """‖A(f_t) r_t‖₂, (T,)."""
        return np.array([np.linalg.norm(A(r)) for A, r in zip(self.A, self.r, strict=False)])

    @property
    def errors(self) -> Floats:
        """‖Ê(f_t)‖₂ = ‖Bᵀ r_t‖/n, (T,)."""
        products = [B.T @ r for B, r in zip(self.B, self.r, strict=False)]
        return np.linalg.norm(products, axis=1) / len(self.y)


def follow(
    y: Floats,
    f0: Floats,
    learners: Learners,
    eta: float,
    n_rounds: int,
    oracle: Oracle,
    rescaling: Rescaling | None = None,
) -> dict[str, Any]:
    """The rounds of an oracle: what a `Trajectory` has, r and loss being those of the squares."""
    rescaling = rescaling or Unit()
    fs, rounds = [f0], []
    for t in range(n_rounds):
        f, B = fs[-1], learners(fs[-1])
        A = project(B)
        h, epsilon = oracle(t, f, A)
        phi = f + eta * h
        w = rescaling.weight(t, y, phi)
        fs.append(w * phi)
        rounds.append((B, A, h, epsilon, phi, w))
    Bs, As, *others = zip(*rounds, strict=True)
    arrays = dict(zip(("h", "epsilon", "phi", "w"), map(np.array, others), strict=True))
    r = y - np.array(fs)
    loss = 0.5 * np.square(r).sum(axis=1)
    return {"y": y, "eta": eta, "f": np.array(fs), "r": r, "loss": loss, "B": Bs, "A": As} | arrays


def run(
    y: Floats,
    f0: Floats,
    learners: Learners,
    eta: float,
    n_rounds: int,
    rescaling: Rescaling | None = None,
    error: Callable[[int], float] = lambda _: 0.0,
    direction: Direction = "random",
) -> Trajectory:
    """Run the system; ``error(t)`` is ε_t.

    The direction of e_t in the span is random, or along the best step, or against it.
    """
    rng = np.random.default_rng(0)

    def oracle(t: int, f: Floats, A: Projector) -> tuple[Floats, float]:
        best, away = A(y - f), A(rng.normal(size=len(y)))
        if direction != "random" and np.linalg.norm(best) > 0:
            away = best if direction == "along" else -best
        size = np.linalg.norm(away)
        epsilon = error(t) if size > 0 else 0.0
        return best + (np.sqrt(2 * epsilon) / size * away if epsilon > 0 else 0.0), epsilon

    return Trajectory(**follow(y, f0, learners, eta, n_rounds, oracle, rescaling))


@dataclass(frozen=True, kw_only=True)
class HybridRun(Trajectory):
    """A run of the appendix's hybrid, drawn towards predictions ``strong`` with strength γ."""

    strong: Floats
    gamma: float


def run_hybrid(
    y: Floats, f0: Floats, learners: Learners, strong: Floats, eta: float, gamma: float, n: int
) -> HybridRun:
    """``n`` rounds of the appendix's hybrid: f_{t+1} = f_t + η (A r_t + γ (ŷ − f_t))."""

    def oracle(_: int, f: Floats, A: Projector) -> tuple[Floats, float]:
        return A(y - f) + gamma * (strong - f), 0.0

    return HybridRun(**follow(y, f0, learners, eta, n, oracle), strong=strong, gamma=gamma)
