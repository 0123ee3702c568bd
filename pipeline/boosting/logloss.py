"""The log-loss: its value, and the adaptive weight that minimises it."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from .arrays import Floats
from .rescaling import Rescaling

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
class LogLossAdaptive(Rescaling):
    """w_t minimises the log-loss of w φ_t; the counterpart of `Adaptive` for classification.

    Where the signs of φ_t separate the classes there is no minimum: a larger weight is always
    better. So no weight above 1 moves a logit beyond `LARGEST_LOGIT`, and where logits are beyond
    it already, the weight is at most 1.
    """

    def weight(self, t: int, y: Floats, phi: Floats, sample_weight: Floats | None = None) -> float:
        # Newton's method from 1; a step is halved until it does not raise the loss.
        w, loss = 1.0, mean_log_loss(y, phi, sample_weight)
        largest = np.abs(phi).max(initial=0.0)
        most = max(1.0, LARGEST_LOGIT / largest) if largest > 0 else 1.0
        for _ in range(50):
            p = sigmoid(w * phi)
            slope = float(np.average(phi * (p - y), weights=sample_weight))
            second = float(np.average(phi * phi * curvature(w * phi), weights=sample_weight))
            if abs(slope) < 1e-14 or second < 1e-300:
                break
            step = slope / second
            if w - step > most:
                step = w - most
            while abs(step) > 1e-14 and mean_log_loss(y, (w - step) * phi, sample_weight) > loss:
                step /= 2
            w, loss = w - step, mean_log_loss(y, (w - step) * phi, sample_weight)
            if abs(step) < 1e-12:
                break
        return w
