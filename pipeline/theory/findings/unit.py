"""Theorem 4.1: no rescaling. Bounds on the loss and the gaps, and sharper ones."""

import numpy as np

from pipeline.analysis.bounds import gap_bound, sharp_gap_bound
from pipeline.boosting.arrays import Floats
from pipeline.theory import constructions
from pipeline.theory.checks import (
    ROUNDING,
    Check,
    by_regime,
    check_runs,
    identity,
    norm,
    worst,
    worst_prefix,
)
from pipeline.theory.dynamics import Trajectory
from pipeline.theory.learners import project
from pipeline.theory.trials import EXACT, LONG, ORACLES, RELATIVE, SHARE, Trials, unit_run
from pipeline.theory.verdicts import Tried, tries, tries_on

VANISHED = 0.01  # of the first gap, below which T7 takes the last to have vanished
REST = 0.01  # of a trajectory's length, that T11 allows the second half of the rounds
ETAS = (0.1, 0.25, 0.5, 0.75, 1.0)  # of spirals
LENGTHS = (2, 8, 32, 128, 512, 2048)  # of spirals


@tries_on("T1", lambda trials: trials.unit)
def loss_rises_by_at_most_the_error(t: Trajectory) -> Check:
    """V(f_{t+1}) ≤ V(f_t) + ε_t, relative to V(f_0)."""
    return Check((np.diff(t.loss) - t.epsilon).max() / t.loss[0], ROUNDING)


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
        Check(t.gaps.min(), gap_bound(t.eta, t.loss[0], t.n_rounds)).holds
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
    return Check(t.gaps[-1], VANISHED * t.gaps[0])


@tries_on("T8", lambda trials: trials.log_loss)
def log_loss_bounds(t: Trajectory) -> tuple[Check, ...]:
    """Theorem 4.1 for the log-loss with m measured along the trajectory and an exact oracle.

    Loss, average squared gap, and smallest gap.
    """
    bound = 4 * t.eta / t.convexity * t.loss[0] / t.n_rounds
    average, smallest = np.square(t.gaps).mean(), t.gaps.min()
    return (
        loss_rises_by_at_most_the_error(t),
        Check(average, bound),
        Check(smallest, np.sqrt(bound)),
    )


# --- ours ----------------------------------------------------------------------------------------


def sum_of_gaps_is_known(t: Trajectory) -> Check:
    """Exact oracle: Σ‖Δ_t‖² = η/(1 − η/2) · (V(f_0) − V(f_T)), for every η in (0, 1]."""
    right = t.eta / (1 - t.eta / 2) * (t.loss[0] - t.loss[-1])
    return identity(np.square(t.gaps).sum(), right, scale=t.loss[0])


def smallest_gap_sharp(t: Trajectory) -> Check:
    """min ‖Δ_t‖ against `sharp_gap_bound`; the worst T."""
    return worst_prefix(t.gaps, sharp_gap_bound(t.eta, t.loss[0], 1) / np.sqrt(t.counts))


def smallest_projection(t: Trajectory) -> Check:
    """Exact oracle, Unit or Adaptive: min ‖A r_t‖ ≤ ‖y − f_0‖/√(η(2 − η)T); the worst T."""
    return worst_prefix(t.projected, norm(t.r[0]) / np.sqrt(t.eta * (2 - t.eta) * t.counts))


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
    t = constructions.spiral(n, eta)
    share = np.sqrt(n / (n - 1 + 1 / (eta * (2 - eta))))
    return _gaps_are(t, share * sharp_gap_bound(eta, t.loss[0], n))


def slow_gaps(n: int, eta: float) -> Check:
    """The same for the one instance for all T."""
    return _gaps_are(constructions.slow_spiral(n, eta), constructions.slow_gaps(n, eta))


def _gaps_are(t: Trajectory, gaps: Floats | float) -> Check:
    """The largest relative error of the gaps; its bound is rounding times the number of rounds."""
    return Check(np.abs(t.gaps / gaps - 1).max(), 1e-12 * t.n_rounds + 1e-10)


@tries("T5")
def _(_: Trials) -> Tried:
    checks = {
        "all gaps equal": [equal_gaps(n, eta) for eta in ETAS for n in LENGTHS],
        "one instance": [slow_gaps(LENGTHS[-1], eta) for eta in ETAS],
    }
    return Tried(stated=by_regime(checks))


def gaps_without_step_condition(t: Trajectory, *, exact: bool) -> Check:
    """Σ‖Δ_t‖² by V(f_0) − V(f_T), for m-strongly convex V and no condition η ≤ m/(2L).

    2η/(m(2 − η)) · (V_0 − V_T) for an exact oracle and η ≤ 1; 2η/(m(1 − η)) · (V_0 − V_T + ηΣε)
    for any other and η < 1.
    """
    fall, eta, m = t.loss[0] - t.loss[-1], t.eta, t.convexity
    if exact:
        bound = 2 * eta / (m * (2 - eta)) * fall
    else:
        bound = 2 * eta / (m * (1 - eta)) * (fall + eta * t.epsilon.sum())
    return Check(np.square(t.gaps).sum(), bound)


@tries("T9")
def _(trials: Trials) -> Tried:
    runs = {f"squared loss, {oracle}": some for oracle, some in trials.unit_any_step.items()}
    runs[f"log-loss, {EXACT}"] = trials.log_loss_any["log-loss, not separable"]
    runs[RELATIVE] = trials.log_loss_any[RELATIVE]
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


def smallest_error_relative(t: Trajectory, q: float = 1 - SHARE) -> Check:
    """The same for an oracle with ε_t ≤ q D_t: √(2L V_0/(η(1 − q)T)), and no noise floor."""
    return _smallest_error(t, t.loss[0] / (t.eta * (1 - q) * t.counts))


def _smallest_error(t: Trajectory, means: Floats) -> Check:
    largest = np.maximum.accumulate([np.linalg.norm(B, 2) for B in t.B])
    return worst_prefix(t.errors, largest / len(t.y) * np.sqrt(2 * t.smoothness * means))


@tries("T10")
def _(trials: Trials) -> Tried:
    runs = trials.unit_any_step | trials.log_loss_any
    relative = {RELATIVE: runs.pop(RELATIVE)}
    checks = check_runs(smallest_error_relative, relative)
    return Tried(stated=[*check_runs(smallest_error, runs), *checks])


@tries("T11")
def _(trials: Trials) -> Tried:
    checks: dict[str, list[Check]] = {}
    for i in trials.bank.few(("rbf",)):
        rng = i.generator()
        for k, regime in enumerate(("one projector", "two projectors", "three projectors"), 1):
            family = [project(rng.normal(size=(6, int(rng.integers(1, 4))))) for _ in range(k)]
            r = rng.normal(size=6)
            checks.setdefault(regime, []).extend(
                constructions.length(family, i.eta, r, order, 300)
                for order in constructions.orders(i.seed).values()
            )
    bins = (unit_run(i, 2 * LONG).gaps for i in trials.bank.few(("hard bins",)))
    checks["hard bins, second half"] = [Check(g[LONG:].sum(), REST * g.sum()) for g in bins]
    return Tried(stated=by_regime(checks))
