"""The discrete-time dynamical systems of the paper, run exactly.

Squared loss: f_{t+1} = w_t φ_t with φ_t = f_t + η h_t and h_t = A(f_t)(y − f_t) + e_t. The oracle's
error e_t lies in the span of B(f_t), so that ε_t = ½‖e_t‖² is exactly the ε_t of assumption (A3).

Log-loss: h_t minimises V(f_t + B(f_t)θ) over θ by Newton's method, or is a share s of that
minimiser, an oracle with ε_t ≤ (1 − s) D_t, D_t the most that the loss can fall.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pipeline.boosting.arrays import Floats
from pipeline.boosting.logloss import mean_log_loss
from pipeline.boosting.logloss import sigmoid as mu
from pipeline.boosting.rescaling import Rescaling, Unit
from pipeline.theory.learners import Projector, project

Learners = Callable[[Floats], Floats]
Direction = Literal["random", "along", "against"]


@dataclass(frozen=True)
class Trajectory:
    """A run of T rounds on n points.

    f : (T + 1, n).  B, A : per round the class and its projector at f_t.  h : (T, n) the oracle's
    answers.  phi : (T, n).  w : (T,).  epsilon : (T,) the oracle's errors.
    """

    y: Floats
    eta: float
    f: Floats
    B: tuple[Floats, ...]
    A: tuple[Projector, ...]
    h: Floats
    phi: Floats
    w: Floats
    epsilon: Floats

    @property
    def n_rounds(self) -> int:
        """T."""
        return len(self.w)

    @property
    def r(self) -> Floats:
        """Residuals y − f_t, (T + 1, n)."""
        return self.y - self.f

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

    @property
    def loss(self) -> Floats:
        """V(f_t) = ½‖y − f_t‖², (T + 1,)."""
        return 0.5 * np.square(self.r).sum(axis=1)


def run(
    y: Floats,
    f0: Floats,
    learners: Learners,
    eta: float,
    n_rounds: int,
    rescaling: Rescaling | None = None,
    error: Callable[[int], float] = lambda _: 0.0,
    direction: Direction = "random",
    seed: int = 0,
) -> Trajectory:
    """Run the squared-loss system; ``error(t)`` is ε_t.

    Its ``direction`` in the span is random, or that of the best step, or the opposite one.
    """
    rescaling = rescaling or Unit()
    rng = np.random.default_rng(seed)
    f, fs = f0, [f0]
    rounds: list[tuple[Floats, Projector, Floats, Floats, float, float]] = []
    for t in range(n_rounds):
        B = learners(f)
        A = project(B)
        best, away = A(y - f), A(rng.normal(size=len(y)))
        if direction != "random" and np.linalg.norm(best) > 0:
            away = best if direction == "along" else -best
        size = np.linalg.norm(away)
        epsilon = error(t) if size > 0 else 0.0
        h = best + (np.sqrt(2 * epsilon) / size * away if epsilon > 0 else 0.0)
        phi = f + eta * h
        w = rescaling.weight(t, y, phi)
        f = w * phi
        fs.append(f)
        rounds.append((B, A, h, phi, w, epsilon))
    Bs, As, hs, phis, ws, epsilons = zip(*rounds, strict=True)
    return Trajectory(
        y, eta, np.array(fs), Bs, As, np.array(hs), np.array(phis), np.array(ws), np.array(epsilons)
    )


def run_hybrid(
    y: Floats, f0: Floats, learners: Learners, strong: Floats, eta: float, gamma: float, n: int
) -> tuple[Floats, tuple[Floats, ...]]:
    """The appendix's hybrid: f_{t+1} = f_t + η (A r_t + γ (ŷ − f_t)); gives f (n + 1, ·) and B."""
    f, fs, Bs = f0, [f0], []
    for _ in range(n):
        B = learners(f)
        f = f + eta * (project(B)(y - f) + gamma * (strong - f))
        fs.append(f)
        Bs.append(B)
    return np.array(fs), tuple(Bs)


# --- log-loss ------------------------------------------------------------------------------------


def log_loss(y: Floats, f: Floats) -> float:
    """V(f) = Σ log(1 + e^f) − y f."""
    return len(y) * mean_log_loss(y, f)


@dataclass(frozen=True)
class LogTrajectory:
    """Log-loss: f (T + 1, n), the oracle's answers h (T, n), and its errors ε (T,)."""

    y: Floats
    eta: float
    f: Floats
    h: Floats
    B: tuple[Floats, ...]
    epsilon: Floats

    @property
    def gaps(self) -> Floats:
        """‖f_{t+1} − f_t‖₂, (T,)."""
        return np.linalg.norm(np.diff(self.f, axis=0), axis=1)

    @property
    def errors(self) -> Floats:
        """‖Ê(f_t)‖₂ = ‖Bᵀ(y − μ(f_t))‖/n, (T,)."""
        products = [B.T @ (self.y - mu(f)) for B, f in zip(self.B, self.f, strict=False)]
        return np.linalg.norm(products, axis=1) / len(self.y)

    @property
    def loss(self) -> Floats:
        """V(f_t), (T + 1,)."""
        return np.array([log_loss(self.y, f) for f in self.f])

    @property
    def convexity(self) -> float:
        """m: the smallest curvature μ(1 − μ) on any segment from f_t to f_t + h_t."""
        ends = np.concatenate([self.f[:-1], self.f[:-1] + self.h])
        farthest = np.abs(ends).max()
        return float(mu(np.array([farthest]))[0] * mu(np.array([-farthest]))[0])


def run_log_loss(
    y: Floats, f0: Floats, learners: Learners, eta: float, n: int, share: float = 1.0
) -> LogTrajectory:
    """Algorithm 1 with the log-loss and a ``share`` of the best step; y holds zeros and ones."""
    f, fs, hs, Bs, epsilons = f0, [f0], [], [], []
    for _ in range(n):
        B = learners(f)
        best = best_log_loss_step(y, f, B)
        h = share * best
        epsilons.append(log_loss(y, f + h) - log_loss(y, f + best) if share < 1 else 0.0)
        f = f + eta * h
        fs.append(f)
        hs.append(h)
        Bs.append(B)
    return LogTrajectory(y, eta, np.array(fs), np.array(hs), tuple(Bs), np.array(epsilons))


def best_log_loss_step(y: Floats, f: Floats, B: Floats) -> Floats:
    """argmin over h in span(B) of V(f + h), by damped Newton.

    Where B separates the classes there is none; h then has a loss of nearly zero.
    """
    U = project(B).U
    z = np.zeros(U.shape[1])
    value = log_loss(y, f)
    for _ in range(200):
        p = mu(f + U @ z)
        gradient = U.T @ (p - y)
        if np.abs(gradient).max(initial=0.0) < 1e-11:
            break
        curvature = U.T @ ((p * (1 - p))[:, None] * U) + 1e-14 * np.eye(len(z))
        step = np.linalg.solve(curvature, gradient)
        size, rounding = 1.0, 1e-13 * value  # near the minimum the loss cannot judge a step
        while size > 1e-12 and log_loss(y, f + U @ (z - size * step)) > value + rounding:
            size /= 2
        z = z - size * step
        value = log_loss(y, f + U @ z)
    return U @ z
