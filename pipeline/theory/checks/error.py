"""The multicalibration error by the gap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.boosting.arrays import Floats
from pipeline.boosting.logloss import sigmoid as mu
from pipeline.theory.checks.check import Check, identity
from pipeline.theory.dynamics import Trajectory, log_loss

SMOOTHNESS = 0.25  # L of the log-loss
PAPERS = 2 / float(np.sqrt(1 - SMOOTHNESS))  # the constant of Lemma A.2 and Proposition A.3


def error_by_gap(t: Trajectory) -> Check:
    """‖Ê(f_t)‖ ≤ (‖B‖/n)(‖Δ_t‖/η + √(2ε_t)) for Unit; the round that uses most of it."""
    checks = []
    n = len(t.y)
    for k in range(t.n_rounds):
        if t.gaps[k] < 1e-9 * t.gaps[0]:
            break  # both sides are rounding from here on
        measured = np.linalg.norm(t.B[k].T @ t.r[k]) / n
        bound = t.A[k].largest / n * (t.gaps[k] / t.eta + np.sqrt(2 * t.epsilon[k]))
        checks.append(Check(float(measured), float(bound)))
    return max(checks, key=lambda c: c.ratio)


def step_in_its_proof(t: Trajectory) -> Check:
    """The proof's claim ‖Bᵀ(y − f_{t+1})‖ ≤ ‖B‖√(2ε_t), at t = 0; it needs η = 1."""
    measured = np.linalg.norm(t.B[0].T @ t.r[1])
    return Check(float(measured), float(t.A[0].largest * np.sqrt(2 * t.epsilon[0])))


@dataclass(frozen=True)
class Groups:
    """Groups h (m, n) and intervals g (k, n) of predictions, as zeros and ones."""

    h: Floats
    g: Floats

    def alpha(self, y: Floats, f: Floats) -> float:
        """The smallest α for which f is α-multicalibrated (log-loss, κ ≡ 1)."""
        p, n = mu(f), len(y)
        deviation = np.abs((self.h[:, None, :] * self.g * (y - p)).sum(axis=2)) / n
        tau = np.sqrt((self.h * (p * (1 - p))).sum(axis=1) / n)
        return float((deviation / tau[:, None]).max())

    def worst(self, y: Floats, f: Floats) -> Floats:
        """The column b = h g (n,) with the largest Δ_{h,g}/τ_h."""
        p = mu(f)
        products = self.h[:, None, :] * self.g
        tau = np.sqrt((self.h * (p * (1 - p))).mean(axis=1))
        ratio = np.abs((products * (y - p)).mean(axis=2)) / tau[:, None]
        return products[np.unravel_index(ratio.argmax(), ratio.shape)]

    def constant(self, f: Floats) -> float:
        """C_T."""
        p = mu(f)
        size = self.h.sum(axis=1)
        above = (self.h[:, None, :] * self.g).sum(axis=2) / size[:, None]
        below = (self.h * (p * (1 - p))).sum(axis=1) / size
        return float(np.sqrt((above / below[:, None]).max()))

    def learners(self) -> Floats:
        """B: one column per (h, g), (n, m k)."""
        return (self.h[:, None, :] * self.g).reshape(-1, self.h.shape[1]).T


def mean_decrease(y: Floats, f: Floats, other: Floats) -> float:
    """E_n[L(Y, f) − L(Y, other)], log-loss."""
    return (log_loss(y, f) - log_loss(y, other)) / len(y)


@dataclass(frozen=True)
class LogStep:
    """A log-loss step from f, with groups to be multicalibrated on.

    best : (n,) the best step in the groups' span.  h : (n,) the oracle's, the same if it is exact.
    The next predictor is f + ηh.
    """

    y: Floats
    f: Floats
    groups: Groups
    best: Floats
    h: Floats
    eta: float

    @property
    def alpha(self) -> float:
        """The smallest α for which f is α-multicalibrated."""
        return self.groups.alpha(self.y, self.f)

    @property
    def possible(self) -> float:
        """D: the largest decrease of the mean loss in the groups' span."""
        return max(mean_decrease(self.y, self.f, self.f + self.best), 0.0)

    @property
    def phi(self) -> float:
        """φ_T = (L/2) E_n[(f_{T+1} − f_T)²]."""
        return float(SMOOTHNESS / 2 * np.square(self.eta * self.h).mean())

    @property
    def left(self) -> float:
        """ε_T of Proposition A.3: what the next predictor leaves of D."""
        return max(mean_decrease(self.y, self.f + self.eta * self.h, self.f + self.best), 0.0)

    @property
    def oracle_error(self) -> float:
        """ε of assumption (A3), per row: what the oracle's full step leaves of D."""
        return max(mean_decrease(self.y, self.f + self.h, self.f + self.best), 0.0)


def alpha_by_descent(s: LogStep) -> Check:
    """Lemma A.2: α ≤ 2/√(1 − L) · C_T · √D."""
    return Check(s.alpha, PAPERS * s.groups.constant(s.f) * float(np.sqrt(s.possible)))


def alpha_by_gap(s: LogStep) -> Check:
    """Proposition A.3: α ≤ 2/√(1 − L) · C_T · √(φ_T + ε_T)."""
    return Check(s.alpha, PAPERS * s.groups.constant(s.f) * float(np.sqrt(s.phi + s.left)))


def decrease_by_gap(s: LogStep) -> Check:
    """A step in the proposition's proof: the loss decreases by at most φ_T."""
    return Check(mean_decrease(s.y, s.f, s.f + s.eta * s.h), s.phi)


def cauchy_schwarz_line(s: LogStep) -> Check:
    """A line in the lemma's proof, κ ≡ 1: E_n[b(Y − φ)]² ≤ E_n[b Var], b the worst group's."""
    p = mu(s.f)
    b = s.groups.worst(s.y, s.f)
    return Check(float((b * (s.y - p)).mean() ** 2), float((b * p * (1 - p)).mean()))


def alpha_repaired(s: LogStep) -> tuple[Check, Check, Check]:
    """Ours: α ≤ √(2L) C_T √D, √D ≤ √φ_T + √ε_T, and √D ≤ √φ_T/η + √ε with (A3)'s ε."""
    root = float(np.sqrt(s.possible))
    return (
        Check(s.alpha, float(np.sqrt(2 * SMOOTHNESS)) * s.groups.constant(s.f) * root),
        Check(root, float(np.sqrt(s.phi) + np.sqrt(s.left))),
        Check(root, float(np.sqrt(s.phi) / s.eta + np.sqrt(s.oracle_error))),
    )


def squared_loss_decrease(residual: Floats, b: Floats) -> tuple[Check, Check]:
    """Appendix A.3's note on the squared loss: the decrease of the best step along b (zeros, ones).

    As printed, ½E_n[r²b]/E_n[b]; and right, ½E_n[r b]²/E_n[b].
    """
    share = b.mean()
    after = residual - (residual * b).mean() / share * b
    decrease = float(0.5 * (np.square(residual) - np.square(after)).mean())
    printed = float(0.5 * (np.square(residual) * b).mean() / share)
    right = float(0.5 * (residual * b).mean() ** 2 / share)
    scale = float(np.square(residual).mean())
    return identity(decrease, printed, scale), identity(decrease, right, scale)
