"""Theorem 4.6, the eigenvalue lemma, and the quadratic rate: adaptive weights."""

from __future__ import annotations

import numpy as np

from pipeline.theory import counterexamples as counter
from pipeline.theory.checks import Check, identity, labelled
from pipeline.theory.checks import adaptive as c
from pipeline.theory.checks.unit import smallest_projection
from pipeline.theory.findings.registry import Tried, finding
from pipeline.theory.findings.unit import by_regime
from pipeline.theory.instances import SMOOTH
from pipeline.theory.learners import project
from pipeline.theory.trials import LONG, Trials

WHERE = "Theorem 4.6"
EPSILONS = [10.0**-k for k in range(1, 8)]


@finding("W1", level="result", where=f"{WHERE}(1)", text="The loss does not increase.")
def _(trials: Trials) -> Tried:
    return Tried(stated=[c.loss_is_monotone(t) for t in trials.adaptive])


@finding(
    "W2",
    level="clause",
    where=f"{WHERE}(3)",
    text="ω_t ≥ 0 for every t.",
    correction="For t ≥ 1, which is what the proof shows.",
    remark="One point, b = 1, y = 1, f₀ = −3, η = ½: ω₀ = −1. The others are f₀ = −3y, a little "
    "disturbed, with smooth classes that see predictions of that size and η ≤ ½.",
)
def _(trials: Trials) -> Tried:
    instances = list(trials.bank.random(SMOOTH, trials.bank.n))
    first = [(i.kind, counter.negative_first_weight(i)) for i in instances]
    return Tried(
        stated=[
            *labelled("one point", [Check(-counter.negative_weight_of_one_point(), 0.0)]),
            *(x for kind, w in first for x in labelled(kind, [Check(-w, 0.0)])),
        ],
        narrower=[c.weights_are_not_negative(t) for t in trials.adaptive],
    )


@finding(
    "W9",
    level="result",
    where=f"{WHERE}(2)",
    text=f"The multicalibration error tends to 0 (‖Ê‖ below 1 % of the first after {LONG} rounds).",
    limit=True,
    remark="Needs sup‖B(f_t)‖ < ∞.",
)
def _(trials: Trials) -> Tried:
    return Tried(
        stated=by_regime(
            trials.adaptive_long, lambda t: Check(float(t.errors[-1]), 0.01 * float(t.errors[0]))
        )
    )


@finding(
    "W3",
    level="proof",
    where=f"proof of {WHERE}(2)",
    text=f"ω_t → 1 (after {LONG} rounds, within 0.003).",
    limit=True,
    remark="The proof assumes that A(f) is continuous, which the theorem does not, and that φ has "
    "the same limit along a subsequence and along its successors; W4 shows it without either.",
)
def _(trials: Trials) -> Tried:
    return Tried(
        stated=by_regime(trials.adaptive_long, lambda t: Check(abs(float(t.w[-1]) - 1), 3e-3))
    )


@finding(
    "W10",
    level="proof",
    where=f"proof of {WHERE}(2)",
    text="If φ(f_t) = 0, then A(f_t)(y − f_t) = 0.",
    correction="For t ≥ 1, where f_t ⟂ y − f_t and so η‖A r_t‖² = φ_tᵀr_t. At t = 0 it is false, "
    "and ω₀ undefined.",
    remark="One point, b = 1, y = 1, f₀ = −1, η = ½: φ₀ = 0 and A r₀ = 2.",
)
def _(trials: Trials) -> Tried:
    phi, projected = counter.vanishing_update()
    return Tried(
        stated=[Check(projected, phi)],
        narrower=[c.projection_by_update(t) for t in trials.adaptive],
    )


@finding(
    "W4",
    level="ours",
    where="ours",
    text="‖r_t‖² − ‖r_{t+1}‖² = η(2 − η)‖A r_t‖² + (ω_t − 1)²‖φ_t‖².",
)
def _(trials: Trials) -> Tried:
    return Tried(stated=[c.adaptive_identity(t) for t in trials.adaptive])


