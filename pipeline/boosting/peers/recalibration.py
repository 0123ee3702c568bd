"""Simple corrections: none, recalibration by the prediction alone, a shift of each group."""

from dataclasses import dataclass

import numpy as np
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression

from ..arrays import Floats
from ..logloss import curvature, logit, sigmoid
from .base import Corrected, Method, Sample


@dataclass(frozen=True)
class Nothing(Method):
    """Leaves the model as it is."""

    name = "nothing"

    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:
        return Corrected(lambda rows: rows.f, 0)


@dataclass(frozen=True)
class LinearRecalibration(Method):
    """Fits a + b f by least squares; for classes, a + b logit f by maximum likelihood.

    The latter is Platt's scaling (1999).
    """

    name = "linear"

    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:
        if not sample.binary:
            line = LinearRegression().fit(sample.f[:, None], sample.y)
            return Corrected(lambda rows: line.predict(rows.f[:, None]), 1)
        platt = LogisticRegression(C=np.inf, max_iter=1000)
        platt.fit(logit(sample.f)[:, None], sample.y)
        return Corrected(lambda rows: platt.predict_proba(logit(rows.f)[:, None])[:, 1], 1)


@dataclass(frozen=True)
class IsotonicRecalibration(Method):
    """Fits the increasing function of f with the smallest squared error."""

    name = "isotonic"

    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:
        isotonic = IsotonicRegression(out_of_bounds="clip").fit(sample.f, sample.y)
        return Corrected(lambda rows: isotonic.predict(rows.f), 1)


@dataclass(frozen=True)
class GroupShift(Method):
    """Shifts predictions (for classes, logits) so that the mean of each sensitive cell is right.

    min_rows : a cell with fewer rows is shifted like all rows together.
    """

    name = "group_shift"

    min_rows: int = 20

    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:
        overall = _shift(sample.y, sample.f, sample.binary)
        cells, counts = np.unique(sample.cells, return_counts=True)
        shifts = {
            int(cell): _shift(sample.y[inside], sample.f[inside], sample.binary)
            for cell in cells[counts >= self.min_rows]
            for inside in [sample.cells == cell]
        }

        def predict(rows: Sample) -> Floats:
            added = np.array([shifts.get(int(cell), overall) for cell in rows.cells])
            return sigmoid(logit(rows.f) + added) if rows.binary else rows.f + added

        return Corrected(predict, 1)


def _shift(y: Floats, f: Floats, binary: bool) -> float:
    """Return b such that f + b has the mean of y; for logits, by Newton's method."""
    if not binary:
        return float((y - f).mean())
    scores, b = logit(f), 0.0
    # Half a row is added to each class: a cell with one class would have no finite shift.
    target = (y.sum() + 0.5) / (len(y) + 1.0)
    for _ in range(50):
        slope = curvature(scores + b).mean()
        if slope < 1e-12:
            break
        step = float(np.clip((target - sigmoid(scores + b).mean()) / slope, -1.0, 1.0))
        b += step
        if abs(step) < 1e-10:
            break
    return b
