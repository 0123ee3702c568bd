"""Multicalibration gradient boosting for regression, by scikit-learn's conventions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import assert_all_finite, check_array

from pipeline.boosting.arrays import Floats
from pipeline.boosting.estimator import MulticalibrationBoosting
from pipeline.boosting.initial import FORESTS, paper_forest
from pipeline.boosting.losses import SquaredLoss
from pipeline.boosting.parameters import check_initial_prediction, check_predicted


class MulticalibrationBoostingRegressor(RegressorMixin, MulticalibrationBoosting):  # type: ignore[misc]
    """Algorithm 1 for regression with the squared loss, as a correction of a predictor.

    From an initial predictor f_0, each round fits an ensemble of trees h_t to the residuals y − f_t
    on the features (x, f_t) and moves to f_{t+1} = w_t (f_t + η h_t). How many rounds are kept is
    decided on rows that they were not fitted to; it may be none.

    Parameters
    ----------
    n_rounds : int, default=100
        The largest number of rounds; 0 leaves the initial predictor as it is. (The paper has 20.)
    eta : float, default=0.25
        Step size η in (0, 1].
    rescaling : {"unit", "relaxed", "adaptive"} or Rescaling, default="unit"
        The strategy for w_t. An object needs a ``weight(t, y, phi)`` method, which is passed sample
        weights as a fourth argument if there are any.
    init : estimator or None, default=None
        The initial predictor, which is given X as it was passed. None is the paper's forest of 100
        trees of depth 5.
    init_cv : None, "prefit", "oob", int or splitter, default=None
        How training rows get their f_0. None: from ``init`` fitted to them, as in the paper. An int
        or splitter: from clones of ``init`` fitted to the other folds; new rows get it from a clone
        fitted to all rows. "oob": from the out-of-bag predictions of a forest. "prefit": ``init``
        is fitted already, to other rows, and used as it is (inside of `cross_val_score` and the
        like, wrap it in scikit-learn's FrozenEstimator).
    n_trees, max_depth, learning_rate : 20, 3, 0.1
        The ensemble of a round (the paper's has 100 trees; `PAPER` holds all of its settings).
    min_samples_leaf : int, default=20
        The smallest number of rows of a leaf.
    subsample : float, default=1.0
        The share of the rows that each tree is fitted to.
    max_features : float, default=1.0
        The share of the features, including f, that each split chooses from.
    early_stopping : bool, default=True
        Whether to choose the number of rounds; False fits and uses ``n_rounds``.
    validation_fraction : float, "cv" or "auto", default="auto"
        The share of rows held out to choose by; "cv": each fold in turn, all of them judged
        together; "auto": "cv" up to 10,000 rows, and 0.2 for more.
    cv : int or splitter, default=5
        The folds of "cv".
    scoring : "loss", "mce", str or scorer, default="loss"
        What to choose by: the loss, the multicalibration error, or any of scikit-learn's scorers.
        With "loss", a round is preferred to the initial predictor only if it is better by more than
        one standard error (1.64 if one part of the rows is held out instead of folds).
    n_iter_no_change : int, default=3
        The number of rounds without an improvement after which no more are tried.
    tol : float, default=0.0
        The smallest improvement that counts.
    refit : bool, default=True
        Whether the chosen number of rounds is fitted to all rows; with "cv" it always is.
    engine : {"auto", "exact", "sklearn", "lightgbm", "lightgbm_lossless"}, default="auto"
        What fits the trees: "exact", a compiled kernel made for the paper's sizes, or "sklearn",
        scikit-learn itself (without sampling both grow the same trees, and the same initial
        forest); or "lightgbm", LightGBM's histograms, for tables of many rows, with missing cells
        and categories left to LightGBM. "lightgbm_lossless" has a bin for every value and grows the
        exact trees. "auto" is "exact" up to 100,000 rows, beyond it "lightgbm" if that is
        installed; ``engine_`` tells which.
    n_jobs : int or None, default=None
        The number of threads of the initial forest and of LightGBM: as in scikit-learn, but at most
        one per core. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        The seed of the initial forest, folds, samples and ties between equally good splits.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    best_round_ : the number of rounds that `predict` uses.
    validation_scores_ : the scores of f_0, f_1, … on held-out rows (higher is better).
    steps_ : the fitted rounds, as `pipeline.boosting.algorithm.Round`.
    weights_, gaps_ : w_t and the (weighted) norm ‖f_{t+1} − f_t‖₂ on the training rows, of each.
    losses_ : the mean squared errors of f_0, f_1, … on the training rows.
    init_ : the fitted initial predictor, or None if `fit` was given initial predictions.
    feature_importances_, f_importance_, f_shares_ : shares of the splits' gain.
    encoding_ : how the columns of X become those of the trees.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn.

    Tables may be DataFrames with numbers, flags, categories, words and missing cells. A missing
    number lies below all others; a category that was not there in `fit` has none of its column's
    indicators (with ``engine="lightgbm"``, both go to the side that is best for missing cells). As
    in scikit-learn's trees, numbers have single precision: those that differ by less count as
    equal, and those beyond 3.4e38 are refused.
    """

    _loss = SquaredLoss()
    _is_classifier = False

    def staged_predict(
        self, X: Any, initial_prediction: ArrayLike | None = None, *, n_rounds: int | None = None
    ) -> Iterator[Floats]:
        """Yield the predictions f_0(x), …, f_T(x), each (n,), for the rows of X (n, d).

        ``n_rounds`` is T; by default it is `best_round_`.
        """
        return self._staged_scores(X, initial_prediction, n_rounds)

    def predict(
        self, X: Any, initial_prediction: ArrayLike | None = None, *, n_rounds: int | None = None
    ) -> Floats:
        """Return the predictions f_T(x), (n,), for the rows of X (n, d); see `staged_predict`."""
        return self._scores(X, initial_prediction, n_rounds)

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        initial_prediction: ArrayLike | None = None,
    ) -> float:
        """Return R² of the predictions."""
        predicted = self.predict(X, initial_prediction)
        return float(r2_score(y, predicted, sample_weight=sample_weight))

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
