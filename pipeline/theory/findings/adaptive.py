"""Theorem 4.6, the eigenvalue lemma and the quadratic rate: adaptive weights."""

from dataclasses import dataclass

import numpy as np

from pipeline.boosting.arrays import Floats
from pipeline.boosting.rescaling import Adaptive
from pipeline.theory.checks import ROUNDING, Check, by_regime, identity, norm, worst, worst_prefix
from pipeline.theory.dynamics import Trajectory, run
from pipeline.theory.findings.unit import smallest_projection
from pipeline.theory.instances import SMOOTH, Instance, learners_of
from pipeline.theory.learners import project
from pipeline.theory.trials import Trials
from pipeline.theory.verdicts import Tried, tries, tries_on

VANISHED = 0.01  # of the first ‖Ê‖, below which W9 takes it to have vanished
NEAR_ONE = 0.003  # how far W3 lets the last weight be from 1
EPSILONS = [10.0**-k for k in range(1, 8)]  # distances of the start from the targets


@tries_on("W1", lambda trials: trials.adaptive)
def loss_is_monotone(t: Trajectory) -> Check:
    """V(f_{t+1}) ≤ V(f_t), relative to V(f_0)."""
    return Check(np.diff(t.loss).max() / t.loss[0], ROUNDING)


def weights_are_not_negative(t: Trajectory) -> Check:
    """ω_t ≥ 0 for t ≥ 1, as the proof shows it; the paper states it for all t."""
    return Check(-t.w[1:].min(), 0.0)


def negative_first_weight(i: Instance) -> float:
    """ω_0 for f_0 = −3y, a little disturbed, and a class that sees predictions of that size."""
    f0 = -3 * i.y + 0.1 * i.generator().normal(size=len(i.y))
    learners = learners_of(i.kind, i.learners.H[:, 1:], float(f0.mean()), float(f0.std()))
    return float(run(i.y, f0, learners, min(i.eta, 0.5), 1, Adaptive()).w[0])


def one_point(f0: float) -> Trajectory:
    """One round of adaptive weights on one point: y = 1, b = 1, η = ½."""
    return run(np.ones(1), np.full(1, f0), lambda f: np.ones((len(f), 1)), 0.5, 1, Adaptive())


@tries("W2")
def _(trials: Trials) -> Tried:
    random = trials.bank.random(SMOOTH, trials.bank.n)
    return Tried(
        stated=[
            Check(-one_point(-3.0).w[0], 0.0, "one point"),
            *(Check(-negative_first_weight(i), 0.0, i.kind) for i in random),
        ],
        narrower=[weights_are_not_negative(t) for t in trials.adaptive],
    )


@tries_on("W9", lambda trials: trials.adaptive_long)
def error_vanishes(t: Trajectory) -> Check:
    """The last ‖Ê‖ is below `VANISHED` of the first."""
    return Check(t.errors[-1], VANISHED * t.errors[0])


@tries_on("W3", lambda trials: trials.adaptive_long)
def weights_tend_to_one(t: Trajectory) -> Check:
    """The last ω_t is within `NEAR_ONE` of 1."""
    return Check(abs(t.w[-1] - 1), NEAR_ONE)


def projection_by_update(t: Trajectory) -> Check:
    """For t ≥ 1, η‖A r_t‖² ≤ ‖φ_t‖‖r_t‖: φ_t = 0 only if A r_t = 0. The round that uses most."""
    bounds = np.linalg.norm(t.phi[1:], axis=1) * np.linalg.norm(t.r[1:-1], axis=1)
    return worst(t.eta * np.square(t.projected[1:]), bounds)


@tries("W10")
def _(trials: Trials) -> Tried:
    t = one_point(-1.0)
    return Tried(
        stated=[Check(t.projected[0], norm(t.phi[0]))],
        narrower=[projection_by_update(t) for t in trials.adaptive],
    )


@tries_on("W4", lambda trials: trials.adaptive)
def adaptive_identity(t: Trajectory) -> Check:
    """Ours: ‖r_t‖² − ‖r_{t+1}‖² = η(2 − η)‖A r_t‖² + (ω_t − 1)²‖φ_t‖²."""
    squares = np.square(np.linalg.norm(t.r, axis=1))
    rescaled = (t.w - 1) ** 2 * np.square(t.phi).sum(axis=1)
    right = t.eta * (2 - t.eta) * np.square(t.projected) + rescaled
    return identity(-np.diff(squares), right, scale=squares[0])


def smallest_gap_adaptive(t: Trajectory) -> Check:
    """Ours: min ‖Δ_t‖ ≤ √(2/(2 − η)) ‖y − f_0‖/√T, from the identity above; the worst T."""
    return worst_prefix(t.gaps, np.sqrt(2 / ((2 - t.eta) * t.counts)) * norm(t.r[0]))


@tries("W5")
def _(trials: Trials) -> Tried:
    checks = {
        "smallest gap": map(smallest_gap_adaptive, trials.adaptive),
        "smallest ‖A r‖": map(smallest_projection, trials.adaptive),
    }
    return Tried(stated=by_regime(checks))


