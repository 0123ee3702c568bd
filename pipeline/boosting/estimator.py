"""Multicalibration gradient boosting with scikit-learn's conventions: what both estimators share,
and regression.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from joblib import cpu_count, effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.metrics import get_scorer, r2_score
from sklearn.utils import check_random_state, check_scalar, get_tags
from sklearn.utils.validation import (
    _check_sample_weight,
    assert_all_finite,
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)
from tqdm import tqdm

from pipeline.boosting.algorithm import Round, Step, advance, boost, round_seed
from pipeline.boosting.arrays import Floats, Ints
from pipeline.boosting.encoding import Encoding, check_levels
from pipeline.boosting.engines import NATIVE, TreeSettings, make_engine
from pipeline.boosting.folds import Parts, folds, one_part
from pipeline.boosting.frames import columns_of
from pipeline.boosting.initial import FORESTS, paper_forest
from pipeline.boosting.losses import Loss, SquaredLoss
from pipeline.boosting.rescaling import Rescaling
from pipeline.boosting.rows import Rows
from pipeline.boosting.start import Start, Started
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

FOLDS_UP_TO = 10_000  # rows; beyond them one part of the rows is enough to choose a round
FRACTION = 0.2


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
        engine: str = "exact",
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
        """The paper's forest, not fitted."""
        raise NotImplementedError

    def _scores_of(self, init: Any, table: Any) -> Floats:
        """The scores that an initial predictor gives rows."""
        raise NotImplementedError

    def _out_of_bag(self, forest: Any) -> Floats:
        """Scores of a fitted forest's training rows by the trees that did not draw them."""
        raise NotImplementedError

    def _given(self, initial_prediction: ArrayLike, n: int) -> Floats:
        """Scores of initial predictions from elsewhere."""
        raise NotImplementedError

    def _target(self, labels: Any, *, reset: bool) -> Floats:
        """The target as numbers."""
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

        ``initial_prediction`` (n,) are predictions from elsewhere that take the place of ``init``
        (of a classifier, probabilities); all other methods then need the same for their rows. Rows
        of one of ``groups`` (n,) fall into the same fold. Rows of X_val choose the number of rounds
        instead of some of X.
        """
        check_parameters(self)
        self._loss.rescaling(self.rescaling)
        seed = seed_of(self.random_state)
        rows = self._rows(X, y, sample_weight, initial_prediction, reset=True)
        if groups is not None:
            check_consistent_length(rows.y, groups)
            rows = replace(rows, groups=np.asarray(groups))
        start = self._start(seed)
        if rows.given is None:
            start.check()
        self._init_sees = "table" if start.view is None else "indicators"
        self._eta = self.eta  # later changes are for the next fit
        if X_val is not None:
            part = self._rows(X_val, y_val, sample_weight_val, initial_prediction_val, reset=False)
            if (rows.given is None) != (part.given is None):
                raise ValueError("initial_prediction: is needed for X and X_val, or for neither")
            started = start.fit(rows)
            fit = self._new_fit(rows, started, self.n_rounds, seed)
            patience = self.n_iter_no_change if self.early_stopping else self.n_rounds + 1
            choice = self._chosen([_Trial(fit, part, start.scores(started, part))], seed, patience)
            if not self.early_stopping:
                choice = replace(choice, best_round=len(fit.rounds))
            return self._keep(fit, choice)
        if any(v is not None for v in (y_val, sample_weight_val, initial_prediction_val)):
            raise ValueError("y_val, sample_weight_val, initial_prediction_val: need X_val")
        if not self.early_stopping or self.n_rounds == 0:
            fit = self._new_fit(rows, start.fit(rows), self.n_rounds, seed)
            self._run(fit)
            return self._keep(fit, Choice(len(fit.rounds), np.empty(0)))
        return self._fit_and_stop(start, rows, seed)

    def _fit_and_stop(self, start: Start, rows: Rows, seed: int) -> Self:
        """Choose the number of rounds on rows that are held out of these, then fit that many."""
        # Scores that rows would get as new ones are computed once; else for each part anew.
        honest = start.cv is not None or rows.given is not None
        whole = start.fit(rows) if honest else None
        trials = [
            self._trial(start, whole, rows, train, test, seed)
            for train, test in self._parts(rows, seed)
        ]
        if trials:
            choice = self._chosen(trials, seed, self.n_iter_no_change)
        else:
            choice = Choice(0, np.empty(0))
            warnings.warn(
                f"{len(rows)} rows are too few, or those of a class or group, to choose a number "
                "of rounds: the initial predictor is kept as it is (early_stopping=False would fit "
                "all rounds)",
                stacklevel=4,
            )
        if trials and not self.refit and self._fraction(rows) is not None:
            return self._keep(trials[0].fit, choice)
        started = whole or start.fit(rows)
        fit = self._new_fit(rows, started, choice.best_round, seed)
        self._run(fit)
        return self._keep(fit, choice)

    def _fraction(self, rows: Rows) -> float | None:
        """The share of rows to look at; None for folds."""
        fraction = self.validation_fraction
        if fraction == "auto":
            fraction = "cv" if len(rows) <= FOLDS_UP_TO else FRACTION
        return None if isinstance(fraction, str) else fraction

    def _parts(self, rows: Rows, seed: int) -> Parts:
        """Rows to fit and rows to look at; none if there are too few."""
        fraction = self._fraction(rows)
        if fraction is None:
            return folds(rows, self.cv, self._is_classifier, seed)
        return one_part(rows, fraction, self._is_classifier, seed)

    def _trial(
        self,
        start: Start,
        whole: Started | None,
        rows: Rows,
        train: Ints,
        test: Ints,
        seed: int,
    ) -> _Trial:
        some, part = rows.take(train), rows.take(test)
        if whole is None:
            started = start.fit(some)
            scores = start.scores(started, part)
        else:
            started, scores = Started(whole.init, whole.f0[train]), whole.f0[test]
        return _Trial(self._new_fit(some, started, self.n_rounds, seed), part, scores)

    def _chosen(self, trials: Sequence[_Trial], seed: int, patience: int) -> Choice:
        def stages() -> Iterator[Sequence[Floats]]:
            current = [trial.scores for trial in trials]
            yield current
            for steps in zip(*(trial.fit.steps() for trial in trials), strict=True):
                current = [
                    advance(f, trial.part.X, step, self.eta)
                    for f, trial, step in zip(current, trials, steps, strict=True)
                ]
                yield current

        parts = [trial.part for trial in trials]
        classes = getattr(self, "classes_", None)
        judge = judge_of(self.scoring, parts, self._loss, classes, seed, self.encoding_.expanded)
        shown = self._shown(stages(), self.n_rounds + 1, "choosing a round")
        caution = CAUTION if len(trials) > 1 else CAUTION_OF_ONE
        return choose(shown, judge, patience, self.tol, caution)

    def _run(self, fit: _Fit) -> None:
        for _ in self._shown(fit.steps(), fit.n_rounds, "fitting rounds"):
            pass

    def _new_fit(self, rows: Rows, started: Started, n_rounds: int, seed: int) -> _Fit:
        settings = TreeSettings(
            self.n_trees,
            self.max_depth,
            self.learning_rate,
            self.min_samples_leaf,
            self.subsample,
            float(self.max_features),  # 1 is all of them, not one
        )
        return _Fit(self, rows, started, settings, n_rounds, seed)

    def _keep(self, fit: _Fit, choice: Choice) -> Self:
        return self._hold(fit.started.init, fit.rounds, fit.losses, choice)

    def _hold(
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

    def hold_elsewhere_fitted(
        self,
        encoding: Encoding,
        init: Any,
        rounds: Sequence[Round],
        losses: Sequence[float],
        choice: Choice,
        *,
        named: bool,
    ) -> Self:
        """Become a fitted model of rounds that were fitted elsewhere.

        init : predicts from the trees' matrix.  named : the encoding's names are the columns'.
        """
        self.encoding_ = encoding
        self.n_features_in_ = len(encoding.codes)
        if named:
            self.feature_names_in_ = np.array([code.name for code in encoding.codes], dtype=object)
        self._init_sees, self._eta = "matrix", self.eta
        return self._hold(init, rounds, losses, choice)

    def _shown(self, steps: Iterator[Any], total: int, doing: str) -> Iterator[Any]:
        return iter(tqdm(steps, doing, total, disable=not self.verbose, leave=False))

    # --- rows -----------------------------------------------------------------------------------

    def _table(self, X: Any, *, reset: bool) -> tuple[Any, Floats]:
        """X as initial predictors see it, and as the trees do."""
        if isinstance(X, pd.DataFrame):
            validate_data(self, X, skip_check_array=True, reset=reset)
            columns = columns_of(X)
            if reset:
                check_levels(columns)
                self.encoding_ = Encoding.learn(columns, native=self.engine in NATIVE)
            return X, self.encoding_.encode(columns)
        table = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=reset)
        if reset:
            self.encoding_ = Encoding.learn(table, native=self.engine in NATIVE)
        return table, self.encoding_.encode(table)

    def _rows(
        self, X: Any, y: Any, sample_weight: Any, initial_prediction: Any, *, reset: bool
    ) -> Rows:
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        table, design = self._table(X, reset=reset)
        labels = column_or_1d(y, warn=True)
        check_consistent_length(table, labels)
        target = self._target(labels, reset=reset)
        given = None
        if initial_prediction is not None:
            given = self._given(initial_prediction, len(target))
        rows = Rows(table, design, labels, target, None, given)
        if sample_weight is None:
            return rows
        weights = _check_sample_weight(
            sample_weight, design, dtype=np.float64, ensure_non_negative=True
        )
        if (weights == 1.0).all():
            return rows
        if not 1e-100 < weights.max() < 1e100:
            raise ValueError("sample_weight: the largest must lie between 1e-100 and 1e100")
        return replace(rows, weights=weights)

    # --- the initial predictor ------------------------------------------------------------------

    def _start(self, seed: int) -> Start:
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
        return Start(
            init,
            cv,
            self.encoding_.expanded if self.init is None else None,
            self._is_classifier,
            seed,
            self._scores_of,
            self._out_of_bag,
        )

    def _first(self, table: Any, design: Floats, initial_prediction: Any) -> Floats:
        if initial_prediction is not None:
            if self.init_ is not None:
                raise ValueError(
                    "initial_prediction: this model was fitted with its own initial predictor"
                )
            return self._given(initial_prediction, len(design))
        if self.init_ is None:
            raise ValueError(
                "initial_prediction: is needed, because this model was fitted with one"
            )
        seen = {"table": table, "matrix": design}.get(self._init_sees)
        return self._scores_of(
            self.init_, self.encoding_.expanded(design) if seen is None else seen
        )

    # --- predicting -----------------------------------------------------------------------------

    def _staged_scores(
        self, X: Any, initial_prediction: Any, n_rounds: int | None
    ) -> Iterator[Floats]:
        """Yield f_0, …, f_T of rows.

        Every round sees these rows' own f_t as its feature and uses the training w_t.
        """
        check_is_fitted(self)
        table, design = self._table(X, reset=False)
        last = self.best_round_ if n_rounds is None else n_rounds
        if not 0 <= last <= len(self.steps_):
            raise ValueError(f"n_rounds={n_rounds}: must be from 0 to {len(self.steps_)}")
        f = self._first(table, design, initial_prediction)
        yield f
        for step in self.steps_[:last]:
            f = advance(f, design, step, self._eta)
            yield f

    def _scores(self, X: Any, initial_prediction: Any, n_rounds: int | None) -> Floats:
        *_, last = self._staged_scores(X, initial_prediction, n_rounds)
        return last

    # --- what was learned -----------------------------------------------------------------------

    def get_feature_names_out(self, input_features: Any = None) -> Any:  # noqa: ARG002
        """The names of the columns that the trees see: numbers, and an indicator per level."""
        check_is_fitted(self)
        return np.array(self.encoding_.names, dtype=object)

    @property
    def feature_importances_(self) -> Floats:
        """Each column's share of all splits' gain, (n_features_in_,); f's share is `f_importance_`.

        Together they add up to 1, unless nothing was split.
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
        """The same for each of the `best_round_` rounds."""
        gains = self._gains()
        totals = gains.sum(axis=1)
        return gains[:, -1] / np.where(totals > 0, totals, 1.0)

    def _gains(self) -> Floats:
        check_is_fitted(self)
        kept = [step.ensemble.gains() for step in self.steps_[: self.best_round_]]
        return np.array(kept).reshape(len(kept), len(self.encoding_.names) + 1)

    def __sklearn_tags__(self) -> Any:
        """Missing cells have an answer, if the initial predictor has one."""
        tags = super().__sklearn_tags__()
        if self.init is not None and hasattr(self.init, "__sklearn_tags__"):
            of_init = get_tags(self.init)
            tags.input_tags.allow_nan = of_init.input_tags.allow_nan or of_init.no_validation
        else:
            tags.input_tags.allow_nan = True
        return tags


