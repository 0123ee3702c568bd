"""The log-loss: its value, and the adaptive weight that minimises it."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import expit

from .arrays import Floats
from .rescaling import Each, Reduced, Rescaling

LARGEST_LOGIT = np.log(1e6)  # initial probabilities are kept within one in a million of 0 and 1


def sigmoid(f: Floats) -> Floats:
    """Return μ(f) = 1 / (1 + e^(−f)), without overflow and exact far below 0."""
    return expit(f)


def curvature(f: Floats) -> Floats:
    """Return μ(f) (1 − μ(f)), exact far from 0 on both sides."""
    return expit(f) * expit(-f)


def logit(p: Floats) -> Floats:
    """Return the inverse of `sigmoid`, clipped to ±`LARGEST_LOGIT`."""
    largest = sigmoid(np.array([LARGEST_LOGIT]))[0]
    p = np.clip(p, 1.0 - largest, largest)
    return np.log(p / (1.0 - p))


def log_losses(y: Floats, f: Floats) -> Floats:
    """Return log(1 + e^f) − y f of each row, without cancellation; y is from 0 to 1."""
    return y * np.logaddexp(0.0, -f) + (1.0 - y) * np.logaddexp(0.0, f)


def mean_log_loss(y: Floats, f: Floats, sample_weight: Floats | None = None) -> float:
    """Return the mean of `log_losses`, weighted if there are weights."""
    return float(np.average(log_losses(y, f), weights=sample_weight))


@dataclass(frozen=True)
class LogLossAdaptive(Rescaling, Reduced):
    """w_t minimises the log-loss of w φ_t; the counterpart of `Adaptive` for classification.

    Where the signs of φ_t separate the classes there is no minimum: a larger weight is always
    better. So no weight above 1 moves a logit beyond `LARGEST_LOGIT`, and where logits are beyond
    it already, the weight is at most 1.
    """

    def weight(self, t: int, y: Floats, phi: Floats, sample_weight: Floats | None = None) -> float:
        return self.reduced_weight(t, lambda function: [function(y, phi, sample_weight)])

    def reduced_weight(self, t: int, each: Each) -> float:
        def means(w: float) -> tuple[float, float, float]:
            found = zip(*each(partial(_sums, w)), strict=True)
            mass, *sums = (math.fsum(column) for column in found)
            loss, slope, second = (value / mass for value in sums)
            return loss, slope, second

        # Newton's method from 1; a step is halved until it does not raise the loss.
        w, (loss, slope, second) = 1.0, means(1.0)
        largest = max(each(_largest))
        most = max(1.0, LARGEST_LOGIT / largest) if largest > 0 else 1.0
        for _ in range(50):
            if abs(slope) < 1e-14 or second < 1e-300:
                break
            step = slope / second
            if w - step > most:
                step = w - most
            following = means(w - step)
            while abs(step) > 1e-14 and following[0] > loss:
                step /= 2
                following = means(w - step)
            w, (loss, slope, second) = w - step, following
            if abs(step) < 1e-12:
                break
        return w


def _sums(
    w: float, y: Floats, phi: Floats, sample_weight: Floats | None
) -> tuple[float, float, float, float]:
    """Return the sums over rows of 1, of the log-loss of w φ, and of its two derivatives by w."""
    f = w * phi
    terms = (log_losses(y, f), phi * (sigmoid(f) - y), phi * phi * curvature(f))
    if sample_weight is None:
        loss, slope, second = (float(term.sum()) for term in terms)
        return float(len(y)), loss, slope, second
    loss, slope, second = (float((term * sample_weight).sum()) for term in terms)
    return float(sample_weight.sum()), loss, slope, second


def _largest(y: Floats, phi: Floats, sample_weight: Floats | None) -> float:  # noqa: ARG001
    return float(np.abs(phi).max(initial=0.0))
