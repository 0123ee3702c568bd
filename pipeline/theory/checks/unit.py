"""Theorem 4.1, and what is sharper: no rescaling."""

from __future__ import annotations

import numpy as np

from pipeline.analysis.bounds import gap_bound, sharp_gap_bound
from pipeline.boosting.arrays import Floats
from pipeline.theory.checks.check import ROUNDING, Check, identity, worst_prefix
from pipeline.theory.dynamics import LogTrajectory, Trajectory


def loss_is_almost_monotone(t: Trajectory) -> Check:
    """V(f_{t+1}) ≤ V(f_t) + ε_t, relative to V(f_0)."""
    rise = np.diff(t.loss) - t.epsilon
    return Check(float(rise.max()) / t.loss[0], ROUNDING)


def average_gap(t: Trajectory) -> Check:
    """(1/T) Σ‖Δ_t‖² ≤ 4η (V(f_0)/T + (η/T) Σ ε_t), for η ≤ 1/2 (m = L = 1); the worst T."""
    rounds = 1 + np.arange(t.n_rounds)
    measured = np.cumsum(np.square(t.gaps)) / rounds
    bounds = 4 * t.eta * (t.loss[0] + t.eta * np.cumsum(t.epsilon)) / rounds
    k = int((measured / bounds).argmax())
    return Check(float(measured[k]), float(bounds[k]))


def smallest_gap(t: Trajectory) -> Check:
    """min ‖Δ_t‖ ≤ √(4ηV(f_0)/T) + √(4η² mean ε_t); the worst T."""
    rounds = 1 + np.arange(t.n_rounds)
    floors = 2 * t.eta * np.sqrt(np.cumsum(t.epsilon) / rounds)
    return worst_prefix(t.gaps, gap_bound(t.eta, t.loss[0], 1) / np.sqrt(rounds) + floors)


def sum_of_gaps_is_known(t: Trajectory) -> Check:
    """Sharper, exact oracle: Σ‖Δ_t‖² = η/(1 − η/2) · (V(f_0) − V(f_T)), for every η in (0, 1]."""
    left = np.square(t.gaps).sum()
    right = t.eta / (1 - t.eta / 2) * (t.loss[0] - t.loss[-1])
    return identity(left, right, scale=t.loss[0])


def smallest_gap_sharp(t: Trajectory) -> Check:
    """min ‖Δ_t‖ against `sharp_gap_bound`; the worst T."""
    rounds = 1 + np.arange(t.n_rounds)
    return worst_prefix(t.gaps, sharp_gap_bound(t.eta, t.loss[0], 1) / np.sqrt(rounds))


def smallest_projection(t: Trajectory) -> Check:
    """Exact oracle, Unit or Adaptive: min ‖A r_t‖ ≤ ‖y − f_0‖/√(η(2 − η)T); the worst T."""
    rounds = 1 + np.arange(t.n_rounds)
    return worst_prefix(t.projected, np.linalg.norm(t.r[0]) / np.sqrt(t.eta * (2 - t.eta) * rounds))


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


# --- ours ----------------------------------------------------------------------------------------


def gaps_without_step_condition(t: Trajectory | LogTrajectory, m: float, *, exact: bool) -> Check:
    """Σ‖Δ_t‖² by V(f_0) − V(f_T), for m-strongly convex V and no condition on η ≤ m/(2L).

    2η/(m(2 − η)) · (V_0 − V_T) for an exact oracle and η ≤ 1; 2η/(m(1 − η)) · (V_0 − V_T + ηΣε)
    for any other and η < 1.
    """
    fall, eta = float(t.loss[0] - t.loss[-1]), t.eta
    if exact:
        bound = 2 * eta / (m * (2 - eta)) * fall
    else:
        bound = 2 * eta / (m * (1 - eta)) * (fall + eta * float(t.epsilon.sum()))
    return Check(float(np.square(t.gaps).sum()), bound)


def smallest_error(t: Trajectory | LogTrajectory, smoothness: float) -> Check:
    """min‖Ê(f_t)‖ ≤ (sup‖B‖/n) √(2L(V_0/(ηT) + mean ε)), no strong convexity; the worst T."""
    rounds = 1 + np.arange(len(t.epsilon))
    means = (t.loss[0] / t.eta + np.cumsum(t.epsilon)) / rounds
    return _smallest_error(t, smoothness, means)


def smallest_error_relative(t: LogTrajectory, smoothness: float, q: float) -> Check:
    """The same for an oracle with ε_t ≤ q D_t: √(2L V_0/(η(1 − q)T)), and no noise floor."""
    rounds = 1 + np.arange(len(t.epsilon))
    return _smallest_error(t, smoothness, t.loss[0] / (t.eta * (1 - q) * rounds))


def _smallest_error(t: Trajectory | LogTrajectory, smoothness: float, means: Floats) -> Check:
    largest = np.maximum.accumulate([np.linalg.norm(B, 2) for B in t.B])
    return worst_prefix(t.errors, largest / len(t.y) * np.sqrt(2 * smoothness * means))
