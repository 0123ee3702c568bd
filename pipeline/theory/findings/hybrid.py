"""Lemma A.9, Proposition A.10: the hybrid algorithm of the appendix."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pipeline.boosting.arrays import Floats
from pipeline.theory.checks import Check, identity, norm, worst
from pipeline.theory.dynamics import HybridRun, run_hybrid
from pipeline.theory.trials import HybridTrial, Trials
from pipeline.theory.verdicts import Tried, tries, tries_on


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
    bound = np.sqrt(kappa2) * norm(f - minimiser) + eta * norm(noise)
    return Check(norm(after - minimiser), bound)


@tries_on("H1", lambda trials: trials.hybrid)
def _(h: HybridTrial) -> Check:
    return preconditioned_step(h.instance.f0, h.instance.y, *h.lemma)


def hybrid_kappa(eta: float, gamma: float) -> float:
    """κ of the hybrid proposition, for η < 2γ/(1 + γ)²."""
    return float(np.sqrt(1 - 2 * gamma * eta * (1 - (1 + gamma) ** 2 / (2 * gamma) * eta)))


def hybrid_kappa_sharp(eta: float, gamma: float) -> float:
    """Ours: max(1 − ηγ, |1 − η(1 + γ)|), for η < 2/(1 + γ)."""
    return max(1 - eta * gamma, abs(1 - eta * (1 + gamma)))


def hybrid_rate(h: HybridRun, kappa: Callable[[float, float], float] = hybrid_kappa) -> Check:
    """‖y − f_{t+1}‖ ≤ κ‖y − f_t‖ + ηγ‖y − ŷ‖, κ a function of η and γ; the worst round."""
    r = np.linalg.norm(h.r, axis=1)
    return worst(r[1:], kappa(h.eta, h.gamma) * r[:-1] + h.eta * h.gamma * norm(h.y - h.strong))


def hybrid_distance(h: HybridRun) -> Check:
    """‖y − f_T‖ ≤ κ^T‖y − f_0‖ + ηγ/(1 − κ)‖y − ŷ‖."""
    kappa = hybrid_kappa(h.eta, h.gamma)
    floor = h.eta * h.gamma / (1 - kappa) * norm(h.y - h.strong)
    return Check(norm(h.r[-1]), kappa**h.n_rounds * norm(h.r[0]) + floor)


@tries_on("H2", lambda trials: trials.hybrid)
def _(h: HybridTrial) -> tuple[Check, Check]:
    return hybrid_rate(h.run), hybrid_distance(h.run)


def hybrid_error(h: HybridRun) -> tuple[Check, Check]:
    """Ê(f_0) = (γBᵀ(y − ŷ) + BᵀΔ/η)/n as printed, and with the missing factor 1/(1 + γ)."""
    n, B = len(h.y), h.B[0]
    left = B.T @ h.r[0] / n
    right = (h.gamma * B.T @ (h.y - h.strong) + B.T @ (h.f[1] - h.f[0]) / h.eta) / n
    return identity(left, right), identity(left, right / (1 + h.gamma))


tries_on("H3", lambda trials: (h.run for h in trials.hybrid), corrected=True)(hybrid_error)


@tries("H4")
def _(_: Trials) -> Tried:
    gamma, shares = 1e-3, np.linspace(0.05, 0.95, 19)
    falls = 1 - np.array([hybrid_kappa(share * gamma, gamma) for share in shares])
    rates = falls / (shares * (1 - shares / 2) * gamma**2)
    limits = shares * gamma**2 / falls * (2 - shares) / 2
    return Tried(stated=[Check(abs(ratio - 1), 0.01) for ratio in (*rates, *limits)])


@tries_on("H5", lambda trials: trials.hybrid)
def _(h: HybridTrial) -> Check:
    i, gamma = h.instance, h.run.gamma
    eta = float(i.generator().uniform(0.02, 0.98)) * 2 / (1 + gamma)
    longer = run_hybrid(i.y, i.f0, i.learners, h.run.strong, eta, gamma, 10)
    within = eta < 2 * gamma / (1 + gamma) ** 2
    check = hybrid_rate(longer, hybrid_kappa_sharp)
    return replace(check, regime="within A.10's range" if within else "beyond it")
