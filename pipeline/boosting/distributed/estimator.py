"""Multicalibration gradient boosting on a Dask cluster, for tables that fit on no machine."""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted
from tqdm import tqdm

from ..arrays import Floats
from ..audit import Assessment, Auditor
from ..classifier import MulticalibrationBoostingClassifier
from ..engines.lightgbm import MOST_BINS, Bins
from ..frames import levels_of
from ..parameters import check_parameters, seed_of, tree_settings
from ..regressor import MulticalibrationBoostingRegressor
from ..rescaling import Rescaling, resolve
from ..stopping import choose, gain
from ..trajectories import Trajectory
from .checkpoint import Checkpoint
from .dask import OnDask, chunks_of, dask_table, is_dask
from .fit import DistributedFit, DistributedStep, FitSettings
from .initial import FOREST
from .parts import Part, Table, Unfit, parquet_table

# Parameters that the fitted model has, too.
SHARED = ["n_rounds", "eta", "rescaling", "feedback", "n_trees", "max_leaf_nodes", "max_depth"]
SHARED += ["learning_rate", "min_samples_leaf", "l2_regularization", "early_stopping"]
SHARED += ["n_iter_no_change", "random_state"]

DOC = """{what}, fitted by the workers of a Dask cluster.

    Each worker holds a share of the rows: LightGBM's bins of X, a byte a cell, and y, weights and
    f_t beside them. A round is a training of LightGBM over all workers. The fitted model is
    `model_`, a `{model}`, which needs no Dask.

    Parameters
    ----------
    n_rounds, eta : optional
        The largest number of rounds and the step size, as in `{model}`.
    rescaling : {{"unit", "relaxed", "adaptive"}} or object, default="unit"
        The strategy for w_t: a name, or an object with a ``reduced_weight(t, each)`` method, by
        which w_t follows from what workers make of their rows (`mcgb.rescaling.Reduced`).
    feedback : {{"honest", "in_sample"}}, default="honest"
        The trees' feature besides X. "honest": two trajectories are fitted, each to one half of the
        rows, and averaged; a row's f_t comes from the one that has not seen its y. "in_sample":
        there is one trajectory, fitted to all rows, and its own f_t is the feature (the paper).
    init : {{"forest", "mean"}}, default="forest"
        The initial predictor, unless `fit` is given predictions: LightGBM's forest of 100 trees of
        depth 5, fitted to the ``sample_size`` rows that this process sees, or the mean of y.
    n_trees, max_leaf_nodes, max_depth, learning_rate : optional
        The trees of a round, as in `{model}`.
    min_samples_leaf, l2_regularization : optional
        The same.
    early_stopping, n_iter_no_change : optional
        The same; rows that no round sees decide how much is kept.
    validation_fraction : float, default=0.2
        The share of such rows; at most ``sample_size`` rows are left out.
    sample_size : int, default=100_000
        About how many rows this process sees: of those that are fitted, for the bins' boundaries,
        and of those that are not, for stopping and the audit.
    max_bins : int, default=255
        The most bins of a column.
    checkpoint : path or None, default=None
        A folder that keeps each round. A fit with the same settings and table continues from there,
        on the same number of workers and with the same result, also with more rounds than before;
        it needs an int ``random_state``.
    client : distributed.Client or None, default=None
        The cluster; None is the current client.
    patience : float, default=300
        Seconds to wait for a worker that replaces one that died.
    random_state : int, RandomState or None, default=None
        The seed of the initial forest, of the rows left out, of the halves and of the trees.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    model_ : {model}
        The fitted model, which needs no Dask.
    best_round_, gain_, weights_, gaps_, losses_, validation_scores_ : int, Gain, ndarray
        As those of `{model}`; held-out rows are the rows left out.
    initial_audit_, audit_ : Assessment or None
        Audits of f_0 and of the fitted model on the rows left out, with their weights (about
        ``sample_size`` rows, ``audit_.n``); None without such rows.

    Notes
    -----
    The result does not depend on which worker holds which rows, on threads, or on workers that died
    on the way; it does, within rounding, depend on the number of workers. `{model}` has five
    trajectories by default, not two, and stacks them with other kinds of trees; with
    ``stack=False, cv=2`` it does what is done here, except that it judges on all rows.{more}
    """


