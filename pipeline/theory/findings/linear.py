"""Theorem 4.2 and its lemmas: the linear rate."""

from __future__ import annotations

from pipeline.theory import counterexamples as counter
from pipeline.theory.checks import Check
from pipeline.theory.checks import linear as c
from pipeline.theory.findings.registry import Tried, finding
from pipeline.theory.trials import Trials, near_target, unit_run

STARTS = (1.0, 1e-1, 1e-2, 1e-3)  # distances of the start from the targets


@finding(
    "L1",
    level="result",
    where="Theorem 4.2",
    text="gap_t ≤ κ gap_{t−1} with κ = 1 − η + η L_A‖y − f₀‖.",
    remark="L_A is measured along the trajectory. κ < 1 needs L_A‖y − f₀‖ < 1, a start close to "
    "the targets, and the factor tends to 1 − η as f₀ → y.",
)
def _(trials: Trials) -> Tried:
    checks = [
        c.linear_rate(unit_run(near_target(i, rho), half=False))
        for rho in STARTS
        for i in trials.smooth
    ]
    plain = checks[: len(trials.smooth)]
    return Tried(
        stated=checks,
        measured=f"Started at f₀ itself, κ < 1 on {sum(x.bound < 1 for x in plain)} of "
        f"{len(plain)}; "
        "the others are starts y − ρ(y − f₀) with ρ from 0.1 to 0.001.",
    )


@finding("L2", level="result", where="Lemmas 4.3, A.4", text="L_A ≤ (2/δ)(1 + cM²/δ²) L_B.")
def _(trials: Trials) -> Tried:
    return Tried(stated=[paper for paper, _ in trials.projector_differences])


@finding("L3", level="ours", where="ours (a known bound)", text="L_A ≤ L_B/δ.")
def _(trials: Trials) -> Tried:
    return Tried(stated=[sharp for _, sharp in trials.projector_differences])


@finding("L4", level="result", where="Lemma 4.4", text="L_B ≤ max‖h‖ √k L_G.")
def _(trials: Trials) -> Tried:
    return Tried(stated=[paper for paper, _ in trials.class_differences])


@finding("L5", level="ours", where="ours", text="L_B ≤ max‖h‖ sup‖g′‖.")
def _(trials: Trials) -> Tried:
    return Tried(stated=[sharp for _, sharp in trials.class_differences])


@finding(
    "L6",
    level="clause",
    where="Lemma 4.4",
    text="If every g is Lipschitz, so is the projector A(f).",
    correction="Title, constant and proof of the lemma concern B, for which it holds (L4); the "
    "word A is probably a slip. A is Lipschitz where the smallest singular value of B(f) stays "
    "away from 0, the condition of Lemma 4.3 (L2, L3).",
    remark="g(u) = u near f = 0: predictions 1e-8 apart have projectors at distance 1.",
)
def _(trials: Trials) -> Tried:
    apart = [counter.discontinuous_projector(10.0**-k) for k in range(2, 9)]
    return Tried(
        stated=[Check(difference, 10 * distance) for distance, difference in apart],
        narrower=[sharp for _, sharp in trials.projector_differences],
    )
