"""The two losses: what they make of scores, and how a round is fitted to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from typing_extensions import override

from pipeline.boosting.arrays import Floats
from pipeline.boosting.engines.base import Ensemble, FitsLogLoss, Fitter, GrowsTrees
from pipeline.boosting.logloss import LogLossAdaptive, fit_ensemble, log_losses, logit, sigmoid
from pipeline.boosting.rescaling import Adaptive, Rescaling, resolve

# The number of rows, of all that a round is judged by, that are taken to be of the other class.
# (With one, 70 rows that a model separates end a little above the start on new rows; with two they
# do not.)
DOUBTED_ROWS = 2.0


class Loss(Protocol):
    """A loss of scores f (n,), of which predictions are a function."""

    def of_rows(self, y: Floats, f: Floats) -> Floats:
        """Return the loss of each row, (n,)."""
        ...

    def cautious(self, y: Floats, f: Floats) -> Floats:
        """Return the loss of each row, (n,), less certain than these n rows alone suggest."""
        ...

    def cautious_slope(self, y: Floats, f: Floats) -> Floats:
        """Return the derivative of `cautious` by each row's f, (n,)."""
        ...

    def response(self, f: Floats) -> Floats:
        """Return what scores predict: expected values of y."""
        ...

    def score(self, prediction: Floats) -> Floats:
        """Return the scores of predictions; the inverse of `response`."""
        ...

    def rescaling(self, rescaling: str | Rescaling) -> Rescaling:
        """Return the strategy of a name, or the object itself; "adaptive" minimises this loss."""
        ...

    def fit(
        self,
        fitter: Fitter,
        y: Floats,
        f: Floats,
        feature: Floats,
        seed: int,
        weights: Floats | None,
    ) -> tuple[Ensemble, Floats]:
        """Fit a round's ensemble on (X, feature) from f; return it and its values on these rows."""
        ...


@dataclass(frozen=True)
class SquaredLoss(Loss):
    """The squared error (y − f)²."""

    @override
    def of_rows(self, y: Floats, f: Floats) -> Floats:
        return np.square(y - f)

    @override
    def cautious(self, y: Floats, f: Floats) -> Floats:
        return self.of_rows(y, f)

    @override
    def cautious_slope(self, y: Floats, f: Floats) -> Floats:
        return 2.0 * (f - y)

    @override
    def response(self, f: Floats) -> Floats:
        return f

    @override
    def score(self, prediction: Floats) -> Floats:
        return prediction

    @override
    def rescaling(self, rescaling: str | Rescaling) -> Rescaling:
        return resolve(rescaling)

    @override
    def fit(
        self,
        fitter: Fitter,
        y: Floats,
        f: Floats,
        feature: Floats,
        seed: int,
        weights: Floats | None,
    ) -> tuple[Ensemble, Floats]:
        return fitter.fit(feature, y - f, seed)


@dataclass(frozen=True)
class LogLoss(Loss):
    """The log-loss log(1 + e^f) − y f of logits f, for y of 0 and 1."""

    @override
    def of_rows(self, y: Floats, f: Floats) -> Floats:
        return log_losses(y, f)

    @override
    def cautious(self, y: Floats, f: Floats) -> Floats:
        # The next row may be the first that is certain and wrong. (Where none of the rows is wrong,
        # their log-loss alone would call for ever larger logits.)
        return log_losses(_doubted(y), f)

    @override
    def cautious_slope(self, y: Floats, f: Floats) -> Floats:
        return sigmoid(f) - _doubted(y)

    @override
    def response(self, f: Floats) -> Floats:
        return sigmoid(f)

    @override
    def score(self, prediction: Floats) -> Floats:
        return logit(prediction)

    @override
    def rescaling(self, rescaling: str | Rescaling) -> Rescaling:
        strategy = resolve(rescaling)
        return LogLossAdaptive() if isinstance(strategy, Adaptive) else strategy

    @override
    def fit(
        self,
        fitter: Fitter,
        y: Floats,
        f: Floats,
        feature: Floats,
        seed: int,
        weights: Floats | None,
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
