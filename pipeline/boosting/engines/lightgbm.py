"""LightGBM's histogram trees, for tables that are too large for exact ones (extra: lightgbm).

X is binned once, when the engine is bound; a round bins f alone and adds X's bins to it. With a bin
for every value (`LOSSLESS`) the trees are scikit-learn's except for thresholds, which lie midway
between neighbouring values of the whole table instead of a node's: training predictions agree, and
a held-out row between the two thresholds may fall on the other side.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from pipeline.boosting.arrays import Floats
from pipeline.boosting.engines.base import Engine, Ensemble, Fitter, Grower, TreeSettings

BLOCK = 200_000  # rows that are joined and predicted at a time
MOST_BINS = 65_535


@dataclass(frozen=True)
class Bins:
    """How fine the histograms are.

    most : the largest number of bins of a feature.  rows : the smallest number of rows in a bin.
    """

    most: int = 255
    rows: int = 3


LOSSLESS = Bins(MOST_BINS, 1)


@dataclass(frozen=True)
class LightgbmEnsemble(Ensemble):
    """A fitted booster over (f, x), and a constant that is added to it."""

    booster: Any
    constant: float = 0.0

    @override
    def predict(self, X: Floats, f: Floats) -> Floats:
        h = np.concatenate([self.booster.predict(Z) for Z in _blocks(X, f)])
        h += self.constant
        return h

    @override
    def gains(self) -> Floats:
        return _f_last(self.booster.feature_importance("gain"))


@dataclass(frozen=True)
class LightgbmLeaves(Ensemble):
    """LightGBM's trees over (f, x) with given leaf values: h(x, f) = lr Σ leaf values."""

    trees: tuple[Any, ...]
    values: tuple[Floats, ...]
    learning_rate: float

    @override
    def predict(self, X: Floats, f: Floats) -> Floats:
        return np.concatenate([self._block(Z) for Z in _blocks(X, f)])

    def _block(self, Z: Floats) -> Floats:
        h = np.zeros(len(Z))
        for tree, values in zip(self.trees, self.values, strict=True):
            h += self.learning_rate * values[_leaves(tree, Z)]
        return h

    @override
    def gains(self) -> Floats:
        return _f_last(sum(tree.feature_importance("gain") for tree in self.trees))


@dataclass(frozen=True)
class LightgbmGrower(Grower):
    """Grows LightGBM's trees one at a time."""

    fitter: LightgbmFitter
    f: Floats
    data: Any
    parameters: dict[str, Any]
    trees: list[Any] = field(default_factory=list)

    @override
    def grow(self, residual: Floats, mass: Floats | None = None) -> NDArray[np.intp]:
        weights = np.ones(len(residual)) if mass is None else mass
        seen = np.flatnonzero(weights)  # LightGBM would count rows of weight 0 in a leaf
        data = self.data if len(seen) == len(weights) else self.data.subset(seen).construct()
        data.set_label(residual[seen])
        data.set_weight(weights[seen])
        tree = lightgbm_package().train(self.parameters, data, 1)
        self.trees.append(tree)
        return np.concatenate([_leaves(tree, Z) for Z in _blocks(self.fitter.X, self.f)])

    @override
    def ensemble(self, values: Sequence[Floats]) -> LightgbmLeaves:
        rate = self.fitter.settings.learning_rate
        return LightgbmLeaves(tuple(self.trees), tuple(values), rate)


@dataclass(frozen=True)
class LightgbmFitter(Fitter):
    """LightGBM bound to training rows.

    binned : the bins of X.  seen : the rows of positive weight; None if that is all rows.
    """

    engine: LightgbmEngine
    settings: TreeSettings
    X: Floats
    weights: Floats | None
    binned: Any
    seen: NDArray[np.intp] | None

    @override
    def fit(self, f: Floats, residual: Floats, seed: int) -> tuple[LightgbmEnsemble, Floats]:
        data = self._dataset(f, residual)
        parameters = self.engine.parameters(seed) | {"learning_rate": self.settings.learning_rate}
        booster = lightgbm_package().train(parameters, data, self.settings.n_trees)
        booster.free_dataset()
        ensemble = LightgbmEnsemble(booster)
        return ensemble, ensemble.predict(self.X, f)

    @override
    def grower(self, f: Floats, seed: int) -> LightgbmGrower:
        # Only the leaves of these trees are used, not their values. Each tree has its own weights,
        # so all rows are binned here.
        own = {"learning_rate": 1.0, "boost_from_average": False}
        parameters = self.engine.parameters(seed) | own
        fitter = self if self.seen is None else self.engine.bind(self.X)
        return LightgbmGrower(fitter, f, fitter._dataset(f, np.zeros(len(f))), parameters)

    def _dataset(self, f: Floats, residual: Floats) -> Any:
        """Return (f, X) as bins."""
        weights = self.weights
        if self.seen is not None and weights is not None:
            f, residual, weights = f[self.seen], residual[self.seen], weights[self.seen]
        return with_f(f, residual, self.binned, self.engine.binning, weight=weights)


