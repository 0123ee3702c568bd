"""Two constructions that statements of ours need.

A spiral (T5): two points and one learner, on which the residual turns and attains the rate of T4.

Products of relaxed projections (T11): r_{t+1} = (I − η A_t) r_t with A_t one of finitely many
orthogonal projectors, in any order, has a trajectory of finite length. The proof
(``proofs/hard_splits.tex``) is an induction over their number; see `length_constant`.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np

from pipeline.boosting.arrays import Floats
from pipeline.theory.checks import Check, norm
from pipeline.theory.dynamics import Learners, Trajectory, run
from pipeline.theory.learners import Projector

Order = Callable[[int, Floats], int]  # of the round and the norms ‖A_j r_t‖


def spiral(n_rounds: int, eta: float) -> Trajectory:
    """All gaps are equal, and as large as T4 allows but for a term 1/T.

    ‖y − f_0‖ = 1. A gap g lowers ‖r‖² by g²(2 − η)/η, and is possible while g ≤ η‖r‖; the largest g
    that is possible T times has 1/g² = (T − 1)(2 − η)/η + 1/η².
    """
    gap = 1 / np.sqrt((n_rounds - 1) * (2 - eta) / eta + 1 / eta**2)
    return _with_gaps(np.full(n_rounds, gap), eta)


def slow_spiral(n_rounds: int, eta: float) -> Trajectory:
    """One instance for every number of rounds, with the gaps of `slow_gaps`."""
    return _with_gaps(slow_gaps(n_rounds, eta), eta)


def slow_gaps(n_rounds: int, eta: float) -> Floats:
    """a / (√(t + 2) log(t + 2)), (T,), with a so small that ‖r_t‖² stays above ½.

    Σ 1/(n log² n) over n ≥ 2 is below 2.12.
    """
    a = min(np.sqrt(eta / (2 * 2.12 * (2 - eta))), 0.69 * eta)
    t = np.arange(n_rounds) + 2
    return a / (np.sqrt(t) * np.log(t))


def _with_gaps(gaps: Floats, eta: float) -> Trajectory:
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
    learners = _step_functions(np.array(predictions), np.array(values))
    return run(y, predictions[0], learners, eta, len(gaps))


def _step_functions(at: Floats, values: Floats) -> Learners:
    """b(x_i, u) = values[k, i] for the k whose at[k, i] is nearest to u; at, values : (T, n)."""
    order = np.argsort(at, axis=0)
    places, heights = (np.take_along_axis(a, order, axis=0) for a in (at, values))
    cuts = (places[1:] + places[:-1]) / 2

    def learners(f: Floats) -> Floats:
        cells = [np.searchsorted(cuts[:, i], f[i]) for i in range(len(f))]
        return heights[cells, np.arange(len(f))][:, None]

    return learners


# --- products of projections ---------------------------------------------------------------------


def length_constant(family: Sequence[Projector], eta: float) -> float:
    """C with Σ‖r_{t+1} − r_t‖ ≤ C √(‖r_0‖² − ‖r_T‖²) for every order, 0 < η ≤ 1.

    One projector: C = 1. For k of them, with C' the largest constant of k − 1 of them and c such
    that max_j ‖A_j r‖ ≥ c ‖r‖ for r in the sum of the ranges, a stretch in which all have been used
    shrinks that part of r by a factor q, 1 − q² = (c/2)² min(1/C'², η(2 − η)).
    """
    if len(family) == 1:
        return 1.0
    # Constants grow with the family: those with one less have the largest.
    fewer = max(length_constant(some, eta) for some in combinations(family, len(family) - 1))
    values = np.linalg.svd(np.concatenate([A.U.T for A in family]), compute_uv=False)
    c = values[values > 1e-10 * values[0]][-1] / np.sqrt(len(family))
    shrinks = (c / 2) ** 2 * min(1 / fewer**2, eta * (2 - eta))
    q = np.sqrt(1 - shrinks)
    return float(np.sqrt(fewer**2 + 1) / ((1 - q) * np.sqrt(shrinks)))


def length(family: Sequence[Projector], eta: float, r: Floats, order: Order, n: int) -> Check:
    """The length of a trajectory of ``n`` rounds from r, beside its bound."""
    start, moved = float(r @ r), 0.0
    for t in range(n):
        parts = [A(r) for A in family]
        step = eta * parts[order(t, np.array([norm(part) for part in parts]))]
        moved += norm(step)
        r = r - step
    fallen = max(start - float(r @ r), 0.0)
    return Check(moved, length_constant(family, eta) * np.sqrt(fallen))


def orders(seed: int) -> Mapping[str, Order]:
    """Which projector is next: in turn, the laziest (of those that move r at all), or any."""
    rng = np.random.default_rng(seed)
    return {
        "turn": lambda t, norms: t % len(norms),
        "lazy": lambda _, norms: int(np.where(norms > 1e-9 * norms.max(), norms, np.inf).argmin()),
        "random": lambda _, norms: int(rng.integers(len(norms))),
    }
