"""Level-set boosting (Globus-Harris, Harrison, Kearns, Roth, Sorrell, ICML 2023, Algorithm 1).

Predictions lie on a grid of [0, 1]. In each round a regression of y is fitted to the rows of each
level set; its predictions, rounded to the grid, are the next predictions. As in the authors' code
(LSBoost.py), the grid has ``levels + 1`` points over the range of y; a level set of one row is left
as it is; there are at least two rounds, and the last is the first one after the training error fell
by no more than ``gamma / levels``, whose predictions are not rounded; the weak learner is a linear
regression. With ``validated`` (``fit_validation`` in their code) a level set is updated only if its
regression has less than (1 − ``gamma``) times the error of the predictions before on the validation
rows of the level set, of which there have to be two.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from ..arrays import Floats, Ints
from .base import Corrected, Method, Range, Sample

FEWEST_ROWS = 2  # of a level set that is updated


@dataclass(frozen=True)
class _Placed:
    """Rows with their predictions p (n,) and the level sets (n,) that these lie in."""

    X: Floats
    y: Floats
    p: Floats
    level: Ints

    @classmethod
    def of(cls, rows: Sample, scale: Range, levels: int) -> Self:
        p, unknown = scale.to(rows.f), np.zeros(len(rows), np.int64)
        return cls(rows.X, scale.shares(rows.y), p, unknown).rounded(levels)

    def rounded(self, levels: int) -> Self:
        """Return the rows with predictions at the nearest points of the grid."""
        level = np.rint(np.clip(self.p, 0.0, 1.0) * levels).astype(np.int64)
        return replace(self, p=level / levels, level=level)

    def updated(self, learners: dict[int, Any], rate: float) -> Self:
        """Return the rows with the predictions of the level sets' learners."""
        p = self.p.copy()
        for v, learner in learners.items():
            inside = self.level == v
            if inside.any():
                p[inside] += rate * (learner.predict(self.X[inside]) - p[inside])
        return replace(self, p=p)


@dataclass(frozen=True)
class LevelSetBoosting(Method):
    """Fits a regression of y to each level set of the predictions, round by round.

    See the module's text.

    learning_rate : the weight of a round's new predictions; the previous ones have the rest.
    """

    name = "level_sets"
    validates_by = "validated"

    levels: int = 10
    rounds: int = 100
    gamma: float = 0.1
    learner: Literal["linear", "tree"] = "linear"
    depth: int = 2  # of trees
    learning_rate: float = 1.0
    validated: bool = False

    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:
        scale = Range.of(sample)
        train = _Placed.of(sample, scale, self.levels)
        held_out = _Placed.of(validation, scale, self.levels)
        rounds: list[dict[int, Any]] = []
        errors: list[float] = []
        for t in range(self.rounds):
            last = t + 1 == self.rounds or (
                t >= 2 and errors[-2] - errors[-1] <= self.gamma / self.levels
            )
            learners = self._learners(train, seed)
            if self.validated:
                learners = {v: h for v, h in learners.items() if self._is_better(h, v, held_out)}
            rounds.append(learners)
            if last:
                break
            train, held_out = (
                rows.updated(learners, self.learning_rate).rounded(self.levels)
                for rows in (train, held_out)
            )
            errors.append(float(np.square(train.y - train.p).mean()))

        def predict(rows: Sample) -> Floats:
            placed = _Placed.of(rows, scale, self.levels)
            for learners in rounds[:-1]:
                placed = placed.updated(learners, self.learning_rate).rounded(self.levels)
            p = placed.updated(rounds[-1], self.learning_rate).p
            return scale.back(np.clip(p, 0.0, 1.0))

        return Corrected(predict, len(rounds))

    def _learners(self, rows: _Placed, seed: int) -> dict[int, Any]:
        found, counts = np.unique(rows.level, return_counts=True)
        return {
            int(v): self._learner(seed).fit(rows.X[inside], rows.y[inside])
            for v in found[counts >= FEWEST_ROWS]
            for inside in [rows.level == v]
        }

    def _learner(self, seed: int) -> Any:
        if self.learner == "linear":
            return LinearRegression()
        return DecisionTreeRegressor(max_depth=self.depth, random_state=seed)

    def _is_better(self, learner: Any, v: int, rows: _Placed) -> bool:
        """Return whether a learner's error in a level set is clearly below that of p."""
        inside = rows.level == v
        if inside.sum() < FEWEST_ROWS:
            return False
        y = rows.y[inside]
        error = np.square(y - learner.predict(rows.X[inside])).mean()
        return bool(error < (1.0 - self.gamma) * np.square(y - rows.p[inside]).mean())