@dataclass(eq=False, repr=False)
class DaskBoosting(BaseEstimator):  # type: ignore[misc]
    """What regression and classification share."""

    n_rounds: int = 100
    _: KW_ONLY
    eta: float = 1.0
    rescaling: str | Rescaling = "unit"
    feedback: str = "honest"
    init: str = "forest"
    n_trees: int = 10
    max_leaf_nodes: int | None = 31
    max_depth: int | None = None
    learning_rate: float = 0.2
    min_samples_leaf: int = 20
    l2_regularization: float = 10.0
    early_stopping: bool = True
    n_iter_no_change: int = 5
    validation_fraction: float = 0.2
    sample_size: int = 100_000
    max_bins: int = 255
    checkpoint: str | Path | None = None
    client: Any = None
    patience: float = 300.0
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    _model: ClassVar[Any]

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        initial_prediction: Any = None,
        *,
        drop: Sequence[str] = (),
    ) -> Self:
        """Fit the rounds.

        Parameters
        ----------
        X : Dask array or data frame of shape (n, d), or path
            The table; or a Parquet folder, or its URL for fsspec, that all workers reach.
        y : Dask array or series of shape (n,), or str
            The outcomes or labels, in the chunks of X; or the name of a column of the folder.
        sample_weight : of the same kind as y, optional
            Their weights.
        initial_prediction : of the same kind as y, optional
            Takes the place of ``init``; of a classifier, probabilities of its second class.
        drop : sequence of str, default=()
            Columns of a folder to leave out.

        Returns
        -------
        self
            The fitted estimator.
        """
        model = self._checked()
        client = _client(self.client, type(self).__name__)
        table = self._table(client, X, y, initial_prediction, sample_weight, drop)
        holders = OnDask(client, Checkpoint.shards_in(self.checkpoint), self.patience)
        with holders.open():
            table = self._with_labels(holders, table, model)
            settings = self._settings(table, model, initial_prediction is not None)
            fit = DistributedFit(table, holders, settings, self.checkpoint)
            steps: list[DistributedStep] = []
            kept = self._kept(self._followed(fit, steps), fit, model)
        self.model_ = _finished(model, fit, kept)
        self.best_round_, self.gain_ = model.best_round_, model.gain_
        self.n_features_in_ = model.n_features_in_
        if table.named:
            self.feature_names_in_ = model.feature_names_in_
        self.weights_ = np.array([step.weight for step in steps[1:]])
        self.gaps_ = np.array([step.gap for step in steps[1:]])
        self.losses_ = np.array([step.loss for step in steps])
        first, last = steps[0].f_held_out, steps[self.best_round_].f_held_out
        share = sum(trajectory.share for trajectory in kept)
        self.initial_audit_ = _audit(fit, first)
        self.audit_ = _audit(fit, first + share * (last - first))
        return self

    def __sklearn_clone__(self) -> Self:
        """A copy that is not fitted; a client is not copied."""
        parameters = self.get_params(deep=False)
        client = parameters.pop("client")
        return type(self)(**{k: clone(v, safe=False) for k, v in parameters.items()}, client=client)

    def predict(self, X: Any, initial_prediction: Any = None) -> Any:
        """Predict rows.

        Parameters
        ----------
        X : table, array or Dask collection of shape (n, d)
            Rows, with the columns of the training table.
        initial_prediction : array or Dask collection of shape (n,), optional
            Their initial predictions, if `fit` was given such.

        Returns
        -------
        ndarray or Dask array of shape (n,)
            The predictions, or labels; of the kind of X.
        """
        return self._predicted("predict", X, initial_prediction)

    def _predicted(self, method: str, X: Any, initial_prediction: Any) -> Any:
        """What a method of the model returns for rows."""
        check_is_fitted(self)
        predict = getattr(self.model_, method)
        if not is_dask(X):
            return predict(X, initial_prediction)
        import dask
        import dask.array as da

        chunks, known = chunks_of(X)
        sizes: Sequence[float] = known or [np.nan] * len(chunks)
        given = [None] * len(chunks)
        if initial_prediction is not None:
            given = chunks_of(initial_prediction)[0]
        like = self.model_.classes_ if self._classifies else np.zeros(1)
        like, shape = (np.zeros(1), (2,)) if method == "predict_proba" else (like, ())
        predict, each = dask.delayed(predict), zip(chunks, given, sizes, strict=True)
        return da.concatenate(
            [da.from_delayed(predict(X_, f), (n, *shape), like.dtype) for X_, f, n in each]
        )

    # --- fitting --------------------------------------------------------------------------------

    @property
    def _classifies(self) -> bool:
        return isinstance(self, ClassifierMixin)

    def _checked(self) -> Any:
        """The model, not fitted; raises ValueError or TypeError for a parameter out of range."""
        model = self._model(**{name: getattr(self, name) for name in SHARED}, stack=False, cv=2)
        check_parameters(model)
        if self.feedback not in ("honest", "in_sample"):
            raise ValueError(f"feedback={self.feedback!r}: must be 'honest' or 'in_sample'")
        check_scalar(
            self.validation_fraction, "validation_fraction", Real, min_val=0, max_val=1,
            include_boundaries="neither",
        )  # fmt: skip
        check_scalar(self.sample_size, "sample_size", Integral, min_val=100)
        check_scalar(self.max_bins, "max_bins", Integral, min_val=2, max_val=MOST_BINS)
        if self.init not in ("forest", "mean"):
            raise ValueError(f"init={self.init!r}: must be 'forest' or 'mean'")
        if self.checkpoint is not None and not isinstance(self.random_state, Integral):
            raise ValueError("checkpoint: needs an int random_state, or no fit could continue it")
        return model

    def _table(
        self, client: Any, X: Any, y: Any, f0: Any, weights: Any, drop: Sequence[str]
    ) -> Table:
        if isinstance(X, str | Path):
            named = {"y": y, "sample_weight": weights, "initial_prediction": f0}
            for name, value in named.items():
                if value is not None and not isinstance(value, str):
                    raise TypeError(f"{name}: must be the name of a column of {X}")
            return parquet_table(X, [y], drop, f0, weights, "?" if self._classifies else None)
        collections = [each for each in (X, y, weights, f0) if each is not None]
        if not all(map(is_dask, collections)):
            raise TypeError(
                "X, y, sample_weight, initial_prediction: must be Dask arrays or data frames, or "
                "the path of a Parquet folder and columns of it; for tables in memory there is "
                f"{self._model.__name__}"
            )
        if drop:
            raise ValueError("drop: is for Parquet folders; leave columns out of X instead")
        return dask_table(client, X, y, f0, weights)

    def _with_labels(self, holders: OnDask, table: Table, model: Any) -> Table:
        """The table with y of 0 and 1, if this is a classifier, whose ``classes_`` are set."""
        if not self._classifies:
            return table
        found = holders.map_parts(_labels, table.parts)
        labels = pd.unique(np.concatenate([np.asarray(each) for each in found]))
        if pd.isna(labels).any():
            raise Unfit("y: some rows have no label")
        self.classes_ = model.classes_ = np.unique(labels)
        if len(labels) != 2:
            raise Unfit(
                f"y: has {len(labels)} classes instead of two; of more, each is fitted apart, as "
                "an outcome of its own"
            )
        model.corrections_ = ()
        return table.with_positive(levels_of(model.classes_[1:]).levels[0])

    def _settings(self, table: Table, model: Any, given: bool) -> FitSettings:
        held_out = 0.0
        if self.early_stopping:
            held_out = min(self.validation_fraction, self.sample_size / table.n_rows)
        return FitSettings(
            self.n_rounds, float(self.eta), resolve(self.rescaling), tree_settings(model),
            Bins(self.max_bins), "given" if given else self.init, FOREST, held_out,
            self.sample_size, seed_of(self.random_state), model._loss, self.feedback,
        )  # fmt: skip

    def _followed(self, fit: DistributedFit, steps: list[DistributedStep]) -> Iterator[Floats]:
        """The held-out scores after each round; the steps are added to ``steps``."""
        total = self.n_rounds + 1
        for step in tqdm(fit.run(), "rounds", total, disable=not self.verbose, leave=False):
            steps.append(step)
            yield step.f_held_out

    def _kept(
        self, stages: Iterator[Floats], fit: DistributedFit, model: Any
    ) -> tuple[Trajectory, ...]:
        """The rounds, and the share of them, that the rows left out support."""
        model.gain_, share, n_rounds = None, 1.0, self.n_rounds
        if not self.early_stopping:
            for _ in stages:
                pass
        else:
            loss = model._loss

            def judge(f: Floats) -> float:  # the rows are known when the first f is
                return -fit.held_out.mean(loss.cautious(fit.held_out.y, f))

            choice = choose(stages, judge, self.n_iter_no_change)
            self.validation_scores_ = model.validation_scores_ = choice.scores
            model.gain_ = gain(loss, fit.held_out, choice.first, choice.f)
            share, n_rounds = model.gain_.share, choice.best_round
        if share == 0 or n_rounds == 0:
            return ()
        each = share / len(fit.rounds)
        return tuple(
            Trajectory(tuple(rounds[:n_rounds]), float(self.eta), self.feedback, share=each)
            for rounds in fit.rounds
        )


