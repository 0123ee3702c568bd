"""Multicalibration gradient boosting for regression, by scikit-learn's conventions."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import assert_all_finite, check_array

from .arrays import Floats
from .descriptions import described
from .estimator import MulticalibrationBoosting
from .initial import FORESTS, paper_forest
from .losses import SquaredLoss
from .parameters import check_initial_prediction, check_predicted


@described
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
    {rounds}
    rescaling : {"unit", "relaxed", "adaptive"} or Rescaling, default="unit"
        The strategy for w_t. An object needs a ``weight(t, y, phi)`` method, which is passed sample
        weights as a fourth argument if there are any.
    {feedback}
    init : estimator or None, default=None
        The initial predictor, which is given X as it was passed. None is the paper's forest of 100
        trees of depth 5.
    {trees}
    l2_regularization : float, default=10.0
        The number of rows of residual 0 that are added to each leaf, for rows of weight 1.
    {keeping}

    Attributes
    ----------
    {fitted}

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
        {predicted}

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
        {predicted}

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