@dataclass
class _Fit:
    """Rounds that are fitted to some rows as they are asked for."""

    model: MulticalibrationBoosting
    rows: Rows
    started: Started
    settings: TreeSettings
    n_rounds: int
    seed: int

    def __post_init__(self) -> None:
        self.rounds: list[Round] = []
        self.losses = [self._loss_of(self.started.f0)]

    def steps(self) -> Iterator[Step]:
        if self.n_rounds == 0:
            return
        model, rows, loss = self.model, self.rows, self.model._loss
        engine = make_engine(
            model.engine, self.settings, n_threads_of(model.n_jobs), model.encoding_.categorical
        )
        fitter = engine.bind(rows.X, rows.weights)
        for step in boost(
            rows.y,
            self.started.f0,
            self.n_rounds,
            model.eta,
            loss.rescaling(model.rescaling),
            lambda t, f, _: loss.fit(
                fitter, self.settings, rows.y, f, round_seed(self.seed, t), rows.weights
            ),
            rows.weights,
        ):
            self.rounds.append(Round(step.ensemble, step.weight, step.gap))
            self.losses.append(self._loss_of(step.f))
            yield step

    def _loss_of(self, f: Floats) -> float:
        return self.rows.mean(self.model._loss.of_rows(self.rows.y, f))


