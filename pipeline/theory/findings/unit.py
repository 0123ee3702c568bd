"""Theorem 4.1: no rescaling."""

from __future__ import annotations

import numpy as np

from pipeline.analysis.bounds import gap_bound
from pipeline.theory import checks as c
from pipeline.theory import counterexamples as counter
from pipeline.theory.findings.registry import Tried, finding
from pipeline.theory.instances import SMOOTH
from pipeline.theory.trials import Trials, unit_run

WHERE = "Theorem 4.1"


@finding("T1", where=WHERE, text="The loss rises by at most the oracle's error.")
def _(trials: Trials) -> Tried:
    return Tried(stated=[c.loss_is_almost_monotone(t) for t in trials.unit])


@finding(
    "T2",
    where=WHERE,
    text="The average squared gap is at most 4η(V(f₀) + ηΣε)/T.",
    remark="With an exact oracle Σ gap² = η/(1 − η/2)·(V(f₀) − V(f_T)) for every η in (0, 1]: "
    "at most a third of the bound at η = 1/2, and no condition on η (see T4).",
)
def _(trials: Trials) -> Tried:
    return Tried(stated=[c.average_gap(t) for t in trials.unit])


@finding("T3", where=WHERE, text="The smallest gap is at most √(4ηV(f₀)/T) + 2η√(mean ε).")
def _(trials: Trials) -> Tried:
    return Tried(stated=[c.smallest_gap(t) for t in trials.unit])


@finding("T4", where="ours", text="Exact oracle: Σ gap² = η/(1 − η/2)·(V(f₀) − V(f_T)), any η.")
def _(trials: Trials) -> Tried:
    return Tried(
        stated=[c.sum_of_gaps_is_known(t) for t in trials.unit_any_step]
        + [c.smallest_gap_sharp(t) for t in trials.unit_any_step]
    )


@finding(
    "T5",
    where="ours (left open by the paper)",
    text="1/√T is the right order: for every T there are n = T points and one hard learner whose "
    "gaps are all η‖y − f₀‖/√T.",
    limit=True,
    remark="On one instance Σ gap² is finite, so its smallest gap is o(1/√T).",
)
def _(_: Trials) -> Tried:
    dominoes = [(counter.domino(k, 0.5), k) for k in range(2, 42)]
    return Tried(
        stated=[
            c.Check(abs(t.gaps.min() * np.sqrt(k) / (0.5 * np.linalg.norm(t.r[0])) - 1), 1e-5)
            for t, k in dominoes
        ]
    )


@finding(
    "T6",
    where=WHERE,
    text="Under a constant error ε the smallest gap is at most c/√T + 2η√ε.",
)
def _(trials: Trials) -> Tried:
    runs = [unit_run(i, 150, noise=0.05) for i in trials.bank.few()]
    floors = [c.Check(float(t.gaps.min()), gap_bound(t.eta, t.loss[0], 150)) for t in runs]
    return Tried(
        stated=[c.smallest_gap(t) for t in runs],
        remark=f"Without the floor 2η√ε {sum(f.holds for f in floors)} of {len(floors)} would.",
    )


@finding(
    "T7",
    where=WHERE,
    text="If Σε_t is finite, the gap tends to 0 (below 1 % after 200 rounds).",
    limit=True,
)
def _(trials: Trials) -> Tried:
    runs = [unit_run(i, 200, noise=0.1, decay=3) for i in trials.bank.few(SMOOTH)]
    return Tried(stated=[c.Check(float(t.gaps[-1]), 0.01 * float(t.gaps[0])) for t in runs])


@finding(
    "T8",
    where=WHERE,
    text="The same for the log-loss, where η ≤ m/(2L) can be met: loss and gaps.",
)
def _(trials: Trials) -> Tried:
    return Tried(stated=[check for t in trials.log_loss for check in c.log_loss_bounds(t)])
