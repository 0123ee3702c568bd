"""Tests of a mean residual, with the intervals that belong to them.

The p-value of "the mean residual of these rows is zero" and the 95 % interval of the mean residual
come from the same test: zero lies outside the interval where the p-value is below 5 %, and inside
otherwise.

**Outcomes 0 and 1.** Of a calibrated model the outcomes are independent and 1 with probability
f_i, so the law of Σ w_i y_i is known. With equal weights it is the Poisson binomial law, which is
computed exactly, or where that would take long (and both outcomes are frequent) by the saddlepoint
approximation of Lugannani and Rice, as it is with unequal weights. The interval holds the mean
residuals of the tilted models logit p_i = logit f_i + θ w_i that the test does not reject.

**Other outcomes.** Student's t is wrong for skewed residuals: of many small and few large ones, a
few rows show the small ones only, with a mean that is too low and a variance that is too small. So

- the variance of a few rows is not taken to be smaller than with ``PRIOR_ROWS`` more rows that vary
  as all tested rows do;
- Student's statistic is compared with Hall's (1992), which removes the skewness γ of the mean,
  T + γ T² / 3 + γ² T³ / 27 + γ / 6, and the less certain of both counts. The skewness is estimated
  from all tested rows.

Rows must be independent of each other; where they are not, a cluster of rows counts as one row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit
from scipy.optimize import brentq
from scipy.special import expit, log_expit, logit, ndtr, stdtr, stdtrit

from .arrays import Floats
from .caching import ENTRY
from .rows import PredictedRows

LEVEL = 0.95
PRIOR_ROWS = 10.0
MOST_SKEW = 3.0  # of a mean; with more, Student's and Hall's intervals need not overlap
EXACT_CELLS = 300_000  # rows times events up to which the Poisson binomial law is computed
TAIL = 64  # further events whose probabilities matter for a tail below ``SMALL``
SMALL = 1e-9
GRID = 256  # steps of a logit in which many rows count together
MOST_TILT = 700.0
TINY = 1e-15


@dataclass(frozen=True)
class Tested:
    """A 95 % interval of a mean residual, and the p-value of its being zero."""

    low: float
    high: float
    p_value: float


@dataclass(frozen=True)
class Moments:
    """The variance and the skewness of the residuals of all rows that are tested."""

    variance: float
    skewness: float

    @classmethod
    def of(cls, rows: PredictedRows) -> Moments:
        """Moments of rows or, where they have clusters, of the clusters' mean residuals."""
        residual, weights = one_per_cluster(rows)
        centred = residual - np.average(residual, weights=weights)
        variance = float(np.square(centred).mean())
        third = float((centred**3).mean())
        return cls(variance, third / variance**1.5 if variance > 0 else 0.0)


def bias_test(rows: PredictedRows, moments: Moments) -> Tested:
    """Test that the weighted mean residual of ``rows`` is zero."""
    if rows.binary and rows.clusters is None:
        return rate_test(rows.y, rows.f, rows.weights_or_ones)
    return mean_test(*one_per_cluster(rows), moments)


def one_per_cluster(rows: PredictedRows) -> tuple[Floats, Floats]:
    """Return residuals and weights of the rows, or the mean and sum of those of each cluster."""
    residual, weights = rows.y - rows.f, rows.weights_or_ones
    if rows.clusters is None:
        return residual, weights
    _, codes = np.unique(rows.clusters, return_inverse=True)
    sums: Floats = np.bincount(codes, weights).astype(np.float64)
    return np.bincount(codes, weights * residual) / sums, sums


# --- any outcomes --------------------------------------------------------------------------------


