"""LightGBM's histogram trees, for tables that are too large for exact ones (extra: lightgbm).

X is binned once, at the binding; a round bins f alone and adds X's bins to it. With a bin for every
value (`lossless`) the trees are scikit-learn's, but for thresholds, which lie in the middle between
neighbours of the whole table instead of those of a node: training predictions agree, and held-out
rows between the two may fall to the other side.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.boosting.arrays import Floats
from pipeline.boosting.engines.base import TreeSettings

BLOCK = 200_000  # rows that are put together and predicted at a time
MOST_BINS = 65_535


@dataclass(frozen=True)
class Bins:
    """How fine the histograms are.

    most : bins of a feature.  rows : the fewest rows in one.
    """

    most: int = 255
    rows: int = 3


LOSSLESS = Bins(MOST_BINS, 1)


@dataclass(frozen=True)
class LightgbmEnsemble:
    """A fitted booster over (f, x), and a constant that is added to it."""

    booster: Any
    constant: float = 0.0

    def predict(self, X: Floats, f: Floats) -> Floats:
        """h(x, f); see `Ensemble`."""
        h = np.concatenate([self.booster.predict(Z) for Z in _blocks(X, f)])
        h += self.constant
        return h

    def gains(self) -> Floats:
        """See `Ensemble`."""
        return _f_last(self.booster.feature_importance("gain"))


@dataclass(frozen=True)
class LightgbmLeaves:
    """LightGBM's trees over (f, x) with values of their own: h(x, f) = lr Σ leaf values."""

    trees: tuple[Any, ...]
    values: tuple[Floats, ...]
    learning_rate: float

    def predict(self, X: Floats, f: Floats) -> Floats:
        """h(x, f); see `Ensemble`."""
        return np.concatenate([self._block(Z) for Z in _blocks(X, f)])

    def _block(self, Z: Floats) -> Floats:
        h = np.zeros(len(Z))
        for tree, values in zip(self.trees, self.values, strict=True):
            h += self.learning_rate * values[_leaves(tree, Z)]
        return h

    def gains(self) -> Floats:
        """See `Ensemble`."""
        return _f_last(sum(tree.feature_importance("gain") for tree in self.trees))


@dataclass(frozen=True)
class LightgbmGrower:
    """See `Grower`."""

    fitter: LightgbmFitter
    f: Floats
    data: Any
    parameters: dict[str, Any]
    trees: list[Any] = field(default_factory=list)

    def grow(self, residual: Floats, mass: Floats | None = None) -> NDArray[np.intp]:
        """See `Grower`."""
        weights = np.ones(len(residual)) if mass is None else mass
        seen = np.flatnonzero(weights)  # LightGBM would count the others as rows of a leaf
        data = self.data if len(seen) == len(weights) else self.data.subset(seen).construct()
        data.set_label(residual[seen])
        data.set_weight(weights[seen])
        tree = lightgbm_package().train(self.parameters, data, 1)
        self.trees.append(tree)
        return np.concatenate([_leaves(tree, Z) for Z in _blocks(self.fitter.X, self.f)])

    def ensemble(self, values: Sequence[Floats]) -> LightgbmLeaves:
        """See `Grower`."""
        rate = self.fitter.settings.learning_rate
        return LightgbmLeaves(tuple(self.trees), tuple(values), rate)


@dataclass(frozen=True)
class LightgbmFitter:
    """LightGBM bound to training rows.

    binned : the bins of X, made once.  seen : the rows with a weight, if not all have one.
    """

    X: Floats
    settings: TreeSettings
    weights: Floats | None
    bins: Bins
    n_threads: int
    binned: Any
    seen: NDArray[np.intp] | None
    categorical: tuple[int, ...]

    def fit(self, f: Floats, residual: Floats, seed: int) -> tuple[LightgbmEnsemble, Floats]:
        """Fit a round; see `Fitter`."""
        data = self._dataset(f, residual)
        parameters = self._parameters(seed) | {"learning_rate": self.settings.learning_rate}
        booster = lightgbm_package().train(parameters, data, self.settings.n_trees)
        booster.free_dataset()
        ensemble = LightgbmEnsemble(booster)
        return ensemble, ensemble.predict(self.X, f)

    def grower(self, f: Floats, seed: int) -> LightgbmGrower:
        """See `Fitter`."""
        # Leaves are all that is asked of these trees, whatever their values; each tree has weights
        # of its own, so that here all rows are wanted.
        parameters = self._parameters(seed) | {"learning_rate": 1.0, "boost_from_average": False}
        fitter = self
        if self.seen is not None:
            engine = LightgbmEngine(self.settings, self.n_threads, self.bins, self.categorical)
            fitter = engine.bind(self.X)
        return LightgbmGrower(fitter, f, fitter._dataset(f, np.zeros(len(f))), parameters)

    def _dataset(self, f: Floats, residual: Floats) -> Any:
        """(f, X) as bins."""
        parameters = binning(self.bins, self.n_threads)
        weights = self.weights
        if self.seen is not None and weights is not None:
            f, residual, weights = f[self.seen], residual[self.seen], weights[self.seen]
        return with_f(f, residual, self.binned, parameters, weight=weights)

    def _parameters(self, seed: int) -> dict[str, Any]:
        return binning(self.bins, self.n_threads) | growing(self.settings, seed)


