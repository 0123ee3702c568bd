"""Multicalibration gradient boosting by scikit-learn's conventions: what both estimators share."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_scalar, get_tags
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)
from tqdm import tqdm

from .arrays import Floats, Ints
from .encoding import Encoding, check_levels
from .engines import NATIVE, make_engine
from .folds import fold_numbers
from .frames import as_table, columns_of, numbers_or_columns
from .initial_predictor import InitialPredictor
from .losses import Loss
from .parameters import check_parameters, check_weights, n_threads_of, seed_of, tree_settings
from .rescaling import Rescaling
from .rows import TrainingRows
from .stopping import Choice, Gain, choose, gain, judge_of, stack
from .storage import save
from .trajectories import (
    NO_FOLD,
    BoostingSettings,
    CrossFit,
    Trajectory,
    corrected,
    corrected_stages,
    n_stages,
)

# The paper's settings, as parameters of either estimator: Algorithm 1 to the letter.
PAPER: dict[str, Any] = {
    "n_rounds": 20,
    "eta": 0.5,
    "feedback": "in_sample",
    "init_cv": None,
    "n_trees": 100,
    "max_leaf_nodes": None,
    "max_depth": 3,
    "learning_rate": 0.1,
    "min_samples_leaf": 1,
    "l2_regularization": 0.0,
    "early_stopping": False,
    "engine": "exact",
}

SMALL_DEPTH = 2  # of the trees of a stack's third part


class MulticalibrationBoosting(BaseEstimator):  # type: ignore[misc]
    """What regression and classification share."""

    _loss: ClassVar[Loss]
    _is_classifier: ClassVar[bool]
    _metric: ClassVar[Any]

    def __init__(
        self,
        n_rounds: int = 100,
        *,
        eta: float = 1.0,
        rescaling: str | Rescaling = "unit",
        feedback: str = "honest",
        init: Any = None,
        init_cv: Any = 5,
        n_trees: int = 10,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        learning_rate: float = 0.2,
        min_samples_leaf: int = 20,
        l2_regularization: float = 10.0,
        subsample: float = 1.0,
        max_features: float = 1.0,
        early_stopping: bool = True,
        stack: bool = True,
        cv: Any = 5,
        scoring: Any = "loss",
        n_iter_no_change: int = 5,
        engine: str = "lightgbm",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_rounds = n_rounds
        self.eta = eta
        self.rescaling = rescaling
        self.feedback = feedback
        self.init = init
        self.init_cv = init_cv
        self.n_trees = n_trees
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.subsample = subsample
        self.max_features = max_features
        self.early_stopping = early_stopping
        self.stack = stack
        self.cv = cv
        self.scoring = scoring
        self.n_iter_no_change = n_iter_no_change
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- what a kind of estimator adds ----------------------------------------------------------

    def _default_init(self, seed: int) -> Any:
        """Return the paper's forest, not fitted."""
        raise NotImplementedError

    def _scores_of(self, init: Any, table: Any) -> Floats:
        """Return the scores that an initial predictor gives rows."""
        raise NotImplementedError

    def _out_of_bag(self, forest: Any) -> Floats:
        """Return the scores of a forest's training rows by the trees that did not draw them."""
        raise NotImplementedError

    def _given_scores(self, initial_prediction: ArrayLike, n: int) -> Floats:
        """Return the scores of initial predictions that were passed for n rows."""
        raise NotImplementedError

    def _target(self, labels: Any, *, reset: bool) -> Floats:
        """Return the target as numbers."""
        raise NotImplementedError

    def predict(self, X: Any, initial_prediction: ArrayLike | None = None) -> Any:
        """Return what is predicted for rows."""
        raise NotImplementedError

    # --- fitting --------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        initial_prediction: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        X_val: Any = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
        initial_prediction_val: ArrayLike | None = None,
    ) -> Self:
        """Fit the correction.

        If ``init``, or what the initial predictions come from, was fitted to X, it looks better
        there than it is: pass other rows as X_val. These are fitted to as well, and alone decide
        how much is kept.

        Parameters
        ----------
        X : table or array of shape (n, d)
            Rows: numbers, flags, words, missing cells.
        y : array of shape (n,)
            Their outcomes, or labels of classes.
        sample_weight : array of shape (n,), optional
            Their weights.
        initial_prediction : array of shape (n,) or (n, classes), optional
            Predictions that are used instead of those of ``init`` (of a classifier, probabilities);
            all other methods then need the same for their rows.
        groups : array of shape (n,), optional
            Rows with the same value are put into the same fold.
        X_val : table or array of shape (m, d), optional
            Rows that decide how much is kept.
        y_val : array of shape (m,), optional
            Their outcomes.
        sample_weight_val : array of shape (m,), optional
            Their weights.
        initial_prediction_val : array of shape (m,) or (m, classes), optional
            Their initial predictions.

        Returns
        -------
        self
            The fitted estimator.
        """
        check_parameters(self)
        self._loss.rescaling(self.rescaling)
        seed = seed_of(self.random_state)
        rows = self._rows(X, y, sample_weight, initial_prediction, reset=True)
        if groups is not None:
            check_consistent_length(rows.y, groups)
            labels = pd.Series(np.asarray(groups, dtype=object))  # of any kind, mixed ones too
            rows = replace(rows, groups=pd.factorize(labels, sort=True, use_na_sentinel=False)[0])
        initial = self._initial_predictor(seed)
        if rows.given is None:
            initial.check(rows)
        self._init_sees = "table" if initial.view is None else "indicators"
        if X_val is None:
            if any(v is not None for v in (y_val, sample_weight_val, initial_prediction_val)):
                raise ValueError("y_val, sample_weight_val, initial_prediction_val: need X_val")
            return self._fit(initial, rows, None, seed)
        if groups is not None or not self.early_stopping:
            raise ValueError("X_val: goes with early_stopping=True and without groups")
        honest = self._rows(X_val, y_val, sample_weight_val, initial_prediction_val, reset=False)
        if (rows.given is None) != (honest.given is None):
            raise ValueError("initial_prediction: is needed for X and X_val, or for neither")
        return self._fit(initial, rows, honest, seed)

    def _fit(
        self, initial: InitialPredictor, rows: TrainingRows, honest: TrainingRows | None, seed: int
    ) -> Self:
        """Fit trajectories to all rows; what is kept is judged on the honest ones, or on all."""
        fitted = initial.fit(rows)
        self.init_, f0 = fitted.predictor, fitted.f0
        self.gain_: Gain | None = None
        judged = np.arange(len(rows))
        if honest is not None:
            f0 = np.concatenate([f0, initial.scores(fitted, honest)])
            judged = len(rows) + np.arange(len(honest))
            rows = rows + honest
        crossed = self.early_stopping or self.feedback == "honest"
        fold = None
        if crossed and self.n_rounds > 0:
            fold = fold_numbers(rows, self.cv, self._is_classifier, seed, "cv")
            if fold is None:
                warnings.warn(
                    f"{len(rows)} rows are too few, or those of a class or group, to hold some "
                    "out: the initial predictor is kept as it is (early_stopping=False with "
                    "feedback='in_sample' would fit all rounds)",
                    stacklevel=3,
                )
        starts = [f0] if fold is None else [f0] * (int(fold.max()) + 1)
        if fold is not None and initial.cv is None and rows.given is None and honest is None:
            # f_0 has seen the y of all rows: a trajectory starts from a predictor of its own rows.
            own = [rows.take(np.flatnonzero(fold != k)) for k in range(len(starts))]
            starts = [initial.scores(initial.fit(some), rows) for some in own]
        n_rounds = self.n_rounds if fold is not None or not crossed else 0
        fold = np.full(len(rows), NO_FOLD) if fold is None else fold
        fits = [
            CrossFit(settings, rows, rows.X, starts, fold, n_rounds, n_threads_of(self.n_jobs))
            for settings in self._parts(seed)
        ]
        if not self.early_stopping or n_rounds == 0:
            for _ in self._progress(fits[0].stages(), n_rounds + 1, "fitting"):
                pass
            return self._set_fitted(fits[0], fits[0].trajectories(n_rounds, 1.0))
        return self._keep(fits, rows.take(judged), judged)

    def _parts(self, seed: int) -> list[BoostingSettings]:
        """Return the settings of what a correction is made of; there is one part without a stack.

        The others are trees that start from a constant and are not given f, which is a new model,
        and small trees, for what is additive.
        """
        own = self._settings(seed)
        if not (self.early_stopping and self.stack and self._by_loss):
            return [own]
        new = replace(own, feedback="none", from_constant=True)
        return [own, new, self._settings(seed, small=True)]

    def _keep(self, fits: Sequence[CrossFit], rows: TrainingRows, judged: Ints) -> Self:
        """Fit, and keep as many rounds of each part, and as much of the whole, as rows support."""
        seed, classes = fits[0].settings.seed, getattr(self, "classes_", None)
        judge = judge_of(self.scoring, rows, self._loss, classes, seed, self.encoding_.expanded)
        choices = []
        for number, fit in enumerate(fits, 1):
            label = f"part {number} of {len(fits)}" if len(fits) > 1 else "fitting"
            stages = self._progress(fit.stages(), fit.n_rounds + 1, label)
            seen = (f[judged] for f in stages)
            told = label if self.verbose > 1 else None
            choices.append(choose(seen, judge, self.n_iter_no_change, told))
        f0, found = choices[0].first, [choice.f for choice in choices]
        shares = stack(self._loss, rows, f0, found) if len(fits) > 1 else np.ones(1)
        after = f0 + sum(a * (f - f0) for a, f in zip(shares, found, strict=True))
        kept = float(choices[0].best_round > 0)
        if self._by_loss:
            self.gain_ = gain(self._loss, rows, f0, after)
            kept = self.gain_.share
        trajectories = [
            trajectory
            for fit, choice, share in zip(fits, choices, shares, strict=True)
            for trajectory in fit.trajectories(choice.best_round, kept * float(share))
        ]
        self._set_fitted(fits[0], trajectories, choices[0])
        if self.best_round_ == 0:
            why = f"{self.gain_}" if self._by_loss else "no round has a better score"
            warnings.warn(
                f"no correction is kept, the predictions are those of the initial predictor: on "
                f"{len(rows)} rows that it was not fitted to, {why}",
                stacklevel=4,
            )
        return self

    @property
    def _by_loss(self) -> bool:
        return isinstance(self.scoring, str) and self.scoring == "loss"

    def _progress(self, steps: Iterator[Any], total: int, label: str) -> Iterator[Any]:
        return iter(tqdm(steps, label, total, disable=self.verbose != 1, leave=False))

    def _settings(self, seed: int, *, small: bool = False) -> BoostingSettings:
        trees, rescaling = tree_settings(self), self._loss.rescaling(self.rescaling)
        if small:
            trees = replace(trees, max_depth=SMALL_DEPTH, max_leaves=None)
        engine = make_engine(self.engine, trees, 1, self.encoding_.categorical)
        return BoostingSettings(self._loss, engine, self.eta, rescaling, seed, self.feedback)

    def _set_fitted(
        self, fit: CrossFit, trajectories: Sequence[Trajectory], choice: Choice | None = None
    ) -> Self:
        """Note what was fitted; rounds are described by means over the trajectories of a part."""
        self.trajectories_ = tuple(trajectories)
        self.best_round_ = n_stages(trajectories)
        rounds = np.array([[(r.weight, r.gap) for r in rounds] for rounds in fit.rounds])
        self.weights_, self.gaps_ = rounds.reshape(len(fit.rounds), -1, 2).mean(axis=0).T
        self.losses_ = np.array(fit.losses)
        self.validation_scores_ = np.empty(0) if choice is None else choice.scores
        return self

    # --- rows -----------------------------------------------------------------------------------

    def _table(self, X: Any, *, reset: bool) -> tuple[Any, Floats]:
        """Return X as initial predictors are given it, and as the trees are."""
        native, X = self.engine in NATIVE, as_table(X)
        if isinstance(X, pd.DataFrame):
            validate_data(self, X, skip_check_array=True, reset=reset)
            columns: Any = columns_of(X) if reset else numbers_or_columns(X)
            if reset:
                check_levels(columns)
                self.encoding_ = Encoding.learn(columns, native=native)
            return X, self.encoding_.encode(columns)
        table = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=reset)
        if reset:
            self.encoding_ = Encoding.learn(table, native=native)
        return table, self.encoding_.encode(table)

    def _rows(
        self, X: Any, y: Any, sample_weight: Any, initial_prediction: Any, *, reset: bool
    ) -> TrainingRows:
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        table, matrix = self._table(X, reset=reset)
        labels = column_or_1d(y, warn=True)
        check_consistent_length(table, labels)
        target = self._target(labels, reset=reset)
        given = None
        if initial_prediction is not None:
            given = self._given_scores(initial_prediction, len(target))
        weights = check_weights(sample_weight, matrix)
        return TrainingRows(
            table=table, X=matrix, labels=labels, y=target, weights=weights, given=given
        )

    # --- the initial predictor ------------------------------------------------------------------

    def _initial_predictor(self, seed: int) -> InitialPredictor:
        init, cv = self.init, self.init_cv
        if isinstance(cv, str) and cv not in ("prefit", "oob"):
            raise ValueError(
                f"init_cv={cv!r}: must be None, 'prefit', 'oob', a number of folds or a splitter"
            )
        if init is None:
            if isinstance(cv, str) and cv == "prefit":
                raise ValueError("init_cv='prefit': needs a fitted init")
            init = self._default_init(seed)
        if isinstance(cv, str) and cv == "oob":
            if "oob_score" not in init.get_params():
                raise ValueError(f"init={init!r}: has no out-of-bag predictions (init_cv='oob')")
            init = clone(init).set_params(oob_score=True)
        if isinstance(cv, Integral):
            check_scalar(cv, "init_cv", Integral, min_val=2)
        view = self.encoding_.expanded if self.init is None else None
        return InitialPredictor(
            init, cv, view, self._is_classifier, seed, self._scores_of, self._out_of_bag
        )

    def _initial_scores(self, table: Any, matrix: Floats, initial_prediction: Any) -> Floats:
        if initial_prediction is not None:
            if self.init_ is not None:
                raise ValueError(
                    "initial_prediction: this model was fitted with its own initial predictor"
                )
            return self._given_scores(initial_prediction, len(matrix))
        if self.init_ is None:
            raise ValueError(
                "initial_prediction: is needed, because this model was fitted with one"
            )
        if self._init_sees == "indicators":
            return self._scores_of(self.init_, self.encoding_.expanded(matrix))
        return self._scores_of(self.init_, table if self._init_sees == "table" else matrix)

    # --- predicting -----------------------------------------------------------------------------

    def _staged_scores(
        self, X: Any, initial_prediction: Any, n_rounds: int | None
    ) -> Iterator[Floats]:
        """Yield f_0, …, f_T of rows, which follow all trajectories with the w_t of the training."""
        matrix, f0, last = self._start(X, initial_prediction, n_rounds)
        yield from islice(corrected_stages(self.trajectories_, matrix, f0), last + 1)

    def _scores(self, X: Any, initial_prediction: Any, n_rounds: int | None) -> Floats:
        matrix, f0, last = self._start(X, initial_prediction, n_rounds)
        if last == self.best_round_:
            return corrected(self.trajectories_, matrix, f0)
        *_, found = islice(corrected_stages(self.trajectories_, matrix, f0), last + 1)
        return found

    def _start(
        self, X: Any, initial_prediction: Any, n_rounds: int | None
    ) -> tuple[Floats, Floats, int]:
        """Return rows as the trees' matrix, their f_0, and the number of the last round."""
        check_is_fitted(self)
        table, matrix = self._table(X, reset=False)
        last = self.best_round_ if n_rounds is None else n_rounds
        if not 0 <= last <= self.best_round_:
            raise ValueError(f"n_rounds={n_rounds}: must be from 0 to {self.best_round_}")
        return matrix, self._initial_scores(table, matrix, initial_prediction), last

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        initial_prediction: ArrayLike | None = None,
    ) -> float:
        """Return R² of a regressor's predictions, or the accuracy of a classifier's labels.

        Parameters
        ----------
        X : table or array of shape (n, d)
            Rows, with the columns of the training table.
        y : array of shape (n,)
            Their outcomes, or labels.
        sample_weight : array of shape (n,), optional
            Their weights.
        initial_prediction : array of shape (n,) or (n, classes), optional
            As in `predict`.

        Returns
        -------
        float
            R², or the share of rows whose label is predicted.
        """
        predicted = self.predict(X, initial_prediction)
        return float(self._metric(y, predicted, sample_weight=sample_weight))

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file without pickle, which `mcgb.load` reads.

        Parameters
        ----------
        path : str or Path
            The file, such as ``model.npz``. It holds the correction, and the initial predictor if
            that is the default forest; a model that was passed as ``init`` is stored apart, and
            passed to `load`. Parameters that are objects are not stored.
        """
        check_is_fitted(self)
        save(self, path)

    # --- what was learned -----------------------------------------------------------------------

    def get_feature_names_out(self, input_features: Any = None) -> Any:  # noqa: ARG002
        """Return the names of the trees' columns.

        Parameters
        ----------
        input_features : None
            Ignored; scikit-learn passes it.

        Returns
        -------
        ndarray of str
            The columns of X, or an indicator for each category where the engine needs these.
        """
        check_is_fitted(self)
        return np.array(self.encoding_.names, dtype=object)

    @property
    def feature_importances_(self) -> Floats:
        """Each column's share of all splits' gain, (n_features_in_,); f's share is `f_importance_`.

        Together they add up to 1, unless there are no splits.
        """
        gains = self._gains()
        of_columns = np.bincount(self.encoding_.origin, gains[:-1], self.n_features_in_)
        return of_columns / (gains.sum() or 1.0)

    @property
    def f_importance_(self) -> float:
        """The share of the splits on f: correction by prediction alone, rather than by group."""
        gains = self._gains()
        return float(gains[-1] / (gains.sum() or 1.0))

    def _gains(self) -> Floats:
        check_is_fitted(self)
        found = [step.ensemble.gains() for t in self.trajectories_ for step in t.rounds]
        return np.sum(found, axis=0) if found else np.zeros(len(self.encoding_.names) + 1)

    def __sklearn_tags__(self) -> Any:
        """Return the tags; missing cells are allowed if the initial predictor allows them."""
        tags = super().__sklearn_tags__()
        if self.init is not None and hasattr(self.init, "__sklearn_tags__"):
            of_init = get_tags(self.init)
            tags.input_tags.allow_nan = of_init.input_tags.allow_nan or of_init.no_validation
        else:
            tags.input_tags.allow_nan = True
        return tags
