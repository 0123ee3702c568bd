"""Checks: a measured value beside its bound, one function per inequality or identity.

Each takes a trajectory (or the matrices it speaks of) and gives a `Check`. An inequality holds if
``measured ≤ bound``; an identity's ``measured`` is its relative error and its bound is rounding.
Names and numbers follow the paper; where a sharper or corrected form is known, it stands beside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.bounds import gap_bound, relaxed_constants, sharp_gap_bound
from pipeline.boosting.arrays import Floats
from pipeline.boosting.logloss import sigmoid as mu
from pipeline.theory.dynamics import LogTrajectory, Trajectory, log_loss
from pipeline.theory.learners import Factorised, project

ROUNDING = 1e-12
GOLDEN = (1 + np.sqrt(5)) / 2


@dataclass(frozen=True)
class Check:
    """A measured value beside its bound."""

    measured: float
    bound: float

    @property
    def ratio(self) -> float:
        """measured / bound: how much of the bound is used."""
        return self.measured / self.bound if self.bound > 0 else float(self.measured > 0)

    @property
    def holds(self) -> bool:
        """Up to rounding."""
        return self.measured <= self.bound + 1e-9 * max(abs(self.bound), abs(self.measured), 1e-300)


def identity(left: Floats | float, right: Floats | float, scale: float | None = None) -> Check:
    """An identity's error relative to the size of its sides (or to ``scale``)."""
    left, right = np.asarray(left), np.asarray(right)
    size = scale or max(float(np.abs(left).max()), float(np.abs(right).max()), 1e-300)
    return Check(float(np.abs(left - right).max()) / size, ROUNDING)


# --- Theorem 4.1: no rescaling -------------------------------------------------------------------


def loss_is_almost_monotone(t: Trajectory) -> Check:
    """V(f_{t+1}) ≤ V(f_t) + ε_t, relative to V(f_0)."""
    rise = np.diff(t.loss) - t.epsilon
    return Check(float(rise.max()) / t.loss[0], ROUNDING)


def average_gap(t: Trajectory) -> Check:
    """(1/T) Σ‖Δ_t‖² ≤ 4η (V(f_0)/T + (η/T) Σ ε_t), for η ≤ 1/2 (m = L = 1)."""
    n = t.n_rounds
    bound = 4 * t.eta * (t.loss[0] / n + t.eta * t.epsilon.sum() / n)
    return Check(float(np.square(t.gaps).mean()), float(bound))


def smallest_gap(t: Trajectory) -> Check:
    """min ‖Δ_t‖ ≤ √(4ηV(f_0)/T) + √(4η² mean ε_t)."""
    bound = gap_bound(t.eta, t.loss[0], t.n_rounds) + 2 * t.eta * np.sqrt(t.epsilon.mean())
    return Check(float(t.gaps.min()), float(bound))


def sum_of_gaps_is_known(t: Trajectory) -> Check:
    """Sharper, exact oracle: Σ‖Δ_t‖² = η/(1 − η/2) · (V(f_0) − V(f_T)), for every η in (0, 1]."""
    left = np.square(t.gaps).sum()
    right = t.eta / (1 - t.eta / 2) * (t.loss[0] - t.loss[-1])
    return identity(left, right, scale=t.loss[0])


def smallest_gap_sharp(t: Trajectory) -> Check:
    """min ‖Δ_t‖ against `sharp_gap_bound`."""
    return Check(float(t.gaps.min()), sharp_gap_bound(t.eta, t.loss[0], t.n_rounds))


def log_loss_bounds(t: LogTrajectory) -> tuple[Check, Check, Check]:
    """Theorem 4.1 for the log-loss with m measured along the trajectory and an exact oracle.

    Loss, average squared gap, and smallest gap.
    """
    bound = float(4 * t.eta / t.convexity * t.loss[0] / len(t.h))
    return (
        Check(float(np.diff(t.loss).max()) / t.loss[0], ROUNDING),
        Check(float(np.square(t.gaps).mean()), bound),
        Check(float(t.gaps.min()), float(np.sqrt(bound))),
    )


# --- the multicalibration error and the gap ------------------------------------------------------


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


def alpha_by_descent(y: Floats, f: Floats, groups: Groups, h: Floats) -> Check:
    """The appendix's lemma: α ≤ 2/√(1 − L) · C_T · √(loss decrease), L = 1/4; h the best step."""
    decrease = (log_loss(y, f) - log_loss(y, f + h)) / len(y)
    bound = 2 / np.sqrt(0.75) * groups.constant(f) * np.sqrt(max(decrease, 0.0))
    return Check(groups.alpha(y, f), float(bound))


