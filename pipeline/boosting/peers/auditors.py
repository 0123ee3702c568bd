"""Boosting by auditors of residuals: mcboost (Kim, Ghorbani, Zou, AIES 2019; Pfisterer et al., JOSS
2021).

Predictions lie in [0, 1]. In each iteration a regression of the residuals f − y on X is fitted to
all rows and to the rows of each bucket of initial predictions. The regression with the largest
mean(h · residual) on its rows updates the rows of its bucket: f e^(−η h), or f − η h. It ends when
none exceeds ``alpha``. The defaults are those of the R package: 5 iterations, α = 1e-4, η = 1, two
buckets, multiplicative updates, a ridge of λ = 0.01 on standardised columns (by glmnet, which
divides λ by the residuals' standard deviation). Its other auditor is rpart's tree with its defaults
(at least 20 rows to split, 7 in a leaf, and each split has to explain 1 % of the variance). The
package calls its defaults multiaccuracy; for multicalibration it recommends ten buckets and
additive updates.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from ..arrays import Flags, Floats
from .base import Corrected, Method, Range, Sample

SMALLEST = 1e-4  # a factor cannot move a prediction of 0


@dataclass(frozen=True)
class AuditorBoosting(Method):
    """Boosts with regressions of the residuals on X, as the R package mcboost does.

    See the module's text.
    """

    name = "auditors"

    auditor: Literal["ridge", "tree"] = "ridge"
    iterations: int = 5
    alpha: float = 1e-4
    eta: float = 1.0
    buckets: int = 2
    multiplicative: bool = True
    penalty: float = 0.01

    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:
        scale = Range.of(sample)
        y, first = scale.to(sample.y), scale.to(sample.f)
        buckets = [-1, *range(self.buckets)]
        p, steps = first, []
        for _ in range(self.iterations):
            found = [
                self._audit(sample.X, p - y, self._inside(first, bucket), seed)
                for bucket in buckets
            ]
            best = int(np.argmax([worth for worth, _ in found]))
            if found[best][0] < self.alpha:
                break
            steps.append((buckets[best], found[best][1]))
            p = self._update(p, sample.X, self._inside(first, buckets[best]), found[best][1])

        def predict(rows: Sample) -> Floats:
            start = scale.to(rows.f)
            q = start
            for bucket, model in steps:
                q = self._update(q, rows.X, self._inside(start, bucket), model)
            return scale.back(q)

        return Corrected(predict, len(steps))

    def _inside(self, p: Floats, bucket: int) -> Flags:
        """Return which rows are in a bucket, one of equal width; −1 means all rows."""
        if bucket < 0:
            return np.ones(len(p), np.bool_)
        at = np.minimum((p * self.buckets).astype(np.int64), self.buckets - 1)
        return at == bucket

    def _audit(self, X: Floats, residual: Floats, inside: Flags, seed: int) -> tuple[float, Any]:
        """Return how much an auditor finds in some rows, and the auditor."""
        if not inside.any() or np.ptp(residual[inside]) == 0:
            return 0.0, None
        model = self._model(residual[inside], seed).fit(X[inside], residual[inside])
        return float((model.predict(X[inside]) * residual[inside]).mean()), model

    def _model(self, residual: Floats, seed: int) -> Any:
        if self.auditor == "ridge":
            # glmnet minimises half the mean of the squares, scikit-learn their sum.
            penalty = self.penalty * len(residual) / float(residual.std())
            return make_pipeline(StandardScaler(), Ridge(penalty))
        return DecisionTreeRegressor(
            min_samples_split=20,
            min_samples_leaf=7,
            random_state=seed,
            min_impurity_decrease=0.01 * float(residual.var()),
        )

    def _update(self, p: Floats, X: Floats, inside: Flags, model: Any) -> Floats:
        if not inside.any():
            return p
        following = p.copy()
        h = model.predict(X[inside])
        if self.multiplicative:
            following[inside] = np.exp(-self.eta * h) * np.maximum(p[inside], SMALLEST)
        else:
            following[inside] = p[inside] - self.eta * h
        return np.clip(following, 0.0, 1.0)