@finding(
    "W5",
    level="ours",
    where="ours",
    text="The smallest gap is at most √(2/(2 − η))‖y − f₀‖/√T, and the smallest ‖A r_t‖ at most "
    "‖y − f₀‖/√(η(2 − η)T); with sup‖B‖ < ∞ the same order for ‖Ê‖, A continuous or not.",
)
def _(trials: Trials) -> Tried:
    return Tried(
        stated=[
            *labelled("smallest gap", map(c.smallest_gap_adaptive, trials.adaptive)),
            *labelled("smallest ‖A r‖", map(smallest_projection, trials.adaptive)),
        ]
    )


@finding(
    "W6",
    level="result",
    where="Lemma A.6",
    text="The eigenvalues of ηA + (I − ηA)vvᵀ.",
    limit=True,
)
def _(trials: Trials) -> Tried:
    spectra = []
    for i in trials.bank():
        v = i.generator().normal(size=len(i.y))
        A = project(i.learners(i.f0)).matrix()
        spectra.append(c.eigenvalues(A, v / np.linalg.norm(v), i.eta))
    return Tried(stated=spectra)


@finding(
    "W7",
    level="result",
    where="Lemma A.8",
    text="η = 1: r_{t+1} = yᵀA r_t/‖y − (I − A)r_t‖² · (I − A)r_t.",
    correction="r_{t+1} = (I − φφᵀ/‖φ‖²)(I − ηA)r_t, for every η (W11). The proof takes the outer "
    "product yfᵀ for the inner one.",
)
def _(trials: Trials) -> Tried:
    steps = [c.next_residual(i.y, i.f0, project(i.learners(i.f0)).matrix()) for i in trials.bank()]
    return Tried(
        stated=[identity(s.actual, s.stated) for s in steps],
        corrected=[identity(s.actual, s.true) for s in steps],
    )


@finding(
    "W8",
    level="result",
    where="Theorem A.7",
    text="η = 1: ‖r_{t+1}‖ ≤ C‖r_t‖² once the residual is small.",
    correction="For A Lipschitz near y if and only if range(I − A(y)) ⊆ span(y), which takes at "
    "least n − 1 independent learners (W11). Otherwise only ‖r_{t+1}‖ ≤ ‖r_t‖ holds.",
    remark="Smallest example: A = e₁e₁ᵀ, y = (1, 1, 0), f₀ = y − εe₃, ‖r₁‖/‖r₀‖ → 1, where the "
    "lemma has r₁ = 0.",
)
def _(trials: Trials) -> Tried:
    fixed = [Check(counter.not_quadratic(e)[0], 10 * e) for e in EPSILONS]
    smooth = [
        (e, counter.not_quadratic_smooth(i, e)) for i in trials.bank.few(("rbf",)) for e in EPSILONS
    ]
    rest = [ratio for _, ratio in smooth]
    return Tried(
        stated=[
            *labelled("A fixed", fixed),
            *labelled("radial functions of f", (Check(ratio, 10 * e) for e, ratio in smooth)),
        ],
        corrected=[Check(ratio, 1.0) for ratio in rest],
        measured="With radial functions of f, which do depend on f, ‖r₁‖/‖r₀‖ lies between "
        f"{min(rest):.2f} and {max(rest):.2f} for ε from 0.1 to 1e-7.",
    )


@finding(
    "W11",
    level="ours",
    where="ours",
    text="r_{t+1} = (I − φφᵀ/‖φ‖²)(I − ηA)r_t. For η = 1 and A Lipschitz near y the rate is "
    "quadratic if and only if range(I − A(y)) ⊆ span(y); if that range has a vector orthogonal to "
    "y, the factor is 1 to first order.",
)
def _(trials: Trials) -> Tried:
    steps = [
        c.next_residual(i.y, i.f0, project(i.learners(i.f0)).matrix(), i.eta) for i in trials.bank()
    ]
    constants = [[counter.quadratic(e, seed) for e in EPSILONS[1:6]] for seed in range(10)]
    return Tried(
        stated=[
            *labelled("identity", (identity(s.actual, s.true) for s in steps)),
            # ‖r₁‖/‖r₀‖² stays bounded as ‖r₀‖ → 0.
            *labelled("quadratic", (Check(max(k), 3 * k[0]) for k in constants)),
        ]
    )
