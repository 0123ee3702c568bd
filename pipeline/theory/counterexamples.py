"""Small instances that settle a statement: it fails there as stated, or its rate is attained."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pipeline.boosting.arrays import Floats
from pipeline.boosting.rescaling import Adaptive, Relaxed
from pipeline.theory.checks.adaptive import next_residual
from pipeline.theory.dynamics import Learners, Trajectory, run
from pipeline.theory.instances import Instance, learners_of
from pipeline.theory.learners import Factorised, product, project

# --- the rate of the gap is sharp ----------------------------------------------------------------


def spiral(n_rounds: int, eta: float) -> Trajectory:
    """Two points, one learner, all gaps equal, and as large as T4 allows but for a term 1/T.

    ‖y − f_0‖ = 1. A gap g lowers ‖r‖² by g²(2 − η)/η, and is possible while g ≤ η‖r‖; the largest g
    that is possible T times has 1/g² = (T − 1)(2 − η)/η + 1/η².
    """
    gap = 1 / np.sqrt((n_rounds - 1) * (2 - eta) / eta + 1 / eta**2)
    return _along_a_spiral(np.full(n_rounds, gap), eta)


def slow_spiral(n_rounds: int, eta: float) -> Trajectory:
    """One instance for all T, with gap_t = a / (√(t + 2) log(t + 2)): see `slow_gaps`."""
    return _along_a_spiral(slow_gaps(n_rounds, eta), eta)


def slow_gaps(n_rounds: int, eta: float) -> Floats:
    """a / (√(t + 2) log(t + 2)), (T,), with a so small that ‖r_t‖² stays above ½.

    Σ 1/(n log² n) over n ≥ 2 is below 2.12.
    """
    a = min(np.sqrt(eta / (2 * 2.12 * (2 - eta))), 0.69 * eta)
    t = np.arange(n_rounds) + 2
    return a / (np.sqrt(t) * np.log(t))


def _along_a_spiral(gaps: Floats, eta: float) -> Trajectory:
    """A run of Unit on two points whose gaps are given.

    Round t's learner is a unit vector u_t with ⟨r_t, u_t⟩ = gap_t/η, always on the same side of
    r_t, so that r_t turns. A learner's value at a point is a function of that point's prediction;
    since predictions never repeat, one function with hard splits between them does it.
    """
    y = np.ones(2)
    r = np.array([np.cos(0.3), np.sin(0.3)])
    predictions, values = [], []
    for gap in gaps:
        size = np.linalg.norm(r)
        cosine = min(gap / (eta * size), 1.0)
        sine = np.sqrt(1 - cosine**2)
        u = np.array([[cosine, -sine], [sine, cosine]]) @ r / size
        predictions.append(y - r)
        values.append(u)
        r = r - gap * u
    return run(y, predictions[0], _step_functions(np.array(predictions), np.array(values)), eta,
               len(gaps))  # fmt: skip


def _step_functions(at: Floats, values: Floats) -> Learners:
    """b(x_i, u) = values[k, i] for the k whose at[k, i] is nearest to u; at, values : (T, n)."""
    order = np.argsort(at, axis=0)
    places, heights = (np.take_along_axis(a, order, axis=0) for a in (at, values))
    cuts = (places[1:] + places[:-1]) / 2

    def learners(f: Floats) -> Floats:
        cells = [np.searchsorted(cuts[:, i], f[i]) for i in range(len(f))]
        return heights[cells, np.arange(len(f))][:, None]

    return learners


# --- statements that need a condition, or fail ---------------------------------------------------


def negative_first_weight(i: Instance) -> float:
    """ω_0 for f_0 = −3y, a little disturbed, and a class that sees predictions of that size."""
    f0 = -3 * i.y + 0.1 * i.generator().normal(size=len(i.y))
    learners = learners_of(i.kind, i.learners.H[:, 1:], float(f0.mean()), float(f0.std()))
    return float(run(i.y, f0, learners, min(i.eta, 0.5), 1, Adaptive()).w[0])


def negative_weight_of_one_point() -> float:
    """ω_0 for y = 1, f_0 = −3, b = 1 and η = ½: φ_0 = −1, so ω_0 = −1."""
    return float(run(np.ones(1), np.full(1, -3.0), _constant, 0.5, 1, Adaptive()).w[0])


def vanishing_update() -> tuple[float, float]:
    """One point, y = 1, f_0 = −1, b = 1, η = ½: ‖φ_0‖ and ‖A r_0‖."""
    t = run(np.ones(1), np.full(1, -1.0), _constant, 0.5, 1)
    return float(np.linalg.norm(t.phi[0])), float(t.projected[0])


def _constant(f: Floats) -> Floats:
    return np.ones((len(f), 1))


def relaxed_far_from_zero(seed: int, n: int = 50) -> Trajectory:
    """Targets 10 ± 1 and f_0 = y ± 1: five relaxed rounds."""
    rng = np.random.default_rng([7, seed])
    X = rng.normal(size=(n, 3))
    y = 10 + rng.normal(size=n)
    f0 = y + rng.normal(size=n)
    return run(y, f0, learners_of("rbf", X, 10.0, 1.0), 0.5, 5, Relaxed())


def not_quadratic(epsilon: float) -> tuple[float, float]:
    """A = e₁e₁ᵀ, y = (1, 1, 0), f_0 = y − ε e₃: ‖r_1‖/‖r_0‖ as it is, and as the lemma has it."""
    A = np.diag([1.0, 0.0, 0.0])
    y, f = np.array([1.0, 1.0, 0.0]), np.array([1.0, 1.0, -epsilon])
    step = next_residual(y, f, A)
    return float(np.linalg.norm(step.actual)) / epsilon, float(
        np.linalg.norm(step.stated)
    ) / epsilon


def not_quadratic_smooth(i: Instance, epsilon: float) -> float:
    """‖r_1‖/‖r_0‖ from f_0 = y − ε v, v a random unit vector, for a smooth class (η = 1)."""
    v = i.generator().normal(size=len(i.y))
    f = i.y - epsilon * v / np.linalg.norm(v)
    step = next_residual(i.y, f, project(i.learners(f)).matrix())
    return float(np.linalg.norm(step.actual)) / epsilon


def quadratic(epsilon: float, seed: int = 0, n: int = 6) -> float:
    """‖r_1‖/‖r_0‖² where the rate is quadratic: n − 1 learners that span y's complement at f = y.

    b_j(x_i, u) = a_ij + (u − y_i) c_ij with columns a_j orthogonal to y: linear in u, so smooth.
    """
    rng = np.random.default_rng([8, seed])
    y = rng.normal(size=n) + 1
    basis = np.linalg.qr(np.column_stack([y, rng.normal(size=(n, n - 1))]))[0][:, 1:]
    slopes = rng.normal(size=basis.shape)
    v = rng.normal(size=n)
    f = y - epsilon * v / np.linalg.norm(v)
    B = basis + (f - y)[:, None] * slopes
    step = next_residual(y, f, project(B).matrix())
    return float(np.linalg.norm(step.actual)) / epsilon**2


def discontinuous_projector(epsilon: float) -> tuple[float, float]:
    """g(u) = u near f = 0: two predictions ε√2 apart whose projectors are at distance 1."""
    learners: Factorised = product(np.ones((2, 1)))
    u, v = np.array([epsilon, 0.0]), np.array([0.0, epsilon])
    difference = project(learners(u)).matrix() - project(learners(v)).matrix()
    return float(np.linalg.norm(u - v)), float(np.linalg.norm(difference, 2))


def unbounded_learner(n_rounds: int) -> Trajectory:
    """One point, b(u) = 1/(y − u)²: the gap tends to 0, and Ê = 1/(y − f_t) does not."""
    y = np.array([1.0])
    learner: Callable[[Floats], Floats] = lambda f: (1 / np.square(y - f))[:, None]  # noqa: E731
    return run(y, np.zeros(1), learner, 0.5, n_rounds)
