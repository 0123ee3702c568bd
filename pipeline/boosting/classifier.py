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
from .estimator import MulticalibrationBoosting
from .initial import classifier_forest
from .initial_predictor import InitialPredictor
from .logloss import sigmoid
from .losses import LogLoss
from .parameters import check_initial_prediction, check_predicted
from .rows import TrainingRows

ROUNDING = 1e-6  # by which probabilities that are passed may lie outside of [0, 1]


class MulticalibrationBoostingClassifier(ClassifierMixin, MulticalibrationBoosting):  # type: ignore[misc]
    """Multicalibration boosting with the log-loss, as a correction of a classifier.

    f is a logit. Each round fits an ensemble of trees to the log-loss on the features (x, f) from
    the offset f_t and moves to f_{t+1} = w_t (f_t + η h_t), as `MulticalibrationBoostingRegressor`
    does for the squared loss. Of more than two classes, each has a correction of its own, on the
    logit of its own probability, and what is kept of it is decided for itself; the corrected
    probabilities are divided by their sum.

    Parameters
    ----------
    n_rounds : int, default=100
        The largest number of rounds; 0 leaves the initial predictor as it is. The paper has 20.
    eta : float, default=1.0
        Step size η in (0, 1].
    rescaling : {"unit", "relaxed", "adaptive"} or Rescaling, default="unit"
        The strategy for w_t. "adaptive" minimises the training log-loss of w φ_t, but no weight
        above 1 moves a probability to less than one in a million from 0 or 1. An object needs a
        ``weight(t, y, phi)`` method, which is passed sample weights as a fourth argument if there
        are any.
    feedback : {"honest", "in_sample", "initial", "none"}, default="honest"
        The trees' feature besides X: f_t of the trajectory of the row's own fold, which has not
        seen its y; f_t of the trajectory that the trees belong to, which has (the paper); f_0; or
        none.
    init : classifier or None, default=None
        The initial predictor, with `predict_proba`, which is given X as it was passed. None is
        scikit-learn's forest of 100 trees of depth 5.
    init_cv : None, "prefit", "oob", int or splitter, default=5
        How training rows get their f_0. An int or splitter: from clones of ``init`` fitted to the
        other folds; new rows get it from a clone fitted to all rows. "oob": from the out-of-bag
        predictions of a forest. "prefit": ``init`` is fitted already, to other rows, and used as it
        is (inside of `cross_val_score` and the like, wrap it in scikit-learn's FrozenEstimator).
        None: from ``init`` fitted to them, as in the paper.
    n_trees : int, default=10
        The number of trees of a round. The paper has 100.
    max_leaf_nodes : int or None, default=31
        The largest number of leaves of a tree; None if ``max_depth`` alone limits it.
    max_depth : int or None, default=None
        The largest depth of a tree. The paper has 3.
    learning_rate : float, default=0.2
        The factor of each tree in its ensemble.
    min_samples_leaf : int, default=20
        The smallest number of rows of a leaf.
    l2_regularization : float, default=10.0
        What is added to the sum of the curvatures p (1 − p) of a leaf's rows.
    subsample : float, default=1.0
        The share of the rows that each tree is fitted to.
    max_features : float, default=1.0
        The share of the features, including f, that each split chooses from.
    early_stopping : bool, default=True
        Whether rows held out decide what is kept; False keeps all ``n_rounds``, and fits them to
        all rows unless the feedback is honest.
    stack : bool, default=True
        Whether two further kinds of trees take part: a new model, which starts from a constant and
        is not given f, and trees of depth 2. The shares of all three are those that are best on
        rows held out. It takes three to six times as long. Needs ``scoring="loss"``.
    cv : int or splitter, default=5
        The folds; a splitter must hold out every row once.
    scoring : "loss", "mce", str or scorer, default="loss"
        What the number of rounds is chosen by: the loss, the multicalibration error, or any of
        scikit-learn's scorers. With "loss", the share 1 − (0.7 SE / gain)² of the correction is
        kept, SE being the standard error of its gain on rows held out.
    n_iter_no_change : int, default=5
        The number of rounds without an improvement after which no more are tried.
    engine : str, default="lightgbm"
        What fits the trees: LightGBM's histograms, with missing cells and categories left to
        LightGBM ("lightgbm_lossless" has a bin for every value, and indicators); or "exact", a
        compiled kernel made for the paper's sizes, and "sklearn", scikit-learn itself, which grow
        the same trees of a ``max_depth``, without ``max_leaf_nodes`` and ``l2_regularization``. Not
        trees, but smooth functions of (x, f) are "linear", "cosines" (``n_trees`` of them) and
        "soft_trees".
    n_jobs : int or None, default=None
        The number of folds that are fitted at once, and of threads of the initial forest: as in
        scikit-learn, but at most one per core. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        The seed of the initial forest, folds, samples and ties between equally good splits.
    verbose : int, default=0
        1 shows a progress bar, 2 prints a line for each round.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted.
    corrections_ : tuple of MulticalibrationBoostingClassifier
        Of more than two classes, the fitted classifier of each class, whose attributes tell of its
        rounds; otherwise empty.
    best_round_ : int
        The number of rounds that `predict` uses.
    gain_ : Gain or None
        By how much the correction lowers the loss of rows held out, with its standard error and the
        ``share`` that is kept; None without early stopping by the loss.
    validation_scores_ : ndarray
        The scores of f_0, f_1, … on rows held out (higher is better).
    trajectories_ : tuple of Trajectory
        What is kept: the rounds of each trajectory and its share of the correction.
    weights_, gaps_, losses_ : ndarray
        w_t, the norms ‖f_{t+1} − f_t‖₂ and the mean log-losses of f_0, f_1, … on the rows that
        a trajectory was fitted to; means over the trajectories.
    init_ : estimator or None
        The fitted initial predictor, or None if `fit` was given initial predictions.
    feature_importances_, f_importance_ : ndarray, float
        Shares of the splits' gain.
    encoding_ : Encoding
        How the columns of X become those of the trees.
    n_features_in_, feature_names_in_ : int, ndarray
        As everywhere in scikit-learn.

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
        X : table or array of shape (n, d)
            Rows, with the columns of the training table.
        initial_prediction : array of shape (n, classes) or (n,), optional
            Probabilities by the model that is corrected; if, and only if,
            `fit` was given such.
        n_rounds : int, optional
            The last round T; `best_round_` by default.

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
        X : table or array of shape (n, d)
            Rows, with the columns of the training table.
        initial_prediction : array of shape (n, classes) or (n,), optional
            Probabilities by the model that is corrected; if, and only if,
            `fit` was given such.
        n_rounds : int, optional
            The last round T; `best_round_` by default.

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
        X : table or array of shape (n, d)
            Rows, with the columns of the training table.
        initial_prediction : array of shape (n, classes) or (n,), optional
            Probabilities by the model that is corrected; if, and only if,
            `fit` was given such.
        n_rounds : int, optional
            The last round T; `best_round_` by default.

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
        X : table or array of shape (n, d)
            Rows, with the columns of the training table.
        initial_prediction : array of shape (n, classes) or (n,), optional
            Probabilities by the model that is corrected; if, and only if,
            `fit` was given such.
        n_rounds : int, optional
            The last round T; `best_round_` by default.

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
        X : table or array of shape (n, d)
            Rows, with the columns of the training table.
        initial_prediction : array of shape (n, classes) or (n,), optional
            Probabilities by the model that is corrected; if, and only if,
            `fit` was given such.
        n_rounds : int, optional
            The last round T; `best_round_` by default.

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
        X : table or array of shape (n, d)
            Rows, with the columns of the training table.
        initial_prediction : array of shape (n, classes) or (n,), optional
            Probabilities by the model that is corrected; if, and only if,
            `fit` was given such.
        n_rounds : int, optional
            The last round T; `best_round_` by default.

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
