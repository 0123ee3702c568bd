"""What one would do anyway: nothing, recalibrate by the prediction alone, shift groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression

from pipeline.boosting.arrays import Floats
from pipeline.boosting.logloss import curvature, logit, sigmoid
from pipeline.boosting.peers.base import Corrected, Sample


@dataclass(frozen=True)
class Nothing:
    """The model as it is."""

    validates = False

    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:  # noqa: ARG002
        """See `Method`."""
        return Corrected(lambda rows: rows.f, 0)


@dataclass(frozen=True)
class LinearRecalibration:
    """a + b f by least squares; of classes, a + b logit f by maximum likelihood (Platt, 1999)."""

    validates = False

    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:  # noqa: ARG002
        """See `Method`."""
        if not sample.binary:
            line = LinearRegression().fit(sample.f[:, None], sample.y)
            return Corrected(lambda rows: line.predict(rows.f[:, None]), 1)
        platt = LogisticRegression(C=np.inf, max_iter=1000)
        platt.fit(logit(sample.f)[:, None], sample.y)
        return Corrected(lambda rows: platt.predict_proba(logit(rows.f)[:, None])[:, 1], 1)


@dataclass(frozen=True)
class IsotonicRecalibration:
    """The increasing function of f with the least squared error."""

    validates = False

    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:  # noqa: ARG002
        """See `Method`."""
        steps = IsotonicRegression(out_of_bounds="clip").fit(sample.f, sample.y)
        return Corrected(lambda rows: steps.predict(rows.f), 1)


@dataclass(frozen=True)
class GroupShift:
    """f + b for each cell of the sensitive columns, such that its mean is right (of classes, of
    logits).

    min_rows : a cell with fewer has no shift of its own but that of all rows together.
    """

    min_rows: int = 20

    validates = False

    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:  # noqa: ARG002
        """See `Method`."""
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
    """The b for which the mean of f + b is that of y; of logits, by Newton's method."""
    if not binary:
        return float((y - f).mean())
    scores, b = logit(f), 0.0
    # Half a row of each class more than there are: a cell of one class has no finite shift.
    target = (y.sum() + 0.5) / (len(y) + 1.0)
    for _ in range(50):
        bend = curvature(scores + b).mean()
        if bend < 1e-12:
            break
        step = float(np.clip((target - sigmoid(scores + b).mean()) / bend, -1.0, 1.0))
        b += step
        if abs(step) < 1e-10:
            break
    return b
