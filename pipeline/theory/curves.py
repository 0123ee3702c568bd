"""The curves behind the chapter's figures, as one tidy table: (figure, panel, series, x, y)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pandas as pd

from pipeline.analysis.bounds import gap_bound, sharp_gap_bound
from pipeline.boosting.rescaling import Adaptive
from pipeline.theory import counterexamples as counter
from pipeline.theory.checks.linear import linear_rate
from pipeline.theory.checks.unit import smallest_gap
from pipeline.theory.dynamics import run
from pipeline.theory.instances import SMOOTH, instance
from pipeline.theory.learners import bins

ETA = 0.5

Point = tuple[str, str, str, float, float]


def measure() -> pd.DataFrame:
    """All curves."""
    points = [point for curve in (rate, contraction, hard_bins, noise, weights, quadratic)
              for point in curve()]  # fmt: skip
    return pd.DataFrame(points, columns=["figure", "panel", "series", "x", "y"])


def rate() -> Iterator[Point]:
    """Smallest gap against T, beside the bounds: a smooth class, and the spiral."""
    i = instance("rbf", 3)
    t = run(i.y, i.f0, i.learners, ETA, 60)
    rounds = np.arange(1, 61)
    yield from _series("rate", "smooth", "measured", rounds, np.minimum.accumulate(t.gaps))
    yield from _bounds("smooth", rounds, t.loss[0])
    lengths = 2 ** np.arange(11)
    gaps = [counter.spiral(int(k), ETA).gaps.min() for k in lengths]
    yield from _series("rate", "spiral", "measured", lengths, gaps)
    yield from _bounds("spiral", lengths, 0.5)  # ‖y − f₀‖ = 1
    t = counter.slow_spiral(int(lengths[-1]), ETA)
    yield from _series("rate", "spiral", "one instance", np.arange(1, len(t.gaps) + 1), t.gaps)
    path = counter.spiral(60, ETA)
    yield from _series("rate", "path", "residual", path.r[:, 0], path.r[:, 1])


def contraction() -> Iterator[Point]:
    """κ and the measured factor over ρ, the distance of the start."""
    rhos = np.geomspace(1e-3, 1, 13)
    for kind in SMOOTH:
        i = instance(kind, 1)
        checks = [
            linear_rate(run(i.y, i.y - rho * (i.y - i.f0), i.learners, ETA, 20)) for rho in rhos
        ]
        yield from _series("contraction", kind, "bound", rhos, [x.bound for x in checks])
        yield from _series("contraction", kind, "measured", rhos, [x.measured for x in checks])


def hard_bins() -> Iterator[Point]:
    """The factor of a hard class over rounds, apart where some point changes its cell."""
    i = instance("hard bins", 3)
    learners = bins(i.learners.H[:, :1], np.linspace(-2, 2, 6))
    t = run(i.y, i.f0, learners, ETA, 25)
    factors = t.gaps[1:] / t.gaps[:-1]
    cells = [learners.g(f) for f in t.f]
    for k, factor in enumerate(factors):
        series = "changed" if (cells[k] != cells[k + 1]).any() else "unchanged"
        yield ("hard_bins", "", series, k + 1, float(factor))


def noise() -> Iterator[Point]:
    """Smallest gap of 200 rounds over a constant ε."""
    i = instance("sigmoid", 2)
    epsilons = np.geomspace(1e-6, 1, 13)
    checks = [
        smallest_gap(run(i.y, i.f0, i.learners, ETA, 200, error=_constant(e))) for e in epsilons
    ]
    yield from _series("noise", "", "bound", epsilons, [x.bound for x in checks])
    yield from _series("noise", "", "floor", epsilons, 2 * ETA * np.sqrt(epsilons))
    yield from _series("noise", "", "measured", epsilons, [x.measured for x in checks])


def weights() -> Iterator[Point]:
    """|ω_t − 1| over rounds."""
    for k in range(10):
        i = instance(SMOOTH[k % 4], 20 + k)
        t = run(i.y, i.f0, i.learners, ETA, 200, Adaptive())
        yield from _series("weights", "", str(k), np.arange(1, 201), np.abs(t.w - 1))


def quadratic() -> Iterator[Point]:
    """‖r₁‖/‖r₀‖ over ε: two counterexamples, and an instance that meets the condition."""
    epsilons = np.geomspace(1e-6, 0.3, 25)
    i = instance("rbf", 0)
    ratios = {
        "fixed": [counter.not_quadratic(e)[0] for e in epsilons],
        "radial": [counter.not_quadratic_smooth(i, e) for e in epsilons],
        "quadratic": [counter.quadratic(e) * e for e in epsilons],
    }
    for series, values in ratios.items():
        yield from _series("quadratic", "", series, epsilons, values)


def _bounds(panel: str, rounds: Sequence[int] | np.ndarray, loss: float) -> Iterator[Point]:
    for series, bound in (("paper", gap_bound), ("sharper", sharp_gap_bound)):
        yield from _series("rate", panel, series, rounds, [bound(ETA, loss, k) for k in rounds])


def _series(
    figure: str,
    panel: str,
    series: str,
    x: Sequence[float] | np.ndarray,
    y: Sequence[float] | np.ndarray,
) -> Iterator[Point]:
    return ((figure, panel, series, float(a), float(b)) for a, b in zip(x, y, strict=True))


def _constant(value: float) -> Callable[[int], float]:
    return lambda _: value
