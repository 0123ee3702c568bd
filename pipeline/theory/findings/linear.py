"""Theorem 4.2, Lemmas 4.3 and 4.4: the linear rate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeline.boosting.arrays import Flags, Floats
from pipeline.theory.checks import Check
from pipeline.theory.dynamics import Trajectory
from pipeline.theory.learners import Factorised, product, project
from pipeline.theory.trials import Trials, unit_run
from pipeline.theory.verdicts import Tried, tries

STARTS = (1.0, 1e-1, 1e-2, 1e-3)  # ρ of the starts y − ρ(y − f_0)
GOLDEN = (1 + np.sqrt(5)) / 2
EPSILONS = [10.0**-k for k in range(2, 9)]  # distances, for L6


def linear_rate(t: Trajectory) -> Check:
    """‖Δ_t‖ ≤ κ‖Δ_{t−1}‖ with κ = 1 − η + η L_A ‖y − f_0‖, L_A measured along the trajectory.

    Of the regime κ < 1, in which the theorem promises a rate, or κ ≥ 1, in which it does not.
    """
    # Rounds whose gap is more than the rounding of predictions, so that ratios mean something.
    moves = t.gaps > 1e-8 * np.linalg.norm(t.y)
    kappa = 1 - t.eta + t.eta * _lipschitz_along(t, moves) * np.linalg.norm(t.r[0])
    factor = (t.gaps[1:][moves[:-1]] / t.gaps[:-1][moves[:-1]]).max(initial=0.0)
    return Check(float(factor), float(kappa), "κ < 1" if kappa < 1 else "κ ≥ 1")


def _lipschitz_along(t: Trajectory, moves: Flags) -> float:
    """L_A measured on consecutive points of a trajectory."""
    ratios = [
        np.linalg.norm(t.A[k].matrix() - t.A[k - 1].matrix(), 2) / t.gaps[k - 1]
        for k in range(1, t.n_rounds)
        if moves[k - 1]
    ]
    return float(max(ratios, default=0.0))


@tries("L1")
def _(trials: Trials) -> Tried:
    checks = [
        linear_rate(unit_run(replace(i, f0=i.y - rho * (i.y - i.f0)), any_step=True))
        for rho in STARTS
        for i in trials.smooth
    ]
    plain = checks[: len(trials.smooth)]
    return Tried(
        stated=checks,
        measured=f"Started at f₀ itself, κ < 1 on {sum(c.bound < 1 for c in plain)} of "
        f"{len(plain)}; the others are starts y − ρ(y − f₀) with ρ from {STARTS[1]:g} to "
        f"{STARTS[-1]:g}.",
    )


# --- Lipschitz constants -------------------------------------------------------------------------


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


def _projector_differences(trials: Trials) -> list[tuple[Check, Check]]:
    """Of each smooth instance, at two predictions close to each other."""
    return [
        projector_difference(
            i.learners(i.f0), i.learners(i.f0 + 1e-3 * i.generator().normal(size=len(i.y)))
        )
        for i in trials.smooth
    ]


@tries("L2")
def _(trials: Trials) -> Tried:
    return Tried(stated=[paper for paper, _ in _projector_differences(trials)])


@tries("L3")
def _(trials: Trials) -> Tried:
    return Tried(stated=[sharp for _, sharp in _projector_differences(trials)])


def class_difference(learners: Factorised, f: Floats, other: Floats) -> tuple[Check, Check]:
    """‖B(f) − B(f')‖ / ‖f − f'‖: the paper's max‖h‖ √k L_G, and the sharper max‖h‖ sup‖g'‖."""
    measured = float(np.linalg.norm(learners(f) - learners(other), 2))
    distance = float(np.linalg.norm(f - other))
    paper = learners.largest_h * np.sqrt(learners.k) * learners.lipschitz * distance
    sharp = learners.largest_h * learners.slope * distance
    return Check(measured, float(paper)), Check(measured, sharp)


def _class_differences(trials: Trials) -> list[tuple[Check, Check]]:
    """Of each smooth instance, at two predictions."""
    return [
        class_difference(i.learners, i.f0, i.f0 + i.generator().normal(size=len(i.y)))
        for i in trials.smooth
    ]


@tries("L4")
def _(trials: Trials) -> Tried:
    return Tried(stated=[paper for paper, _ in _class_differences(trials)])


@tries("L5")
def _(trials: Trials) -> Tried:
    return Tried(stated=[sharp for _, sharp in _class_differences(trials)])


def discontinuous_projector(epsilon: float) -> tuple[float, float]:
    """g(u) = u near f = 0: two predictions ε√2 apart whose projectors are at distance 1."""
    learners = product(np.ones((2, 1)))
    u, v = np.array([epsilon, 0.0]), np.array([0.0, epsilon])
    difference = project(learners(u)).matrix() - project(learners(v)).matrix()
    return float(np.linalg.norm(u - v)), float(np.linalg.norm(difference, 2))


@tries("L6")
def _(trials: Trials) -> Tried:
    apart = [discontinuous_projector(epsilon) for epsilon in EPSILONS]
    return Tried(
        stated=[Check(difference, 10 * distance) for distance, difference in apart],
        narrower=[sharp for _, sharp in _projector_differences(trials)],
    )