class DaskMulticalibrationBoostingRegressor(RegressorMixin, DaskBoosting):  # type: ignore[misc]  # noqa: D101
    __doc__ = DOC.format(
        what="Multicalibration boosting for regression",
        model="MulticalibrationBoostingRegressor",
        more="",
    )
    _model = MulticalibrationBoostingRegressor


class DaskMulticalibrationBoostingClassifier(ClassifierMixin, DaskBoosting):  # type: ignore[misc]  # noqa: D101
    __doc__ = DOC.format(
        what="Multicalibration boosting with the log-loss for two classes",
        model="MulticalibrationBoostingClassifier",
        more=" The labels, sorted, are `classes_`.",
    )
    _model = MulticalibrationBoostingClassifier

    def predict_proba(self, X: Any, initial_prediction: Any = None) -> Any:
        """Predict the probabilities of both classes.

        Parameters
        ----------
        X : table, array or Dask collection of shape (n, d)
            Rows, with the columns of the training table.
        initial_prediction : array or Dask collection of shape (n,), optional
            Their initial probabilities of the second class, if `fit` was given such.

        Returns
        -------
        ndarray or Dask array of shape (n, 2)
            In the order of `classes_`; of the kind of X.
        """
        return self._predicted("predict_proba", X, initial_prediction)


