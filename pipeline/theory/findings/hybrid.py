"""The hybrid algorithm of the appendix."""

from __future__ import annotations

import numpy as np

from pipeline.theory import checks as c
from pipeline.theory.findings.registry import Tried, finding
from pipeline.theory.trials import Trials


@finding("H1", where="Lemma A.9", text="‖f* − f_{t+1}‖ ≤ κ‖f* − f_t‖ + η‖ξ_t‖.")
def _(trials: Trials) -> Tried:
    return Tried(stated=[h.preconditioned for h in trials.hybrid])


@finding(
    "H2",
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
        expansions += [c.Check(abs(rate - 1), 0.01), c.Check(abs(limit - 1), 0.01)]
    return Tried(stated=expansions)
