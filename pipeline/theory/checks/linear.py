"""Theorem 4.2 and its lemmas: the linear rate."""

from __future__ import annotations

import numpy as np

from pipeline.boosting.arrays import Flags, Floats
from pipeline.theory.checks.check import Check
from pipeline.theory.dynamics import Trajectory
from pipeline.theory.learners import Factorised, project

GOLDEN = (1 + np.sqrt(5)) / 2


def lipschitz_along(t: Trajectory) -> float:
    """L_A measured on consecutive points of a trajectory."""
    ratios = [
        np.linalg.norm(t.A[k].matrix() - t.A[k - 1].matrix(), 2) / t.gaps[k - 1]
        for k in range(1, t.n_rounds)
        if _moves(t)[k - 1]
    ]
    return float(max(ratios, default=0.0))


def linear_rate(t: Trajectory) -> Check:
    """‖Δ_t‖ ≤ κ‖Δ_{t−1}‖ with κ = 1 − η + η L_A ‖y − f_0‖, L_A measured along the trajectory.

    Of the regime κ < 1, in which the theorem promises a rate, or κ ≥ 1, in which it does not.
    """
    kappa = 1 - t.eta + t.eta * lipschitz_along(t) * np.linalg.norm(t.r[0])
    moving = _moves(t)[:-1]
    factor = (t.gaps[1:][moving] / t.gaps[:-1][moving]).max(initial=0.0)
    return Check(float(factor), float(kappa), "κ < 1" if kappa < 1 else "κ ≥ 1")


def _moves(t: Trajectory) -> Flags:
    """Rounds whose gap is more than the rounding of predictions, so that ratios mean something."""
    return t.gaps > 1e-8 * np.linalg.norm(t.y)


def projector_difference(Bu: Floats, Bv: Floats) -> tuple[Check, Check]:
    """‖A_u − A_v‖ by ‖B_u − B_v‖: the paper's bound, and the sharper one ‖B_u − B_v‖/δ.

    δ is the smaller of the two smallest singular values that are not zero.
    """
    u, v = project(Bu), project(Bv)
    measured = float(np.linalg.norm(u.matrix() - v.matrix(), 2))
    distance = float(np.linalg.norm(Bu - Bv, 2))
    delta, largest = min(u.smallest, v.smallest), max(u.largest, v.largest)
    paper = 2 / delta * (1 + GOLDEN * largest**2 / delta**2) * distance
    return Check(measured, paper), Check(measured, distance / delta)


def class_difference(learners: Factorised, f: Floats, other: Floats) -> tuple[Check, Check]:
    """‖B(f) − B(f')‖ / ‖f − f'‖: the paper's max‖h‖ √k L_G, and the sharper max‖h‖ sup‖g'‖."""
    measured = float(np.linalg.norm(learners(f) - learners(other), 2))
    distance = float(np.linalg.norm(f - other))
    paper = learners.largest_h * np.sqrt(learners.k) * learners.lipschitz * distance
    return Check(measured, float(paper)), Check(
        measured, learners.largest_h * learners.slope * distance
    )