def _finished(model: Any, fit: DistributedFit, kept: tuple[Trajectory, ...]) -> Any:
    """The model with what was fitted."""
    model.encoding_ = fit.encoding
    model.n_features_in_ = len(fit.encoding.codes)
    if fit.table.named:
        names = [code.name for code in fit.encoding.codes]
        model.feature_names_in_ = np.array(names, dtype=object)
    model._init_sees = "matrix"
    model.init_ = fit.initial.predictor(getattr(model, "classes_", None))
    model.trajectories_ = kept
    model.best_round_ = len(kept[0].rounds) if kept else 0
    return model


def _audit(fit: DistributedFit, f: Floats) -> Assessment | None:
    """The multicalibration error on the rows left out, if there are any."""
    held, settings = fit.held_out, fit.settings
    if len(held) < 2:
        return None
    auditor = Auditor(fit.encoding.expanded(held.X), seed=settings.seed)
    prediction = settings.loss.response(f)
    return auditor.assess(y=held.y, prediction=prediction, sample_weight=held.weights)


def _labels(part: Part) -> Any:
    return part.labels()


def _client(client: Any, name: str) -> Any:
    if client is not None:
        return client
    try:
        from distributed import default_client
    except ImportError:
        raise ImportError(f"{name} needs Dask: pip install 'mcgb[dask]'") from None

    try:
        return default_client()
    except ValueError:
        raise ValueError(
            "client: there is none; make one with distributed.Client('tcp://host:8786'), or "
            "distributed.Client() for processes on this machine"
        ) from None
