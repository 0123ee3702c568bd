"""The two losses: what they make of scores, and how a round is fitted to them."""

from dataclasses import dataclass

import numpy as np

from .arrays import Floats, Weights
from .engines.base import Ensemble, FitsLogLoss, Fitter, GrowsTrees, draw_sample
from .logloss import LARGEST_LOGIT, LogLossAdaptive, log_losses, logit, sigmoid
from .rescaling import Adaptive, Rescaling, resolve

# The number of rows, of all that a round is judged by, that are taken to be of the other class.
# (With one, 70 rows that a model separates end a little above the start on new rows; with two they
# do not.)
DOUBTED_ROWS = 2.0


class Loss:
    """A loss of scores f (n,), of which predictions are a function: by default, f itself."""

    def of_rows(self, y: Floats, f: Floats) -> Floats:
        """Return the loss of each row, (n,)."""
        raise NotImplementedError

    def cautious(self, y: Floats, f: Floats) -> Floats:
        """Return the loss of each row, (n,), less certain than these n rows alone suggest."""
        return self.of_rows(y, f)

    def cautious_slope(self, y: Floats, f: Floats) -> Floats:
        """Return the derivative of `cautious` by each row's f, (n,)."""
        raise NotImplementedError

    def response(self, f: Floats) -> Floats:
        """Return what scores predict: expected values of y."""
        return f

    def score(self, prediction: Floats) -> Floats:
        """Return the scores of predictions; the inverse of `response`."""
        return prediction

    def rescaling(self, rescaling: str | Rescaling) -> Rescaling:
        """Return the strategy of a name, or the object itself; "adaptive" minimises this loss."""
        return resolve(rescaling)

    def fit(
        self, fitter: Fitter, y: Floats, f: Floats, feature: Floats, seed: int, weights: Weights
    ) -> tuple[Ensemble, Floats]:
        """Fit a round's ensemble on (X, feature) from f; return it and its values on these rows."""
        del weights  # the fitter was bound to them
        return fitter.fit(feature, y - f, seed)


@dataclass(frozen=True)
class SquaredLoss(Loss):
    """The squared error (y − f)²."""

    def of_rows(self, y: Floats, f: Floats) -> Floats:
        return np.square(y - f)

    def cautious_slope(self, y: Floats, f: Floats) -> Floats:
        return 2.0 * (f - y)


@dataclass(frozen=True)
class LogLoss(Loss):
    """The log-loss log(1 + e^f) − y f of logits f, for y of 0 and 1."""

    def of_rows(self, y: Floats, f: Floats) -> Floats:
        return log_losses(y, f)

    def cautious(self, y: Floats, f: Floats) -> Floats:
        # The next row may be the first that is certain and wrong. (Where none of the rows is wrong,
        # their log-loss alone would call for ever larger logits.)
        return log_losses(_doubted(y), f)

    def cautious_slope(self, y: Floats, f: Floats) -> Floats:
        return sigmoid(f) - _doubted(y)

    def response(self, f: Floats) -> Floats:
        return sigmoid(f)

    def score(self, prediction: Floats) -> Floats:
        return logit(prediction)

    def rescaling(self, rescaling: str | Rescaling) -> Rescaling:
        strategy = resolve(rescaling)
        return LogLossAdaptive() if isinstance(strategy, Adaptive) else strategy

    def fit(
        self, fitter: Fitter, y: Floats, f: Floats, feature: Floats, seed: int, weights: Weights
    ) -> tuple[Ensemble, Floats]:
        if isinstance(fitter, FitsLogLoss):
            return fitter.fit_log_loss(feature, y, f, seed)
        if isinstance(fitter, GrowsTrees):
            return fit_ensemble(fitter, y, f, feature, seed, weights)
        raise TypeError(f"{type(fitter).__name__}: does not fit the log-loss")


def _doubted(y: Floats) -> Floats:
    """Return the labels of n rows with the share of `DOUBTED_ROWS` rows of the other class."""
    share = DOUBTED_ROWS / (len(y) + DOUBTED_ROWS)
    return y + share * (1.0 - 2.0 * y)


def fit_ensemble(
    fitter: GrowsTrees, y: Floats, f: Floats, feature: Floats, seed: int, weights: Weights = None
) -> tuple[Ensemble, Floats]:
    """Fit gradient-boosted trees to the log-loss on (X, feature), starting from the offset f.

    As in scikit-learn's GradientBoostingClassifier, each tree is fitted to the residuals y − μ and
    each leaf takes a Newton step. But a leaf of rows that are certain and wrong has almost no
    curvature, and its step would be huge: here no tree moves a row by more than `LARGEST_LOGIT`.
    (At a learning rate of 0.1 this concerns leaves of positives with a mean probability below
    0.7 %.) Returns the ensemble and its values on these rows.
    """
    settings, grower = fitter.settings, fitter.grower(feature, seed)
    h, all_steps = np.zeros(len(y)), []
    for tree in range(settings.n_trees):
        mass = weights
        if settings.subsample < 1.0:
            sample = draw_sample(seed, tree, len(y), settings.subsample)
            mass = sample.astype(np.float64) if weights is None else weights * sample
        p, others = sigmoid(f + h), sigmoid(-(f + h))
        gradient, hessian = y - p, p * others
        leaves = grower.grow(gradient, mass)
        if mass is not None:
            gradient, hessian = mass * gradient, mass * hessian
        numerator, denominator = np.bincount(leaves, gradient), np.bincount(leaves, hessian)
        largest = LARGEST_LOGIT / settings.learning_rate
        limit = np.sign(numerator) * largest
        with np.errstate(over="ignore"):
            steps = np.divide(numerator, denominator, out=limit, where=denominator > 0)
        steps = np.clip(steps, -largest, largest)
        h += settings.learning_rate * steps[leaves]
        all_steps.append(steps)
    return grower.ensemble(all_steps), h