def alpha_by_gap(y: Floats, f: Floats, groups: Groups, h: Floats, eta: float) -> Check:
    """The appendix's proposition: α ≤ 2/√(1 − L) · C_T · √(φ_T + ε_T).

    h is the best step and f + ηh the next predictor; ε_T is how far that is from the best.
    """
    epsilon = (log_loss(y, f + eta * h) - log_loss(y, f + h)) / len(y)
    bound = 2 / np.sqrt(0.75) * groups.constant(f) * np.sqrt(_phi(h, eta) + max(epsilon, 0.0))
    return Check(groups.alpha(y, f), float(bound))


def decrease_by_gap(y: Floats, f: Floats, h: Floats, eta: float) -> Check:
    """A step in the proposition's proof: the loss decreases by at most φ_T."""
    return Check((log_loss(y, f) - log_loss(y, f + eta * h)) / len(y), _phi(h, eta))


def _phi(h: Floats, eta: float) -> float:
    """φ_T = (L/2) mean (f_{T+1} − f_T)², L = 1/4."""
    return float(0.25 / 2 * np.square(eta * h).mean())


# --- Theorem 4.2 and its lemmas: the linear rate -------------------------------------------------


def lipschitz_along(t: Trajectory) -> float:
    """L_A measured on consecutive points of a trajectory."""
    ratios = []
    for k in range(1, t.n_rounds):
        distance = t.gaps[k - 1]
        if distance > 0:
            difference = t.A[k].matrix() - t.A[k - 1].matrix()
            ratios.append(np.linalg.norm(difference, 2) / distance)
    return float(max(ratios, default=0.0))


def linear_rate(t: Trajectory) -> Check:
    """‖Δ_t‖ ≤ κ‖Δ_{t−1}‖ with κ = 1 − η + η L_A ‖y − f_0‖, L_A measured along the trajectory."""
    kappa = 1 - t.eta + t.eta * lipschitz_along(t) * np.linalg.norm(t.r[0])
    moving = t.gaps[:-1] > 1e-12 * t.gaps[0]
    return Check(float((t.gaps[1:][moving] / t.gaps[:-1][moving]).max()), float(kappa))


def projector_difference(Bu: Floats, Bv: Floats) -> tuple[Check, Check]:
    """‖A_u − A_v‖ by ‖B_u − B_v‖: the paper's bound, and the sharper one ‖B_u − B_v‖/δ.

    δ is the smaller of the two smallest singular values that are not zero.
    """
    u, v = project(Bu), project(Bv)
    measured = float(np.linalg.norm(u.matrix() - v.matrix(), 2))
    distance = float(np.linalg.norm(Bu - Bv, 2))
    delta, largest = min(u.smallest, v.smallest), max(u.largest, v.largest)
    paper = 2 / delta * (1 + GOLDEN * largest**2 / delta**2) * distance
    return Check(measured, paper), Check(measured, distance / delta)


def class_difference(learners: Factorised, f: Floats, other: Floats) -> tuple[Check, Check]:
    """‖B(f) − B(f')‖ / ‖f − f'‖: the paper's max‖h‖ √k L_G, and the sharper max‖h‖ sup‖g'‖."""
    measured = float(np.linalg.norm(learners(f) - learners(other), 2))
    distance = float(np.linalg.norm(f - other))
    paper = learners.largest_h * np.sqrt(learners.k) * learners.lipschitz * distance
    return Check(measured, float(paper)), Check(
        measured, learners.largest_h * learners.slope * distance
    )


# --- Theorem 4.5: relaxed weights ----------------------------------------------------------------


def residual_identity(t: Trajectory) -> Check:
    """‖r_t‖² − ‖r_{t+1}‖² = wη(2 − wη)‖A r‖² + (1 − w)²‖f‖² − 2(1 − w) fᵀ r_{t+1}."""
    squares = np.square(np.linalg.norm(t.r, axis=1))
    f, after = t.f[:-1], t.r[1:]
    step = t.w * t.eta
    right = (
        step * (2 - step) * np.square(t.projected)
        + (1 - t.w) ** 2 * np.square(f).sum(axis=1)
        - 2 * (1 - t.w) * (f * after).sum(axis=1)
    )
    return identity(-np.diff(squares), right, scale=float(squares.max() + np.square(t.y).sum()))


