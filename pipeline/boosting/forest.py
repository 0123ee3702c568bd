"""scikit-learn's random forest on the exact kernel."""

import warnings
from numbers import Integral
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .arrays import Floats
from .engines.exact.forest import bootstrap, grow_forest


class ExactRandomForestRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """RandomForestRegressor(n_estimators, max_depth=max_depth) with the same trees, but faster.

    The same ``random_state`` draws the same bootstrap samples as in scikit-learn, and every tree is
    grown by the same rules, with one difference: of two equally good splits, scikit-learn takes the
    one that the order of its features and its rounding errors prefer, and this class takes one at
    random.

    Parameters
    ----------
    n_estimators : int, default=100
        The number of trees.
    max_depth : int, default=5
        Their depth, from 1 to 12. A tree is stored as a complete one, so there is no unlimited
        depth, which is scikit-learn's default.
    oob_score : bool, default=False
        Whether to predict each training row by the trees that did not draw it.
    n_jobs : int or None, default=None
        The number of threads for `fit`, as in scikit-learn; the trees do not depend on it.
    random_state : int, RandomState or None, default=None
        The seed of the samples and of ties between equally good splits.

    Attributes
    ----------
    forest_ : Forest
        The fitted trees.
    oob_prediction_ : ndarray of shape (n,)
        If ``oob_score``; NaN for rows in every tree's sample.
    oob_score_ : float
        Their R², if ``oob_score``.
    n_features_in_, feature_names_in_ : int, ndarray
        As everywhere in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from mcgb import ExactRandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = ExactRandomForestRegressor(10, max_depth=3, random_state=0).fit(X, y)
    >>> forest.predict(X[:2]).shape
    (2,)
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_depth: int = 5,
        oob_score: bool = False,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the forest.

        Parameters
        ----------
        X : array of shape (n, d)
            Rows.
        y : array of shape (n,)
            Their outcomes.
        sample_weight : array of shape (n,), optional
            Their weights, by which rows are drawn.

        Returns
        -------
        self
            The fitted forest.
        """
        check_scalar(self.n_estimators, "n_estimators", Integral, min_val=1)
        check_scalar(self.max_depth, "max_depth", Integral, min_val=1)
        validated: Any = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        rows, target = validated[0], validated[1].astype(np.float64)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, rows, dtype=np.float64, ensure_non_negative=True
            )
        random = check_random_state(self.random_state)
        # One number per tree, drawn as scikit-learn draws it.
        states = [random.randint(np.iinfo(np.int32).max) for _ in range(self.n_estimators)]
        self.forest_ = grow_forest(
            rows, target, states, self.max_depth, effective_n_jobs(self.n_jobs), weights
        )
        if self.oob_score:
            self.oob_prediction_ = self._out_of_bag(rows, states, weights)
            known = ~np.isnan(self.oob_prediction_)
            if not known.all():
                warnings.warn(
                    f"{(~known).sum()} of {len(known)} rows are in the sample of every tree and "
                    "have no out-of-bag prediction (NaN); more trees would give them one",
                    stacklevel=2,
                )
            enough = known.sum() > 1
            self.oob_score_ = (
                float(r2_score(target[known], self.oob_prediction_[known])) if enough else np.nan
            )
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Predict rows.

        Parameters
        ----------
        X : array of shape (n, d)
            Rows.

        Returns
        -------
        ndarray of shape (n,)
            The means of the trees' values.
        """
        check_is_fitted(self)
        return self.forest_.predict(validate_data(self, X, dtype=np.float64, reset=False))

    def _out_of_bag(self, rows: Floats, states: list[int], weights: Floats | None) -> Floats:
        """Return each row's mean over the trees that did not draw it, (n,)."""
        total, count = np.zeros(len(rows)), np.zeros(len(rows))
        for tree, state in enumerate(states):
            outside = bootstrap([state], len(rows), weights)[0] == 0
            total[outside] += self.forest_.predict_tree(rows[outside], tree)
            count += outside
        with np.errstate(invalid="ignore"):
            return total / count
