"""The literal reference: scikit-learn's GradientBoostingRegressor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor

from pipeline.boosting.engines.base import Floats, TreeSettings


@dataclass(frozen=True)
class SklearnEnsemble:
    """A fitted GradientBoostingRegressor over (x, f)."""

    model: GradientBoostingRegressor

    def predict(self, X: Floats, f: Floats) -> Floats:
        """h(x, f); see `Ensemble`."""
        return self.model.predict(np.column_stack([X, f]))


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


@dataclass(frozen=True)
class SklearnEngine:
    """``engine="sklearn"``."""

    settings: TreeSettings

    def bind(self, X: Floats) -> SklearnFitter:
        """See `Engine`."""
        return SklearnFitter(X, self.settings)
