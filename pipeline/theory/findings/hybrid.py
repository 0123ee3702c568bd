"""Lemma A.9, Proposition A.10: the hybrid algorithm of the appendix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pipeline.boosting.arrays import Floats
from pipeline.theory.checks import Check, identity, worst
from pipeline.theory.dynamics import HybridRun, run_hybrid
from pipeline.theory.trials import Trials
from pipeline.theory.verdicts import Tried, tries


def preconditioned_step(
    f: Floats, minimiser: Floats, P: Floats, Q: Floats, noise: Floats, share: float
) -> Check:
    """The preconditioned-gradient lemma for V(f) = ½(f − f*)ᵀQ(f − f*) and one step with P.

    The step size is a ``share`` in (0, 1) of the lemma's largest, 2mμ/(L²M²). Needs
    (f − f*)ᵀP∇V ≥ m (f − f*)ᵀ∇V, which the caller ensures (P and Q commute, say).
    """
    curvature, condition = np.linalg.eigvalsh(Q), np.linalg.eigvalsh(P)
    mu_, smooth, m, big = curvature[0], curvature[-1], condition[0], condition[-1]
    eta = share * 2 * m * mu_ / (smooth * big) ** 2
    after = f - eta * (P @ Q @ (f - minimiser) + noise)
    kappa2 = 1 - 2 * mu_ * m * eta + smooth**2 * big**2 * eta**2
    bound = np.sqrt(kappa2) * np.linalg.norm(f - minimiser) + eta * np.linalg.norm(noise)
    return Check(float(np.linalg.norm(after - minimiser)), float(bound))


@tries("H1")
def _(trials: Trials) -> Tried:
    checks = [
        preconditioned_step(h.instance.f0, h.instance.y, h.P, h.Q, h.noise, h.share)
        for h in trials.hybrid
    ]
    return Tried(stated=checks)


def hybrid_kappa(eta: float, gamma: float) -> float:
    """κ of the hybrid proposition, for η < 2γ/(1 + γ)²."""
    return float(np.sqrt(1 - 2 * gamma * eta * (1 - (1 + gamma) ** 2 / (2 * gamma) * eta)))


def hybrid_kappa_sharp(eta: float, gamma: float) -> float:
    """Ours: max(1 − ηγ, |1 − η(1 + γ)|), for η < 2/(1 + γ)."""
    return max(1 - eta * gamma, abs(1 - eta * (1 + gamma)))


def hybrid_rate(h: HybridRun, kappa: Callable[[float, float], float] = hybrid_kappa) -> Check:
    """‖y − f_{t+1}‖ ≤ κ‖y − f_t‖ + ηγ‖y − ŷ‖, κ a function of η and γ; the worst round."""
    r = np.linalg.norm(h.y - h.f, axis=1)
    floor = h.eta * h.gamma * np.linalg.norm(h.y - h.strong)
    return worst(r[1:], kappa(h.eta, h.gamma) * r[:-1] + floor)


def hybrid_distance(h: HybridRun) -> Check:
    """‖y − f_T‖ ≤ κ^T‖y − f_0‖ + ηγ/(1 − κ)‖y − ŷ‖."""
    kappa = hybrid_kappa(h.eta, h.gamma)
    start, end = (float(np.linalg.norm(h.y - f)) for f in (h.f[0], h.f[-1]))
    floor = h.eta * h.gamma / (1 - kappa) * np.linalg.norm(h.y - h.strong)
    return Check(end, float(kappa ** len(h.B) * start + floor))


@tries("H2")
def _(trials: Trials) -> Tried:
    checks = (hybrid_rate, hybrid_distance)
    return Tried(stated=[check(h.run) for check in checks for h in trials.hybrid])


def hybrid_error(h: HybridRun) -> tuple[Check, Check]:
    """Ê(f_0) = (γBᵀ(y − ŷ) + BᵀΔ/η)/n as printed, and with the missing factor 1/(1 + γ)."""
    n, B = len(h.y), h.B[0]
    left = B.T @ (h.y - h.f[0]) / n
    right = (h.gamma * B.T @ (h.y - h.strong) + B.T @ (h.f[1] - h.f[0]) / h.eta) / n
    return identity(left, right), identity(left, right / (1 + h.gamma))


@tries("H3")
def _(trials: Trials) -> Tried:
    pairs = [hybrid_error(h.run) for h in trials.hybrid]
    return Tried(stated=[printed for printed, _ in pairs], corrected=[right for _, right in pairs])


@tries("H4")
def _(_: Trials) -> Tried:
    expansions = []
    for share in np.linspace(0.05, 0.95, 19):
        gamma = 1e-3
        kappa = hybrid_kappa(share * gamma, gamma)
        rate = (1 - kappa) / (share * (1 - share / 2) * gamma**2)
        limit = share * gamma**2 / (1 - kappa) * (2 - share) / 2
        expansions += [Check(abs(rate - 1), 0.01), Check(abs(limit - 1), 0.01)]
    return Tried(stated=expansions)


@tries("H5")
def _(trials: Trials) -> Tried:
    checks = []
    for h in trials.hybrid:
        i, gamma = h.instance, h.run.gamma
        eta = float(i.generator().uniform(0.02, 0.98)) * 2 / (1 + gamma)
        longer = run_hybrid(i.y, i.f0, i.learners, h.run.strong, eta, gamma, 10)
        check = hybrid_rate(longer, hybrid_kappa_sharp)
        regime = "within A.10's range" if eta < 2 * gamma / (1 + gamma) ** 2 else "beyond it"
        checks.append(Check(check.measured, check.bound, regime))
    return Tried(stated=checks)
