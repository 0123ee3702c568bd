"""Multicalibration gradient boosting for classes, by scikit-learn's conventions."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_is_fitted

from .arrays import Floats
from .descriptions import described
from .estimator import MulticalibrationBoosting
from .initial import classifier_forest
from .initial_predictor import InitialPredictor
from .logloss import sigmoid
from .losses import LogLoss
from .parameters import check_initial_prediction, check_predicted
from .rows import TrainingRows

ROUNDING = 1e-6  # by which probabilities that are passed may lie outside of [0, 1]


@described
class MulticalibrationBoostingClassifier(ClassifierMixin, MulticalibrationBoosting):  # type: ignore[misc]
    """Multicalibration boosting with the log-loss, as a correction of a classifier.

    f is a logit. Each round fits an ensemble of trees to the log-loss on the features (x, f) from
    the offset f_t and moves to f_{t+1} = w_t (f_t + η h_t), as `MulticalibrationBoostingRegressor`
    does for the squared loss. Of more than two classes, each has a correction of its own, on the
    logit of its own probability, and what is kept of it is decided for itself; the corrected
    probabilities are divided by their sum.

    Parameters
    ----------
    {rounds}
    rescaling : {"unit", "relaxed", "adaptive"} or Rescaling, default="unit"
        The strategy for w_t. "adaptive" minimises the training log-loss of w φ_t, but no weight
        above 1 moves a probability to less than one in a million from 0 or 1. An object needs a
        ``weight(t, y, phi)`` method, which is passed sample weights as a fourth argument if there
        are any.
    {feedback}
    init : classifier or None, default=None
        The initial predictor, with `predict_proba`, which is given X as it was passed. None is
        scikit-learn's forest of 100 trees of depth 5.
    {trees}
    l2_regularization : float, default=10.0
        What is added to the sum of the curvatures p (1 − p) of a leaf's rows.
    {keeping}

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted.
    corrections_ : tuple of MulticalibrationBoostingClassifier
        Of more than two classes, the fitted classifier of each class, whose attributes tell of its
        rounds; otherwise empty.
    {fitted}

    Notes
    -----
    Initial predictions that are passed are probabilities of all classes, (n, classes), or of the
    second of two, (n,). For tables with words and missing cells see
    `MulticalibrationBoostingRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.metrics import log_loss
    >>> from mcgb import MulticalibrationBoostingClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GaussianNB().fit(X[:150], y[:150])
    >>> better = MulticalibrationBoostingClassifier(init=model, init_cv="prefit", random_state=0)
    >>> p = better.fit(X[150:400], y[150:400]).predict_proba(X[400:])
    >>> log_loss(y[400:], p) < log_loss(y[400:], model.predict_proba(X[400:]))
    True
    """

    _loss = LogLoss()
    _metric = staticmethod(accuracy_score)
    _is_classifier = True

    def _fit(
        self, initial: InitialPredictor, rows: TrainingRows, honest: TrainingRows | None, seed: int
    ) -> Self:
        self.corrections_: tuple[MulticalibrationBoostingClassifier, ...] = ()
        if len(self.classes_) == 2:
            return super()._fit(initial, rows, honest, seed)
        fitted = initial.fit(rows)
        self.init_, self.gain_, found = fitted.predictor, None, []
        for k, label in enumerate(self.classes_):
            one = type(self)(**(self.get_params(deep=False) | {"init": None, "init_cv": None}))
            held_out: dict[str, Any] = {"groups": rows.groups}
            if honest is not None:
                held_out = {
                    "X_val": honest.table,
                    "y_val": honest.labels == label,
                    "sample_weight_val": honest.weights,
                    "initial_prediction_val": sigmoid(initial.scores(fitted, honest)[:, k]),
                }
            p = sigmoid(fitted.f0[:, k])
            found.append(one.fit(rows.table, rows.labels == label, rows.weights, p, **held_out))
        self.corrections_ = tuple(found)
        self.best_round_ = max(one.best_round_ for one in found)
        return self

    def staged_decision_function(
        self, X: Any, initial_prediction: ArrayLike | None = None, *, n_rounds: int | None = None
    ) -> Iterator[Floats]:
        """Predict the logits of the second of two classes after each round.

        Parameters
        ----------
        {predicted}

        Yields
        ------
        ndarray of shape (n,)
            f_0(x), …, f_T(x), one after the other.
        """
        check_is_fitted(self)
        if self.corrections_:
            raise ValueError(
                "stages are those of two classes; of more, each of corrections_ has its own"
            )
        yield from self._staged_scores(X, initial_prediction, n_rounds)

    def decision_function(
        self, X: Any, initial_prediction: ArrayLike | None = None, *, n_rounds: int | None = None
    ) -> Floats:
        """Predict logits.

        Parameters
        ----------
        {predicted}

        Returns
        -------
        ndarray of shape (n,) or (n, classes)
            The logits f_T(x) of the second of two classes; of more, the logarithms of their
            probabilities.
        """
        check_is_fitted(self)
        if self.corrections_:
            return np.log(self.predict_proba(X, initial_prediction))
        return self._scores(X, initial_prediction, n_rounds)

    def staged_predict_proba(
        self, X: Any, initial_prediction: ArrayLike | None = None, *, n_rounds: int | None = None
    ) -> Iterator[Floats]:
        """Predict the probabilities of two classes after each round.

        Parameters
        ----------
        {predicted}

        Yields
        ------
        ndarray of shape (n, 2)
            Those of f_0, …, f_T, one after the other.
        """
        for f in self.staged_decision_function(X, initial_prediction, n_rounds=n_rounds):
            yield _both(sigmoid(f))

    def predict_proba(
        self, X: Any, initial_prediction: ArrayLike | None = None, *, n_rounds: int | None = None
    ) -> Floats:
        """Predict the probabilities of all classes.

        Parameters
        ----------
        {predicted}

        Returns
        -------
        ndarray of shape (n, classes)
            In the order of `classes_`.
        """
        check_is_fitted(self)
        if not self.corrections_:
            return _both(sigmoid(self._scores(X, initial_prediction, n_rounds)))
        if n_rounds is not None:
            raise ValueError("n_rounds: is for two classes")
        table, matrix = self._table(X, reset=False)
        start = sigmoid(self._initial_scores(table, matrix, initial_prediction))
        each = zip(self.corrections_, start.T, strict=True)
        found = np.column_stack([one.predict_proba(X, p)[:, 1] for one, p in each])
        return found / found.sum(axis=1, keepdims=True)

    def staged_predict(
        self, X: Any, initial_prediction: ArrayLike | None = None, *, n_rounds: int | None = None
    ) -> Iterator[Any]:
        """Predict labels of two classes after each round.

        Parameters
        ----------
        {predicted}

        Yields
        ------
        ndarray of shape (n,)
            The more probable labels by f_0, …, f_T, one after the other.
        """
        for f in self.staged_decision_function(X, initial_prediction, n_rounds=n_rounds):
            yield self.classes_[(f > 0).astype(int)]

    def predict(
        self, X: Any, initial_prediction: ArrayLike | None = None, *, n_rounds: int | None = None
    ) -> Any:
        """Predict labels.

        Parameters
        ----------
        {predicted}

        Returns
        -------
        ndarray of shape (n,)
            The most probable label of each row.
        """
        f = self.decision_function(X, initial_prediction, n_rounds=n_rounds)
        return self.classes_[f.argmax(axis=1) if self.corrections_ else (f > 0).astype(int)]

    score = MulticalibrationBoosting.score  # not the mixin's: it takes initial predictions

    def _default_init(self, seed: int) -> Any:
        return classifier_forest(seed, n_jobs=self.n_jobs)

    def _scores_of(self, init: Any, table: Any) -> Floats:
        known = list(getattr(init, "classes_", self.classes_))
        if not set(known) <= set(self.classes_):
            raise ValueError(f"init: knows the classes {known}, y has {list(self.classes_)}")
        proba = check_predicted(init.predict_proba(table))
        proba = proba.reshape(len(proba), -1)  # of a fold with one class, one column
        if proba.shape[1] != len(known):
            raise ValueError(f"init: its predict_proba has the shape {proba.shape}")
        every = np.zeros((len(proba), len(self.classes_)))
        every[:, np.searchsorted(self.classes_, known)] = proba
        return self._of_classes(every)

    def _out_of_bag(self, forest: Any) -> Floats:
        proba = np.asarray(forest.oob_decision_function_, dtype=np.float64)
        del forest.oob_decision_function_  # a model's size does not depend on the number of rows
        return self._of_classes(proba)

    def _given_scores(self, initial_prediction: ArrayLike, n: int) -> Floats:
        p, classes = np.asarray(initial_prediction, dtype=np.float64), len(self.classes_)
        if classes == 2 and not (p.ndim == 2 and p.shape[1] == 2):
            p = check_initial_prediction(p, (n,))
            p = _both(p)
        p = check_initial_prediction(p, (n, classes))
        if p.min() < -ROUNDING or p.max() > 1.0 + ROUNDING:
            raise ValueError("initial_prediction: must hold probabilities, from 0 to 1")
        return self._of_classes(p)

    def _of_classes(self, proba: Floats) -> Floats:
        """Return the logits of the second of two classes, (n,), or of all, (n, classes)."""
        return self._loss.score(proba[:, 1] if proba.shape[1] == 2 else proba)

    def _target(self, labels: Any, *, reset: bool) -> Floats:
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        if reset:
            if self.init is not None and not hasattr(self.init, "predict_proba"):
                raise ValueError(f"init={self.init!r}: must be a classifier with predict_proba")
            self.classes_ = np.unique(labels)
            if len(self.classes_) < 2:
                raise ValueError("y: has one class only; a classifier needs two classes")
        unknown = ~np.isin(labels, self.classes_)
        if unknown.any():
            raise ValueError(
                f"y_val: has the label {labels[unknown].tolist()[0]!r}, which y has not"
            )
        return np.searchsorted(self.classes_, labels).astype(np.float64)


def _both(p: Floats) -> Floats:
    return np.column_stack([1.0 - p, p])
