"""Multicalibration gradient boosting with scikit-learn's conventions."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from joblib import cpu_count, effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from pipeline.boosting.algorithm import advance, boost, mean_squared_error, round_seed
from pipeline.boosting.arrays import Floats
from pipeline.boosting.engines import TreeSettings, make_engine
from pipeline.boosting.initial import paper_forest
from pipeline.boosting.rescaling import Rescaling, resolve


class MulticalibrationBoosting(BaseEstimator):  # type: ignore[misc]
    """The parameters that regression and classification share."""

    def __init__(
        self,
        n_rounds: int = 20,
        *,
        eta: float = 0.5,
        rescaling: str | Rescaling = "unit",
        init: Any = None,
        n_trees: int = 100,
        max_depth: int = 3,
        learning_rate: float = 0.1,
        engine: str = "exact",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_rounds = n_rounds
        self.eta = eta
        self.rescaling = rescaling
        self.init = init
        self.n_trees = n_trees
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state


class MulticalibrationBoostingRegressor(RegressorMixin, MulticalibrationBoosting):  # type: ignore[misc]
    """Algorithm 1 for regression with the squared loss.

    From an initial predictor f_0, each round fits an ensemble of trees h_t to the residuals y − f_t
    on the features (x, f_t) and moves to f_{t+1} = w_t (f_t + η h_t).

    Parameters
    ----------
    n_rounds : int, default=20
        Rounds T; 0 leaves the initial predictor as it is.
    eta : float, default=0.5
        Step size η in (0, 1].
    rescaling : {"unit", "relaxed", "adaptive"} or Rescaling, default="unit"
        Where w_t comes from. An object needs a ``weight(t, y, phi)`` method.
    init : estimator or None, default=None
        The initial predictor; None is the paper's forest of 100 trees of depth 5.
    n_trees, max_depth, learning_rate : 100, 3, 0.1
        The ensemble of a round.
    engine : {"exact", "sklearn"}, default="exact"
        Who fits the trees, also those of the paper's forest: a compiled kernel, or scikit-learn
        itself; the trees are the same.
    n_jobs : int or None, default=None
        Threads for the paper's forest and for the exact engine's rounds on a large table, as in
        scikit-learn, but not more than there are cores; the result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seeds the initial forest and ties between equally good splits.

    Attributes
    ----------
    weights_ : (n_rounds,) array of w_t.
    gaps_ : (n_rounds,) array of ‖f_{t+1} − f_t‖₂ on the training rows.
    losses_ : (n_rounds + 1,) array, mean squared error of f_0 … f_T on the training rows.
    init_ : the fitted initial predictor, or None if `fit` was given initial predictions.
    steps_ : the rounds, as `pipeline.boosting.algorithm.Step`.
    """

    def fit(self, X: ArrayLike, y: ArrayLike, initial_prediction: ArrayLike | None = None) -> Self:
        """Fit the rounds to X (n, d) and y (n,).

        ``initial_prediction`` (n,) are scores computed elsewhere that take the place of ``init``;
        `predict` then needs the same for its rows.
        """
        check_parameters(self)
        rows, y = _typed(validate_data(self, X, y, dtype=np.float64, y_numeric=True))
        seed = seed_of(self.random_state)
        engine = make_engine(
            self.engine,
            TreeSettings(self.n_trees, self.max_depth, self.learning_rate),
            n_threads_of(self.n_jobs),
        )
        if initial_prediction is None:
            self.init_ = self._initial(seed).fit(rows, y)
            f0 = np.asarray(self.init_.predict(rows), dtype=np.float64)
        else:
            self.init_ = None
            f0 = _scores(initial_prediction, len(y))
        fitter = engine.bind(rows)
        self.steps_ = list(
            boost(
                y,
                f0,
                self.n_rounds,
                self.eta,
                resolve(self.rescaling),
                lambda t, f, residual: fitter.fit(f, residual, round_seed(seed, t)),
            )
        )
        self.weights_ = np.array([step.weight for step in self.steps_])
        self.gaps_ = np.array([step.gap for step in self.steps_])
        self.losses_ = np.array(
            [mean_squared_error(y, f) for f in [f0, *(step.f for step in self.steps_)]]
        )
        return self

    def staged_predict(
        self, X: ArrayLike, initial_prediction: ArrayLike | None = None
    ) -> Iterator[Floats]:
        """Yield the predictions f_0(x), …, f_T(x), each (n,), for the rows of X (n, d).

        Every round sees these rows' own f_t as its feature and uses the training w_t.
        """
        check_is_fitted(self)
        rows: Floats = validate_data(self, X, dtype=np.float64, reset=False)
        f = self._start(rows, initial_prediction)
        yield f
        for step in self.steps_:
            f = advance(f, rows, step, self.eta)
            yield f

    def predict(self, X: ArrayLike, initial_prediction: ArrayLike | None = None) -> Floats:
        """The predictions f_T(x), (n,), for the rows of X (n, d)."""
        *_, last = self.staged_predict(X, initial_prediction)
        return last

    def _start(self, X: Floats, initial_prediction: ArrayLike | None) -> Floats:
        if initial_prediction is not None:
            if self.init_ is not None:
                raise ValueError(
                    "initial_prediction: this model was fitted with its own initial predictor"
                )
            return _scores(initial_prediction, len(X))
        if self.init_ is None:
            raise ValueError(
                "initial_prediction: is needed, because this model was fitted with one"
            )
        return np.asarray(self.init_.predict(X), dtype=np.float64)

    def _initial(self, seed: int) -> Any:
        if self.init is None:
            return paper_forest(seed, engine=self.engine, n_jobs=self.n_jobs)
        return clone(self.init)


def n_threads_of(n_jobs: int | None) -> int:
    """Threads that wait for each other are no more than the cores."""
    return min(effective_n_jobs(n_jobs), cpu_count())


def seed_of(random_state: int | np.random.RandomState | None) -> int:
    """An int seed is used as it is, so that it names the same run everywhere."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def check_parameters(estimator: Any) -> None:
    """Raise ValueError or TypeError for a parameter out of its range, by name."""
    check_scalar(estimator.n_rounds, "n_rounds", Integral, min_val=0)
    for name in ("eta", "learning_rate"):
        value = getattr(estimator, name)
        check_scalar(value, name, Real, min_val=0, max_val=1, include_boundaries="right")
    check_scalar(estimator.n_trees, "n_trees", Integral, min_val=1)
    check_scalar(estimator.max_depth, "max_depth", Integral, min_val=1)
    resolve(estimator.rescaling)


def _typed(validated: Any) -> tuple[Floats, Floats]:
    X, y = validated
    return X, y.astype(np.float64)


def _scores(initial_prediction: ArrayLike, n: int) -> Floats:
    """Initial predictions as (n,) finite floats."""
    f0 = check_array(
        initial_prediction, ensure_2d=False, dtype=np.float64, input_name="initial_prediction"
    )
    if f0.shape != (n,):
        raise ValueError(f"initial_prediction: has shape {f0.shape} instead of ({n},)")
    return f0
