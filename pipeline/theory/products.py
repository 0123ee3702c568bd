"""Products of finitely many relaxed projections have trajectories of finite length.

r_{t+1} = (I − η A_t) r_t with A_t one of finitely many orthogonal projectors, in any order. The
proof of T11 (``proofs/hard_splits.tex``) is an induction over the number of projectors, and its
constant can be computed; see `length_constant`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from pipeline.boosting.arrays import Floats
from pipeline.theory.checks import Check
from pipeline.theory.learners import Projector

Order = Callable[[int, Floats], int]  # of the round and the norms ‖A_j r_t‖


def length_constant(family: Sequence[Projector], eta: float) -> float:
    """C with Σ‖r_{t+1} − r_t‖ ≤ C √(‖r_0‖² − ‖r_T‖²) for every order, 0 < η ≤ 1.

    One projector: C = 1. For k of them, with C' the largest constant of k − 1 of them and c such
    that max_j ‖A_j r‖ ≥ c ‖r‖ for r in the sum of the ranges, a stretch in which all have been used
    shrinks that part of r by a factor q, 1 − q² = (c/2)² min(1/C'², η(2 − η)).
    """
    if len(family) == 1:
        return 1.0
    fewer = max(
        length_constant(some, eta) for some in combinations(family, len(family) - 1)
    )  # of those with one less; constants grow with the family
    stacked = np.concatenate([A.U.T for A in family])
    values = np.linalg.svd(stacked, compute_uv=False)
    c = values[values > 1e-10 * values[0]][-1] / np.sqrt(len(family))
    shrinks = (c / 2) ** 2 * min(1 / fewer**2, eta * (2 - eta))
    q = np.sqrt(1 - shrinks)
    return float(np.sqrt(fewer**2 + 1) / ((1 - q) * np.sqrt(shrinks)))


def length(family: Sequence[Projector], eta: float, r: Floats, order: Order, n: int) -> Check:
    """The length of a trajectory of ``n`` rounds from r, beside its bound."""
    start, moved = float(r @ r), 0.0
    for t in range(n):
        parts = [A(r) for A in family]
        norms = np.array([np.linalg.norm(part) for part in parts])
        step = eta * parts[order(t, norms)]
        moved += float(np.linalg.norm(step))
        r = r - step
    fallen = max(start - float(r @ r), 0.0)
    return Check(moved, length_constant(family, eta) * float(np.sqrt(fallen)))


def in_turn(t: int, norms: Floats) -> int:
    """One projector after the other."""
    return t % len(norms)


def laziest(_: int, norms: Floats) -> int:
    """The projector whose step is shortest, of those that move r at all."""
    return int(np.where(norms > 1e-9 * norms.max(), norms, np.inf).argmin())


def at_random(seed: int) -> Order:
    """One of the projectors at random."""
    rng = np.random.default_rng(seed)
    return lambda _, norms: int(rng.integers(len(norms)))
