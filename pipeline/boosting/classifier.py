"""Multicalibration gradient boosting for two classes, with scikit-learn's conventions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from pipeline.boosting.algorithm import advance, boost, round_seed
from pipeline.boosting.arrays import Floats
from pipeline.boosting.engines import TreeSettings, make_engine
from pipeline.boosting.estimator import (
    MulticalibrationBoosting,
    check_parameters,
    n_threads_of,
    seed_of,
)
from pipeline.boosting.initial import classifier_forest
from pipeline.boosting.logloss import (
    LogLossAdaptive,
    fit_ensemble,
    logit,
    mean_log_loss,
    sigmoid,
)
from pipeline.boosting.rescaling import resolve


class MulticalibrationBoostingClassifier(ClassifierMixin, MulticalibrationBoosting):  # type: ignore[misc]
    """Algorithm 1 for binary classification with the log-loss.

    f is a logit. Each round fits an ensemble of trees to the log-loss on the features (x, f_t) from
    the offset f_t and moves to f_{t+1} = w_t (f_t + η h_t).

    Parameters
    ----------
    n_rounds, eta, n_trees, max_depth, learning_rate, engine, random_state
        As in `MulticalibrationBoostingRegressor`.
    rescaling : {"unit", "relaxed", "adaptive"} or Rescaling, default="unit"
        Where w_t comes from; "adaptive" minimises the training log-loss of w φ_t.
    init : classifier or None, default=None
        The initial predictor, with `predict_proba`; None is a forest of 100 trees of depth 5.

    Twenty rounds of a hundred trees fit small data to the last row; `staged_predict_proba` on
    held-out rows tells how many to keep.

    Attributes
    ----------
    classes_ : the two labels, sorted.
    weights_, gaps_, losses_ : as in the regressor; ``losses_`` are mean log-losses.
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the rounds to X (n, d) and labels y (n,) of two classes."""
        check_parameters(self)
        rows: Any
        labels: Any
        rows, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) != 2:
            raise ValueError(
                f"Only binary classification is supported: y must have two classes, "
                f"not {len(self.classes_)} class(es)"
            )
        target = codes.astype(np.float64)
        seed = seed_of(self.random_state)
        if self.init is not None and not hasattr(self.init, "predict_proba"):
            raise ValueError(f"init={self.init!r}: must be a classifier with predict_proba")
        start = classifier_forest(seed) if self.init is None else clone(self.init)
        self.init_ = start.fit(rows, codes)
        settings = TreeSettings(self.n_trees, self.max_depth, self.learning_rate)
        fitter = make_engine(self.engine, settings, n_threads_of(self.n_jobs)).bind(rows)
        f0 = self._start(rows)
        rescaling = LogLossAdaptive() if self.rescaling == "adaptive" else resolve(self.rescaling)
        self.steps_ = list(
            boost(
                target,
                f0,
                self.n_rounds,
                self.eta,
                rescaling,
                lambda t, f, _: fit_ensemble(fitter, target, f, settings, round_seed(seed, t)),
            )
        )
        self.weights_ = np.array([step.weight for step in self.steps_])
        self.gaps_ = np.array([step.gap for step in self.steps_])
        self.losses_ = np.array(
            [mean_log_loss(target, f) for f in [f0, *(step.f for step in self.steps_)]]
        )
        return self

    def staged_decision_function(self, X: ArrayLike) -> Iterator[Floats]:
        """Yield the logits f_0(x), …, f_T(x), each (n,)."""
        check_is_fitted(self)
        rows: Floats = validate_data(self, X, dtype=np.float64, reset=False)
        f = self._start(rows)
        yield f
        for step in self.steps_:
            f = advance(f, rows, step, self.eta)
            yield f

    def decision_function(self, X: ArrayLike) -> Floats:
        """The logits f_T(x), (n,), of the second class."""
        *_, last = self.staged_decision_function(X)
        return last

    def staged_predict_proba(self, X: ArrayLike) -> Iterator[Floats]:
        """Yield the probabilities of both classes after each round, each (n, 2)."""
        for f in self.staged_decision_function(X):
            yield _both(sigmoid(f))

    def predict_proba(self, X: ArrayLike) -> Floats:
        """The probabilities of both classes, (n, 2)."""
        return _both(sigmoid(self.decision_function(X)))

    def predict(self, X: ArrayLike) -> Any:
        """The likelier label of each row."""
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(int)]

    def _start(self, rows: Floats) -> Floats:
        proba = np.asarray(self.init_.predict_proba(rows), dtype=np.float64)
        return logit(proba[:, 1])

    def __sklearn_tags__(self) -> Any:
        """Two classes only."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _both(p: Floats) -> Floats:
    return np.column_stack([1.0 - p, p])
