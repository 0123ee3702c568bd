"""Theorem 4.5: relaxed weights."""

from __future__ import annotations

import numpy as np

from pipeline.analysis.bounds import gap_bound, relaxed_constants
from pipeline.boosting.arrays import Floats
from pipeline.boosting.rescaling import Adaptive, Relaxed, Rescaling, Unit
from pipeline.theory.checks import Check, identity, worst, worst_prefix
from pipeline.theory.dynamics import Trajectory, run
from pipeline.theory.instances import Instance, learners_of
from pipeline.theory.trials import LONG, Trials
from pipeline.theory.verdicts import Tried, tries, tries_on

SETTLED = 0.01  # of V(f_0), by which R8 lets a loss move that has converged
FAR = 10.0  # the mean of R5's targets
SHIFT = 5.0  # of R9's targets


@tries_on("R1", lambda trials: trials.relaxed)
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


@tries_on("R2", lambda trials: trials.relaxed)
def residual_stays_between(t: Trajectory) -> Check:
    """‖y − f_t‖ ≤ ρ_t‖y − f_0‖ + (1 − ρ_t)‖y‖ with ρ_t = Π w_s; the round that uses most of it."""
    rho = np.cumprod(t.w)
    bounds = rho * np.linalg.norm(t.r[0]) + (1 - rho) * np.linalg.norm(t.y)
    return worst(np.linalg.norm(t.r[1:], axis=1), bounds)


@tries_on("R3", lambda trials: trials.relaxed)
def lyapunov(t: Trajectory) -> tuple[Check, Check]:
    """V_t = ½‖r_t‖² − Σ(1 − w_s) f_sᵀ r_{s+1} + C falls by the stated amount, and is not negative.

    Gives the identity, and −min V_t against 0 (relative to C).
    """
    f = t.f[:-1]
    cross = (1 - t.w) * (f * t.r[1:]).sum(axis=1)
    norm_y, norm_r0 = float(np.linalg.norm(t.y)), float(np.linalg.norm(t.r[0]))
    c = (1 - t.w).sum() * max(2 * norm_y**2, (norm_y + norm_r0) * norm_r0)
    v = t.loss - np.concatenate([[0], np.cumsum(cross)]) + c
    step = t.w * t.eta
    pull = 0.5 * (1 - t.w) ** 2 * np.square(f).sum(axis=1)
    falls = step * (1 - step / 2) * np.square(t.projected) + pull
    return identity(-np.diff(v), falls, scale=float(v[0])), Check(float(-v.min() / v[0]), 0.0)


@tries_on("R8", lambda trials: trials.relaxed_long)
def loss_settles(t: Trajectory) -> Check:
    """After `LONG` rounds the loss moves by less than `SETTLED` of V(f_0)."""
    return Check(float(np.ptp(t.loss[LONG:])), SETTLED * t.loss[0])


@tries_on("R4", lambda trials: trials.relaxed)
def smallest_gap_relaxed(t: Trajectory) -> Check:
    """min ‖Δ_t‖ ≤ √(K/T) ≤ (√η‖y − f_0‖ + γ)/√T, with the sums over all rounds; the worst T."""
    c1, c2 = float((1 - t.w).sum()), float(np.square(1 - t.w).sum())
    norm_y, norm_r0 = float(np.linalg.norm(t.y)), float(np.linalg.norm(t.r[0]))
    k = relaxed_constants(norm_y, norm_r0, t.eta, c1, c2)
    return worst_prefix(t.gaps, np.sqrt(k / t.counts))


def relaxed_far_from_zero(seed: int, n: int = 50) -> Trajectory:
    """Targets 10 ± 1 and f_0 = y ± 1: five relaxed rounds."""
    rng = np.random.default_rng([7, seed])
    X = rng.normal(size=(n, 3))
    y = FAR + rng.normal(size=n)
    f0 = y + rng.normal(size=n)
    return run(y, f0, learners_of("rbf", X, FAR, 1.0), 0.5, 5, Relaxed())


@tries("R5")
def _(trials: Trials) -> Tried:
    runs = [relaxed_far_from_zero(seed) for seed in range(trials.bank.n)]
    rises = [float(t.loss[1] / t.loss[0]) for t in runs]
    return Tried(
        stated=[Check(float(np.diff(t.loss).max()), 0.0) for t in runs],
        corrected=[residual_stays_between(t) for t in trials.relaxed],
        measured=f"It is {np.median(rises):.2g} times the first in the median.",
    )


@tries_on("R6", lambda trials: trials.relaxed)
def relaxed_error(t: Trajectory) -> Check:
    """Bᵀr_t = ((1 − w_t)Bᵀf_t + BᵀΔ_t)/(ηw_t); the round with the largest error."""
    checks = []
    for k in range(t.n_rounds):
        pull = ((1 - t.w[k]) * t.f[k] + t.f[k + 1] - t.f[k]) / (t.eta * t.w[k])
        size = t.A[k].largest * float(np.linalg.norm(t.r[k]) + np.linalg.norm(t.y) / t.eta)
        checks.append(identity(t.B[k].T @ t.r[k], t.B[k].T @ pull, scale=size))
    return max(checks, key=lambda c: c.measured)


@tries("R7")
def _(trials: Trials) -> Tried:
    starts = [(i.eta, float(np.linalg.norm(i.y - i.f0))) for i in trials.bank()]
    ratios = [np.sqrt(eta) * r / gap_bound(eta, r**2 / 2, 1) for eta, r in starts]
    return Tried(
        stated=[identity(ratio, 1.0) for ratio in ratios],
        corrected=[identity(ratio, np.sqrt(0.5)) for ratio in ratios],
    )


def change_by_shift(i: Instance, rescaling: Rescaling) -> Floats:
    """f_T of the instance shifted by `SHIFT`, shifted back, less f_T: 15 rounds."""
    plain = run(i.y, i.f0, i.learners, i.eta, 15, rescaling)
    shifted = run(i.y + SHIFT, i.f0 + SHIFT, lambda f: i.learners(f - SHIFT), i.eta, 15, rescaling)
    return shifted.f[-1] - SHIFT - plain.f[-1]


@tries("R9")
def _(trials: Trials) -> Tried:
    # Hard cells: rounding of f + c may push a prediction over an edge, so they are left out.
    stated = [
        identity(change_by_shift(i, Unit()), 0.0, 1e3 * (float(np.linalg.norm(i.y)) + SHIFT))
        for i in trials.smooth
    ]
    changes = {
        name: [float(np.abs(change_by_shift(i, w)).mean()) / SHIFT for i in trials.smooth]
        for name, w in (("Relaxed", Relaxed()), ("Adaptive", Adaptive()))
    }
    words = ", ".join(f"{name} {np.median(some):.2g}" for name, some in changes.items())
    return Tried(
        stated=stated,
        measured=f"Mean change of the predictions by a shift of {SHIFT:g}, as a share of it, "
        f"median over instances: {words}.",
    )
