"""Theorem 4.1: no rescaling. Bounds on the loss and the gaps, and sharper ones."""

from __future__ import annotations

import numpy as np

from pipeline.analysis.bounds import gap_bound, sharp_gap_bound
from pipeline.boosting.arrays import Floats
from pipeline.theory import products
from pipeline.theory.checks import (
    ROUNDING,
    Check,
    by_regime,
    check_runs,
    identity,
    worst,
    worst_prefix,
)
from pipeline.theory.dynamics import Trajectory
from pipeline.theory.learners import project
from pipeline.theory.spiral import slow_gaps, slow_spiral, spiral
from pipeline.theory.trials import EXACT, LONG, ORACLES, SHARE, Trials, unit_run
from pipeline.theory.verdicts import Tried, tries, tries_on

VANISHED = 0.01  # of the first gap, below which T7 takes the last to have vanished
REST = 0.01  # of a trajectory's length, that T11 allows the second half of the rounds
ETAS = (0.1, 0.25, 0.5, 0.75, 1.0)  # of spirals
LENGTHS = (2, 8, 32, 128, 512, 2048)  # of spirals


@tries_on("T1", lambda trials: trials.unit)
def loss_rises_by_at_most_the_error(t: Trajectory) -> Check:
    """V(f_{t+1}) ≤ V(f_t) + ε_t, relative to V(f_0)."""
    rise = np.diff(t.loss) - t.epsilon
    return Check(float(rise.max()) / t.loss[0], ROUNDING)


@tries_on("T2", lambda trials: trials.unit)
def average_gap(t: Trajectory) -> Check:
    """(1/T) Σ‖Δ_t‖² ≤ 4η (V(f_0)/T + (η/T) Σ ε_t), for η ≤ 1/2 (m = L = 1); the worst T."""
    bounds = 4 * t.eta * (t.loss[0] + t.eta * np.cumsum(t.epsilon)) / t.counts
    return worst(np.cumsum(np.square(t.gaps)) / t.counts, bounds)


@tries_on("T3", lambda trials: trials.unit)
def smallest_gap(t: Trajectory) -> Check:
    """min ‖Δ_t‖ ≤ √(4ηV(f_0)/T) + √(4η² mean ε_t); the worst T."""
    floors = 2 * t.eta * np.sqrt(np.cumsum(t.epsilon) / t.counts)
    return worst_prefix(t.gaps, gap_bound(t.eta, t.loss[0], 1) / np.sqrt(t.counts) + floors)


@tries("T6")
def _(trials: Trials) -> Tried:
    runs = {
        name: [unit_run(i, 150, noise=noise, direction=d) for i in trials.bank.few()]
        for name, (noise, d) in ORACLES.items()
        if name != EXACT
    }
    without_floor = [
        Check(float(t.gaps.min()), gap_bound(t.eta, t.loss[0], t.n_rounds)).holds
        for t in runs["errors along the step"]
    ]
    return Tried(
        stated=check_runs(smallest_gap, runs),
        measured=f"Of errors along the step, {sum(without_floor)} of {len(without_floor)} gaps "
        "would be without the floor 2η√ε.",
    )


@tries_on("T7", lambda trials: trials.unit_long)
def gap_vanishes(t: Trajectory) -> Check:
    """The last gap is below `VANISHED` of the first."""
    return Check(float(t.gaps[-1]), VANISHED * float(t.gaps[0]))


@tries_on("T8", lambda trials: trials.log_loss)
def log_loss_bounds(t: Trajectory) -> tuple[Check, Check, Check]:
    """Theorem 4.1 for the log-loss with m measured along the trajectory and an exact oracle.

    Loss, average squared gap, and smallest gap.
    """
    bound = float(4 * t.eta / t.convexity * t.loss[0] / t.n_rounds)
    return (
        loss_rises_by_at_most_the_error(t),
        Check(float(np.square(t.gaps).mean()), bound),
        Check(float(t.gaps.min()), float(np.sqrt(bound))),
    )


# --- ours ----------------------------------------------------------------------------------------


def sum_of_gaps_is_known(t: Trajectory) -> Check:
    """Exact oracle: Σ‖Δ_t‖² = η/(1 − η/2) · (V(f_0) − V(f_T)), for every η in (0, 1]."""
    left = np.square(t.gaps).sum()
    right = t.eta / (1 - t.eta / 2) * (t.loss[0] - t.loss[-1])
    return identity(left, right, scale=t.loss[0])


def smallest_gap_sharp(t: Trajectory) -> Check:
    """min ‖Δ_t‖ against `sharp_gap_bound`; the worst T."""
    return worst_prefix(t.gaps, sharp_gap_bound(t.eta, t.loss[0], 1) / np.sqrt(t.counts))


def smallest_projection(t: Trajectory) -> Check:
    """Exact oracle, Unit or Adaptive: min ‖A r_t‖ ≤ ‖y − f_0‖/√(η(2 − η)T); the worst T."""
    bounds = np.linalg.norm(t.r[0]) / np.sqrt(t.eta * (2 - t.eta) * t.counts)
    return worst_prefix(t.projected, bounds)


