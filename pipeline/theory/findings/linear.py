"""Theorem 4.2, Lemmas 4.3 and 4.4: the linear rate."""

from dataclasses import replace

import numpy as np

from pipeline.boosting.arrays import Floats
from pipeline.theory.checks import Check, distance, norm
from pipeline.theory.dynamics import Trajectory
from pipeline.theory.instances import Instance
from pipeline.theory.learners import Factorised, project
from pipeline.theory.trials import Trials, unit_run
from pipeline.theory.verdicts import Tried, tries, tries_on

STARTS = (1.0, 1e-1, 1e-2, 1e-3)  # ρ of the starts y − ρ(y − f_0)
GOLDEN = (1 + np.sqrt(5)) / 2
EPSILONS = [10.0**-k for k in range(2, 9)]  # distances, for L6


def linear_rate(t: Trajectory) -> Check:
    """‖Δ_t‖ ≤ κ‖Δ_{t−1}‖ with κ = 1 − η + η L_A ‖y − f_0‖, L_A measured along the trajectory.

    Of the regime κ < 1, in which the theorem promises a rate, or κ ≥ 1, in which it does not.
    """
    # Rounds whose gap is more than the rounding of predictions, so that ratios mean something.
    before = np.flatnonzero(t.gaps[:-1] > 1e-8 * norm(t.y))
    gaps, projectors = t.gaps, [A.matrix() for A in t.A]
    changes = (distance(projectors[k + 1], projectors[k]) / gaps[k] for k in before)
    kappa = 1 - t.eta + t.eta * max(changes, default=0.0) * norm(t.r[0])
    factor = (gaps[before + 1] / gaps[before]).max(initial=0.0)
    return Check(factor, kappa, "κ < 1" if kappa < 1 else "κ ≥ 1")


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
    measured, by = distance(u.matrix(), v.matrix()), distance(Bu, Bv)
    delta, largest = min(u.smallest, v.smallest), max(u.largest, v.largest)
    paper = 2 / delta * (1 + GOLDEN * largest**2 / delta**2) * by
    return Check(measured, paper), Check(measured, by / delta)


def class_difference(learners: Factorised, f: Floats, other: Floats) -> tuple[Check, Check]:
    """‖B(f) − B(f')‖ / ‖f − f'‖: the paper's max‖h‖ √k L_G, and the sharper max‖h‖ sup‖g'‖."""
    measured = distance(learners(f), learners(other))
    size = np.linalg.norm(learners.H, axis=1).max()
    paper = size * np.sqrt(learners.g(f).shape[1]) * learners.lipschitz * norm(f - other)
    return Check(measured, paper), Check(measured, size * learners.slope * norm(f - other))


def _projectors_of(i: Instance) -> tuple[Check, Check]:
    """At two predictions close to each other."""
    other = i.f0 + 1e-3 * i.generator().normal(size=len(i.y))
    return projector_difference(i.learners(i.f0), i.learners(other))


def _classes_of(i: Instance) -> tuple[Check, Check]:
    return class_difference(i.learners, i.f0, i.f0 + i.generator().normal(size=len(i.y)))


tries_on("L2", lambda trials: trials.smooth)(lambda i: _projectors_of(i)[0])
tries_on("L3", lambda trials: trials.smooth)(lambda i: _projectors_of(i)[1])
tries_on("L4", lambda trials: trials.smooth)(lambda i: _classes_of(i)[0])
tries_on("L5", lambda trials: trials.smooth)(lambda i: _classes_of(i)[1])


def discontinuous_projector(epsilon: float) -> tuple[float, float]:
    """g(u) = u near f = 0: two predictions ε√2 apart whose projectors are at distance 1."""
    u, v = np.array([[epsilon], [0.0]]), np.array([[0.0], [epsilon]])
    return norm(u - v), distance(project(u).matrix(), project(v).matrix())


@tries("L6")
def _(trials: Trials) -> Tried:
    jumps = map(discontinuous_projector, EPSILONS)
    return Tried(
        stated=[Check(difference, 10 * apart) for apart, difference in jumps],
        narrower=[_projectors_of(i)[1] for i in trials.smooth],
    )
