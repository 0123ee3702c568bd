"""Theorem 4.5: relaxed weights."""

from __future__ import annotations

import numpy as np

from pipeline.analysis.bounds import relaxed_constants
from pipeline.theory.checks.check import Check, identity, worst_prefix
from pipeline.theory.dynamics import Trajectory


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
    """min ‖Δ_t‖ ≤ √(K/T) ≤ (√η‖y − f_0‖ + γ)/√T, with the sums over all rounds; the worst T."""
    k = relaxed_constants(
        float(np.linalg.norm(t.y)), float(np.linalg.norm(t.r[0])), t.eta,
        float((1 - t.w).sum()), float(np.square(1 - t.w).sum()),
    )  # fmt: skip
    return worst_prefix(t.gaps, np.sqrt(k / (1 + np.arange(t.n_rounds))))


def relaxed_error(t: Trajectory) -> Check:
    """Bᵀr_t = ((1 − w_t)Bᵀf_t + BᵀΔ_t)/(ηw_t); the round with the largest error."""
    checks = []
    for k in range(t.n_rounds):
        pull = ((1 - t.w[k]) * t.f[k] + t.f[k + 1] - t.f[k]) / (t.eta * t.w[k])
        size = t.A[k].largest * float(np.linalg.norm(t.r[k]) + np.linalg.norm(t.y) / t.eta)
        checks.append(identity(t.B[k].T @ t.r[k], t.B[k].T @ pull, scale=size))
    return max(checks, key=lambda c: c.measured)
