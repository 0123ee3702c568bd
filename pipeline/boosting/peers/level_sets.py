"""Level-set boosting (Globus-Harris, Harrison, Kearns, Roth, Sorrell, ICML 2023, Algorithm 1).

Predictions lie on a grid of [0, 1]. In each round the rows of each level set get a regression of
their own, fitted to y; what it predicts, rounded to the grid, is the next prediction. As in the
authors' code (LSBoost.py): the grid has ``levels + 1`` points over the range of y; at least two
rounds are done, and the last is the first one after the training error fell by no more than
``gamma / levels``, whose predictions are not rounded; the weak learner is a linear regression.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from pipeline.boosting.arrays import Floats, Ints
from pipeline.boosting.peers.base import Corrected, Range, Sample


@dataclass(frozen=True)
class LevelSetBoosting:
    """See the module's text.

    learner : "linear", or "tree" of ``depth``.  learning_rate : the share of a round's new
    predictions in the next.
    """

    levels: int = 10
    rounds: int = 100
    gamma: float = 0.1
    learner: str = "linear"
    depth: int = 2
    learning_rate: float = 1.0

    validates = False

    def __post_init__(self) -> None:
        """Refuse what there is not."""
        if self.learner not in ("linear", "tree"):
            raise ValueError(f"learner={self.learner}: must be linear or tree")

    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:  # noqa: ARG002
        """See `Method`."""
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
    """Each value's nearest point of an even grid on [0, 1], and its place."""
    level = np.rint(np.clip(p, 0.0, 1.0) * (len(grid) - 1)).astype(np.int64)
    return grid[level], level
