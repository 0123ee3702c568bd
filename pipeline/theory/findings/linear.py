"""Theorem 4.2 and its lemmas: the linear rate."""

from __future__ import annotations

from pipeline.theory import checks as c
from pipeline.theory import counterexamples as counter
from pipeline.theory.findings.registry import Tried, finding
from pipeline.theory.trials import Trials, unit_run


@finding(
    "L1",
    where="Theorem 4.2",
    text="gap_t ≤ κ gap_{t−1} with κ = 1 − η + η L_A‖y − f₀‖.",
    remark="L_A is measured along the trajectory. κ < 1 needs L_A‖y − f₀‖ < 1, a start close "
    "to the targets; the factor tends to 1 − η as f₀ → y.",
)
def _(trials: Trials) -> Tried:
    return Tried(stated=[c.linear_rate(unit_run(i, half=False)) for i in trials.smooth])


@finding("L2", where="Lemmas 4.3, A.4", text="L_A ≤ (2/δ)(1 + cM²/δ²) L_B.")
def _(trials: Trials) -> Tried:
    return Tried(stated=[paper for paper, _ in trials.projector_differences])


@finding("L3", where="ours (a known bound)", text="L_A ≤ L_B/δ.")
def _(trials: Trials) -> Tried:
    return Tried(stated=[sharp for _, sharp in trials.projector_differences])


@finding("L4", where="Lemma 4.4", text="L_B ≤ max‖h‖ √k L_G.")
def _(trials: Trials) -> Tried:
    return Tried(stated=[paper for paper, _ in trials.class_differences])


@finding("L5", where="ours", text="L_B ≤ max‖h‖ sup‖g′‖.")
def _(trials: Trials) -> Tried:
    return Tried(stated=[sharp for _, sharp in trials.class_differences])


@finding(
    "L6",
    where="Lemma 4.4",
    text="If every g is Lipschitz, so is the projector A(f).",
    correction="It is where the smallest singular value δ of B(f) stays away from 0, the "
    "condition of Lemma 4.3 (L2, L3). L_B needs no such condition (L4).",
    remark="g(u) = u near f = 0: predictions 1e-8 apart have projectors at distance 1.",
)
def _(trials: Trials) -> Tried:
    apart = [counter.discontinuous_projector(10.0**-k) for k in range(2, 9)]
    return Tried(
        stated=[c.Check(difference, 10 * distance) for distance, difference in apart],
        narrower=[sharp for _, sharp in trials.projector_differences],
    )