@dataclass(frozen=True)
class _Trial:
    """Rounds, and rows to follow them on, which start from some scores."""

    fit: _Fit
    part: Rows
    scores: Floats


class MulticalibrationBoostingRegressor(RegressorMixin, MulticalibrationBoosting):  # type: ignore[misc]
    """Algorithm 1 for regression with the squared loss, as a correction of a predictor.

    From an initial predictor f_0, each round fits an ensemble of trees h_t to the residuals y − f_t
    on the features (x, f_t) and moves to f_{t+1} = w_t (f_t + η h_t). How many rounds are kept is
    decided on rows that they were not fitted to; it may be none.

    Parameters
    ----------
    n_rounds : int, default=100
        The most rounds; 0 leaves the initial predictor as it is. (The paper has 20.)
    eta : float, default=0.25
        Step size η in (0, 1].
    rescaling : {"unit", "relaxed", "adaptive"} or Rescaling, default="unit"
        Where w_t comes from. An object needs a ``weight(t, y, phi)`` method, which gets sample
        weights as a fourth argument if there are any.
    init : estimator or None, default=None
        The initial predictor; it sees X as it came. None is the paper's forest of 100 trees of
        depth 5.
    init_cv : None, "prefit", "oob", int or splitter, default=None
        How training rows get their f_0. None: from ``init`` fitted to them, as in the paper. An int
        or splitter: from copies of ``init`` fitted to the other folds, as new rows would; new rows
        get it from one fitted to all. "oob": from the out-of-bag predictions of a forest.
        "prefit": ``init`` is fitted already, to other rows, and used as it is (inside of
        `cross_val_score` and the like, wrap it in scikit-learn's FrozenEstimator).
    n_trees, max_depth, learning_rate : 20, 3, 0.1
        The ensemble of a round (the paper's has 100 trees; `PAPER` holds all of its settings).
    min_samples_leaf : int, default=20
        The fewest rows of a leaf.
    subsample : float, default=1.0
        Share of the rows that each tree is fitted to.
    max_features : float, default=1.0
        Share of the features, f among them, that each split chooses from.
    early_stopping : bool, default=True
        Whether to choose the number of rounds; False fits and uses ``n_rounds``.
    validation_fraction : float, "cv" or "auto", default="auto"
        The share of rows held out to choose by; "cv": each fold in turn, all of them judged
        together; "auto": "cv" up to 10,000 rows, beyond them 0.2.
    cv : int or splitter, default=5
        The folds of "cv".
    scoring : "loss", "mce", str or scorer, default="loss"
        What to choose by: the loss, the multicalibration error, or any of scikit-learn's scorers.
        With "loss", a round is chosen over the initial predictor only if it is better by more than
        a standard error (on one part of the rows instead of folds, 1.64 of them).
    n_iter_no_change : int, default=3
        Rounds without an improvement of more than ``tol`` after which no more are tried.
    tol : float, default=0.0
    refit : bool, default=True
        Whether the chosen number of rounds is fitted to all rows; with "cv" it always is.
    engine : {"exact", "sklearn", "lightgbm", "lightgbm_lossless"}, default="exact"
        Who fits the trees: a compiled kernel, or scikit-learn itself (without sampling the trees
        are the same, also those of the paper's forest); or LightGBM's histograms, for tables of
        many rows, with missing cells and categories left to LightGBM. "lightgbm_lossless" has a
        bin for every value and grows the exact trees.
    n_jobs : int or None, default=None
        Threads for the paper's forest and for the exact engine's rounds on a large table without
        weights, as in scikit-learn, but not more than there are cores; the result does not depend
        on it.
    random_state : int, RandomState or None, default=None
        Seeds the initial forest, folds, samples and ties between equally good splits.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    best_round_ : the rounds that `predict` uses.
    validation_scores_ : score of f_0, f_1, … on held-out rows (higher is better), as far as tried.
    steps_ : the fitted rounds, as `pipeline.boosting.algorithm.Round`.
    weights_, gaps_ : w_t and ‖f_{t+1} − f_t‖₂ on the training rows, of each of them (the norm
        counts rows by their weights).
    losses_ : mean squared error of f_0, f_1, … on the training rows.
    init_ : the fitted initial predictor, or None if `fit` was given initial predictions.
    feature_importances_, f_importance_, f_shares_ : shares of gain; see there.
    encoding_ : how columns became those of the trees.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn.

    Tables may be DataFrames with numbers, flags, categories, words and missing cells. A missing
    number lies below all others; a level that was not there in `fit` has none of its column's
    indicators (with ``engine="lightgbm"``, both go to the side that served missing cells best). As
    in scikit-learn's trees, numbers are seen in single precision: those that differ less count as
    equal, and those beyond 3.4e38 are refused.
    """

    _loss = SquaredLoss()
    _is_classifier = False

    def staged_predict(
        self,
        X: Any,
        initial_prediction: ArrayLike | None = None,
        *,
        n_rounds: int | None = None,
    ) -> Iterator[Floats]:
        """Yield the predictions f_0(x), …, f_T(x), each (n,), for the rows of X (n, d).

        ``n_rounds`` is T; by default it is `best_round_`.
        """
        return self._staged_scores(X, initial_prediction, n_rounds)

    def predict(
        self,
        X: Any,
        initial_prediction: ArrayLike | None = None,
        *,
        n_rounds: int | None = None,
    ) -> Floats:
        """The predictions f_T(x), (n,), for the rows of X (n, d); see `staged_predict`."""
        return self._scores(X, initial_prediction, n_rounds)

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        initial_prediction: ArrayLike | None = None,
    ) -> float:
        """R² of the predictions."""
        predicted = self.predict(X, initial_prediction)
        return float(r2_score(y, predicted, sample_weight=sample_weight))

    def _default_init(self, seed: int) -> Any:
        engine = self.engine if self.engine in FORESTS else "exact"
        return paper_forest(seed, engine=engine, n_jobs=self.n_jobs)

    def _scores_of(self, init: Any, table: Any) -> Floats:
        return finite(init.predict(table))

    def _out_of_bag(self, forest: Any) -> Floats:
        f0 = np.asarray(forest.oob_prediction_, dtype=np.float64)
        del forest.oob_prediction_  # a model's size does not depend on the number of rows
        return f0

    def _given(self, initial_prediction: ArrayLike, n: int) -> Floats:
        return given_numbers(initial_prediction, (n,))

    def _target(self, labels: Any, *, reset: bool) -> Floats:  # noqa: ARG002
        target = check_array(labels, ensure_2d=False, dtype=np.float64, input_name="y")
        assert_all_finite(target, input_name="y")
        return target


