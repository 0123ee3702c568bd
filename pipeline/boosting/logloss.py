"""The log-loss: its value, the ensemble of a round fitted to it, and the adaptive weight for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from pipeline.boosting.arrays import Floats
from pipeline.boosting.engines.base import Ensemble, Fitter, TreeSettings, draw_sample

LARGEST_LOGIT = np.log(1e6)  # initial probabilities are kept within one in a million of 0 and 1


def sigmoid(f: Floats) -> Floats:
    """μ(f) = 1 / (1 + e^(−f)), without overflow and exact far below 0."""
    return expit(f)


def curvature(f: Floats) -> Floats:
    """μ(f) (1 − μ(f)), exact on both far sides."""
    return expit(f) * expit(-f)


def logit(p: Floats) -> Floats:
    """The inverse of `sigmoid`, kept finite."""
    edge = sigmoid(np.array([LARGEST_LOGIT]))[0]
    p = np.clip(p, 1.0 - edge, edge)
    return np.log(p / (1.0 - p))


def log_losses(y: Floats, f: Floats) -> Floats:
    """log(1 + e^f) − y f; y holds zeros and ones."""
    return np.logaddexp(0.0, f) - y * f


def mean_log_loss(y: Floats, f: Floats, sample_weight: Floats | None = None) -> float:
    """Their mean."""
    return float(np.average(log_losses(y, f), weights=sample_weight))


def fit_ensemble(
    fitter: Fitter,
    y: Floats,
    f: Floats,
    settings: TreeSettings,
    seed: int,
    weights: Floats | None = None,
) -> tuple[Ensemble, Floats]:
    """Gradient boosting of the log-loss on (X, f) from the offset f.

    As scikit-learn's GradientBoostingClassifier: each tree is fitted to the residuals y − μ, each
    leaf takes a Newton step. But a leaf of rows that are certain and wrong has next to no
    curvature, and its step would be astronomical: here no tree moves a row by more than
    `LARGEST_LOGIT`. At a learning rate of 0.1 that is a leaf of positives with a mean probability
    below 0.7 %. Gives the ensemble and its values on these rows.
    """
    grower = fitter.grower(f, seed)
    h, all_steps = np.zeros(len(y)), []
    for tree in range(settings.n_trees):
        mass = weights
        if settings.subsample < 1.0:
            sample = draw_sample(seed, tree, len(y), settings.subsample)
            mass = sample.astype(np.float64) if weights is None else weights * sample
        p, others = expit(f + h), expit(-(f + h))
        residual, bends = y - p, p * others
        leaves = grower.grow(residual, mass)
        if mass is not None:
            residual, bends = mass * residual, mass * bends
        slope, bend = np.bincount(leaves, residual), np.bincount(leaves, bends)
        most = LARGEST_LOGIT / settings.learning_rate
        with np.errstate(over="ignore"):
            steps = np.divide(slope, bend, out=np.sign(slope) * most, where=bend > 0)
        steps = np.clip(steps, -most, most)
        h += settings.learning_rate * steps[leaves]
        all_steps.append(steps)
    return grower.ensemble(all_steps), h


@dataclass(frozen=True)
class LogLossAdaptive:
    """w_t minimises the log-loss of w φ_t; the counterpart of `Adaptive` for classification.

    Where the signs of φ_t separate the classes there is no minimum: any weight is better than a
    smaller one. So no weight above 1 carries a logit beyond `LARGEST_LOGIT`, and where every row is
    beyond all doubt, it stays 1.
    """

    def weight(
        self,
        t: int,  # noqa: ARG002
        y: Floats,
        phi: Floats,
        sample_weight: Floats | None = None,
    ) -> float:
        """w_t by Newton's method with halved steps, from 1; see `Rescaling`."""
        w, loss = 1.0, mean_log_loss(y, phi, sample_weight)
        largest = np.abs(phi).max(initial=0.0)
        most = max(1.0, LARGEST_LOGIT / largest) if largest > 0 else 1.0
        for _ in range(50):
            p = sigmoid(w * phi)
            slope = float(np.average(phi * (p - y), weights=sample_weight))
            bend = float(np.average(phi * phi * curvature(w * phi), weights=sample_weight))
            if abs(slope) < 1e-14 or bend < 1e-300:
                break
            step = slope / bend
            if w - step > most:
                step = w - most
            while abs(step) > 1e-14 and mean_log_loss(y, (w - step) * phi, sample_weight) > loss:
                step /= 2
            w, loss = w - step, mean_log_loss(y, (w - step) * phi, sample_weight)
            if abs(step) < 1e-12:
                break
        return w
