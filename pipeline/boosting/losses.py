"""What the two estimators differ in: the loss of a prediction, and how a round is fitted to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pipeline.boosting.arrays import Floats
from pipeline.boosting.engines.base import Ensemble, Fitter, TreeSettings
from pipeline.boosting.logloss import LogLossAdaptive, fit_ensemble, log_losses, logit, sigmoid
from pipeline.boosting.rescaling import Adaptive, Rescaling, resolve

# Rows that might be of the other class, of all that a round is judged by. (With one, 70 rows that a
# model separates end a little above the start on new ones; with two they do not.)
DOUBT = 2.0


class Loss(Protocol):
    """A loss of scores f (n,), of which predictions are a function."""

    def of_rows(self, y: Floats, f: Floats) -> Floats:
        """The loss of each row, (n,)."""
        ...

    def doubted(self, y: Floats, f: Floats) -> Floats:
        """The loss of each row, (n,), as far as n rows can tell."""
        ...

    def response(self, f: Floats) -> Floats:
        """What scores predict: expected values of y."""
        ...

    def score(self, prediction: Floats) -> Floats:
        """The scores of predictions; the inverse of `response`."""
        ...

    def rescaling(self, rescaling: str | Rescaling) -> Rescaling:
        """The weights w_t, from a name or an object; "adaptive" minimises this loss."""
        ...

    def fit(
        self,
        fitter: Fitter,
        settings: TreeSettings,
        y: Floats,
        f: Floats,
        seed: int,
        weights: Floats | None,
    ) -> tuple[Ensemble, Floats]:
        """A round's ensemble on (X, f), and its values on these rows."""
        ...


@dataclass(frozen=True)
class SquaredLoss:
    """(y − f)²; see `Loss`."""

    def of_rows(self, y: Floats, f: Floats) -> Floats:
        """See `Loss`."""
        return np.square(y - f)

    def doubted(self, y: Floats, f: Floats) -> Floats:
        """See `Loss`."""
        return self.of_rows(y, f)

    def response(self, f: Floats) -> Floats:
        """See `Loss`."""
        return f

    def score(self, prediction: Floats) -> Floats:
        """See `Loss`."""
        return prediction

    def rescaling(self, rescaling: str | Rescaling) -> Rescaling:
        """See `Loss`."""
        return resolve(rescaling)

    def fit(
        self,
        fitter: Fitter,
        settings: TreeSettings,  # noqa: ARG002
        y: Floats,
        f: Floats,
        seed: int,
        weights: Floats | None,  # noqa: ARG002
    ) -> tuple[Ensemble, Floats]:
        """See `Loss`."""
        return fitter.fit(f, y - f, seed)


@dataclass(frozen=True)
class LogLoss:
    """log(1 + e^f) − y f for logits f and y of 0 and 1; see `Loss`."""

    def of_rows(self, y: Floats, f: Floats) -> Floats:
        """See `Loss`."""
        return log_losses(y, f)

    def doubted(self, y: Floats, f: Floats) -> Floats:
        """See `Loss`.

        The next row may be the first that is certain and wrong: `DOUBT` of n rows are taken to be
        of the other class. (Where none of some rows is wrong, their log-loss would call for ever
        larger logits.)
        """
        share = DOUBT / (len(y) + DOUBT)
        return (1.0 - share) * log_losses(y, f) + share * log_losses(1.0 - y, f)

    def response(self, f: Floats) -> Floats:
        """See `Loss`."""
        return sigmoid(f)

    def score(self, prediction: Floats) -> Floats:
        """See `Loss`."""
        return logit(prediction)

    def rescaling(self, rescaling: str | Rescaling) -> Rescaling:
        """See `Loss`."""
        found = resolve(rescaling)
        return LogLossAdaptive() if isinstance(found, Adaptive) else found

    def fit(
        self,
        fitter: Fitter,
        settings: TreeSettings,
        y: Floats,
        f: Floats,
        seed: int,
        weights: Floats | None,
    ) -> tuple[Ensemble, Floats]:
        """See `Loss`."""
        return fit_ensemble(fitter, y, f, settings, seed, weights)