def n_threads_of(n_jobs: int | None) -> int:
    """Threads that wait for each other are no more than the cores."""
    return min(effective_n_jobs(n_jobs), cpu_count())


def seed_of(random_state: int | np.random.RandomState | None) -> int:
    """An int seed is used as it is, so that it names the same run everywhere."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def check_parameters(estimator: MulticalibrationBoosting) -> None:
    """Raise ValueError or TypeError for a parameter out of its range, by name."""
    make_engine(estimator.engine, TreeSettings(max_depth=estimator.max_depth))
    check_scalar(estimator.n_rounds, "n_rounds", Integral, min_val=0)
    for name in ("eta", "learning_rate", "subsample", "max_features"):
        value = getattr(estimator, name)
        check_scalar(value, name, Real, min_val=0, max_val=1, include_boundaries="right")
    for name in ("n_trees", "max_depth", "min_samples_leaf", "n_iter_no_change"):
        check_scalar(getattr(estimator, name), name, Integral, min_val=1)
    check_scalar(estimator.tol, "tol", Real, min_val=0)
    if isinstance(estimator.cv, Integral):
        check_scalar(estimator.cv, "cv", Integral, min_val=2)
    if isinstance(estimator.scoring, str) and estimator.scoring not in ("loss", "mce"):
        get_scorer(estimator.scoring)
    fraction = estimator.validation_fraction
    if isinstance(fraction, str):
        if fraction not in ("auto", "cv"):
            raise ValueError(f"validation_fraction={fraction!r}: must be a share, 'cv' or 'auto'")
    else:
        check_scalar(
            fraction, "validation_fraction", Real, min_val=0, max_val=1,
            include_boundaries="neither",
        )  # fmt: skip


def given_numbers(values: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Initial predictions as finite floats of a shape."""
    f0 = check_array(values, ensure_2d=False, dtype=np.float64, input_name="initial_prediction")
    f0 = f0[:, 0] if f0.ndim == 2 and f0.shape[1] == 1 else f0
    if f0.shape != shape:
        raise ValueError(f"initial_prediction: has shape {f0.shape} instead of {shape}")
    return f0


def finite(values: Any) -> Floats:
    """What an initial predictor says, refused where it says nothing."""
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError("init: predicts NaN or infinity for some rows")
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
