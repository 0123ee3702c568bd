"""LightGBM's histogram trees, for tables that are too large for exact ones.

X is binned once, when the engine is bound; a round bins f alone and adds X's bins to it. With a bin
for every value (`LOSSLESS`) the trees are scikit-learn's except for thresholds, which lie midway
between neighbouring values of the whole table instead of a node's: training predictions agree, and
a held-out row between the two thresholds may fall on the other side.
"""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats
from .base import Engine, FitsLogLoss, Fitter, TreeSettings
from .nodes import TreeEnsemble

_FILTERS = threading.Lock()
MOST_BINS = 65_535


@dataclass(frozen=True)
class Bins:
    """How fine the histograms are."""

    most: int = 255  # the largest number of bins of a feature
    rows: int = 3  # the smallest number of rows in a bin


LOSSLESS = Bins(MOST_BINS, 1)  # a bin for every value of a feature, up to so many
# Trees start from the logits that they are given. A leaf of rows that are certain and wrong has
# next to no curvature, and its step would be huge: it needs some.
LOG_LOSS = {"objective": "binary", "boost_from_average": False, "min_sum_hessian_in_leaf": 1e-3}


@dataclass(frozen=True)
class LightgbmFitter(Fitter, FitsLogLoss):
    """LightGBM bound to training rows."""

    engine: LightgbmEngine
    X: Floats
    weights: Floats | None
    binned: Any  # the bins of X
    seen: NDArray[np.intp] | None  # the rows of positive weight; None if that is all rows

    def fit(self, f: Floats, residual: Floats, seed: int) -> tuple[TreeEnsemble, Floats]:
        return self._trained(self._parameters(seed), self._dataset(f, residual), f)

    def _trained(
        self, parameters: dict[str, Any], data: Any, feature: Floats
    ) -> tuple[TreeEnsemble, Floats]:
        booster = lightgbm_package().Booster(parameters, data)
        for _ in range(self.engine.settings.n_trees):
            booster.update()
        ensemble = TreeEnsemble.of_lightgbm(booster.model_to_string())
        return ensemble, ensemble.predict(self.X, feature)

    def fit_log_loss(
        self, feature: Floats, y: Floats, f: Floats, seed: int
    ) -> tuple[TreeEnsemble, Floats]:
        data = self._dataset(feature, y, init_score=f)
        return self._trained(self._parameters(seed) | LOG_LOSS, data, feature)

    def _dataset(self, feature: Floats, label: Floats, **more: Floats | None) -> Any:
        """Return (feature, X) as bins, with a label and what else there is of each row."""
        more["weight"] = self.weights
        if self.seen is not None:
            feature, label = feature[self.seen], label[self.seen]
            more = {name: v if v is None else v[self.seen] for name, v in more.items()}
        return with_f(feature, label, self.binned, self.engine.binning, **more)

    def _parameters(self, seed: int) -> dict[str, Any]:
        settings = self.engine.settings
        chosen = self.engine.binning | growing(settings, seed, len(self.X))
        return chosen | {"learning_rate": settings.learning_rate}


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

    def bind(self, X: Floats, weights: Floats | None = None) -> LightgbmFitter:
        if weights is not None:
            weights = weights / weights[weights > 0].mean()  # l2 does not depend on their unit
        seen = None if weights is None or weights.all() else np.flatnonzero(weights)
        data = lightgbm_package().Dataset(
            X if seen is None else X[seen],
            params=self.binning,
            categorical_feature=list(self.categorical),
            free_raw_data=True,
        )
        return LightgbmFitter(self, X, weights, data.construct(), seen)

    @property
    def binning(self) -> dict[str, Any]:
        """LightGBM's parameters for binning a table."""
        return binning(self.bins, self.n_threads)


def lightgbm_package() -> Any:
    """Import LightGBM when it is needed: that takes a second, and the paper's runs do not."""
    import lightgbm

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


def growing(settings: TreeSettings, seed: int, n_rows: int | None = None) -> dict[str, Any]:
    """Return LightGBM's parameters for growing trees; of ``n_rows``, at least one is drawn."""
    chosen = {
        "objective": "regression",
        "max_depth": settings.max_depth,
        "num_leaves": settings.max_leaves or 2**settings.max_depth,
        "lambda_l2": settings.l2,
        "min_data_in_leaf": settings.min_samples_leaf,
        "min_sum_hessian_in_leaf": 0.0,
        "seed": seed % 2**31,
        "deterministic": True,
        "force_col_wise": True,  # row-wise sums depend on the number of threads
    }
    if settings.subsample < 1:
        share = max(settings.subsample, 1.5 / n_rows if n_rows else 0.0)
        chosen |= {"bagging_fraction": min(share, 1.0), "bagging_freq": 1}
    if settings.max_features < 1:
        chosen["feature_fraction_bynode"] = settings.max_features
    return chosen


def with_f(f: Floats, label: Floats, binned: Any, parameters: dict[str, Any], **more: Any) -> Any:
    """Return (f, X) as bins, from the bins of X; ``more`` goes to LightGBM's Dataset of f."""
    column = np.ascontiguousarray(f[:, None])
    data = lightgbm_package().Dataset(column, label, params=parameters, **more)
    # LightGBM warns that it does not keep the raw values. Filters are the process's: folds that are
    # fitted at once, in threads, would set them back for each other.
    with _FILTERS, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return data.construct().add_features_from(binned)