def residual_stays_between(t: Trajectory) -> Check:
    """‖y − f_t‖ ≤ ρ_t‖y − f_0‖ + (1 − ρ_t)‖y‖ with ρ_t = Π w_s; the round that uses most of it."""
    rho = np.cumprod(t.w)
    bound = rho * np.linalg.norm(t.r[0]) + (1 - rho) * np.linalg.norm(t.y)
    measured = np.linalg.norm(t.r[1:], axis=1)
    k = int((measured / bound).argmax())
    return Check(float(measured[k]), float(bound[k]))


def lyapunov(t: Trajectory) -> tuple[Check, Check]:
    """V_t = ½‖r_t‖² − Σ(1 − w_s) f_sᵀ r_{s+1} + C falls by the stated amount, and is not negative.

    Gives the identity, and −min V_t against 0 (relative to C).
    """
    cross = (1 - t.w) * (t.f[:-1] * t.r[1:]).sum(axis=1)
    norm_y, norm_r0 = float(np.linalg.norm(t.y)), float(np.linalg.norm(t.r[0]))
    c = (1 - t.w).sum() * max(2 * norm_y**2, (norm_y + norm_r0) * norm_r0)
    v = t.loss - np.concatenate([[0], np.cumsum(cross)]) + c
    step = t.w * t.eta
    falls = step * (1 - step / 2) * np.square(t.projected) + 0.5 * (1 - t.w) ** 2 * np.square(
        t.f[:-1]
    ).sum(axis=1)
    return identity(-np.diff(v), falls, scale=float(v[0])), Check(float(-v.min() / v[0]), 0.0)


def smallest_gap_relaxed(t: Trajectory) -> Check:
    """min ‖Δ_t‖ ≤ √(K/T) ≤ (√η‖y − f_0‖ + γ)/√T, with the sums over the rounds run."""
    k = relaxed_constants(
        float(np.linalg.norm(t.y)), float(np.linalg.norm(t.r[0])), t.eta,
        float((1 - t.w).sum()), float(np.square(1 - t.w).sum()),
    )  # fmt: skip
    return Check(float(t.gaps.min()), float(np.sqrt(k / t.n_rounds)))


def relaxed_error(t: Trajectory) -> Check:
    """Bᵀr_t = ((1 − w_t)Bᵀf_t + BᵀΔ_t)/(ηw_t); the round with the largest error."""
    checks = []
    for k in range(t.n_rounds):
        pull = ((1 - t.w[k]) * t.f[k] + t.f[k + 1] - t.f[k]) / (t.eta * t.w[k])
        size = t.A[k].largest * float(np.linalg.norm(t.r[k]) + np.linalg.norm(t.y) / t.eta)
        checks.append(identity(t.B[k].T @ t.r[k], t.B[k].T @ pull, scale=size))
    return max(checks, key=lambda c: c.measured)


# --- Theorem 4.6: adaptive weights ---------------------------------------------------------------


def loss_is_monotone(t: Trajectory) -> Check:
    """V(f_{t+1}) ≤ V(f_t), relative to V(f_0)."""
    return Check(float(np.diff(t.loss).max()) / t.loss[0], ROUNDING)


def weights_are_not_negative(t: Trajectory, first: int = 1) -> Check:
    """ω_t ≥ 0 from round ``first`` on; the paper states it for all t, its proof for t ≥ 1."""
    return Check(float(-t.w[first:].min()), 0.0)


def adaptive_identity(t: Trajectory) -> Check:
    """Sharper: ‖r_t‖² − ‖r_{t+1}‖² = η(2 − η)‖A r_t‖² + (ω_t − 1)²‖φ_t‖²."""
    squares = np.square(np.linalg.norm(t.r, axis=1))
    right = t.eta * (2 - t.eta) * np.square(t.projected) + (t.w - 1) ** 2 * np.square(t.phi).sum(
        axis=1
    )
    return identity(-np.diff(squares), right, scale=float(squares[0]))


def smallest_gap_adaptive(t: Trajectory) -> Check:
    """New: min ‖Δ_t‖ ≤ √2 ‖y − f_0‖/√T, from the identity above."""
    bound = np.sqrt(2.0 / t.n_rounds) * np.linalg.norm(t.r[0])
    return Check(float(t.gaps.min()), float(bound))


def smallest_projection_adaptive(t: Trajectory) -> Check:
    """New: min ‖A r_t‖ ≤ ‖y − f_0‖/√(η(2 − η)T): multicalibration with a rate, A need not be
    continuous."""
    bound = np.linalg.norm(t.r[0]) / np.sqrt(t.eta * (2 - t.eta) * t.n_rounds)
    return Check(float(t.projected.min()), float(bound))


