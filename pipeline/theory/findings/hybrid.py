"""The hybrid algorithm of the appendix."""

from __future__ import annotations

import numpy as np

from pipeline.theory.checks import Check
from pipeline.theory.checks import hybrid as c
from pipeline.theory.dynamics import run_hybrid
from pipeline.theory.findings.registry import Tried, finding
from pipeline.theory.trials import Trials


@finding("H1", level="result", where="Lemma A.9", text="‖f* − f_{t+1}‖ ≤ κ‖f* − f_t‖ + η‖ξ_t‖.")
def _(trials: Trials) -> Tried:
    return Tried(stated=[h.preconditioned for h in trials.hybrid])


@finding(
    "H2",
    level="result",
    where="Proposition A.10",
    text="‖y − f_{t+1}‖ ≤ κ‖y − f_t‖ + ηγ‖y − ŷ‖, and ‖y − f_t‖ ≤ κᵗ‖y − f₀‖ + ηγ/(1 − κ)‖y − ŷ‖.",
)
def _(trials: Trials) -> Tried:
    return Tried(
        stated=[
            check(h.instance.y, h.f, h.strong, h.eta, h.gamma)
            for check in (c.hybrid_rate, c.hybrid_distance)
            for h in trials.hybrid
        ]
    )


@finding(
    "H3",
    level="display",
    where="Appendix A.10",
    text="Ê(f_t) = γBᵀ(y − ŷ)/n + BᵀΔ_t/(ηn).",
    correction="The right-hand side needs a factor 1/(1 + γ).",
)
def _(trials: Trials) -> Tried:
    pairs = [
        c.hybrid_error(h.instance.y, h.f, h.B, h.strong, h.eta, h.gamma) for h in trials.hybrid
    ]
    return Tried(stated=[printed for printed, _ in pairs], corrected=[right for _, right in pairs])


@finding(
    "H4",
    level="text",
    where="Appendix A.10",
    text="For η = cγ: κ ≈ 1 − c(1 − c/2)γ² and ηγ/(1 − κ) ≈ 2/(2 − c).",
    limit=True,
)
def _(_: Trials) -> Tried:
    expansions = []
    for share in np.linspace(0.05, 0.95, 19):
        gamma = 1e-3
        kappa = c.hybrid_kappa(share * gamma, gamma)
        rate = (1 - kappa) / (share * (1 - share / 2) * gamma**2)
        limit = share * gamma**2 / (1 - kappa) * (2 - share) / 2
        expansions += [Check(abs(rate - 1), 0.01), Check(abs(limit - 1), 0.01)]
    return Tried(stated=expansions)


@finding(
    "H5",
    level="ours",
    where="ours",
    text="κ = max(1 − ηγ, |1 − η(1 + γ)|) for every η < 2/(1 + γ): 1 − κ is of order γ at a fixed "
    "η, where Proposition A.10 has γ² with η = cγ; and ‖y − f_t‖ tends to at most ‖y − ŷ‖ for "
    "η ≤ 2/(1 + 2γ).",
)
def _(trials: Trials) -> Tried:
    checks = []
    for h in trials.hybrid:
        i, rng = h.instance, h.instance.generator()
        eta = float(rng.uniform(0.02, 0.98)) * 2 / (1 + h.gamma)
        f, _ = run_hybrid(i.y, i.f0, i.learners, h.strong, eta, h.gamma, 10)
        regime = "within A.10's range" if eta < 2 * h.gamma / (1 + h.gamma) ** 2 else "beyond it"
        check = c.hybrid_rate(i.y, f, h.strong, eta, h.gamma, c.hybrid_kappa_sharp)
        checks.append(Check(check.measured, check.bound, regime))
    return Tried(stated=checks)
