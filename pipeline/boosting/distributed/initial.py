"""The predictions from which the rounds of a large table start."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.dummy import DummyRegressor

from ..arrays import Floats
from ..engines.base import TreeSettings
from ..engines.lightgbm import Bins, binning, growing, lightgbm_package
from ..engines.nodes import TreeEnsemble

FOREST = TreeSettings(100, 5, subsample=0.632)  # the paper's, as far as LightGBM has it


class LightgbmForest(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A forest of LightGBM over (0, x), from its model text."""

    def __init__(self, model: str) -> None:
        self.model = model

    @cached_property
    def trees_(self) -> TreeEnsemble:
        """The trees of the text."""
        return TreeEnsemble.of_lightgbm(self.model)

    def predict(self, X: Any) -> Floats:
        """The mean of its trees, (n,), for a matrix of numbers (n, d)."""
        return self.trees_.predict(X, np.zeros(len(X)))


def fitted_forest(
    X: Floats,
    y: Floats,
    settings: TreeSettings,
    bins: Bins,
    seed: int,
    categorical: tuple[int, ...],
) -> LightgbmForest:
    """LightGBM's forest mode on rows X (n, d) and y (n,).

    It is fitted to the driver's sample: over shards, the rows that a tree draws would depend on how
    the table is divided.
    """
    lightgbm = lightgbm_package()
    parameters = binning(bins, 1) | growing(settings, seed) | {"boosting": "rf"}
    data = lightgbm.Dataset(
        np.column_stack([np.zeros(len(y)), X]), y, params=parameters,
        categorical_feature=[j + 1 for j in categorical],
    )  # fmt: skip
    return LightgbmForest(lightgbm.train(parameters, data, settings.n_trees).model_to_string())


@dataclass(frozen=True)
class Initial:
    """The initial predictor of X as numbers; None if predictions come with the rows."""

    predictor: Any = None

    @classmethod
    def from_text(cls, kind: str, text: str | None) -> Initial:
        """From its text in a checkpoint: a model of LightGBM, or the mean of y."""
        if kind == "given" or text is None:
            return cls()
        if kind == "forest":
            return cls(LightgbmForest(text))
        mean = DummyRegressor(strategy="constant", constant=float(text))
        return cls(mean.fit([[0.0]], [0.0]))

    def text(self) -> str | None:
        """See `from_text`."""
        if isinstance(self.predictor, DummyRegressor):
            return repr(self.predictor.constant)
        return None if self.predictor is None else self.predictor.model

    def predict(self, X: Floats, given: Floats | None) -> Floats:
        """f_0 of rows X (n, d), or their given predictions (n,)."""
        if self.predictor is not None:
            return np.asarray(self.predictor.predict(X), np.float64)
        if given is None:
            raise ValueError("initial_prediction: is needed for these rows")
        return given
