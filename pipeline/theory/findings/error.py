"""The multicalibration error by the gap."""

from __future__ import annotations

import pandas as pd

from pipeline.theory import checks as c
from pipeline.theory.dynamics import run
from pipeline.theory.findings.registry import Tried, finding
from pipeline.theory.trials import Trials


@finding(
    "M1",
    where="Eq. (6), Lemma A.1",
    text="‖Ê(f_t)‖ ≤ (‖B‖/n)(gap/η + √(2ε_t)) for Unit.",
)
def _(trials: Trials) -> Tried:
    return Tried(stated=[c.error_by_gap(t) for t in trials.unit_any_oracle])


@finding(
    "M2",
    where="proof of Lemma A.1",
    text="‖Bᵀ(y − f_{t+1})‖ ≤ ‖B‖√(2ε_t) for every η.",
    correction="It is Bᵀ(y − f_t − h_t) that is small, which is y − f_{t+1} for η = 1 only; "
    "the bound M1 follows from Bᵀr_t = Bᵀh_t + Bᵀ(r_t − h_t).",
)
def _(trials: Trials) -> Tried:
    return Tried(
        stated=[c.step_in_its_proof(t) for t in trials.unit_any_oracle if t.eta < 1],
        narrower=[
            c.step_in_its_proof(run(i.y, i.f0, i.learners, 1.0, 1, error=lambda _: 0.01))
            for i in trials.bank()
        ],
    )


@finding("M3", where="Lemma A.2", text="Log-loss: α ≤ (2/√(1 − L)) C_T √(loss decrease).")
def _(trials: Trials) -> Tried:
    return Tried(stated=[c.alpha_by_descent(s.y, s.f, s.groups, s.h) for s in trials.log_steps])


@finding(
    "M4",
    where="Proposition A.3",
    text="Log-loss: α ≤ (2/√(1 − L)) C_T √(φ_T + ε_T).",
    remark="ε_T, by its definition there, includes what a step size below 1 leaves undone, so "
    "it does not vanish with the round's number of trees as the text after it suggests: with "
    "an exact oracle and (A3)'s ε = 0 the right-hand side would tend to 0 with η.",
)
def _(trials: Trials) -> Tried:
    return Tried(stated=[c.alpha_by_gap(s.y, s.f, s.groups, s.h, s.eta) for s in trials.log_steps])


@finding(
    "M5",
    where="proof of Proposition A.3",
    text="The loss decrease of a step is at most φ_T.",
    correction="It is for η = 1 and an exact oracle. In general the first-order term exceeds "
    "the decrease, by convexity, and not the other way round; the proposition's constant has "
    "room enough (M4).",
)
def _(trials: Trials) -> Tried:
    return Tried(
        stated=[c.decrease_by_gap(s.y, s.f, s.h, 0.1 * s.eta) for s in trials.log_steps],
        narrower=[c.decrease_by_gap(s.y, s.f, s.h, 1.0) for s in trials.log_steps],
    )


def gbdt_rounds_obey_the_bound(trials: Trials) -> Tried | None:
    """G1, which comes last: see `pipeline.theory.findings`."""
    measured = trials.gbdt
    if measured is None:
        return None
    bound = measured["gap"] + measured["epsilon_high"]
    return Tried(
        stated=[c.Check(mce, b) for mce, b in zip(measured["mce"], bound, strict=True)],
        remark="Unit, seed 0, leaves of one tree, ε_t bracketed. The round from which √(2ε_t) is "
        f"larger than gap/η: {', '.join(_dominated_since(measured))}.",
    )


def _dominated_since(measured: pd.DataFrame) -> list[str]:
    dominated = measured["epsilon_low"] > measured["gap"]
    since = measured[~dominated].groupby("dataset")["round"].max() + 1
    last = measured["round"].max()
    return [
        f"{name} {since.get(name, 0) if since.get(name, 0) <= last else 'none'}"
        for name in measured["dataset"].unique()
    ]
