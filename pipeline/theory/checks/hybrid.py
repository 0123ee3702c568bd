"""The hybrid algorithm of the appendix."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pipeline.boosting.arrays import Floats
from pipeline.theory.checks.check import Check, identity

Kappa = Callable[[float, float], float]  # of η and γ


def hybrid_kappa(eta: float, gamma: float) -> float:
    """κ of the hybrid proposition, for η < 2γ/(1 + γ)²."""
    return float(np.sqrt(1 - 2 * gamma * eta * (1 - (1 + gamma) ** 2 / (2 * gamma) * eta)))


def hybrid_kappa_sharp(eta: float, gamma: float) -> float:
    """Ours: max(1 − ηγ, |1 − η(1 + γ)|), for η < 2/(1 + γ)."""
    return max(1 - eta * gamma, abs(1 - eta * (1 + gamma)))


def hybrid_rate(
    y: Floats, f: Floats, strong: Floats, eta: float, gamma: float, kappa: Kappa = hybrid_kappa
) -> Check:
    """‖y − f_{t+1}‖ ≤ κ‖y − f_t‖ + ηγ‖y − ŷ‖; f (T + 1, n). The round that uses most of it."""
    r = np.linalg.norm(y - f, axis=1)
    bound = kappa(eta, gamma) * r[:-1] + eta * gamma * np.linalg.norm(y - strong)
    k = int((r[1:] / bound).argmax())
    return Check(float(r[1:][k]), float(bound[k]))


def hybrid_distance(y: Floats, f: Floats, strong: Floats, eta: float, gamma: float) -> Check:
    """‖y − f_T‖ ≤ κ^T‖y − f_0‖ + ηγ/(1 − κ)‖y − ŷ‖; f (T + 1, n)."""
    kappa = hybrid_kappa(eta, gamma)
    start, end = (float(np.linalg.norm(y - g)) for g in (f[0], f[-1]))
    bound = kappa ** (len(f) - 1) * start + eta * gamma / (1 - kappa) * np.linalg.norm(y - strong)
    return Check(end, float(bound))


def hybrid_error(
    y: Floats, f: Floats, B: Sequence[Floats], strong: Floats, eta: float, gamma: float
) -> tuple[Check, Check]:
    """Ê(f_0) = (γBᵀ(y − ŷ) + BᵀΔ/η)/n as printed, and with the missing factor 1/(1 + γ)."""
    n = len(y)
    left = B[0].T @ (y - f[0]) / n
    right = (gamma * B[0].T @ (y - strong) + B[0].T @ (f[1] - f[0]) / eta) / n
    return identity(left, right), identity(left, right / (1 + gamma))


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
