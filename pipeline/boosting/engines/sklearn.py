"""The reference engine: scikit-learn's GradientBoostingRegressor."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.tree import DecisionTreeRegressor

from ..arrays import Float32s, Floats
from .base import Engine, Ensemble, Fitter, Grower, GrowsTrees, TreeSettings


@dataclass(frozen=True)
class SklearnEnsemble(Ensemble):
    """A fitted GradientBoostingRegressor over (x, f)."""

    model: GradientBoostingRegressor

    def predict(self, X: Floats, f: Floats) -> Floats:
        return self.model.predict(np.column_stack([X, f]))

    def gains(self) -> Floats:
        return _gains(self.model.estimators_[:, 0])


@dataclass(frozen=True)
class LeafEnsemble(Ensemble):
    """scikit-learn's trees over (x, f) with given leaf values: h(x, f) = lr Σ leaf values."""

    trees: tuple[DecisionTreeRegressor, ...]
    values: tuple[Floats, ...]
    learning_rate: float

    def predict(self, X: Floats, f: Floats) -> Floats:
        features = _features(X, f)
        h = np.zeros(len(features))
        for tree, values in zip(self.trees, self.values, strict=True):
            h += self.learning_rate * values[tree.tree_.apply(features)]
        return h

    def gains(self) -> Floats:
        return _gains(self.trees)


@dataclass(frozen=True)
class SklearnGrower(Grower):
    """Grows scikit-learn's trees one at a time."""

    features: Float32s
    settings: TreeSettings
    random: np.random.RandomState
    trees: list[DecisionTreeRegressor] = field(default_factory=list)

    def grow(self, residual: Floats, mass: Floats | None = None) -> NDArray[np.intp]:
        tree = DecisionTreeRegressor(
            max_depth=self.settings.max_depth,
            min_samples_leaf=self.settings.min_samples_leaf,
            max_features=self.settings.max_features,
            random_state=self.random,
        )
        self.trees.append(tree.fit(self.features, residual, sample_weight=mass))
        return tree.tree_.apply(self.features)

    def ensemble(self, values: Sequence[Floats]) -> LeafEnsemble:
        return LeafEnsemble(tuple(self.trees), tuple(values), self.settings.learning_rate)


@dataclass(frozen=True)
class SklearnFitter(Fitter, GrowsTrees):
    """scikit-learn bound to training rows; it prepares nothing, every round starts from X again."""

    X: Floats
    settings: TreeSettings
    weights: Floats | None = None

    def fit(self, f: Floats, residual: Floats, seed: int) -> tuple[SklearnEnsemble, Floats]:
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
        return SklearnGrower(_features(self.X, f), self.settings, np.random.RandomState(seed))


@dataclass(frozen=True)
class SklearnEngine(Engine):
    """``engine="sklearn"``."""

    settings: TreeSettings

    def __post_init__(self) -> None:
        """Check the settings."""
        self.settings.check_plain("sklearn")

    def bind(self, X: Floats, weights: Floats | None = None) -> SklearnFitter:
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