@dataclass(frozen=True)
class LightgbmEngine(Engine):
    """``engine="lightgbm"``; ``engine="lightgbm_lossless"`` has a bin for every value.

    Missing cells (NaN) go to the better side of each split. ``categorical`` names the columns of X
    that hold category codes 0, 1, …: a split of such a column separates sets of categories.
    """

    settings: TreeSettings
    n_threads: int = 1
    bins: Bins = Bins()
    categorical: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Raise ImportError at once if LightGBM is not installed."""
        lightgbm_package()

    @override
    def bind(self, X: Floats, weights: Floats | None = None) -> LightgbmFitter:
        seen = None if weights is None or weights.all() else np.flatnonzero(weights)
        data = lightgbm_package().Dataset(
            X if seen is None else X[seen],
            params=self.binning,
            categorical_feature=list(self.categorical),
            free_raw_data=True,
        )
        return LightgbmFitter(self, self.settings, X, weights, data.construct(), seen)

    @property
    def binning(self) -> dict[str, Any]:
        """LightGBM's parameters for binning a table."""
        return binning(self.bins, self.n_threads)

    def parameters(self, seed: int) -> dict[str, Any]:
        """Return LightGBM's parameters for binning a table and growing trees."""
        return self.binning | growing(self.settings, seed)


def lossless(settings: TreeSettings, n_threads: int = 1) -> LightgbmEngine:
    """Return LightGBM's engine with a bin for every value of a feature, up to `MOST_BINS`."""
    return LightgbmEngine(settings, n_threads, LOSSLESS)


def lightgbm_package() -> Any:
    """Import LightGBM; the ImportError says how to install it."""
    try:
        import lightgbm
    except ImportError:
        raise ImportError(
            "engine='lightgbm' needs LightGBM: pip install 'mcboost-replication[lightgbm]'"
        ) from None
    return lightgbm


def binning(bins: Bins, n_threads: int) -> dict[str, Any]:
    """Return LightGBM's parameters for binning a table."""
    return {
        "max_bin": bins.most,
        "min_data_in_bin": bins.rows,
        "bin_construct_sample_cnt": 10_000_000 if bins == LOSSLESS else 200_000,
        "feature_pre_filter": False,
        "num_threads": n_threads,
        "verbosity": -1,
    }


def growing(settings: TreeSettings, seed: int) -> dict[str, Any]:
    """Return LightGBM's parameters for growing trees."""
    chosen = {
        "objective": "regression",
        "max_depth": settings.max_depth,
        "num_leaves": 2**settings.max_depth,
        "min_data_in_leaf": settings.min_samples_leaf,
        "min_sum_hessian_in_leaf": 0.0,
        "seed": seed % 2**31,
        "deterministic": True,
        "force_col_wise": True,  # row-wise sums depend on the number of threads
    }
    if settings.subsample < 1:
        chosen |= {"bagging_fraction": settings.subsample, "bagging_freq": 1}
    if settings.max_features < 1:
        chosen["feature_fraction_bynode"] = settings.max_features
    return chosen


def with_f(f: Floats, label: Floats, binned: Any, parameters: dict[str, Any], **more: Any) -> Any:
    """Return (f, X) as bins, from the bins of X; ``more`` goes to LightGBM's Dataset of f."""
    column = np.ascontiguousarray(f[:, None])
    data = lightgbm_package().Dataset(column, label, params=parameters, **more)
    with warnings.catch_warnings():  # LightGBM warns that it does not keep the raw values
        warnings.simplefilter("ignore", UserWarning)
        return data.construct().add_features_from(binned)


def _blocks(X: Floats, f: Floats) -> Iterator[Floats]:
    """Yield (f, X) of some rows at a time: a copy of all of X would double the memory."""
    for start in range(0, max(len(f), 1), BLOCK):
        rows = slice(start, start + BLOCK)
        yield np.column_stack([f[rows], X[rows]])


def _leaves(tree: Any, Z: Floats) -> NDArray[np.intp]:
    return tree.predict(Z, pred_leaf=True).reshape(len(Z), -1)[:, 0].astype(np.intp)


def _f_last(gains: Any) -> Floats:
    return np.roll(np.asarray(gains, np.float64), -1)
