"""Rows of a table with what is known of them, one array or frame per field."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils import _safe_indexing

from .arrays import Flags, Floats, Ints
from .logloss import log_losses, logit


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows with their targets; the base of all types of rows.

    A field of a subclass is None, a flag that concerns all rows, or has one entry per row.
    """

    y: Floats  # (n,) the targets as numbers
    weights: Floats | None = None  # (n,), or None for all 1

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.y)

    def take(self, which: Ints | Flags | slice) -> Self:
        """Return some of the rows."""
        taken = {name: _safe_indexing(value, which) for name, value in self._columns()}
        return replace(self, **taken)

    def __add__(self, other: Self) -> Self:
        """Return these rows followed by others."""
        joined: dict[str, Any] = {
            name: _join(value, getattr(other, name)) for name, value in self._columns()
        }
        if self.weights is not None or other.weights is not None:
            joined["weights"] = np.concatenate([self.weights_or_ones, other.weights_or_ones])
        return replace(self, **joined)

    @property
    def weights_or_ones(self) -> Floats:
        """The weights as an array (n,)."""
        return np.ones(len(self)) if self.weights is None else self.weights

    def mean(self, values: Floats) -> float:
        """Return the weighted mean of values (n,)."""
        return float(np.average(values, weights=self.weights))

    def _columns(self) -> Iterator[tuple[str, Any]]:
        """Yield the fields that have an entry per row, with their names."""
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not isinstance(value, bool):
                yield field.name, value


@dataclass(frozen=True, kw_only=True)
class TrainingRows(Rows):
    """Rows that an estimator is fitted to or validated on."""

    table: Any  # X as it was passed (an array or a DataFrame), for initial predictors
    X: Floats  # (n, d) the matrix that the trees see
    labels: Any  # (n,) y as it was passed
    given: Floats | None = None  # (n,) the scores of initial predictions that were passed, or None
    groups: Any = None  # (n,) rows with the same value stay in the same fold; or None


@dataclass(frozen=True, kw_only=True)
class PredictedRows(Rows):
    """Rows with a model's predictions."""

    f: Floats  # (n,) expected values, or probabilities of 1
    binary: bool = False  # whether the targets are 0 and 1
    # (n,) rows with the same number depend on each other; None if all are independent
    clusters: Ints | None = None

    @property
    def residual(self) -> Floats:
        """The weighted residuals (n,)."""
        return self.weights_or_ones * (self.y - self.f)

    def losses(self, prediction: Floats) -> Floats:
        """Return the squared error, or the log-loss, of each row for predictions (n,).

        For the log-loss, probabilities are kept within 1e-6 of 0 and 1.
        """
        if self.binary:
            return log_losses(self.y, logit(prediction))
        return np.square(self.y - prediction)

    def loss(self, prediction: Floats) -> float:
        """Return the mean of `losses`, without weights."""
        return float(self.losses(prediction).mean())


def _join(first: Any, second: Any) -> Any:
    if second is None:  # weights, which are dealt with apart
        return first
    frames = isinstance(first, pd.DataFrame | pd.Series)
    return pd.concat([first, second]) if frames else np.concatenate([first, second])
