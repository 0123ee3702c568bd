"""Multicalibration gradient boosting for regression, by scikit-learn's conventions."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import assert_all_finite, check_array

from .arrays import Floats
from .estimator import MulticalibrationBoosting
from .initial import FORESTS, paper_forest
from .losses import SquaredLoss
from .parameters import check_initial_prediction, check_predicted


class MulticalibrationBoostingRegressor(RegressorMixin, MulticalibrationBoosting):  # type: ignore[misc]
    """Multicalibration boosting for regression with the squared loss, as a correction of a model.

    From an initial predictor f_0, each round fits an ensemble of trees h_t to the residuals y − f_t
    on the features (x, f) and moves to f_{t+1} = w_t (f_t + η h_t). The defaults differ from the
    paper's Algorithm 1, which ``**PAPER`` gives to the letter, in three ways. There is a trajectory
    of rounds for each of five folds, fitted to the other folds, and f in (x, f) is *honest*: the
    prediction of the trajectory that has not seen the row's y. New rows get the mean of the
    trajectories. And rows that a trajectory has not seen decide how many rounds are kept, and which
    share of the correction; it may be none.

    Parameters
    ----------
    n_rounds : int, default=100
        The largest number of rounds; 0 leaves the initial predictor as it is. The paper has 20.
    eta : float, default=1.0
        Step size η in (0, 1].
    rescaling : {"unit", "relaxed", "adaptive"} or Rescaling, default="unit"
        The strategy for w_t. An object needs a ``weight(t, y, phi)`` method, which is passed sample
        weights as a fourth argument if there are any.
    feedback : {"honest", "in_sample", "initial", "none"}, default="honest"
        The trees' feature besides X: f_t of the trajectory of the row's own fold, which has not
        seen its y; f_t of the trajectory that the trees belong to, which has (the paper); f_0; or
        none.
    init : estimator or None, default=None
        The initial predictor, which is given X as it was passed. None is the paper's forest of 100
        trees of depth 5.
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
        The number of rows of residual 0 that are added to each leaf, for rows of weight 1.
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
        w_t, the norms ‖f_{t+1} − f_t‖₂ and the mean squared errors of f_0, f_1, … on the rows that
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
    Tables may be DataFrames with numbers, flags, categories, words and missing cells. With
    LightGBM, a missing cell and a category that was not there in `fit` go to the side that is best
    for missing cells; with the other engines a missing number lies below all others, and an unknown
    category has none of its column's indicators. As in scikit-learn's trees, numbers of the engines
    "exact" and "sklearn" have single precision: those that differ by less count as equal, and those
    beyond 3.4e38 are refused. With ``l2_regularization=0``, a whole weight is as many rows.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Lasso
    >>> from mcgb import MulticalibrationBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = Lasso().fit(X[:150], y[:150])
    >>> better = MulticalibrationBoostingRegressor(init=model, init_cv="prefit", random_state=0)
    >>> better.fit(X[150:350], y[150:350]).score(X[350:], y[350:]) > model.score(X[350:], y[350:])
    True
    """

    _loss = SquaredLoss()
    _metric = staticmethod(r2_score)
    _is_classifier = False

    def staged_predict(
        self, X: Any, initial_prediction: ArrayLike | None = None, *, n_rounds: int | None = None
    ) -> Iterator[Floats]:
        """Predict rows after each round.

        Parameters
        ----------
        X : table or array of shape (n, d)
            Rows, with the columns of the training table.
        initial_prediction : array of shape (n,), optional
            What the model that is corrected predicts for them; if, and only if,
            `fit` was given such.
        n_rounds : int, optional
            The last round T; `best_round_` by default.

        Yields
        ------
        ndarray of shape (n,)
            f_0(x), …, f_T(x), one after the other.
        """
        yield from self._staged_scores(X, initial_prediction, n_rounds)

    def predict(
        self, X: Any, initial_prediction: ArrayLike | None = None, *, n_rounds: int | None = None
    ) -> Floats:
        """Predict rows.

        Parameters
        ----------
        X : table or array of shape (n, d)
            Rows, with the columns of the training table.
        initial_prediction : array of shape (n,), optional
            What the model that is corrected predicts for them; if, and only if,
            `fit` was given such.
        n_rounds : int, optional
            The last round T; `best_round_` by default.

        Returns
        -------
        ndarray of shape (n,)
            The predictions f_T(x).
        """
        return self._scores(X, initial_prediction, n_rounds)

    score = MulticalibrationBoosting.score  # not the mixin's: it takes initial predictions

    def _default_init(self, seed: int) -> Any:
        engine = self.engine if self.engine in FORESTS else "sklearn"  # needs no compilation
        return paper_forest(seed, engine=engine, n_jobs=self.n_jobs)

    def _scores_of(self, init: Any, table: Any) -> Floats:
        return check_predicted(init.predict(table))

    def _out_of_bag(self, forest: Any) -> Floats:
        f0 = np.asarray(forest.oob_prediction_, dtype=np.float64)
        del forest.oob_prediction_  # a model's size does not depend on the number of rows
        return f0

    def _given_scores(self, initial_prediction: ArrayLike, n: int) -> Floats:
        return check_initial_prediction(initial_prediction, (n,))

    def _target(self, labels: Any, *, reset: bool) -> Floats:  # noqa: ARG002
        target = check_array(labels, ensure_2d=False, dtype=np.float64, input_name="y")
        assert_all_finite(target, input_name="y")
        return target