@tries("T4")
def _(trials: Trials) -> Tried:
    runs = trials.unit_any_step[EXACT]
    checks = {
        "identity": map(sum_of_gaps_is_known, runs),
        "smallest gap": map(smallest_gap_sharp, runs),
        "smallest ‖A r‖": map(smallest_projection, runs),
    }
    return Tried(stated=by_regime(checks))


def equal_gaps(n: int, eta: float) -> Check:
    """How far any gap of the spiral is from what T5 says."""
    t = spiral(n, eta)
    share = np.sqrt(n / (n - 1 + 1 / (eta * (2 - eta))))
    return _gaps_are(t, share * sharp_gap_bound(eta, t.loss[0], n))


def _gaps_are(t: Trajectory, gaps: Floats | float) -> Check:
    """The largest relative error of the gaps; its bound is rounding times the number of rounds."""
    return Check(float(np.abs(t.gaps / gaps - 1).max()), 1e-12 * t.n_rounds + 1e-10)


@tries("T5")
def _(_: Trials) -> Tried:
    equal = [equal_gaps(n, eta) for eta in ETAS for n in LENGTHS]
    longest = LENGTHS[-1]
    slow = [_gaps_are(slow_spiral(longest, eta), slow_gaps(longest, eta)) for eta in ETAS]
    return Tried(stated=by_regime({"all gaps equal": equal, "one instance": slow}))


def gaps_without_step_condition(t: Trajectory, *, exact: bool) -> Check:
    """Σ‖Δ_t‖² by V(f_0) − V(f_T), for m-strongly convex V and no condition η ≤ m/(2L).

    2η/(m(2 − η)) · (V_0 − V_T) for an exact oracle and η ≤ 1; 2η/(m(1 − η)) · (V_0 − V_T + ηΣε)
    for any other and η < 1.
    """
    fall, eta, m = float(t.loss[0] - t.loss[-1]), t.eta, t.convexity
    if exact:
        bound = 2 * eta / (m * (2 - eta)) * fall
    else:
        bound = 2 * eta / (m * (1 - eta)) * (fall + eta * float(t.epsilon.sum()))
    return Check(float(np.square(t.gaps).sum()), bound)


@tries("T9")
def _(trials: Trials) -> Tried:
    runs = {f"squared loss, {oracle}": some for oracle, some in trials.unit_any_step.items()}
    runs[f"log-loss, {EXACT}"] = trials.log_loss_any["log-loss, not separable"]
    runs["log-loss, relative error"] = trials.log_loss_any["log-loss, relative error"]
    checks = {
        name: [
            gaps_without_step_condition(t, exact=name.endswith(EXACT))
            for t in some
            if t.eta < 1 and t.convexity > 1e-8
        ]
        for name, some in runs.items()
    }
    return Tried(stated=by_regime(checks))


def smallest_error(t: Trajectory) -> Check:
    """min‖Ê(f_t)‖ ≤ (sup‖B‖/n) √(2L(V_0/(ηT) + mean ε)), no strong convexity; the worst T."""
    return _smallest_error(t, (t.loss[0] / t.eta + np.cumsum(t.epsilon)) / t.counts)


def smallest_error_relative(t: Trajectory, q: float) -> Check:
    """The same for an oracle with ε_t ≤ q D_t: √(2L V_0/(η(1 − q)T)), and no noise floor."""
    return _smallest_error(t, t.loss[0] / (t.eta * (1 - q) * t.counts))


def _smallest_error(t: Trajectory, means: Floats) -> Check:
    largest = np.maximum.accumulate([np.linalg.norm(B, 2) for B in t.B])
    return worst_prefix(t.errors, largest / len(t.y) * np.sqrt(2 * t.smoothness * means))


@tries("T10")
def _(trials: Trials) -> Tried:
    runs = trials.unit_any_step | trials.log_loss_any
    relative = {"log-loss, relative error": runs.pop("log-loss, relative error")}
    return Tried(
        stated=[
            *check_runs(smallest_error, runs),
            *check_runs(lambda t: smallest_error_relative(t, 1 - SHARE), relative),
        ]
    )


@tries("T11")
def _(trials: Trials) -> Tried:
    checks: list[Check] = []
    for i in trials.bank.few(("rbf",)):
        rng = i.generator()
        for regime, k in (("one projector", 1), ("two projectors", 2), ("three projectors", 3)):
            family = [project(rng.normal(size=(6, int(rng.integers(1, 4))))) for _ in range(k)]
            r = rng.normal(size=6)
            orders = (products.in_turn, products.laziest, products.at_random(i.seed))
            lengths = (products.length(family, i.eta, r, order, 300) for order in orders)
            checks += by_regime({regime: lengths})
    bins = [unit_run(i, 2 * LONG) for i in trials.bank.few(("hard bins",))]
    halves = [Check(float(t.gaps[LONG:].sum()), REST * float(t.gaps.sum())) for t in bins]
    return Tried(stated=[*checks, *by_regime({"hard bins, second half": halves})])
