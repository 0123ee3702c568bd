"""Another feature than f_t: what carries over, and what does not.

There is a trajectory for each fold, fitted to the rows outside of it, and the class of a round is
B(g_t) for a feature g_t: a row's f_t in the trajectory of its own fold ("honest", out of fold),
f_0 ("initial") or nothing ("none").
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.boosting.arrays import Floats, Ints
from pipeline.boosting.rescaling import Adaptive, Relaxed, Rescaling, Unit
from pipeline.boosting.trajectories import FEEDBACK, feature_of
from pipeline.theory.checks import (
    ROUNDING,
    Check,
    CheckOf,
    by_regime,
    check_runs,
    distance,
    identity,
    norm,
    worst,
)
from pipeline.theory.dynamics import Learners, Trajectory, run
from pipeline.theory.findings import adaptive, error, relaxed, unit
from pipeline.theory.findings.linear import STARTS
from pipeline.theory.instances import KINDS, SMOOTH, Instance
from pipeline.theory.learners import RANK_TOLERANCE
from pipeline.theory.logloss import run_log_loss
from pipeline.theory.trials import ORACLES, Trials, unit_run
from pipeline.theory.verdicts import Tried, tries

FEATURES: Mapping[str, str] = {"honest": "out of fold", "initial": "f₀", "none": "none"}
TAME = ("linear", "hard bins")  # classes whose predictions for rows held out stay of the size of y
FREE_OF_Y = 2  # f_0 and f_1, which are free of a row's y with the feature out of fold
N_FOLDS, MANY_ROUNDS = 3, 60
ETAS, EPSILON = (0.1, 0.5, 1.0), 0.1  # of the three rows
FAR = 1000  # times the largest |y|
# What every trajectory obeys on its own rows: with any oracle and Unit, and with an exact one.
ANY_ORACLE: Sequence[CheckOf[Trajectory]] = (
    unit.loss_rises_by_at_most_the_error,
    unit.average_gap,
    unit.smallest_gap,
    error.error_by_gap,
)
OF_RELAXED: Sequence[CheckOf[Trajectory]] = (
    relaxed.residual_identity,
    relaxed.residual_stays_between,
    relaxed.lyapunov,
    relaxed.smallest_gap_relaxed,
    relaxed.relaxed_error,
)
OF_ADAPTIVE: Sequence[CheckOf[Trajectory]] = (
    adaptive.loss_is_monotone,
    adaptive.weights_are_not_negative,
    adaptive.adaptive_identity,
    adaptive.smallest_gap_adaptive,
)
EXACT_ORACLE: Mapping[str, tuple[Rescaling, Sequence[CheckOf[Trajectory]]]] = {
    "Unit": (Unit(), (*ANY_ORACLE, unit.sum_of_gaps_is_known)),
    "Relaxed": (Relaxed(), OF_RELAXED),
    "Adaptive": (Adaptive(), OF_ADAPTIVE),
}


@dataclass(frozen=True)
class CrossFit:
    """Trajectories with an exact oracle, one for each fold, of n rows."""

    y: Floats
    learners: Learners
    fold: Ints  # (n,) the trajectory that is not fitted to a row
    scores: Floats  # (T + 1, folds, n) f_t of all rows in each
    runs: Sequence[Trajectory]  # each on its own rows, its B and A being those at the feature

    @property
    def honest(self) -> Floats:
        """f_t of each row in the trajectory of its fold, (T + 1, n)."""
        return self.scores[:, self.fold, np.arange(len(self.fold))]

    def error_over_f(self, k: int, t: int = -1) -> float:
        """‖Ê(f_t)‖ of trajectory k on its own rows, over learners of (x, f_t)."""
        f, own = self.scores[t, k], self.fold != k
        return norm(self.learners(f)[own].T @ (self.y - f)[own]) / own.sum()


def cross_fit(
    y: Floats,
    f0: Floats,
    learners: Learners,
    eta: float,
    n_rounds: int,
    feedback: str,
    fold: Ints,
    rescaling: Rescaling | None = None,
) -> CrossFit:
    """Run all trajectories from f_0; rows that are held out follow the coefficients of least norm.

    feedback : one of `pipeline.boosting.trajectories.FEEDBACK`.
    """
    rescaling = rescaling or Unit()
    owns = [fold != k for k in range(int(fold.max()) + 1)]
    scores, classes = [np.tile(f0, (len(owns), 1))], []
    for t in range(n_rounds):
        honest, following, found = np.choose(fold, scores[-1]), [], []
        for f, own in zip(scores[-1], owns, strict=True):
            B = learners(honest if feedback == "honest" else feature_of(feedback, f, f0))
            phi = f + eta * (B @ (np.linalg.pinv(B[own], RANK_TOLERANCE) @ (y - f)[own]))
            following.append(rescaling.weight(t, y[own], phi[own]) * phi)
            found.append(B[own])
        scores.append(np.array(following))
        classes.append(found)

    def again(own: Floats, of_rounds: Iterator[Floats]) -> Trajectory:
        return run(y[own], f0[own], lambda _: next(of_rounds), eta, n_rounds, rescaling)

    runs = [again(*one) for one in zip(owns, map(iter, zip(*classes, strict=True)), strict=True)]
    return CrossFit(y, learners, fold, np.array(scores), runs)


def crossed(
    i: Instance, feedback: str, n: int = 10, rescaling: Rescaling | None = None
) -> CrossFit:
    """``n`` rounds on an instance, every third row being in the same fold."""
    fold = np.arange(len(i.y)) % N_FOLDS
    return cross_fit(i.y, i.f0, i.learners, i.eta, n, feedback, fold, rescaling)


def three_rows(y: Sequence[float], feedback: str, eta: float, n_rounds: int = 20) -> CrossFit:
    """x = 0 in one fold, x = 1, −1 in the other; one learner b(x, u) = 1 + xu; f_0 = 0."""
    x, fold = np.array([0.0, 1.0, -1.0]), np.array([0, 1, 1])

    def learners(u: Floats) -> Floats:
        return (1 + x * u)[:, None]

    return cross_fit(np.array(y), np.zeros(3), learners, eta, n_rounds, feedback, fold)


# --- what carries over ---------------------------------------------------------------------------


def change_with_own_y(i: Instance, feedback: str) -> Floats:
    """How far the out-of-fold f_t of the first row moves if its y is raised by 1, (T + 1,)."""
    y = i.y.copy()
    y[0] += 1
    first, second = (crossed(one, feedback).honest[:, 0] for one in (i, replace(i, y=y)))
    return np.abs(first - second)


def _with_any_feature(i: Instance) -> Instance:
    """The instance with a feature that is drawn anew in every round."""
    rng, g = i.generator(), i.learners.g
    return replace(i, learners=replace(i.learners, g=lambda f: g(rng.normal(size=len(f)))))


def _log_run(i: Instance) -> Trajectory:
    y = (i.y > np.median(i.y)).astype(float)
    return run_log_loss(y, 0.3 * i.f0, i.learners, i.eta, 12)


def _instances(trials: Trials, feedback: str) -> Iterator[Instance]:
    return trials.bank.few(KINDS if feedback in ("initial", "none") else TAME)


def _all(checks: Sequence[CheckOf[Trajectory]], runs: Sequence[Trajectory]) -> list[Check]:
    return [found for check in checks for found in check_runs(check, runs)]


@tries("F1")
def _(trials: Trials) -> Tried:
    found: dict[str, list[Check]] = {}
    for feedback, feature in FEATURES.items():
        for weights, (rescaling, checks) in EXACT_ORACLE.items():
            fits = [crossed(i, feedback, rescaling=rescaling) for i in _instances(trials, feedback)]
            found[f"{feature}, {weights}"] = _all(checks, [t for fit in fits for t in fit.runs])
    drawn = [_with_any_feature(i) for i in trials.bank.few()]
    for oracle, (noise, direction) in ORACLES.items():
        runs = [unit_run(i, noise=noise, direction=direction) for i in drawn]
        found[f"drawn, {oracle}"] = _all(ANY_ORACLE, runs)
    log_runs = [_log_run(i) for i in drawn if i.kind == "sigmoid"]
    of_loss = unit.loss_rises_by_at_most_the_error, unit.smallest_error
    found["drawn, log-loss"] = _all(of_loss, log_runs)
    found["free of a row's own y"] = [
        Check(change_with_own_y(i, feedback)[:rounds].max(), ROUNDING)
        for feedback in FEEDBACK
        for rounds in [FREE_OF_Y if feedback == "honest" else None]
        for i in _instances(trials, feedback)
    ]
    return Tried(stated=by_regime(found))


# --- what does not -------------------------------------------------------------------------------


def error_stays(feedback: str, eta: float) -> Check:
    """Three rows, y = (0, 2, 0): Ê(f_t) = 1 in every round, over (x, f_t)."""
    c = three_rows((0.0, 2.0, 0.0), feedback, eta)
    return identity(np.array([c.error_over_f(0, t) for t in range(len(c.scores))]), 1.0)


def error_is_near(i: Instance) -> tuple[Check, ...]:
    """‖Ê(f_t)‖ ≤ (‖B(g_t)ᵀr_t‖ + L_B‖f_t − g_t‖‖r_t‖)/n out of fold, in the last round."""
    c = crossed(i, "honest")
    lipschitz = np.linalg.norm(i.learners.H, axis=1).max() * i.learners.slope
    found = []
    for k, t in enumerate(c.runs):
        away = norm((c.scores[-2, k] - c.honest[-2])[c.fold != k])
        bound = t.errors[-1] + lipschitz * away * norm(t.r[-2]) / len(t.y)
        found.append(Check(c.error_over_f(k, -2), bound))
    return tuple(found)


def fixed_feature(i: Instance) -> tuple[Check, Check]:
    """f_0 as the feature: gaps shrink by 1 − η; the loss too, but for the oracle's errors.

    V_t − V_* ≤ (1 − η)^t (V_0 − V_*) + max ε; the round that uses most of it.
    """
    fixed = i.learners.g(i.f0)
    i = replace(i, learners=replace(i.learners, g=lambda _: fixed))
    exact, inexact = unit_run(i, any_step=True), unit_run(i, any_step=True, noise=0.05, decay=1)
    least = exact.loss[0] - 0.5 * exact.projected[0] ** 2
    bounds = (1 - i.eta) ** inexact.counts * (exact.loss[0] - least)
    bounds += np.maximum.accumulate(inexact.epsilon)
    same = identity(exact.gaps[1:], (1 - i.eta) * exact.gaps[:-1], scale=exact.gaps[0])
    return same, worst(inexact.loss[1:] - least, bounds)


def no_rate_for_one(eta: float) -> tuple[Check, Check]:
    """Three rows, y = (1, ε, −ε), out of fold: the first gap is 0 and the second is not."""
    first, second = three_rows((1.0, EPSILON, -EPSILON), "honest", eta).runs[0].gaps[:2]
    return (
        Check(first, ROUNDING),
        identity(second, np.sqrt(2) * eta**2 * EPSILON / np.sqrt(1 + eta**2)),
    )


def rate_of_all(c: CrossFit) -> Check:
    """Γ_t ≤ κΓ_{t−1}, Γ² = Σ gap² over trajectories, κ = 1 − η + η L_A S R; the largest factor.

    L_A, and S of the out-of-fold rows' moves by the gaps, are measured along the trajectories.
    """
    gaps = np.sqrt(np.sum([np.square(t.gaps) for t in c.runs], axis=0))
    # As in `linear_rate`: rounds whose gap is more than rounding.
    before = np.flatnonzero(gaps[:-1] > 1e-8 * norm(c.y))
    moves = np.diff(c.honest, axis=0)
    lipschitz = stretch = 0.0
    for k, t in enumerate(c.runs):
        own = c.fold != k
        for s in before:
            change = distance(t.A[s + 1].matrix(), t.A[s].matrix())
            lipschitz = max(lipschitz, change / norm(moves[s, own]))
            stretch = max(stretch, norm(moves[s, ~own]) / t.gaps[s])
    start = np.sqrt(sum(np.square(t.r[0]).sum() for t in c.runs))
    eta = c.runs[0].eta
    kappa = 1 - eta + eta * lipschitz * stretch * start
    factor = (gaps[before + 1] / gaps[before]).max(initial=0.0)
    return Check(factor, kappa, f"out of fold: κ {'<' if kappa < 1 else '≥'} 1")


def share_left(i: Instance, feedback: str) -> float:
    """The error over (x, f_t) after `MANY_ROUNDS`, relative to the first; mean of trajectories."""
    c = crossed(i, feedback, MANY_ROUNDS)
    return float(np.mean([c.error_over_f(k) / c.error_over_f(k, 0) for k in range(N_FOLDS)]))


@tries("F2")
def _(trials: Trials) -> Tried:
    smooth = list(trials.bank.few(SMOOTH))
    close = [replace(i, f0=i.y - rho * (i.y - i.f0)) for rho in STARTS[1:] for i in smooth]
    found = by_regime(
        {
            "three rows: the error": [error_stays(f, eta) for f in FEATURES for eta in ETAS],
            "three rows: the gaps": [check for eta in ETAS for check in no_rate_for_one(eta)],
            "f₀: gaps and loss": check_runs(fixed_feature, trials.bank.few()),
            "out of fold: the error": check_runs(error_is_near, trials.bank.few(("linear",))),
        }
    )
    found += [rate_of_all(crossed(i, "honest")) for i in close]
    left = {
        feature: np.median([share_left(i, feedback) for i in trials.bank.few(TAME)])
        for feedback, feature in {**FEATURES, "in_sample": "f_t"}.items()
    }
    gates = [(i, crossed(i, "honest")) for i in trials.bank.random(("sigmoid",), trials.bank.n)]
    far = sum(np.abs(c.honest).max() > FAR * np.abs(i.y).max() for i, c in gates)
    return Tried(
        stated=found,
        measured=f"After {MANY_ROUNDS} rounds the error over (x, f_t) is, of the first, in the "
        f"median: {', '.join(f'{share:.2g} ({name})' for name, share in left.items())}. With "
        f"sigmoid gates an out-of-fold f_t is beyond {FAR:,} times the largest |y| within ten "
        f"rounds on {far} of {len(gates)} instances; on fitted rows ‖f_t‖ ≤ ‖y‖ + ‖y − f₀‖.",
    )
