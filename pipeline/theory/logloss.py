"""The paper's algorithm with the log-loss: whole runs, and single steps with groups.

h_t minimises V(f_t + B(f_t)θ) over θ by Newton's method, or is a share s of that minimiser, an
oracle with ε_t ≤ (1 − s) D_t, where D_t is the largest possible decrease of the loss.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.boosting.arrays import Floats
from pipeline.boosting.logloss import curvature, mean_log_loss
from pipeline.boosting.logloss import sigmoid as mu
from pipeline.theory.dynamics import Learners, Trajectory, follow
from pipeline.theory.learners import Projector

SMOOTHNESS = 0.25  # L of the log-loss


def log_loss(y: Floats, f: Floats) -> float:
    """V(f) = Σ log(1 + e^f) − y f."""
    return len(y) * mean_log_loss(y, f)


def run_log_loss(
    y: Floats, f0: Floats, learners: Learners, eta: float, n: int, share: float = 1.0
) -> Trajectory:
    """``n`` rounds without rescaling and with a ``share`` of the best step; y : zeros and ones.

    Their m is the smallest curvature μ(1 − μ) on any segment from f_t to f_t + h_t.
    """

    def oracle(_: int, f: Floats, A: Projector) -> tuple[Floats, float]:
        best = best_log_loss_step(y, f, A)
        h = share * best
        return h, log_loss(y, f + h) - log_loss(y, f + best) if share < 1 else 0.0

    rounds = follow(y, f0, learners, eta, n, oracle)
    f, h = rounds["f"], rounds["h"]
    lowest = min(curvature(f[:-1]).min(), curvature(f[:-1] + h).min())
    exact = {"r": y - mu(f), "loss": np.array([log_loss(y, one) for one in f])}
    return Trajectory(**rounds | exact, convexity=lowest, smoothness=SMOOTHNESS)


def best_log_loss_step(y: Floats, f: Floats, A: Projector) -> Floats:
    """argmin over h in A's range of V(f + h), by damped Newton.

    Where the range separates the classes there is none; h then has a loss of nearly zero.
    """
    U = A.U
    z = np.zeros(U.shape[1])
    value = log_loss(y, f)
    for _ in range(200):
        p = mu(f + U @ z)
        gradient = U.T @ (p - y)
        if np.abs(gradient).max(initial=0.0) < 1e-11:
            break
        hessian = U.T @ ((p * (1 - p))[:, None] * U) + 1e-14 * np.eye(len(z))
        step = np.linalg.solve(hessian, gradient)
        size, rounding = 1.0, 1e-13 * value  # near the minimum the loss cannot judge a step
        while size > 1e-12 and log_loss(y, f + U @ (z - size * step)) > value + rounding:
            size /= 2
        z = z - size * step
        value = log_loss(y, f + U @ z)
    return U @ z


# --- multicalibration on groups ------------------------------------------------------------------


def mean_decrease(y: Floats, f: Floats, other: Floats) -> float:
    """E_n[L(Y, f) − L(Y, other)]."""
    return (log_loss(y, f) - log_loss(y, other)) / len(y)


@dataclass(frozen=True)
class LogStep:
    """A step from f to f + ηh, with groups on which f should be multicalibrated (κ ≡ 1)."""

    y: Floats
    f: Floats
    groups: Floats  # (m, n) zeros and ones
    # (m, k, n) their products h g with k intervals of predictions, the columns of B
    columns: Floats
    best: Floats  # (n,) the best step in the span of B
    h: Floats  # (n,) the oracle's, the same if it is exact
    eta: float

    @property
    def variance(self) -> Floats:
        """Var(Y | X) according to f, (n,)."""
        p = mu(self.f)
        return p * (1 - p)

    @property
    def worst(self) -> tuple[float, Floats]:
        """The smallest α for which f is α-multicalibrated, and the column b = h g that needs it."""
        tau = np.sqrt((self.groups * self.variance).mean(axis=1))
        deviations = np.abs((self.columns * (self.y - mu(self.f))).mean(axis=2)) / tau[:, None]
        return deviations.max(), self.columns.reshape(-1, len(self.y))[deviations.argmax()]

    @property
    def constant(self) -> float:
        """C_T."""
        size = self.groups.sum(axis=1)
        above = self.columns.sum(axis=2) / size[:, None]
        below = (self.groups * self.variance).sum(axis=1) / size
        return np.sqrt((above / below[:, None]).max())

    @property
    def phi(self) -> float:
        """φ_T = (L/2) E_n[(f_{T+1} − f_T)²]."""
        return SMOOTHNESS / 2 * np.square(self.eta * self.h).mean()

    def left(self, eta: float) -> float:
        """What f + ηh leaves of the largest possible decrease D of the mean loss in B's span.

        D itself for η = 0, Proposition A.3's ε_T for the step's own η, assumption (A3)'s ε (per
        row) for η = 1.
        """
        return max(mean_decrease(self.y, self.f + eta * self.h, self.f + self.best), 0.0)
