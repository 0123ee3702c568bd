"""The paper's bounds on prediction gaps as formulas of norms, and sharper ones."""

import numpy as np
from scipy.special import zeta


def gap_bound(eta: float, loss: float, n_rounds: int) -> float:
    """√(4ηV(f_0)/T): Theorem 4.1 for an exact oracle."""
    return float(np.sqrt(4 * eta * loss / n_rounds))


def sharp_gap_bound(eta: float, loss: float, n_rounds: int) -> float:
    """√(η/(1 − η/2) · V(f_0)/T): sharper, exact oracle, for every η in (0, 1]."""
    return float(np.sqrt(eta / (1 - eta / 2) * loss / n_rounds))


def relaxed_constants(norm_y: float, norm_r0: float, eta: float, c1: float, c2: float) -> float:
    """K of the appendix; c1 = Σ(1 − w_t), c2 = Σ(1 − w_t)²."""
    rho = max(2 * norm_y**2, (norm_y + norm_r0) * norm_r0)
    rho_tilde = norm_y + max(norm_r0, norm_y)
    steps = eta * norm_r0**2 + 2 * eta * rho * c1
    pull = rho_tilde**2 * c2
    return float(steps + 2 * np.sqrt(steps * pull) + pull)


def relaxed_bound(norm_y: float, norm_r0: float, eta: float, n_rounds: int) -> float:
    """Theorem 4.5's bound on the smallest gap for w_t = 1 − (t + 2)⁻³, all t ≥ 0 counted."""
    # Σ (t + 2)^(−s) over t ≥ 0, with a name: Hurwitz' ζ(s, 2) = ζ(s) − 1.
    k = relaxed_constants(norm_y, norm_r0, eta, float(zeta(3, 2)), float(zeta(6, 2)))
    gamma = np.sqrt(k - eta * norm_r0**2)
    return float((np.sqrt(eta) * norm_r0 + gamma) / np.sqrt(n_rounds))
