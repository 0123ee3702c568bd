"""The literal reference: scikit-learn's GradientBoostingRegressor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.tree import DecisionTreeRegressor

from pipeline.boosting.arrays import Float32s, Floats
from pipeline.boosting.engines.base import TreeSettings


@dataclass(frozen=True)
class SklearnEnsemble:
    """A fitted GradientBoostingRegressor over (x, f)."""

    model: GradientBoostingRegressor

    def predict(self, X: Floats, f: Floats) -> Floats:
        """h(x, f); see `Ensemble`."""
        return self.model.predict(np.column_stack([X, f]))


@dataclass(frozen=True)
class LeafEnsemble:
    """scikit-learn's trees over (x, f) with values of their own: h(x, f) = lr Σ leaf values."""

    trees: tuple[DecisionTreeRegressor, ...]
    values: tuple[Floats, ...]
    learning_rate: float

    def predict(self, X: Floats, f: Floats) -> Floats:
        """h(x, f); see `Ensemble`."""
        features = _features(X, f)
        h = np.zeros(len(features))
        for tree, values in zip(self.trees, self.values, strict=True):
            h += self.learning_rate * values[tree.tree_.apply(features)]
        return h


@dataclass(frozen=True)
class SklearnGrower:
    """See `Grower`."""

    features: Float32s
    settings: TreeSettings
    random: np.random.RandomState
    trees: list[DecisionTreeRegressor] = field(default_factory=list)

    def grow(self, residual: Floats) -> NDArray[np.intp]:
        """See `Grower`."""
        tree = DecisionTreeRegressor(max_depth=self.settings.max_depth, random_state=self.random)
        self.trees.append(tree.fit(self.features, residual))
        return tree.tree_.apply(self.features)

    def ensemble(self, values: Sequence[Floats]) -> LeafEnsemble:
        """See `Grower`."""
        return LeafEnsemble(tuple(self.trees), tuple(values), self.settings.learning_rate)


@dataclass(frozen=True)
class SklearnFitter:
    """scikit-learn prepares nothing ahead: every round starts from X again."""

    X: Floats
    settings: TreeSettings

    def fit(self, f: Floats, residual: Floats, seed: int) -> tuple[SklearnEnsemble, Floats]:
        """Fit a round; see `Fitter`."""
        features = np.column_stack([self.X, f])
        model = GradientBoostingRegressor(
            n_estimators=self.settings.n_trees,
            max_depth=self.settings.max_depth,
            learning_rate=self.settings.learning_rate,
            random_state=seed,
        ).fit(features, residual)
        return SklearnEnsemble(model), model.predict(features)

    def grower(self, f: Floats, seed: int) -> SklearnGrower:
        """See `Fitter`."""
        return SklearnGrower(_features(self.X, f), self.settings, np.random.RandomState(seed))


@dataclass(frozen=True)
class SklearnEngine:
    """``engine="sklearn"``, which has one thread."""

    settings: TreeSettings
    n_threads: int = 1

    def bind(self, X: Floats) -> SklearnFitter:
        """See `Engine`."""
        return SklearnFitter(X, self.settings)


def _features(X: Floats, f: Floats) -> Float32s:
    return np.column_stack([X, f]).astype(np.float32)