def mean_test(residual: Floats, weights: Floats, moments: Moments) -> Tested:
    """Test that a weighted mean is zero, by the less certain of Student's and Hall's statistic."""
    total, squares = float(weights.sum()), float(np.square(weights).sum())
    bias, n = float((weights * residual).sum() / total), total**2 / squares
    if n <= 1:
        return Tested(-np.inf, np.inf, 1.0)
    own = float(np.square(weights * (residual - bias)).sum())
    prior = PRIOR_ROWS * moments.variance * squares / n
    spread = max(own / (n - 1), (own + prior) / (n - 1 + PRIOR_ROWS))
    error = float(np.sqrt(spread * n)) / total
    if error <= TINY * abs(bias):
        return Tested(bias, bias, 1.0 if bias == 0 else 0.0)
    skew = moments.skewness * float((weights**3).sum()) / squares**1.5
    skew = float(np.clip(skew, -MOST_SKEW, MOST_SKEW))
    edge = float(stdtrit(n - 1, (1 + LEVEL) / 2))
    low = bias - error * max(edge, _without_hall(edge, skew))
    high = bias - error * min(-edge, _without_hall(-edge, skew))
    t = bias / error
    return Tested(low, high, float(2 * stdtr(n - 1, -min(abs(t), abs(_hall(t, skew))))))


def _hall(t: float, skew: float) -> float:
    return t + skew * t**2 / 3 + skew**2 * t**3 / 27 + skew / 6


def _without_hall(value: float, skew: float) -> float:
    """Return Student's statistic from Hall's."""
    if abs(skew) < 1e-6:
        return value
    return float(3 / skew * (np.cbrt(1 + skew * (value - skew / 6)) - 1))


# --- outcomes 0 and 1 ----------------------------------------------------------------------------


def rate_test(y: Floats, f: Floats, weights: Floats) -> Tested:
    """Test that outcomes y are 1 with probabilities f; see the module."""
    if 2 * (weights * y).sum() > weights.sum():  # the rarer of both outcomes is counted
        other = rate_test(1 - y, 1 - f, weights)
        return Tested(-other.high, -other.low, other.p_value)
    law = _law(y, f, weights)
    side = (1 - LEVEL) / 2
    low = -np.inf if law.total == 0 else _root(lambda tilt: law.above(tilt) - side)
    high = _root(lambda tilt: side - law.below(tilt))
    p_value = min(2 * law.below(0.0), 2 * law.above(0.0), 1.0)
    return Tested(law.bias(low), law.bias(high), p_value)


def _root(rising: Callable[[float], float]) -> float:
    """Return where a rising function of a tilt is zero, or the largest tilt."""
    step = 0.5 if rising(0.0) < 0 else -0.5
    near, far = 0.0, step
    while rising(far) * step < 0:
        near, far = far, 2 * far
        if abs(far) > MOST_TILT:
            return far
    return float(brentq(rising, min(near, far), max(near, far), xtol=1e-6))


@dataclass(frozen=True)
class _Law:
    """The law of Σ w y of a tilted model, y_i = 1 with logit p_i = logit f_i + tilt · w_i."""

    # logits, weights: (m,)
    logits: Floats
    weights: Floats
    counts: Floats  # (m,) how many rows each entry stands for
    total: float  # the observed Σ w y, at most half of Σ w

    def below(self, tilt: float) -> float:
        """Return the probability of the total or less."""
        raise NotImplementedError

    def above(self, tilt: float) -> float:
        """Return the probability of the total or more."""
        raise NotImplementedError

    def mean(self, tilt: float) -> float:
        """Return the expectation of Σ w y."""
        return float((self.counts * self.weights * expit(self.logits + tilt * self.weights)).sum())

    def bias(self, tilt: float) -> float:
        """Return by how much the mean outcome of a tilted model is above the mean prediction."""
        return (self.mean(tilt) - self.mean(0.0)) / float((self.counts * self.weights).sum())


