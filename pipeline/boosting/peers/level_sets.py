"""Level-set boosting (Globus-Harris, Harrison, Kearns, Roth, Sorrell, ICML 2023, Algorithm 1).

Predictions lie on a grid of [0, 1]. In each round a regression of y is fitted to the rows of each
level set; its predictions, rounded to the grid, are the next predictions. As in the authors' code
(LSBoost.py), the grid has ``levels + 1`` points over the range of y; there are at least two rounds,
and the last is the first one after the training error fell by no more than ``gamma / levels``,
whose predictions are not rounded; the weak learner is a linear regression.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor
from typing_extensions import override

from pipeline.boosting.arrays import Floats, Ints
from pipeline.boosting.peers.base import Corrected, Method, Range, Sample


@dataclass(frozen=True)
class LevelSetBoosting(Method):
    """Fits a regression of y to each level set of the predictions, round by round.

    See the module's text.

    learner : "linear", or "tree" of ``depth``.  learning_rate : the weight of a round's new
    predictions; the previous ones have the rest.
    """

    name = "level_sets"

    levels: int = 10
    rounds: int = 100
    gamma: float = 0.1
    learner: str = "linear"
    depth: int = 2
    learning_rate: float = 1.0

    def __post_init__(self) -> None:
        """Check the options."""
        if self.learner not in ("linear", "tree"):
            raise ValueError(f"learner={self.learner}: must be linear or tree")

    @override
    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:
        scale = Range.of(sample)
        y = scale.to(sample.y)
        grid = np.linspace(0.0, 1.0, self.levels + 1)
        p, level = _rounded(scale.to(sample.f), grid)
        rounds: list[dict[int, Any]] = []
        errors: list[float] = []
        for t in range(self.rounds):
            last = t + 1 == self.rounds or (
                t >= 2 and errors[-2] - errors[-1] <= self.gamma / self.levels
            )
            rounds.append(self._learners(sample.X, y, level, seed))
            p = self._step(sample.X, p, level, rounds[-1])
            if last:
                break
            p, level = _rounded(p, grid)
            errors.append(float(np.square(y - p).mean()))

        def predict(rows: Sample) -> Floats:
            q, at = _rounded(scale.to(rows.f), grid)
            for learners in rounds:
                q = self._step(rows.X, q, at, learners)
                if learners is not rounds[-1]:
                    q, at = _rounded(q, grid)
            return scale.back(np.clip(q, 0.0, 1.0))

        return Corrected(predict, len(rounds))

    def _learners(self, X: Floats, y: Floats, level: Ints, seed: int) -> dict[int, Any]:
        return {
            int(v): self._learner(seed).fit(X[inside], y[inside])
            for v in np.unique(level)
            for inside in [level == v]
        }

    def _learner(self, seed: int) -> Any:
        if self.learner == "linear":
            return LinearRegression()
        return DecisionTreeRegressor(max_depth=self.depth, random_state=seed)

    def _step(self, X: Floats, p: Floats, level: Ints, learners: dict[int, Any]) -> Floats:
        following = p.copy()
        for v, learner in learners.items():
            inside = level == v
            if inside.any():
                new = learner.predict(X[inside])
                following[inside] += self.learning_rate * (new - p[inside])
        return following


def _rounded(p: Floats, grid: Floats) -> tuple[Floats, Ints]:
    """Return the nearest point of an even grid on [0, 1] for each value, and its index."""
    level = np.rint(np.clip(p, 0.0, 1.0) * (len(grid) - 1)).astype(np.int64)
    return grid[level], level
