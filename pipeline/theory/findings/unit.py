"""Theorem 4.1, and what lies beyond it: no rescaling."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from pipeline.analysis.bounds import gap_bound, sharp_gap_bound
from pipeline.theory import counterexamples as counter
from pipeline.theory import products
from pipeline.theory.checks import Check, labelled
from pipeline.theory.checks import unit as c
from pipeline.theory.dynamics import Trajectory
from pipeline.theory.findings.registry import Tried, finding
from pipeline.theory.instances import KINDS
from pipeline.theory.learners import project
from pipeline.theory.trials import ORACLES, SHARE, Trials, unit_run

WHERE = "Theorem 4.1"
ETAS = (0.1, 0.25, 0.5, 0.75, 1.0)
LENGTHS = (2, 8, 32, 128, 512, 2048)
LOG_SMOOTHNESS = 0.25

T = TypeVar("T")


def by_regime(runs: Mapping[str, Sequence[T]], check: Callable[[T], Check]) -> list[Check]:
    """A check on all runs, each of the regime it comes from."""
    return [x for name, some in runs.items() for x in labelled(name, map(check, some))]


@finding(
    "T1",
    level="result",
    where=f"{WHERE}(1)",
    text="The loss rises by at most the oracle's error.",
    remark="Its proof uses that V is convex, which (A3) alone does not say.",
)
def _(trials: Trials) -> Tried:
    return Tried(stated=by_regime(trials.unit, c.loss_is_almost_monotone))


@finding(
    "T2",
    level="result",
    where=f"{WHERE}(2)",
    text="The average squared gap is at most 4η(V(f₀) + ηΣε)/T.",
    remark="With an exact oracle at most a third of it is reached at η = 1/2 (see T4).",
)
def _(trials: Trials) -> Tried:
    return Tried(stated=by_regime(trials.unit, c.average_gap))


@finding(
    "T3",
    level="result",
    where=f"{WHERE}(2)",
    text="The smallest gap is at most √(4ηV(f₀)/T) + 2η√(mean ε).",
)
def _(trials: Trials) -> Tried:
    return Tried(stated=by_regime(trials.unit, c.smallest_gap))


@finding(
    "T6",
    level="text",
    where=f"after {WHERE}",
    text="Under a constant error ε the smallest gap is at most c/√T + 2η√ε.",
)
def _(trials: Trials) -> Tried:
    runs = {
        name: [unit_run(i, 150, noise=0.05, direction=d) for i in trials.bank.few()]
        for name, d in ORACLES.items()
        if d is not None
    }
    floors = [
        Check(float(t.gaps.min()), gap_bound(t.eta, t.loss[0], t.n_rounds))
        for t in runs["errors along the step"]
    ]
    return Tried(
        stated=by_regime(runs, c.smallest_gap),
        measured="Of errors along the step, "
        f"{sum(f.holds for f in floors)} of {len(floors)} gaps would be without the floor 2η√ε.",
    )


@finding(
    "T7",
    level="result",
    where=f"{WHERE}(2)",
    text="If Σε_t is finite, the gap tends to 0 (below 1 % after 200 rounds).",
    limit=True,
)
def _(trials: Trials) -> Tried:
    runs = {
        kind: [unit_run(i, 200, noise=0.1, decay=3) for i in trials.bank.few((kind,))]
        for kind in KINDS
    }
    return Tried(
        stated=by_regime(runs, lambda t: Check(float(t.gaps[-1]), 0.01 * float(t.gaps[0])))
    )


@finding(
    "T8",
    level="result",
    where=WHERE,
    text="The same for the log-loss, where η ≤ m/(2L) can be met: loss and gaps.",
)
def _(trials: Trials) -> Tried:
    return Tried(stated=[check for t in trials.log_loss for check in c.log_loss_bounds(t)])


# --- ours ----------------------------------------------------------------------------------------


@finding(
    "T4",
    level="ours",
    where="ours",
    text="Exact oracle, squared loss, any η in (0, 1]: Σ gap² = η/(1 − η/2)·(V(f₀) − V(f_T)), and "
    "the smallest ‖A r_t‖ is at most ‖y − f₀‖/√(η(2 − η)T), least at η = 1.",
)
def _(trials: Trials) -> Tried:
    runs = trials.unit_any_step["exact oracle"]
    return Tried(
        stated=[
            *labelled("identity", map(c.sum_of_gaps_is_known, runs)),
            *labelled("smallest gap", map(c.smallest_gap_sharp, runs)),
            *labelled("smallest ‖A r‖", map(c.smallest_projection, runs)),
        ]
    )


@finding(
    "T5",
    level="ours",
    where="ours (left open by the paper)",
    text="T4's bound is sharp for every η: with two points and one learner (a spiral) all T gaps "
    "are equal, and √(T/(T − 1 + 1/(η(2 − η)))) of it. On one instance for all T, gaps of order "
    "1/(√t log t) occur; o(1/√t) for the smallest is all that Σ gap² < ∞ leaves.",
    limit=True,
)
def _(_: Trials) -> Tried:
    return Tried(
        stated=[
            *labelled("all gaps equal", (_spiral(n, eta) for eta in ETAS for n in LENGTHS)),
            *labelled("one instance", map(_slow_spiral, ETAS)),
        ]
    )


def _spiral(n: int, eta: float) -> Check:
    """How far any of the gaps is from what the statement says."""
    t = counter.spiral(n, eta)
    share = np.sqrt(n / (n - 1 + 1 / (eta * (2 - eta))))
    return _near(t, share * sharp_gap_bound(eta, t.loss[0], n))


def _slow_spiral(eta: float) -> Check:
    n = LENGTHS[-1]
    return _near(counter.slow_spiral(n, eta), counter.slow_gaps(n, eta))


def _near(t: Trajectory, gaps: np.ndarray | float) -> Check:
    """Relative errors of gaps; their bound is rounding times the number of rounds."""
    return Check(float(np.abs(t.gaps / gaps - 1).max()), 1e-12 * t.n_rounds + 1e-10)


@finding(
    "T9",
    level="ours",
    where="ours",
    text="Σ gap² ≤ 2η/(m(1 − η))·(V(f₀) − V(f_T) + ηΣε) for m-strongly convex V and η < 1, and "
    "2η/(m(2 − η))·(V(f₀) − V(f_T)) for an exact oracle and η ≤ 1: Theorem 4.1(2) without (A1) and "
    "without η ≤ m/(2L).",
)
def _(trials: Trials) -> Tried:
    def squared(name: str) -> list[Check]:
        runs = [t for t in trials.unit_any_step[name] if t.eta < 1]
        exact = name == "exact oracle"
        return [c.gaps_without_step_condition(t, 1.0, exact=exact) for t in runs]

    def logistic(name: str, *, exact: bool) -> list[Check]:
        runs = [t for t in trials.log_loss_any[name] if t.convexity > 1e-8 and t.eta < 1]
        return [c.gaps_without_step_condition(t, t.convexity, exact=exact) for t in runs]

    return Tried(
        stated=[
            *(x for name in ORACLES for x in labelled(f"squared loss, {name}", squared(name))),
            *labelled("log-loss, exact oracle", logistic("not separable", exact=True)),
            *labelled(
                "log-loss, relative error", logistic("not separable, relative error", exact=False)
            ),
        ]
    )


@finding(
    "T10",
    level="ours",
    where="ours",
    text="For convex L-smooth V the smallest ‖Ê(f_t)‖ is at most "
    "(sup‖B‖/n)·√(2L(V(f₀)/(ηT) + mean ε)), and (sup‖B‖/n)·√(2L V(f₀)/(η(1 − q)T)) if ε_t ≤ q D_t: "
    "no strong convexity, so also where the classes of the log-loss can be separated.",
)
def _(trials: Trials) -> Tried:
    runs = trials.log_loss_any
    relative = runs["not separable, relative error"]
    separable = [c.smallest_error(t, LOG_SMOOTHNESS) for t in runs["classes separable"]]
    return Tried(
        stated=[
            *by_regime(trials.unit_any_step, lambda t: c.smallest_error(t, 1.0)),
            *labelled("log-loss, classes separable", separable),
            *labelled(
                "log-loss, not separable",
                [c.smallest_error(t, LOG_SMOOTHNESS) for t in runs["not separable"]],
            ),
            *labelled(
                "log-loss, relative error",
                [c.smallest_error_relative(t, LOG_SMOOTHNESS, 1 - SHARE) for t in relative],
            ),
        ]
    )


@finding(
    "T11",
    level="ours",
    where="ours",
    text="Hard splits: if A(f) takes finitely many values, Σ gap ≤ C√(‖r₀‖² − ‖r_T‖²) with an "
    "exact oracle and Unit, C depending on these projectors and η alone; so f_t converges to a "
    "point.",
    remark="C follows from the proof and grows fast with the number of projectors, so that little "
    "of the bound is used. The last regime runs hard bins for 400 rounds: the second half is less "
    "than 1 % of the length.",
)
def _(trials: Trials) -> Tried:
    checks: list[Check] = []
    for i in trials.bank.few(("rbf",)):
        rng = i.generator()
        for regime, k in (("one projector", 1), ("two projectors", 2), ("three projectors", 3)):
            family = [project(rng.normal(size=(6, int(rng.integers(1, 4))))) for _ in range(k)]
            r = rng.normal(size=6)
            orders = (products.in_turn, products.laziest, products.at_random(i.seed))
            lengths = (products.length(family, i.eta, r, order, 300) for order in orders)
            checks += labelled(regime, lengths)
    bins = [unit_run(i, 400) for i in trials.bank.few(("hard bins",))]
    halves = [Check(float(t.gaps[200:].sum()), 0.01 * float(t.gaps.sum())) for t in bins]
    return Tried(stated=[*checks, *labelled("hard bins, second half", halves)])
