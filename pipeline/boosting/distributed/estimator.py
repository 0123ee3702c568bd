"""Multicalibration gradient boosting on a Dask cluster, for tables that fit on no machine."""

from collections.abc import Iterator, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted
from tqdm import tqdm

from ..arrays import Floats
from ..audit import Assessment, Auditor
from ..engines.base import TreeSettings
from ..engines.lightgbm import MOST_BINS, Bins
from ..losses import SquaredLoss
from ..parameters import seed_of
from ..regressor import MulticalibrationBoostingRegressor
from ..rescaling import Rescaling, resolve
from ..rows import Rows
from ..stopping import choose, gain
from ..trajectories import Trajectory
from .checkpoint import Checkpoint
from .dask import OnDask, chunks_of, dask_table, is_dask
from .fit import DistributedFit, DistributedStep, FitSettings
from .initial import FOREST
from .parts import Table, parquet_table

# Parameters that the fitted model has, too.
SHARED = ["n_rounds", "eta", "rescaling", "n_trees", "max_depth"]
SHARED += ["learning_rate", "min_samples_leaf", "random_state"]


class DaskMulticalibrationBoostingRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Algorithm 1 for regression, fitted by the workers of a Dask cluster.

    Each worker holds a share of the rows: LightGBM's bins of X, a byte a cell, and y and f_t beside
    them. A round is a training of LightGBM over all workers. The fitted model is `model_`, a
    `MulticalibrationBoostingRegressor`, which needs no Dask.

    Parameters
    ----------
    n_rounds : int, default=100
        The largest number of rounds.
    eta : float, default=0.25
        Step size η in (0, 1].
    rescaling : {"unit", "relaxed", "adaptive"} or Rescaling, default="unit"
        The strategy for w_t: a name, or one of the library's own strategies.
    init : {"forest", "mean"}, default="forest"
        The initial predictor, unless `fit` is given predictions: LightGBM's forest of 100 trees of
        depth 5, fitted to the ``sample_size`` rows that this process sees, or the mean of y.
    n_trees : int, default=20
        The number of trees of a round.
    max_depth : int, default=3
        The largest depth of a tree.
    learning_rate : float, default=0.1
        The factor of each tree in its ensemble.
    min_samples_leaf : int, default=20
        The smallest number of rows of a leaf.
    early_stopping : bool, default=True
        Whether rows that no round sees choose the number of rounds; see `validation_fraction`.
    validation_fraction : float, default=0.2
        The share of such rows; at most ``sample_size`` rows are left out.
    n_iter_no_change : int, default=3
        Rounds without an improvement after which no more are tried.
    sample_size : int, default=100_000
        About how many rows this process sees: of those that are fitted, for the bins' boundaries,
        and of those that are not, for stopping and the audit.
    max_bins : int, default=255
        The most bins of a column.
    checkpoint : path or None, default=None
        A folder that keeps each round. A fit with the same settings and table goes on from there,
        on the same number of workers and with the same result; it needs an int ``random_state``.
    client : distributed.Client or None, default=None
        The cluster; None is the current client.
    patience : float, default=300
        Seconds to wait for a worker that replaces one that died.
    random_state : int, RandomState or None, default=None
        The seed of the initial forest, of the rows left out and of the trees.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    model_ : MulticalibrationBoostingRegressor
        The fitted model, which needs no Dask.
    best_round_ : int
        The number of rounds that it uses.
    weights_, gaps_, losses_ : ndarray
        w_t, ‖f_{t+1} − f_t‖₂ and the mean squared errors, of all rounds.
    validation_scores_ : ndarray
        The scores on the rows left out, of those rounds that these have judged.
    initial_audit_, audit_ : Assessment or None
        Audits of f_0 and of the fitted model on the rows left out (about ``sample_size`` of them,
        ``audit_.n``); None without such rows.

    Notes
    -----
    The result does not depend on which worker holds which rows, on threads, or on workers that died
    on the way; it does, within rounding, depend on the number of workers.
    """

    def __init__(
        self,
        n_rounds: int = 100,
        *,
        eta: float = 0.25,
        rescaling: str | Rescaling = "unit",
        init: str = "forest",
        n_trees: int = 20,
        max_depth: int = 3,
        learning_rate: float = 0.1,
        min_samples_leaf: int = 20,
        early_stopping: bool = True,
        validation_fraction: float = 0.2,
        n_iter_no_change: int = 3,
        sample_size: int = 100_000,
        max_bins: int = 255,
        checkpoint: str | Path | None = None,
        client: Any = None,
        patience: float = 300.0,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_rounds = n_rounds
        self.eta = eta
        self.rescaling = rescaling
        self.init = init
        self.n_trees = n_trees
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.min_samples_leaf = min_samples_leaf
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.sample_size = sample_size
        self.max_bins = max_bins
        self.checkpoint = checkpoint
        self.client = client
        self.patience = patience
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any, initial_prediction: Any = None, *, drop: Sequence[str] = ()
    ) -> Self:
        """Fit the rounds.

        Parameters
        ----------
        X : Dask array or data frame of shape (n, d), or path
            The table; or a Parquet folder that all workers reach.
        y : Dask array or series of shape (n,), or str
            The outcomes, in the chunks of X; or the name of a column of the folder.
        initial_prediction : of the same kind as y, optional
            Takes the place of ``init``.
        drop : sequence of str, default=()
            Columns of a folder to leave out.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        client = _client(self.client)
        table = self._table(client, X, y, initial_prediction, drop)
        settings = self._settings(table, initial_prediction is not None)
        holders = OnDask(client, Checkpoint.shards_in(self.checkpoint), self.patience)
        with holders.open():
            fit = DistributedFit(table, holders, settings, self.checkpoint)
            steps: list[DistributedStep] = []
            kept = self._kept(self._followed(fit, steps), fit)
        self.model_ = self._local(fit, kept)
        self.best_round_ = len(kept.rounds)
        self.n_features_in_ = self.model_.n_features_in_
        if table.named:
            self.feature_names_in_ = self.model_.feature_names_in_
        self.weights_ = np.array([r.weight for r in fit.rounds])
        self.gaps_ = np.array([r.gap for r in fit.rounds])
        self.losses_ = np.array(fit.losses)
        self.initial_audit_ = _audit(fit, steps[0].f_held_out, settings.seed)
        self.audit_ = _audit(fit, self._after(steps, kept), settings.seed)
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
            The predictions, of the kind of X.
        """
        check_is_fitted(self)
        if not is_dask(X):
            return self.model_.predict(X, initial_prediction)
        import dask
        import dask.array as da

        chunks, known = chunks_of(X)
        sizes: Sequence[float] = known or [np.nan] * len(chunks)
        given = [None] * len(chunks)
        if initial_prediction is not None:
            given = chunks_of(initial_prediction)[0]
        predict = dask.delayed(self.model_.predict)
        each = zip(chunks, given, sizes, strict=True)
        return da.concatenate(
            [da.from_delayed(predict(chunk, f0), (n,), np.float64) for chunk, f0, n in each]
        )

    # --- fitting --------------------------------------------------------------------------------

    def _followed(self, fit: DistributedFit, steps: list[DistributedStep]) -> Iterator[Floats]:
        """The held-out scores after each round; the steps are added to ``steps``."""
        total = self.n_rounds + 1
        for step in tqdm(fit.run(), "rounds", total, disable=not self.verbose, leave=False):
            steps.append(step)
            yield step.f_held_out

    def _kept(self, stages: Iterator[Floats], fit: DistributedFit) -> Trajectory:
        """The rounds, and the share of them, that the rows left out support."""
        if not self.early_stopping:
            for _ in stages:
                pass
            return Trajectory(tuple(fit.rounds), float(self.eta))
        loss = SquaredLoss()
        choice = choose(
            stages, lambda f: -float(loss.of_rows(fit.held_out.y, f).mean()), self.n_iter_no_change
        )
        self.validation_scores_ = choice.scores
        found = gain(loss, Rows(y=fit.held_out.y), choice.first, choice.f)
        rounds = tuple(fit.rounds[: choice.best_round]) if found.share > 0 else ()
        return Trajectory(rounds, float(self.eta), share=found.share)

    @staticmethod
    def _after(steps: Sequence[DistributedStep], kept: Trajectory) -> Floats:
        """The fitted model's scores of the rows left out."""
        first, last = steps[0].f_held_out, steps[len(kept.rounds)].f_held_out
        return first + kept.share * (last - first)

    def _local(self, fit: DistributedFit, kept: Trajectory) -> MulticalibrationBoostingRegressor:
        parameters = {name: getattr(self, name) for name in SHARED}
        model = MulticalibrationBoostingRegressor(
            **parameters, max_leaf_nodes=None, l2_regularization=0.0, feedback="in_sample"
        )
        model.encoding_ = fit.encoding
        model.n_features_in_ = len(fit.encoding.codes)
        if fit.table.named:
            names = [code.name for code in fit.encoding.codes]
            model.feature_names_in_ = np.array(names, dtype=object)
        model._init_sees, model.init_ = "matrix", fit.initial.predictor
        model.trajectories_ = (kept,) if kept.rounds else ()
        model.best_round_ = len(kept.rounds)
        return model

    def _table(
        self, client: Any, X: Any, y: Any, initial_prediction: Any, drop: Sequence[str]
    ) -> Table:
        if isinstance(X, str | Path):
            for name, value in (("y", y), ("initial_prediction", initial_prediction)):
                if value is not None and not isinstance(value, str):
                    raise TypeError(f"{name}: must be the name of a column of {X}")
            return parquet_table(X, [y], drop, initial_prediction)
        collections = (X, y) if initial_prediction is None else (X, y, initial_prediction)
        if not all(map(is_dask, collections)):
            raise TypeError(
                "X, y, initial_prediction: must be Dask arrays or data frames, or the path of a "
                "Parquet folder and columns of it; for tables in memory there is "
                "MulticalibrationBoostingRegressor"
            )
        if drop:
            raise ValueError("drop: is for Parquet folders; leave columns out of X instead")
        return dask_table(client, X, y, initial_prediction)

    def _settings(self, table: Table, given: bool) -> FitSettings:
        held_out = 0.0
        if self.early_stopping:
            held_out = min(self.validation_fraction, self.sample_size / table.n_rows)
        return FitSettings(
            self.n_rounds, float(self.eta), resolve(self.rescaling),
            TreeSettings(self.n_trees, self.max_depth, self.learning_rate, self.min_samples_leaf),
            Bins(self.max_bins), "given" if given else self.init, FOREST,
            held_out, self.sample_size, seed_of(self.random_state),
        )  # fmt: skip

    def _check_parameters(self) -> None:
        check_scalar(self.n_rounds, "n_rounds", Integral, min_val=0)
        for name in ("eta", "learning_rate"):
            value = getattr(self, name)
            check_scalar(value, name, Real, min_val=0, max_val=1, include_boundaries="right")
        for name in ("n_trees", "max_depth", "min_samples_leaf", "n_iter_no_change"):
            check_scalar(getattr(self, name), name, Integral, min_val=1)
        check_scalar(
            self.validation_fraction, "validation_fraction", Real, min_val=0, max_val=1,
            include_boundaries="neither",
        )  # fmt: skip
        check_scalar(self.sample_size, "sample_size", Integral, min_val=100)
        check_scalar(self.max_bins, "max_bins", Integral, min_val=2, max_val=MOST_BINS)
        if self.init not in ("forest", "mean"):
            raise ValueError(f"init={self.init!r}: must be 'forest' or 'mean'")
        if self.checkpoint is not None and not isinstance(self.random_state, Integral):
            raise ValueError("checkpoint: needs an int random_state, or no fit could go on from it")


def _audit(fit: DistributedFit, f: Floats, seed: int) -> Assessment | None:
    """The multicalibration error on the rows left out, if there are any."""
    held = fit.held_out
    if len(held.y) < 2:
        return None
    auditor = Auditor(fit.encoding.expanded(held.X), seed=seed)
    return auditor.assess(y=held.y, prediction=f)


def _client(client: Any) -> Any:
    if client is not None:
        return client
    try:
        from distributed import default_client
    except ImportError:
        raise ImportError(
            "DaskMulticalibrationBoostingRegressor needs Dask: pip install 'mcgb[dask]'"
        ) from None

    try:
        return default_client()
    except ValueError:
        raise ValueError(
            "client: there is none; make one with distributed.Client('tcp://host:8786'), or "
            "distributed.Client() for processes on this machine"
        ) from None
