"""Multicalibration gradient boosting by scikit-learn's conventions: what both estimators share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_scalar, get_tags
from sklearn.utils.validation import (
    _num_samples,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)
from tqdm import tqdm

from pipeline.boosting.algorithm import Round, advance
from pipeline.boosting.arrays import Floats, Ints
from pipeline.boosting.encoding import Encoding, check_levels
from pipeline.boosting.engines import NATIVE, TreeSettings, engine_for, make_engine
from pipeline.boosting.fitting import BoostingFit, BoostingSettings, Trial, held_out_stages
from pipeline.boosting.folds import Splits, folds, single_split
from pipeline.boosting.frames import columns_of
from pipeline.boosting.initial_predictor import FittedInitial, InitialPredictor
from pipeline.boosting.losses import Loss
from pipeline.boosting.parameters import check_parameters, check_weights, n_threads_of, seed_of
from pipeline.boosting.rescaling import Rescaling
from pipeline.boosting.rows import TrainingRows
from pipeline.boosting.stopping import CAUTION, CAUTION_OF_ONE, Choice, choose, judge_of

# The paper's settings, as parameters of either estimator.
PAPER: dict[str, Any] = {
    "n_rounds": 20,
    "eta": 0.5,
    "n_trees": 100,
    "max_depth": 3,
    "learning_rate": 0.1,
    "min_samples_leaf": 1,
    "early_stopping": False,
}

FOLDS_UP_TO = 10_000  # rows; larger tables hold out one part, which is enough to choose by
HELD_OUT = 0.2  # the share of rows of that part


class MulticalibrationBoosting(BaseEstimator):  # type: ignore[misc]
    """What regression and classification share."""

    _loss: ClassVar[Loss]
    _is_classifier: ClassVar[bool]

    def __init__(
        self,
        n_rounds: int = 100,
        *,
        eta: float = 0.25,
        rescaling: str | Rescaling = "unit",
        init: Any = None,
        init_cv: Any = None,
        n_trees: int = 20,
        max_depth: int = 3,
        learning_rate: float = 0.1,
        min_samples_leaf: int = 20,
        subsample: float = 1.0,
        max_features: float = 1.0,
        early_stopping: bool = True,
        validation_fraction: float | str = "auto",
        cv: Any = 5,
        scoring: Any = "loss",
        n_iter_no_change: int = 3,
        tol: float = 0.0,
        refit: bool = True,
        engine: str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_rounds = n_rounds
        self.eta = eta
        self.rescaling = rescaling
        self.init = init
        self.init_cv = init_cv
        self.n_trees = n_trees
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.min_samples_leaf = min_samples_leaf
        self.subsample = subsample
        self.max_features = max_features
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.cv = cv
        self.scoring = scoring
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.refit = refit
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
        """Fit the rounds to X (n, d) and y (n,): numbers, or labels of two classes.

        ``initial_prediction`` (n,) holds predictions that are used instead of those of ``init`` (of
        a classifier, probabilities); all other methods then need the same for their rows. Rows with
        the same value in ``groups`` (n,) are put into the same fold. The number of rounds is chosen
        on the rows of X_val, if they are given, instead of on some of X.
        """
        check_parameters(self)
        self._loss.rescaling(self.rescaling)
        seed = seed_of(self.random_state)
        rows = self._rows(X, y, sample_weight, initial_prediction, reset=True)
        if groups is not None:
            check_consistent_length(rows.y, groups)
            rows = replace(rows, groups=np.asarray(groups))
        initial = self._initial_predictor(seed)
        if rows.given is None:
            initial.check(rows)
        self._init_sees = "table" if initial.view is None else "indicators"
        self._eta = self.eta  # predictions use the value of the fit, whatever is set later
        settings = self._settings(seed)
        if X_val is not None:
            held_out = self._rows(
                X_val, y_val, sample_weight_val, initial_prediction_val, reset=False
            )
            return self._fit_with_validation_rows(initial, rows, held_out, settings)
        if any(v is not None for v in (y_val, sample_weight_val, initial_prediction_val)):
            raise ValueError("y_val, sample_weight_val, initial_prediction_val: need X_val")
        if self.early_stopping and self.n_rounds > 0:
            splits = self._splits(rows, seed)
            if not splits:
                warnings.warn(
                    f"{len(rows)} rows are too few, or those of a class or group, to choose a "
                    "number of rounds: the initial predictor is kept as it is "
                    "(early_stopping=False would fit all rounds)",
                    stacklevel=2,
                )
            return self._fit_with_splits(initial, rows, splits, settings)
        fit = BoostingFit(settings, rows, initial.fit(rows), self.n_rounds)
        self._run(fit)
        return self._set_fitted(fit, Choice(len(fit.rounds), np.empty(0)))

    def _fit_with_validation_rows(
        self,
        initial: InitialPredictor,
        rows: TrainingRows,
        held_out: TrainingRows,
        settings: BoostingSettings,
    ) -> Self:
        """Fit to all rows; choose the number of rounds on validation rows that were passed."""
        if (rows.given is None) != (held_out.given is None):
            raise ValueError("initial_prediction: is needed for X and X_val, or for neither")
        fitted = initial.fit(rows)
        fit = BoostingFit(settings, rows, fitted, self.n_rounds)
        patience = self.n_iter_no_change if self.early_stopping else self.n_rounds + 1
        choice = self._choose([Trial(fit, held_out, initial.scores(fitted, held_out))], patience)
        if not self.early_stopping:
            choice = replace(choice, best_round=len(fit.rounds))
        return self._set_fitted(fit, choice)

    def _fit_with_splits(
        self,
        initial: InitialPredictor,
        rows: TrainingRows,
        splits: Splits,
        settings: BoostingSettings,
    ) -> Self:
        """Choose the number of rounds on splits of the rows, then fit that many to all of them."""
        # If training rows have the scores that new rows would get, these are computed once;
        # otherwise a predictor is fitted to the training rows of each split.
        whole = None
        if initial.cv is not None or rows.given is not None:
            whole = initial.fit(rows)
        choice = Choice(0, np.empty(0))
        if splits:
            trials = [_trial(initial, whole, rows, *s, self.n_rounds, settings) for s in splits]
            choice = self._choose(trials, self.n_iter_no_change)
            if not self.refit and self._held_out_share(rows) is not None:
                return self._set_fitted(trials[0].fit, choice)
        fit = BoostingFit(settings, rows, whole or initial.fit(rows), choice.best_round)
        self._run(fit)
        return self._set_fitted(fit, choice)

    def _splits(self, rows: TrainingRows, seed: int) -> Splits:
        """Return splits into rows to fit to and held-out rows; none if there are too few rows."""
        share = self._held_out_share(rows)
        if share is None:
            return folds(rows, self.cv, self._is_classifier, seed)
        return single_split(rows, share, self._is_classifier, seed)

    def _held_out_share(self, rows: TrainingRows) -> float | None:
        """Return the share of rows to hold out; None for folds."""
        fraction = self.validation_fraction
        if fraction == "auto":
            fraction = "cv" if len(rows) <= FOLDS_UP_TO else HELD_OUT
        return None if isinstance(fraction, str) else fraction

    def _choose(self, trials: Sequence[Trial], patience: int) -> Choice:
        """Fit trials until their held-out rows get no better."""
        judge = judge_of(
            self.scoring,
            [trial.held_out for trial in trials],
            self._loss,
            getattr(self, "classes_", None),
            trials[0].fit.settings.seed,
            self.encoding_.expanded,
        )
        stages = self._progress(held_out_stages(trials), self.n_rounds + 1, "choosing a round")
        caution = CAUTION if len(trials) > 1 else CAUTION_OF_ONE
        return choose(stages, judge, patience, self.tol, caution)

    def _run(self, fit: BoostingFit) -> None:
        for _ in self._progress(fit.steps(), fit.n_rounds, "fitting rounds"):
            pass

    def _progress(self, steps: Iterator[Any], total: int, label: str) -> Iterator[Any]:
        return iter(tqdm(steps, label, total, disable=not self.verbose, leave=False))

    def _settings(self, seed: int) -> BoostingSettings:
        trees = TreeSettings(
            self.n_trees,
            self.max_depth,
            self.learning_rate,
            self.min_samples_leaf,
            self.subsample,
            float(self.max_features),  # 1 means all features, not one
        )
        n_threads, categorical = n_threads_of(self.n_jobs), self.encoding_.categorical
        engine = make_engine(self.engine_, trees, n_threads, categorical)
        rescaling = self._loss.rescaling(self.rescaling)
        return BoostingSettings(self._loss, engine, self.eta, rescaling, seed)

    def _set_fitted(self, fit: BoostingFit, choice: Choice) -> Self:
        return self._set_rounds(fit.initial.predictor, fit.rounds, fit.losses, choice)

    def _set_rounds(
        self, init: Any, rounds: Sequence[Round], losses: Sequence[float], choice: Choice
    ) -> Self:
        self.init_ = init
        self.steps_ = tuple(rounds)
        self.weights_ = np.array([step.weight for step in self.steps_])
        self.gaps_ = np.array([step.gap for step in self.steps_])
        self.losses_ = np.array(losses)
        self.best_round_ = choice.best_round
        self.validation_scores_ = choice.scores
        return self

    def load_rounds(
        self,
        encoding: Encoding,
        init: Any,
        rounds: Sequence[Round],
        losses: Sequence[float],
        choice: Choice,
        *,
        named: bool,
    ) -> Self:
        """Make this a fitted model of rounds that something else has fitted.

        init : predicts from the trees' matrix.  named : the encoding's names are column names.
        """
        self.encoding_ = encoding
        self.n_features_in_ = len(encoding.codes)
        if named:
            self.feature_names_in_ = np.array([code.name for code in encoding.codes], dtype=object)
        self._init_sees, self._eta = "matrix", self.eta
        return self._set_rounds(init, rounds, losses, choice)

    # --- rows -----------------------------------------------------------------------------------

    def _table(self, X: Any, *, reset: bool) -> tuple[Any, Floats]:
        """Return X as initial predictors are given it, and as the trees are."""
        if reset:
            self.engine_ = engine_for(self.engine, _num_samples(X))
        if isinstance(X, pd.DataFrame):
            validate_data(self, X, skip_check_array=True, reset=reset)
            columns = columns_of(X)
            if reset:
                check_levels(columns)
                self.encoding_ = Encoding.learn(columns, native=self.engine_ in NATIVE)
            return X, self.encoding_.encode(columns)
        table = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=reset)
        if reset:
            self.encoding_ = Encoding.learn(table, native=self.engine_ in NATIVE)
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
        return InitialPredictor(
            init,
            cv,
            self.encoding_.expanded if self.init is None else None,
            self._is_classifier,
            seed,
            self._scores_of,
            self._out_of_bag,
        )

    def _initial_scores(self, table: Any, matrix: Floats, initial_prediction: Any) -> Floats:
        """Return f_0 of rows to predict."""
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
        """Yield f_0, …, f_T of rows.

        Every round is given these rows' own f_t as a feature and uses the w_t of the training.
        """
        check_is_fitted(self)
        table, matrix = self._table(X, reset=False)
        last = self.best_round_ if n_rounds is None else n_rounds
        if not 0 <= last <= len(self.steps_):
            raise ValueError(f"n_rounds={n_rounds}: must be from 0 to {len(self.steps_)}")
        f = self._initial_scores(table, matrix, initial_prediction)
        yield f
        for step in self.steps_[:last]:
            f = advance(f, matrix, step, self._eta)
            yield f

    def _scores(self, X: Any, initial_prediction: Any, n_rounds: int | None) -> Floats:
        *_, last = self._staged_scores(X, initial_prediction, n_rounds)
        return last

    # --- what was learned -----------------------------------------------------------------------

    def get_feature_names_out(self, input_features: Any = None) -> Any:  # noqa: ARG002
        """Return the names of the trees' columns: numbers, and an indicator per category."""
        check_is_fitted(self)
        return np.array(self.encoding_.names, dtype=object)

    @property
    def feature_importances_(self) -> Floats:
        """Each column's share of all splits' gain, (n_features_in_,); f's share is `f_importance_`.

        Together they add up to 1, unless there are no splits.
        """
        gains = self._gains().sum(axis=0)
        of_columns = np.bincount(self.encoding_.origin, gains[:-1], self.n_features_in_)
        return of_columns / (gains.sum() or 1.0)

    @property
    def f_importance_(self) -> float:
        """The share of the splits on f: correction by prediction alone, rather than by group."""
        gains = self._gains().sum(axis=0)
        return float(gains[-1] / (gains.sum() or 1.0))

    @property
    def f_shares_(self) -> Floats:
        """The share of the splits on f in each of the `best_round_` rounds."""
        gains = self._gains()
        totals = gains.sum(axis=1)
        return gains[:, -1] / np.where(totals > 0, totals, 1.0)

    def _gains(self) -> Floats:
        check_is_fitted(self)
        gains = [step.ensemble.gains() for step in self.steps_[: self.best_round_]]
        return np.array(gains).reshape(len(gains), len(self.encoding_.names) + 1)

    def __sklearn_tags__(self) -> Any:
        """Return the tags; missing cells are allowed if the initial predictor allows them."""
        tags = super().__sklearn_tags__()
        if self.init is not None and hasattr(self.init, "__sklearn_tags__"):
            of_init = get_tags(self.init)
            tags.input_tags.allow_nan = of_init.input_tags.allow_nan or of_init.no_validation
        else:
            tags.input_tags.allow_nan = True
        return tags


def _trial(
    initial: InitialPredictor,
    whole: FittedInitial | None,
    rows: TrainingRows,
    train: Ints,
    test: Ints,
    n_rounds: int,
    settings: BoostingSettings,
) -> Trial:
    """Return a fit to some rows that is validated on others.

    whole : the initial predictor of all rows; None if one is to be fitted to ``train``.
    """
    some, held_out = rows.take(train), rows.take(test)
    if whole is None:
        fitted = initial.fit(some)
        f0 = initial.scores(fitted, held_out)
    else:
        fitted, f0 = FittedInitial(whole.predictor, whole.f0[train]), whole.f0[test]
    return Trial(BoostingFit(settings, some, fitted, n_rounds), held_out, f0)
