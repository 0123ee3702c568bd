"""The curves behind the chapter's figures, as one tidy table: (figure, panel, series, x, y)."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from pipeline.analysis.bounds import gap_bound, sharp_gap_bound
from pipeline.boosting.arrays import Floats, Ints
from pipeline.boosting.rescaling import Adaptive
from pipeline.theory.constructions import slow_spiral, spiral
from pipeline.theory.dynamics import Trajectory, run
from pipeline.theory.findings.adaptive import not_quadratic, not_quadratic_smooth
from pipeline.theory.findings.adaptive import quadratic as quadratic_constant
from pipeline.theory.findings.linear import linear_rate
from pipeline.theory.findings.unit import smallest_gap
from pipeline.theory.instances import SMOOTH, instance
from pipeline.theory.learners import bins

ETA = 0.5

Numbers = Sequence[float] | Floats | Ints
Series = tuple[str, str, Numbers, Numbers]  # panel, name, x and y


def measure() -> pd.DataFrame:
    """All curves."""
    figures = (rate, contraction, hard_bins, noise, weights, quadratic)
    points = [
        (figure.__name__, panel, name, float(a), float(b))
        for figure in figures
        for panel, name, x, y in figure()
        for a, b in zip(x, y, strict=True)
    ]
    return pd.DataFrame(points, columns=["figure", "panel", "series", "x", "y"])


def rate() -> Iterator[Series]:
    """Smallest gap against T, beside the bounds: a smooth class, and the spiral."""
    i = instance("rbf", 3)
    t = run(i.y, i.f0, i.learners, ETA, 60)
    yield "smooth", "measured", t.counts, np.minimum.accumulate(t.gaps)
    yield from _bounds("smooth", t.counts, t.loss[0])
    lengths = 2 ** np.arange(11)
    yield "spiral", "measured", lengths, [spiral(int(n), ETA).gaps.min() for n in lengths]
    yield from _bounds("spiral", lengths, 0.5)  # ‖y − f₀‖ = 1
    slow = slow_spiral(int(lengths[-1]), ETA)
    yield "spiral", "one instance", slow.counts, slow.gaps
    path = spiral(60, ETA)
    yield "path", "residual", path.r[:, 0], path.r[:, 1]


def _bounds(panel: str, rounds: Ints, loss: float) -> Iterator[Series]:
    yield panel, "paper", rounds, [gap_bound(ETA, loss, k) for k in rounds]
    yield panel, "sharper", rounds, [sharp_gap_bound(ETA, loss, k) for k in rounds]


def contraction() -> Iterator[Series]:
    """κ and the measured factor over ρ, the distance of the start."""
    rhos = np.geomspace(1e-3, 1, 13)
    for kind in SMOOTH:
        i = instance(kind, 1)
        starts = (i.y - rho * (i.y - i.f0) for rho in rhos)
        checks = [linear_rate(run(i.y, start, i.learners, ETA, 20)) for start in starts]
        yield kind, "bound", rhos, [check.bound for check in checks]
        yield kind, "measured", rhos, [check.measured for check in checks]


def hard_bins() -> Iterator[Series]:
    """The factor of a hard class over rounds, apart where some point changes its cell."""
    i = instance("hard bins", 3)
    learners = bins(i.learners.H[:, :1], np.linspace(-2, 2, 6))
    t = run(i.y, i.f0, learners, ETA, 25)
    cells = [learners.g(f) for f in t.f]
    for k, factor in enumerate(t.gaps[1:] / t.gaps[:-1]):
        changed = (cells[k] != cells[k + 1]).any()
        yield "", "changed" if changed else "unchanged", [k + 1], [factor]


def noise() -> Iterator[Series]:
    """Smallest gap of 200 rounds over a constant ε."""
    i = instance("sigmoid", 2)
    epsilons = np.geomspace(1e-6, 1, 13)

    def constant_error(epsilon: float) -> Trajectory:
        return run(i.y, i.f0, i.learners, ETA, 200, error=lambda _: epsilon)

    checks = [smallest_gap(constant_error(epsilon)) for epsilon in epsilons]
    yield "", "bound", epsilons, [check.bound for check in checks]
    yield "", "floor", epsilons, 2 * ETA * np.sqrt(epsilons)
    yield "", "measured", epsilons, [check.measured for check in checks]


def weights() -> Iterator[Series]:
    """|ω_t − 1| over rounds."""
    for k in range(10):
        i = instance(SMOOTH[k % 4], 20 + k)
        t = run(i.y, i.f0, i.learners, ETA, 200, Adaptive())
        yield "", str(k), t.counts, np.abs(t.w - 1)


def quadratic() -> Iterator[Series]:
    """‖r₁‖/‖r₀‖ over ε: two counterexamples, and an instance that meets the condition."""
    epsilons = np.geomspace(1e-6, 0.3, 25)
    i = instance("rbf", 0)
    yield "", "fixed", epsilons, [not_quadratic(e)[0] for e in epsilons]
    yield "", "radial", epsilons, [not_quadratic_smooth(i, e) for e in epsilons]
    yield "", "quadratic", epsilons, [quadratic_constant(e) * e for e in epsilons]
