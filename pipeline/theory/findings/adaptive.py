"""Theorem 4.6, the eigenvalue lemma, and the quadratic rate: adaptive weights."""

from __future__ import annotations

import numpy as np

from pipeline.theory import checks as c
from pipeline.theory import counterexamples as counter
from pipeline.theory.findings.registry import Tried, finding
from pipeline.theory.learners import project
from pipeline.theory.trials import Trials

WHERE = "Theorem 4.6"


@finding("W1", where=WHERE, text="The loss does not increase.")
def _(trials: Trials) -> Tried:
    return Tried(stated=[c.loss_is_monotone(t) for t in trials.adaptive])


@finding(
    "W2",
    where=WHERE,
    text="ω_t ≥ 0 for every t.",
    correction="It holds from t = 1 on, which is what the proof shows.",
    remark="ω₀ = −1/3 for f₀ = −3y and learners that do not see y.",
)
def _(trials: Trials) -> Tried:
    return Tried(
        stated=[c.Check(-counter.negative_first_weight(), 0.0)],
        narrower=[c.weights_are_not_negative(t) for t in trials.adaptive],
    )


@finding(
    "W3",
    where=f"proof of {WHERE}",
    text="ω_t → 1 (after 1000 rounds, within 0.003).",
    limit=True,
    remark="The proof assumes that A(f) is continuous, which the theorem does not; W4 needs no "
    "such assumption.",
)
def _(trials: Trials) -> Tried:
    return Tried(stated=[c.Check(abs(t.w[-1] - 1), 3e-3) for t in trials.adaptive_long])


@finding(
    "W9",
    where=WHERE,
    text="The multicalibration error tends to 0 (‖A r_t‖ below 1 % after 1000 rounds).",
    limit=True,
)
def _(trials: Trials) -> Tried:
    return Tried(
        stated=[
            c.Check(float(t.projected[-1]), 0.01 * float(np.linalg.norm(t.r[0])))
            for t in trials.adaptive_long
        ]
    )


@finding("W4", where="ours", text="‖r_t‖² − ‖r_{t+1}‖² = η(2 − η)‖A r_t‖² + (ω_t − 1)²‖φ_t‖².")
def _(trials: Trials) -> Tried:
    return Tried(stated=[c.adaptive_identity(t) for t in trials.adaptive])


@finding(
    "W5",
    where="ours",
    text="The smallest gap is at most √2‖y − f₀‖/√T, and ‖A r_t‖ at most ‖y − f₀‖/√(η(2 − η)T).",
    remark="From W4: a rate that the paper does not give, and multicalibration without "
    "continuity of A(f).",
)
def _(trials: Trials) -> Tried:
    return Tried(
        stated=[c.smallest_gap_adaptive(t) for t in trials.adaptive]
        + [c.smallest_projection_adaptive(t) for t in trials.adaptive]
    )


@finding("W6", where="Lemma A.6", text="The eigenvalues of ηA + (I − ηA)vvᵀ.", limit=True)
def _(trials: Trials) -> Tried:
    spectra = []
    for i in trials.bank():
        v = i.generator().normal(size=len(i.y))
        A = project(i.learners(i.f0)).matrix()
        spectra.append(c.eigenvalues(A, v / np.linalg.norm(v), i.eta))
    return Tried(stated=spectra)


@finding(
    "W7",
    where="Lemma A.8",
    text="η = 1: r_{t+1} = yᵀA r_t/‖y − (I − A)r_t‖² · (I − A)r_t.",
    correction="With q = (I − A)r_t and φ = y − q, r_{t+1} = ((yᵀφ)q − (qᵀφ)y)/‖φ‖²; the "
    "proof takes an outer product for an inner one.",
)
def _(trials: Trials) -> Tried:
    residuals = [
        c.residual_lemma(i.y, i.f0, project(i.learners(i.f0)).matrix()) for i in trials.bank()
    ]
    return Tried(
        stated=[c.identity(actual, stated) for actual, stated, _ in residuals],
        corrected=[c.identity(actual, right) for actual, _, right in residuals],
    )


@finding(
    "W8",
    where="Theorem A.7",
    text="η = 1: ‖r_{t+1}‖ ≤ C‖r_t‖² once the residual is small.",
    correction="To first order r_{t+1} = (I − ŷŷᵀ)(I − A)r_t with ŷ = y/‖y‖: what is "
    "orthogonal to y and to all learners does not shrink at all. Only ‖r_{t+1}‖ ≤ ‖r_t‖ holds.",
    remark="A = e₁e₁ᵀ, y = (1, 1, 0), f₀ = y − εe₃: ‖r₁‖/‖r₀‖ → 1, while the lemma has r₁ = 0.",
)
def _(_: Trials) -> Tried:
    ratios = [(10.0**-k, *counter.not_quadratic(10.0**-k)) for k in range(2, 8)]
    return Tried(
        stated=[c.Check(actual, 10 * epsilon) for epsilon, actual, _ in ratios],
        corrected=[c.Check(actual, 1.0) for _, actual, _ in ratios],
    )