def eigenvalues(A: Floats, v: Floats, eta: float) -> Check:
    """The spectrum of ηA + (I − ηA)vvᵀ: 1, η‖(I − A)v‖², η (rank − 1 times), and zeros."""
    n, rank = len(v), round(float(np.trace(A)))
    measured = np.sort(np.linalg.eigvals(eta * A + (np.eye(n) - eta * A) @ np.outer(v, v)).real)
    rest = eta * np.square(v - A @ v).sum()
    stated = np.sort(np.concatenate([[1.0, rest], np.full(rank - 1, eta), np.zeros(n - rank - 1)]))
    # Eigenvalues of a matrix that is not symmetric are accurate to the root of rounding only.
    return Check(np.abs(measured - stated).max(), 1e-7)


@tries_on("W6", lambda trials: trials.bank())
def _(i: Instance) -> Check:
    v = i.generator().normal(size=len(i.y))
    return eigenvalues(project(i.learners(i.f0)).matrix(), v / norm(v), i.eta)


# --- the quadratic rate --------------------------------------------------------------------------


@dataclass(frozen=True)
class NextResidual:
    """A step of Adaptive: the next residual, what Lemma A.8 says of it, and what is true."""

    actual: Floats
    stated: Floats
    true: Floats


def next_residual(y: Floats, f: Floats, A: Floats, eta: float = 1.0) -> NextResidual:
    """With φ = f + ηA(y − f): r_{t+1} = (I − φφᵀ/‖φ‖²)(I − ηA) r_t, for every η."""
    r = y - f
    phi = f + eta * (A @ r)
    left = r - eta * (A @ r)
    return NextResidual(
        actual=y - (y @ phi) / (phi @ phi) * phi,
        stated=(y @ (A @ r)) / np.square(y - left).sum() * left,
        true=left - (phi @ left) / (phi @ phi) * phi,
    )


def _first_step(i: Instance, eta: float = 1.0) -> NextResidual:
    return next_residual(i.y, i.f0, project(i.learners(i.f0)).matrix(), eta)


@tries_on("W7", lambda trials: trials.bank(), corrected=True)
def _(i: Instance) -> tuple[Check, Check]:
    step = _first_step(i)
    return identity(step.actual, step.stated), identity(step.actual, step.true)


def not_quadratic(epsilon: float) -> tuple[float, float]:
    """A = e₁e₁ᵀ, y = (1, 1, 0), f_0 = y − ε e₃: ‖r_1‖/‖r_0‖ as it is, and as the lemma has it."""
    A = np.diag([1.0, 0.0, 0.0])
    step = next_residual(np.array([1.0, 1.0, 0.0]), np.array([1.0, 1.0, -epsilon]), A)
    return norm(step.actual) / epsilon, norm(step.stated) / epsilon


def not_quadratic_smooth(i: Instance, epsilon: float) -> float:
    """‖r_1‖/‖r_0‖ from f_0 = y − ε v, v a random unit vector, for a smooth class (η = 1)."""
    v = i.generator().normal(size=len(i.y))
    f = i.y - epsilon * v / norm(v)
    return norm(next_residual(i.y, f, project(i.learners(f)).matrix()).actual) / epsilon


@tries("W8")
def _(trials: Trials) -> Tried:
    few = list(trials.bank.few(("rbf",)))
    smooth = [Check(not_quadratic_smooth(i, e), 10 * e) for i in few for e in EPSILONS]
    fixed = [Check(not_quadratic(e)[0], 10 * e) for e in EPSILONS]
    ratios = [check.measured for check in smooth]
    return Tried(
        stated=by_regime({"A fixed": fixed, "radial functions of f": smooth}),
        corrected=[Check(ratio, 1.0) for ratio in ratios],
        measured="With radial functions of f, which do depend on f, ‖r₁‖/‖r₀‖ lies between "
        f"{min(ratios):.2f} and {max(ratios):.2f} for ε from 0.1 to 1e-7.",
    )


def quadratic(epsilon: float, seed: int = 0, n: int = 6) -> float:
    """‖r_1‖/‖r_0‖² where the rate is quadratic: n − 1 learners that span y's complement at f = y.

    b_j(x_i, u) = a_ij + (u − y_i) c_ij with columns a_j orthogonal to y: linear in u, so smooth.
    """
    rng = np.random.default_rng([8, seed])
    y = rng.normal(size=n) + 1
    basis = np.linalg.qr(np.column_stack([y, rng.normal(size=(n, n - 1))]))[0][:, 1:]
    slopes = rng.normal(size=basis.shape)
    v = rng.normal(size=n)
    f = y - epsilon * v / norm(v)
    A = project(basis + (f - y)[:, None] * slopes).matrix()
    return norm(next_residual(y, f, A).actual) / epsilon**2


@tries("W11")
def _(trials: Trials) -> Tried:
    steps = [_first_step(i, i.eta) for i in trials.bank()]
    constants = [[quadratic(e, seed) for e in EPSILONS[1:6]] for seed in range(10)]
    checks = {
        "identity": [identity(s.actual, s.true) for s in steps],
        # ‖r₁‖/‖r₀‖² stays bounded as ‖r₀‖ → 0.
        "quadratic": [Check(max(some), 3 * some[0]) for some in constants],
    }
    return Tried(stated=by_regime(checks))
