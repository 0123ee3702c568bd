"""The literal reference: scikit-learn's GradientBoostingRegressor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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

    def gains(self) -> Floats:
        """See `Ensemble`."""
        return _gains(self.model.estimators_[:, 0])


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

    def gains(self) -> Floats:
        """See `Ensemble`."""
        return _gains(self.trees)


@dataclass(frozen=True)
class SklearnGrower:
    """See `Grower`."""

    features: Float32s
    settings: TreeSettings
    random: np.random.RandomState
    trees: list[DecisionTreeRegressor] = field(default_factory=list)

    def grow(self, residual: Floats, mass: Floats | None = None) -> NDArray[np.intp]:
        """See `Grower`."""
        tree = DecisionTreeRegressor(
            max_depth=self.settings.max_depth,
            min_samples_leaf=self.settings.min_samples_leaf,
            max_features=self.settings.max_features,
            random_state=self.random,
        )
        self.trees.append(tree.fit(self.features, residual, sample_weight=mass))
        return tree.tree_.apply(self.features)

    def ensemble(self, values: Sequence[Floats]) -> LeafEnsemble:
        """See `Grower`."""
        return LeafEnsemble(tuple(self.trees), tuple(values), self.settings.learning_rate)


@dataclass(frozen=True)
class SklearnFitter:
    """scikit-learn prepares nothing ahead: every round starts from X again."""

    X: Floats
    settings: TreeSettings
    weights: Floats | None = None

    def fit(self, f: Floats, residual: Floats, seed: int) -> tuple[SklearnEnsemble, Floats]:
        """Fit a round; see `Fitter`."""
        features = np.column_stack([self.X, f])
        model = GradientBoostingRegressor(
            n_estimators=self.settings.n_trees,
            max_depth=self.settings.max_depth,
            learning_rate=self.settings.learning_rate,
            min_samples_leaf=self.settings.min_samples_leaf,
            subsample=self.settings.subsample,
            max_features=self.settings.max_features,
            random_state=seed,
        ).fit(features, residual, sample_weight=self.weights)
        return SklearnEnsemble(model), model.predict(features)

    def grower(self, f: Floats, seed: int) -> SklearnGrower:
        """See `Fitter`."""
        return SklearnGrower(_features(self.X, f), self.settings, np.random.RandomState(seed))


@dataclass(frozen=True)
class SklearnEngine:
    """``engine="sklearn"``, which has one thread."""

    settings: TreeSettings
    n_threads: int = 1

    def bind(self, X: Floats, weights: Floats | None = None) -> SklearnFitter:
        """See `Engine`."""
        return SklearnFitter(X, self.settings, weights)


def _gains(trees: Iterable[DecisionTreeRegressor]) -> Floats:
    # scikit-learn's importances are divided by the weight of all rows.
    return sum(
        tree.tree_.compute_feature_importances(normalize=False)
        * tree.tree_.weighted_n_node_samples[0]
        for tree in trees
    )


def _features(X: Floats, f: Floats) -> Float32s:
    return np.column_stack([X, f]).astype(np.float32)
