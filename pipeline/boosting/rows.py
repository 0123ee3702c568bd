"""The rows that a model is fitted to or tried on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from pipeline.boosting.arrays import Floats, Ints


@dataclass(frozen=True)
class Rows:
    """Rows as they came and as the trees see them.

    table : X as it came (an array or a DataFrame), for initial predictors.
    X : (n, d) finite numbers.  labels : (n,) y as it came.  y : (n,) the target as numbers.
    weights : (n,), or None for all 1.  given : (n,) initial scores from elsewhere, or None.
    groups : (n,) rows of a group are not parted, or None.
    """

    table: Any
    X: Floats
    labels: Any
    y: Floats
    weights: Floats | None
    given: Floats | None
    groups: Any = None

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.y)

    def take(self, which: Ints) -> Rows:
        """Some of the rows."""
        return replace(
            self,
            table=_safe_indexing(self.table, which),
            X=self.X[which],
            labels=self.labels[which],
            y=self.y[which],
            weights=None if self.weights is None else self.weights[which],
            given=None if self.given is None else self.given[which],
            groups=None if self.groups is None else self.groups[which],
        )

    def mean(self, values: Floats) -> float:
        """The mean of values (n,) over the rows, by their weights."""
        return float(np.average(values, weights=self.weights))
