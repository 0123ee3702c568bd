"""Gradient boosting with early stopping on the validation rows: a new model, or one added to f."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from typing_extensions import override

from pipeline.boosting.arrays import Floats
from pipeline.boosting.logloss import logit, sigmoid
from pipeline.boosting.peers.base import Corrected, Method, Sample


@dataclass(frozen=True)
class BoostedTrees:
    """LightGBM's trees up to the best one on validation rows."""

    booster: Any
    n_trees: int

    def predict(self, X: Floats) -> Floats:
        """Return expected outcomes (n,); for trees that are added to scores, use `scores`."""
        return np.asarray(self.booster.predict(X, num_iteration=self.n_trees), np.float64)

    def scores(self, X: Floats) -> Floats:
        """Return what the trees add to the scores that they started from, (n,)."""
        raw = self.booster.predict(X, num_iteration=self.n_trees, raw_score=True)
        return np.asarray(raw, np.float64)


def boosted_trees(
    X: Floats,
    y: Floats,
    X_val: Floats,
    y_val: Floats,
    binary: bool,
    seed: int,
    *,
    start: Floats | None = None,
    start_val: Floats | None = None,
    patience: int = 50,
    n_trees: int = 2000,
    **settings: Any,
) -> BoostedTrees:
    """Fit LightGBM on one thread, with its defaults and ``settings``, stopped on validation rows.

    start, start_val : scores (n,) that the trees are added to.
    """
    import lightgbm  # the extra 'lightgbm'

    parameters = {
        "objective": "binary" if binary else "regression",
        "seed": seed,
        "num_threads": 1,
        "verbosity": -1,
        "deterministic": True,
        "force_row_wise": True,
        **settings,
    }
    train = lightgbm.Dataset(X, y, init_score=start)
    validation = lightgbm.Dataset(X_val, y_val, init_score=start_val, reference=train)
    stop = lightgbm.early_stopping(patience, verbose=False)
    booster = lightgbm.train(parameters, train, n_trees, valid_sets=[validation], callbacks=[stop])
    return BoostedTrees(booster, int(booster.best_iteration))


@dataclass(frozen=True)
class Lightgbm(Method):
    """Fits LightGBM with its defaults and early stopping: a new model, or trees added to f.

    start : "nothing", a new model of X; "model", trees over (X, f) that are added to f.
    """

    name = "lightgbm"
    needs = "lightgbm"

    start: str = "nothing"
    learning_rate: float = 0.1
    leaves: int = 31
    patience: int = 50

    def __post_init__(self) -> None:
        """Check the options."""
        if self.start not in ("nothing", "model"):
            raise ValueError(f"start={self.start}: must be nothing or model")

    @property
    @override
    def validates(self) -> bool:
        return True

    @override
    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:
        settings: dict[str, Any] = {
            "learning_rate": self.learning_rate,
            "num_leaves": self.leaves,
            "patience": self.patience,
        }
        if self.start == "nothing":
            model = boosted_trees(
                sample.X, sample.y, validation.X, validation.y, sample.binary, seed, **settings
            )
            return Corrected(lambda rows: model.predict(rows.X), model.n_trees)
        added = boosted_trees(
            sample.with_f,
            sample.y,
            validation.with_f,
            validation.y,
            sample.binary,
            seed,
            start=_scores(sample),
            start_val=_scores(validation),
            **settings,
        )

        def predict(rows: Sample) -> Floats:
            scores = _scores(rows) + added.scores(rows.with_f)
            return sigmoid(scores) if rows.binary else scores

        return Corrected(predict, added.n_trees)


def _scores(rows: Sample) -> Floats:
    return logit(rows.f) if rows.binary else rows.f


@dataclass(frozen=True)
class Histogram(Method):
    """Fits scikit-learn's HistGradientBoosting to X with its defaults and early stopping."""

    name = "histogram"
    cost = 2.0

    learning_rate: float = 0.1
    leaves: int = 31
    patience: int = 10

    @property
    @override
    def validates(self) -> bool:
        return True

    @override
    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:
        kind = HistGradientBoostingClassifier if sample.binary else HistGradientBoostingRegressor
        model = kind(
            learning_rate=self.learning_rate,
            max_leaf_nodes=self.leaves,
            max_iter=2000,
            early_stopping=True,
            n_iter_no_change=self.patience,
            random_state=seed,
        )
        model.fit(sample.X, sample.y, X_val=validation.X, y_val=validation.y)

        def predict(rows: Sample) -> Floats:
            return model.predict_proba(rows.X)[:, 1] if rows.binary else model.predict(rows.X)

        return Corrected(predict, int(model.n_iter_))