def eigenvalues(A: Floats, v: Floats, eta: float) -> Check:
    """The spectrum of ηA + (I − ηA)vvᵀ: 1, η‖(I − A)v‖², η (rank − 1 times), and zeros."""
    n, rank = len(v), round(float(np.trace(A)))
    measured = np.sort(np.linalg.eigvals(eta * A + (np.eye(n) - eta * A) @ np.outer(v, v)).real)
    rest = eta * float(np.square(v - A @ v).sum())
    stated = np.sort(np.concatenate([[1.0, rest], np.full(rank - 1, eta), np.zeros(n - rank - 1)]))
    # Eigenvalues of a matrix that is not symmetric are accurate to the root of rounding only.
    return Check(float(np.abs(measured - stated).max()), 1e-7)


def residual_lemma(y: Floats, f: Floats, A: Floats) -> tuple[Floats, Floats, Floats]:
    """Adaptive, η = 1: the next residual, what Lemma A.8 says of it, and what is true.

    With q = (I − A)r and φ = y − q it is ((yᵀφ)q − (qᵀφ)y)/‖φ‖².
    """
    r = y - f
    phi = f + A @ r
    actual = y - (y @ phi) / (phi @ phi) * phi
    left = r - A @ r
    true = ((y @ phi) * left - (left @ phi) * y) / (phi @ phi)
    return actual, (y @ (A @ r)) / np.square(y - left).sum() * left, true


# --- the hybrid algorithm ------------------------------------------------------------------------


def hybrid_kappa(eta: float, gamma: float) -> float:
    """κ of the hybrid proposition, for η < 2γ/(1 + γ)²."""
    return float(np.sqrt(1 - 2 * gamma * eta * (1 - (1 + gamma) ** 2 / (2 * gamma) * eta)))


def hybrid_rate(y: Floats, f: Floats, strong: Floats, eta: float, gamma: float) -> Check:
    """‖y − f_{t+1}‖ ≤ κ‖y − f_t‖ + ηγ‖y − ŷ‖; f (T + 1, n). The round that uses most of it."""
    r = np.linalg.norm(y - f, axis=1)
    bound = hybrid_kappa(eta, gamma) * r[:-1] + eta * gamma * np.linalg.norm(y - strong)
    k = int((r[1:] / bound).argmax())
    return Check(float(r[1:][k]), float(bound[k]))


def hybrid_distance(y: Floats, f: Floats, strong: Floats, eta: float, gamma: float) -> Check:
    """‖y − f_T‖ ≤ κ^T‖y − f_0‖ + ηγ/(1 − κ)‖y − ŷ‖; f (T + 1, n)."""
    kappa = hybrid_kappa(eta, gamma)
    start, end = (float(np.linalg.norm(y - g)) for g in (f[0], f[-1]))
    bound = kappa ** (len(f) - 1) * start + eta * gamma / (1 - kappa) * np.linalg.norm(y - strong)
    return Check(end, float(bound))


def hybrid_error(
    y: Floats, f: Floats, B: Sequence[Floats], strong: Floats, eta: float, gamma: float
) -> tuple[Check, Check]:
    """Ê(f_0) = (γBᵀ(y − ŷ) + BᵀΔ/η)/n as printed, and with the missing factor 1/(1 + γ)."""
    n = len(y)
    left = B[0].T @ (y - f[0]) / n
    right = (gamma * B[0].T @ (y - strong) + B[0].T @ (f[1] - f[0]) / eta) / n
    return identity(left, right), identity(left, right / (1 + gamma))


def preconditioned_step(
    f: Floats, minimiser: Floats, P: Floats, Q: Floats, noise: Floats, eta: float
) -> Check:
    """The preconditioned-gradient lemma for V(f) = ½(f − f*)ᵀQ(f − f*) and one step with P.

    Needs (f − f*)ᵀP∇V ≥ m (f − f*)ᵀ∇V, which the caller ensures (P and Q commute, say).
    """
    curvature, condition = np.linalg.eigvalsh(Q), np.linalg.eigvalsh(P)
    mu_, smooth, m, big = curvature[0], curvature[-1], condition[0], condition[-1]
    after = f - eta * (P @ Q @ (f - minimiser) + noise)
    kappa2 = 1 - 2 * mu_ * m * eta + smooth**2 * big**2 * eta**2
    bound = np.sqrt(kappa2) * np.linalg.norm(f - minimiser) + eta * np.linalg.norm(noise)
    return Check(float(np.linalg.norm(after - minimiser)), float(bound))
