"""Two points and one learner, on which residuals move along a spiral and attain the rate of T4."""

from __future__ import annotations

import numpy as np

from pipeline.boosting.arrays import Floats
from pipeline.theory.dynamics import Learners, Trajectory, run


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
