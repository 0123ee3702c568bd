"""Theorem 4.5: relaxed weights."""

from __future__ import annotations

import numpy as np

from pipeline.analysis.bounds import gap_bound
from pipeline.boosting.rescaling import Relaxed
from pipeline.theory import checks as c
from pipeline.theory.dynamics import run
from pipeline.theory.findings.registry import Tried, finding
from pipeline.theory.trials import Trials

PROOF = "proof of Theorem 4.5"


@finding("R1", where="Lemma A.5", text="The identity for ‖r_t‖² − ‖r_{t+1}‖².")
def _(trials: Trials) -> Tried:
    return Tried(stated=[c.residual_identity(t) for t in trials.relaxed])


@finding("R2", where="after Theorem 4.5", text="‖y − f_t‖ ≤ ρ_t‖y − f₀‖ + (1 − ρ_t)‖y‖.")
def _(trials: Trials) -> Tried:
    return Tried(stated=[c.residual_stays_between(t) for t in trials.relaxed])


@finding("R3", where=PROOF, text="The Lyapunov function falls as stated and is never negative.")
def _(trials: Trials) -> Tried:
    return Tried(stated=[check for t in trials.relaxed for check in c.lyapunov(t)])


@finding("R4", where="Theorem 4.5", text="The smallest gap is ≤ √(K/T) ≤ (√η‖y − f₀‖ + γ)/√T.")
def _(trials: Trials) -> Tried:
    return Tried(stated=[c.smallest_gap_relaxed(t) for t in trials.relaxed])


@finding(
    "R5",
    where="Section 5",
    text="Under relaxed weights the training loss does not increase.",
    correction="The text after Theorem 4.5 says that this is not guaranteed; Section 5 cites "
    "the theorem for it. R2 is what holds.",
    remark="Started at f₀ = y, the first weight 7/8 raises the loss; claim 3 of the "
    "experiments shows it on real data.",
)
def _(trials: Trials) -> Tried:
    at_optimum = [run(i.y, i.y, i.learners, i.eta, 5, Relaxed()) for i in trials.bank()]
    return Tried(
        stated=[c.Check(float(np.diff(t.loss).max()), 0.0) for t in at_optimum],
        corrected=[c.residual_stays_between(t) for t in trials.relaxed],
    )


@finding(
    "R6",
    where=PROOF,
    text="Ê(f_t) = ((1 − w_t)Bᵀf_t + BᵀΔ_t)/(ηw_t n), which tends to 0 with the gap.",
)
def _(trials: Trials) -> Tried:
    return Tried(stated=[c.relaxed_error(t) for t in trials.relaxed])


@finding(
    "R7",
    where="after Theorem 4.5",
    text="For w ≡ 1, γ = 0 and the bound is that of Theorem 4.1.",
    correction="It is smaller, by √2: the proof of Theorem 4.5 is the sharper one there.",
)
def _(trials: Trials) -> Tried:
    starts = [(i.eta, float(np.linalg.norm(i.y - i.f0))) for i in trials.bank()]
    ratios = [np.sqrt(eta) * r / gap_bound(eta, r**2 / 2, 1) for eta, r in starts]
    return Tried(
        stated=[c.identity(ratio, 1.0) for ratio in ratios],
        corrected=[c.identity(ratio, np.sqrt(0.5)) for ratio in ratios],
    )
