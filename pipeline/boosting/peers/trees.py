"""Gradient boosting with early stopping: a new model, or trees added to f."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import KFold

from ..arrays import Floats
from ..logloss import logit, sigmoid
from .base import Corrected, Method, Sample

MOST_TREES = 2000


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
    n_trees: int = MOST_TREES,
    **settings: Any,
) -> BoostedTrees:
    """Fit LightGBM on one thread, with its defaults and ``settings``, stopped on validation rows.

    start, start_val : scores (n,) that the trees are added to.
    """
    import lightgbm  # the extra 'lightgbm'

    parameters = _parameters(binary, seed) | settings
    train = lightgbm.Dataset(X, y, init_score=start)
    validation = lightgbm.Dataset(X_val, y_val, init_score=start_val, reference=train)
    stop = lightgbm.early_stopping(patience, verbose=False)
    booster = lightgbm.train(parameters, train, n_trees, valid_sets=[validation], callbacks=[stop])
    return BoostedTrees(booster, int(booster.best_iteration))


def _parameters(binary: bool, seed: int) -> dict[str, Any]:
    """Return LightGBM's parameters of a fit on one thread that gives the same trees every time."""
    return {
        "objective": "binary" if binary else "regression",
        "seed": seed,
        "num_threads": 1,
        "verbosity": -1,
        "deterministic": True,
        "force_row_wise": True,
    }


@dataclass(frozen=True)
class Lightgbm(Method):
    """Fits LightGBM with its defaults and early stopping: a new model, or trees added to f."""

    name = "lightgbm"
    validates_by = True

    # "nothing", a new model of X; "model", trees over (X, f) that are added to f
    start: Literal["nothing", "model"] = "nothing"
    learning_rate: float = 0.1
    leaves: int = 31
    patience: int = 50

    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:
        added = self.start == "model"
        X, X_val = (rows.with_f if added else rows.X for rows in (sample, validation))
        start, start_val = (_scores(rows) if added else None for rows in (sample, validation))
        trees = boosted_trees(
            X, sample.y, X_val, validation.y, sample.binary, seed, start=start, start_val=start_val,
            patience=self.patience, learning_rate=self.learning_rate, num_leaves=self.leaves,
        )  # fmt: skip
        if added:
            return Corrected(lambda rows: _added_to_f(rows, [trees]), trees.n_trees)
        return Corrected(lambda rows: trees.predict(rows.X), trees.n_trees)


def _scores(rows: Sample) -> Floats:
    return logit(rows.f) if rows.binary else rows.f


def _added_to_f(rows: Sample, models: Sequence[BoostedTrees]) -> Floats:
    """Return f with the mean of what models add to its scores, (n,)."""
    scores = _scores(rows) + np.mean([model.scores(rows.with_f) for model in models], axis=0)
    return sigmoid(scores) if rows.binary else scores


@dataclass(frozen=True)
class CrossFittedTrees(Method):
    """Adds LightGBM's trees over (X, f) to f, as many as are best in cross-validation.

    The number of trees is that with the smallest loss on the held-out rows of all folds; the search
    ends when the loss has not fallen for ``patience`` trees. The trees are added only if they
    improve the held-out rows by more than ``caution`` standard errors.

    combine : "average", the mean of the folds' models; "refit", one model of all rows with that
    number of trees.  in_sample : the model was fitted to the sample, so only validation rows are
    held out.
    """

    name = "crossfitted"
    validates_by = "in_sample"
    cost = 4.0

    folds: int = 5
    combine: Literal["average", "refit"] = "average"
    learning_rate: float = 0.1
    leaves: int = 31
    patience: int = 50
    caution: float = 1.0
    in_sample: bool = False

    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:
        import lightgbm  # the extra 'lightgbm'

        rows = sample + validation if self.in_sample else sample
        honest = np.arange(len(sample) if self.in_sample else 0, len(rows))
        kfold = KFold(self.folds, shuffle=True, random_state=seed)
        held_out = [honest[fold] for _, fold in kfold.split(honest)]
        settings = {"learning_rate": self.learning_rate, "num_leaves": self.leaves}
        parameters = _parameters(rows.binary, seed) | settings
        table = lightgbm.Dataset(rows.with_f, rows.y, init_score=_scores(rows))
        found: Any = lightgbm.cv(
            parameters,
            table,
            MOST_TREES,
            folds=[(np.setdiff1d(np.arange(len(rows)), fold), fold) for fold in held_out],
            callbacks=[lightgbm.early_stopping(self.patience, verbose=False)],
            return_cvbooster=True,
        )["cvbooster"]
        n_trees = int(found.best_iteration)
        models = [BoostedTrees(booster, n_trees) for booster in found.boosters]

        parts = zip(map(rows.take, held_out), models, strict=True)
        gains = [part.losses(part.f) - part.losses(_added_to_f(part, [m])) for part, m in parts]
        gain = np.concatenate(gains)
        if gain.mean() <= self.caution * gain.std() / np.sqrt(len(gain)):
            return Corrected(lambda rows: rows.f, 0)
        if self.combine == "refit":
            models = [BoostedTrees(lightgbm.train(parameters, table, n_trees), n_trees)]
        return Corrected(lambda rows: _added_to_f(rows, models), n_trees)


@dataclass(frozen=True)
class Histogram(Method):
    """Fits scikit-learn's HistGradientBoosting to X with its defaults and early stopping."""

    name = "histogram"
    validates_by = True
    cost = 2.0

    learning_rate: float = 0.1
    leaves: int = 31
    patience: int = 10

    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:
        kind = HistGradientBoostingClassifier if sample.binary else HistGradientBoostingRegressor
        model = kind(
            learning_rate=self.learning_rate,
            max_leaf_nodes=self.leaves,
            max_iter=MOST_TREES,
            early_stopping=True,
            n_iter_no_change=self.patience,
            random_state=seed,
        )
        model.fit(sample.X, sample.y, X_val=validation.X, y_val=validation.y)

        def predict(rows: Sample) -> Floats:
            return model.predict_proba(rows.X)[:, 1] if rows.binary else model.predict(rows.X)

        return Corrected(predict, int(model.n_iter_))