class _PoissonBinomial(_Law):
    """Exact, for weights of 1 and entries of one row each."""

    def below(self, tilt: float) -> float:
        return float(_probabilities(expit(self.logits + tilt), int(self.total)).sum())

    def above(self, tilt: float) -> float:
        events, p = int(self.total), expit(self.logits + tilt)
        fewer = float(_probabilities(p, events - 1).sum())
        if events == 0 or 1 - fewer > SMALL:
            return 1 - fewer
        most = min(events + TAIL, len(p))  # the difference would be rounding
        return float(_probabilities(p, most)[events:].sum())


@dataclass(frozen=True)
class _Saddlepoint(_Law):
    """The approximation of Lugannani and Rice; ``lattice``: all weights are 1."""

    lattice: bool

    def below(self, tilt: float) -> float:
        if self.total == 0:
            return float(np.exp(-self._cumulant(tilt)))
        w, t = self._parts(tilt)
        return _tail(w, (np.expm1(t) if self.lattice else t) * self.deviation)

    def above(self, tilt: float) -> float:
        if self.total == 0:
            return 1.0
        w, t = self._parts(tilt)
        return _tail(-w, (np.expm1(-t) if self.lattice else -t) * self.deviation)

    @cached_property
    def saddle(self) -> float:
        """The tilt at which the observed total is expected."""
        return _root(lambda tilt: self.mean(tilt) - self.total)

    @cached_property
    def deviation(self) -> float:
        """The standard deviation of the total there."""
        p = expit(self.logits + self.saddle * self.weights)
        return float(np.sqrt((self.counts * np.square(self.weights) * p * (1 - p)).sum()))

    def _parts(self, tilt: float) -> tuple[float, float]:
        """Return the signed root of the likelihood ratio, and the saddlepoint."""
        t = self.saddle - tilt
        exponent = t * self.total - self._cumulant(self.saddle) + self._cumulant(tilt)
        return float(np.sign(t) * np.sqrt(max(2 * exponent, 0.0))), t

    def _cumulant(self, tilt: float) -> float:
        """Return −log P(Σ w y = 0), which is log E exp(tilt · Σ w y) up to a constant."""
        return float(-(self.counts * log_expit(-self.logits - tilt * self.weights)).sum())


def _tail(w: float, u: float) -> float:
    """Return Φ(w) − φ(w) (1/u − 1/w); where w is almost 0, its limit."""
    if abs(w) < 1e-4:
        return 0.5
    density = np.exp(-w * w / 2) / np.sqrt(2 * np.pi)
    return float(np.clip(ndtr(w) - density * (1 / u - 1 / w), 0.0, 1.0))


def _law(y: Floats, f: Floats, weights: Floats) -> _Law:
    f = np.clip(f, TINY, 1 - TINY)
    weights = weights / weights.mean()
    if np.ptp(weights) > 1e-12:
        return _Saddlepoint(logit(f), weights, np.ones(len(y)), (weights * y).sum(), lattice=False)
    n, events = len(y), float(y.sum())
    if n * (events + TAIL) <= EXACT_CELLS:
        return _PoissonBinomial(logit(f), np.ones(n), np.ones(n), events)
    return _Saddlepoint(*_grouped(f), events, lattice=True)


def _grouped(f: Floats) -> tuple[Floats, Floats, Floats]:
    """Return logits, weights and counts; rows of nearly the same probability are one entry."""
    codes = np.floor(logit(f) * GRID).astype(np.int64)
    codes -= codes.min()
    counts = np.bincount(codes)
    filled = counts > 0
    means = np.bincount(codes, f)[filled] / counts[filled]
    return logit(means), np.ones(len(means)), counts[filled].astype(np.float64)


@njit(**ENTRY)
def _probabilities(p, most):
    """Return the probabilities of 0 to ``most`` events, (most + 1,), event i with p_i."""
    found = np.zeros(max(most + 1, 1))
    found[0] = 1.0
    for i in range(p.shape[0]):
        for k in range(min(i + 1, most), 0, -1):
            found[k] = found[k] * (1.0 - p[i]) + found[k - 1] * p[i]
        found[0] *= 1.0 - p[i]
    return found[: most + 1]