@dataclass(frozen=True)
class LightgbmEngine:
    """``engine="lightgbm"``; ``engine="lightgbm_lossless"`` has a bin for every value.

    Missing cells (NaN) go to the better side of each split. ``categorical`` are the columns of X
    that hold numbers of levels, 0, 1, …: a split of such a column parts sets of levels.
    """

    settings: TreeSettings
    n_threads: int = 1
    bins: Bins = Bins()
    categorical: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Say at once if it is not installed."""
        lightgbm_package()

    def bind(self, X: Floats, weights: Floats | None = None) -> LightgbmFitter:
        """See `Engine`."""
        parameters = binning(self.bins, self.n_threads)
        seen = None if weights is None or weights.all() else np.flatnonzero(weights)
        rows = X if seen is None else X[seen]
        binned = (
            lightgbm_package()
            .Dataset(
                rows,
                params=parameters,
                categorical_feature=list(self.categorical),
                free_raw_data=True,
            )
            .construct()
        )
        return LightgbmFitter(
            X, self.settings, weights, self.bins, self.n_threads, binned, seen, self.categorical
        )


def lossless(settings: TreeSettings, n_threads: int = 1) -> LightgbmEngine:
    """LightGBM with a bin for every value of a feature, up to 65,535 of them."""
    return LightgbmEngine(settings, n_threads, LOSSLESS)


def lightgbm_package() -> Any:
    """LightGBM, or an ImportError that says how to get it."""
    try:
        import lightgbm
    except ImportError:
        raise ImportError(
            "engine='lightgbm' needs LightGBM: pip install 'mcboost-replication[lightgbm]'"
        ) from None
    return lightgbm


def binning(bins: Bins, n_threads: int) -> dict[str, Any]:
    """LightGBM's parameters of a table's bins."""
    return {
        "max_bin": bins.most,
        "min_data_in_bin": bins.rows,
        "bin_construct_sample_cnt": 10_000_000 if bins == LOSSLESS else 200_000,
        "feature_pre_filter": False,
        "num_threads": n_threads,
        "verbosity": -1,
    }


def growing(settings: TreeSettings, seed: int) -> dict[str, Any]:
    """LightGBM's parameters of a tree."""
    chosen = {
        "objective": "regression",
        "max_depth": settings.max_depth,
        "num_leaves": 2**settings.max_depth,
        "min_data_in_leaf": settings.min_samples_leaf,
        "min_sum_hessian_in_leaf": 0.0,
        "seed": seed % 2**31,
        "deterministic": True,
        "force_col_wise": True,  # the other way adds in an order that depends on threads
    }
    if settings.subsample < 1:
        chosen |= {"bagging_fraction": settings.subsample, "bagging_freq": 1}
    if settings.max_features < 1:
        chosen["feature_fraction_bynode"] = settings.max_features
    return chosen


def with_f(f: Floats, label: Floats, binned: Any, parameters: dict[str, Any], **more: Any) -> Any:
    """(f, X) as bins, from the bins of X; ``more`` goes to LightGBM's Dataset of f."""
    column = np.ascontiguousarray(f[:, None])
    data = lightgbm_package().Dataset(column, label, params=parameters, **more)
    with warnings.catch_warnings():  # that the raw values are not at hand, which is meant
        warnings.simplefilter("ignore", UserWarning)
        return data.construct().add_features_from(binned)


def _blocks(X: Floats, f: Floats) -> Iterator[Floats]:
    """(f, X) of some rows at a time: a copy of all of X would double the memory."""
    for start in range(0, max(len(f), 1), BLOCK):
        rows = slice(start, start + BLOCK)
        yield np.column_stack([f[rows], X[rows]])


def _leaves(tree: Any, Z: Floats) -> NDArray[np.intp]:
    return tree.predict(Z, pred_leaf=True).reshape(len(Z), -1)[:, 0].astype(np.intp)


def _f_last(gains: Any) -> Floats:
    return np.roll(np.asarray(gains, np.float64), -1)
