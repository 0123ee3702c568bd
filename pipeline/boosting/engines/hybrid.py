"""The hybrid algorithm of the paper's appendix, as an engine: weak learners and a strong model.

f_{t+1} = f_t + η [h_t + γ (ŷ − f_t)], where ŷ is the prediction of a strong model that is fitted to
the same rows once: here LightGBM's gradient boosting with its defaults.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import Floats
from .base import Engine, Ensemble, Fitter


@dataclass(frozen=True)
class Hybrid(Ensemble):
    """A round's ensemble h, and the strong model with its weight."""

    weak: Ensemble
    strong: Any
    gamma: float

    def predict(self, X: Floats, f: Floats) -> Floats:
        return self.weak.predict(X, f) + self.gamma * (self.strong.predict(X) - f)

    def gains(self) -> Floats:
        return self.weak.gains()


@dataclass(frozen=True)
class HybridFitter(Fitter):
    """The weak learners' engine, bound to rows X (n, d)."""

    weak: Fitter
    X: Floats
    gamma: float

    def fit(self, f: Floats, residual: Floats, seed: int) -> tuple[Ensemble, Floats]:
        strong, predicted = self.strong(f + residual)
        ensemble, h = self.weak.fit(f, residual, seed)
        return Hybrid(ensemble, strong, self.gamma), h + self.gamma * (predicted - f)

    def strong(self, y: Floats) -> tuple[Any, Floats]:
        """Return the strong model and its ŷ (n,); it is fitted once, to the first round's y."""
        if "model" not in self._fitted:
            from lightgbm import LGBMRegressor  # takes a second

            model = LGBMRegressor(n_jobs=1, verbose=-1, deterministic=True, force_col_wise=True)
            model.fit(self.X, y)
            self._fitted["model"] = model, np.asarray(model.predict(self.X))
        return self._fitted["model"]

    @cached_property
    def _fitted(self) -> dict[str, tuple[Any, Floats]]:
        return {}


@dataclass(frozen=True)
class HybridEngine(Engine):
    """An engine for the squared loss that mixes a strong model with an engine's weak learners."""

    weak: Engine
    gamma: float

    def bind(self, X: Floats, weights: Floats | None = None) -> HybridFitter:
        if weights is not None:
            raise ValueError("gamma: the hybrid algorithm takes no weights of rows")
        return HybridFitter(self.weak.bind(X), np.ascontiguousarray(X), self.gamma)
