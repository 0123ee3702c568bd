"""Multicalibration gradient boosting for two classes, by scikit-learn's conventions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import assert_all_finite, check_is_fitted

from .arrays import Floats
from .estimator import MulticalibrationBoosting
from .initial import classifier_forest
from .logloss import sigmoid
from .losses import LogLoss
from .parameters import check_initial_prediction, check_predicted

ROUNDING = 1e-6  # by which probabilities that are passed may lie outside of [0, 1]


class MulticalibrationBoostingClassifier(ClassifierMixin, MulticalibrationBoosting):  # type: ignore[misc]
    """Multicalibration boosting for two classes with the log-loss, as a correction of a classifier.

    f is a logit. Each round fits an ensemble of trees to the log-loss on the features (x, f) from
    the offset f_t and moves to f_{t+1} = w_t (f_t + η h_t), as `MulticalibrationBoostingRegressor`
    does for the squared loss.

    Parameters and attributes are those of `MulticalibrationBoostingRegressor`, but

    rescaling : "adaptive" minimises the training log-loss of w φ_t, but no weight above 1 moves a
        probability to less than one in a million from 0 or 1.
    init : classifier or None, default=None
        The initial predictor, with `predict_proba`; None is scikit-learn's forest of 100 trees of
        depth 5.
    classes_ : the two labels, sorted.
    losses_ : the mean log-losses.

    Initial predictions that are passed are probabilities of the second class, (n,), or of both,
    (n, 2). For more than two classes, `sklearn.multiclass.OneVsRestClassifier` fits one model for
    each class and normalises.
    """

    _loss = LogLoss()
    _is_classifier = True

    def staged_decision_function(
        self, X: Any, initial_prediction: ArrayLike | None = None, *, n_rounds: int | None = None
    ) -> Iterator[Floats]:
        """Yield the logits f_0(x), …, f_T(x), each (n,); T is ``n_rounds`` or `best_round_`."""
        return self._staged_scores(X, initial_prediction, n_rounds)

    def decision_function(
        self, X: Any, initial_prediction: ArrayLike | None = None, *, n_rounds: int | None = None
    ) -> Floats:
        """Return the logits f_T(x), (n,), of the second class."""
        return self._scores(X, initial_prediction, n_rounds)

    def staged_predict_proba(
        self, X: Any, initial_prediction: ArrayLike | None = None, *, n_rounds: int | None = None
    ) -> Iterator[Floats]:
        """Yield the probabilities of both classes after each round, each (n, 2)."""
        for f in self._staged_scores(X, initial_prediction, n_rounds):
            yield _both(sigmoid(f))

    def predict_proba(
        self, X: Any, initial_prediction: ArrayLike | None = None, *, n_rounds: int | None = None
    ) -> Floats:
        """Return the probabilities of both classes, (n, 2)."""
        return _both(sigmoid(self._scores(X, initial_prediction, n_rounds)))

    def staged_predict(
        self, X: Any, initial_prediction: ArrayLike | None = None, *, n_rounds: int | None = None
    ) -> Iterator[Any]:
        """Yield the more probable labels after each round, each (n,)."""
        for f in self._staged_scores(X, initial_prediction, n_rounds):
            yield self.classes_[(f > 0).astype(int)]

    def predict(
        self, X: Any, initial_prediction: ArrayLike | None = None, *, n_rounds: int | None = None
    ) -> Any:
        """Return the more probable label of each row, (n,)."""
        check_is_fitted(self)
        return self.classes_[(self._scores(X, initial_prediction, n_rounds) > 0).astype(int)]

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        initial_prediction: ArrayLike | None = None,
    ) -> float:
        """Return the accuracy of the predicted labels."""
        predicted = self.predict(X, initial_prediction)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def _default_init(self, seed: int) -> Any:
        return classifier_forest(seed, self.n_jobs)

    def _scores_of(self, init: Any, table: Any) -> Floats:
        known = list(getattr(init, "classes_", self.classes_))
        if not set(known) <= set(self.classes_):
            raise ValueError(f"init: knows the classes {known}, y has {list(self.classes_)}")
        proba = check_predicted(init.predict_proba(table))
        if proba.ndim != 2 or proba.shape[1] != len(known):
            raise ValueError(f"init: its predict_proba has the shape {proba.shape}")
        if self.classes_[1] not in known:
            return self._loss.score(np.zeros(len(proba)))
        return self._loss.score(proba[:, known.index(self.classes_[1])])

    def _out_of_bag(self, forest: Any) -> Floats:
        second = list(forest.classes_).index(self.classes_[1])
        proba = np.asarray(forest.oob_decision_function_[:, second], dtype=np.float64)
        del forest.oob_decision_function_  # a model's size does not depend on the number of rows
        return self._loss.score(proba)

    def _given_scores(self, initial_prediction: ArrayLike, n: int) -> Floats:
        p = np.asarray(initial_prediction, dtype=np.float64)
        p = p[:, 1] if p.ndim == 2 and p.shape[1] == 2 else p
        p = check_initial_prediction(p, (n,))
        if p.min() < -ROUNDING or p.max() > 1.0 + ROUNDING:
            raise ValueError("initial_prediction: must hold probabilities, from 0 to 1")
        return self._loss.score(p)

    def _target(self, labels: Any, *, reset: bool) -> Floats:
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        if reset:
            if self.init is not None and not hasattr(self.init, "predict_proba"):
                raise ValueError(f"init={self.init!r}: must be a classifier with predict_proba")
            self.classes_ = np.unique(labels)
            if len(self.classes_) > 2:
                raise ValueError(
                    "Only binary classification is supported. The type of the target is "
                    f"{type_of_target(labels)}: y has {len(self.classes_)} instead of two classes. "
                    "sklearn.multiclass.OneVsRestClassifier(...) fits one model for each"
                )
            if len(self.classes_) < 2:
                raise ValueError("y: has one class only; a classifier needs two classes")
        unknown = ~np.isin(labels, self.classes_)
        if unknown.any():
            raise ValueError(f"y_val: has the label {labels[unknown][0]!r}, which y has not")
        return (labels == self.classes_[1]).astype(np.float64)

    def __sklearn_tags__(self) -> Any:
        """Return the tags; there are two classes only."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _both(p: Floats) -> Floats:
    return np.column_stack([1.0 - p, p])
