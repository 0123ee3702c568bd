"""Statistics of curves over rounds, shared by figures and claims.

A *bundle of curves* is an array (n_seeds, n_rounds + 1): one row per seed, one column per round.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from pipeline.analysis.paper import TEST_SHARE
from pipeline.analysis.style import Look, looks, papers_first
from pipeline.boosting.arrays import Flags, Floats, Ints

N_BOOTSTRAP = 2000
LEVEL = 0.95  # of intervals
FLOOR, SQUARE = "mce_floor_test", "mce2_debiased_test"  # columns of the test MCE's noise
NEAR_ONE = 0.985  # from here on two digits say too little of an R²
ROUNDING = 1e-12  # relative rises of a loss below this are rounding


@dataclass(frozen=True)
class LineFit:
    """log(gap) ≈ intercept + slope · round, over the rounds of a tail."""

    slope: float
    intercept: float
    r2: float

    @property
    def kappa(self) -> float:
        """The factor by which the gap shrinks per round."""
        return float(np.exp(self.slope))

    def gap(self, rounds: Ints) -> Floats:
        """The fitted gaps at ``rounds``."""
        return np.exp(self.intercept + self.slope * rounds)


@dataclass(frozen=True)
class Runs:
    """The runs of a grid: one row per run and round, and display names in the paper's order."""

    rounds: pd.DataFrame
    titles: Mapping[str, str]

    @property
    def datasets(self) -> list[str]:
        """The datasets at hand, in order."""
        return [d for d in self.titles if (self.rounds["dataset"] == d).any()]

    @cached_property
    def strategies(self) -> list[str]:
        """The strategies at hand: the paper's in its order, then others as they come."""
        return papers_first(self.rounds["strategy"].drop_duplicates())

    @property
    def base(self) -> str:
        """The strategy that is shown where only one is: Unit, if it is there."""
        return "unit" if "unit" in self.strategies else self.strategies[0]

    @cached_property
    def looks(self) -> dict[str, Look]:
        """How each strategy is drawn."""
        return looks(self.strategies)

    @property
    def n_rounds(self) -> int:
        """T."""
        return int(self.rounds["round"].max())

    @property
    def n_seeds(self) -> int:
        """How many seeds every dataset and strategy has."""
        return int(self.rounds["seed"].nunique())

    def test_share(self, dataset: str) -> float:
        """Test rows per training row: the paper's, where nothing else is known."""
        if "n_test" not in self.rounds:
            return TEST_SHARE
        one = self.rounds[self.rounds["dataset"] == dataset].iloc[0]
        return float(one["n_test"] / one["n_train"])

    def curves(self, dataset: str, strategy: str, column: str) -> Floats:
        """The bundle (n_seeds, T + 1) of a column of the rounds, seeds ascending."""
        group = self._groups[dataset, strategy]
        return group[column].to_numpy(np.float64).reshape(group["seed"].nunique(), -1)

    @cached_property
    def _groups(self) -> dict[Any, pd.DataFrame]:
        ordered = self.rounds.sort_values(["dataset", "strategy", "seed", "round"])
        return dict(iter(ordered.groupby(["dataset", "strategy"], sort=False)))


def rises(losses: Floats) -> Flags:
    """Whether each step of a bundle of losses (n_seeds, T + 1) goes up: (n_seeds, T)."""
    return losses[:, 1:] > losses[:, :-1] * (1 + ROUNDING)


def tail_start(n_rounds: int) -> int:
    """The first round of the second half, where the paper's "tail" is taken to begin."""
    return n_rounds // 2 + 1


def tail_r2(curves: Floats, start: int) -> Floats:
    """R² (n,) of the least-squares lines through the logs of gap curves (n, T + 1), from ``start``.

    A gap of exactly zero has no logarithm and is left out; with fewer than three points, or no
    variation, R² is NaN.
    """
    gaps = curves[:, start:]
    used = gaps > 0
    n = np.maximum(used.sum(axis=1, keepdims=True), 1)
    t, y = (
        np.where(used, v - np.where(used, v, 0).sum(axis=1, keepdims=True) / n, 0)
        for v in (np.arange(gaps.shape[1]), np.log(np.where(used, gaps, 1)))
    )
    flat = np.ptp(np.where(used, gaps, gaps.max(axis=1, initial=0, keepdims=True)), axis=1) == 0
    with np.errstate(invalid="ignore", divide="ignore"):
        r2: Floats = (t * y).sum(axis=1) ** 2 / ((t * t).sum(axis=1) * (y * y).sum(axis=1))
    return np.where((n[:, 0] < 3) | flat, np.nan, r2)


def fit_tail(gaps: Floats, start: int) -> LineFit:
    """Least squares on the log of a gap curve (T + 1,), from ``start`` on; see `tail_r2`."""
    r2 = float(tail_r2(gaps[None], start)[0])
    if np.isnan(r2):
        return LineFit(np.nan, np.nan, np.nan)
    t = np.arange(start, len(gaps))[gaps[start:] > 0]
    slope, intercept = np.polyfit(t, np.log(gaps[t]), 1)
    return LineFit(float(slope), float(intercept), r2)


def rounded_r2(r2: float) -> str:
    """R² with two digits; close to 1 with three, or as many as tell it from 1."""
    if not NEAR_ONE <= r2 < 1:
        return f"{r2:.2f}"
    return f"{r2:.{min(max(3, int(np.ceil(-np.log10(1 - r2)))), 6)}f}"


def best_round(curves: Floats) -> int:
    """The round from 0 to T at which the mean over seeds is smallest (the first such)."""
    return int(curves.mean(axis=0).argmin())


def corrected_error(curves: Floats, test_share: float) -> Floats:
    """The standard error of a mean over splits that overlap (Nadeau and Bengio, 2003).

    curves : (n_seeds, …). Splits of one table share rows, so the variance of the mean of J of them
    is not s²/J but about s² (1/J + test_share), test_share = test rows per training row.
    """
    n = len(curves)
    if n < 2:
        return np.zeros(curves.shape[1:])
    return np.sqrt(curves.var(axis=0, ddof=1) * (1.0 / n + test_share))


def mean_interval(values: Floats, test_share: float) -> tuple[float, float, float]:
    """The mean of values (n_seeds,) of overlapping splits, and its expectation's 95 % interval.

    By the t statistic with `corrected_error`; of a single value the interval is a point.
    """
    mean, half = float(values.mean()), 0.0
    if len(values) > 1:
        t = float(stats.t.ppf((1 + LEVEL) / 2, len(values) - 1))
        half = t * float(corrected_error(values[:, None], test_share)[0])
    return mean, mean - half, mean + half


def resamples(n_seeds: int, n: int = N_BOOTSTRAP) -> Ints:
    """Bootstrap samples of the seeds, (n, n_seeds) indices; always the same ones."""
    return np.random.default_rng(0).integers(0, n_seeds, (n, n_seeds))


def bootstrap_best_rounds(curves: Floats) -> Ints:
    """The best round of each of `N_BOOTSTRAP` bootstrap samples of the seeds."""
    return curves[resamples(len(curves))].mean(axis=1).argmin(axis=1)


def bootstrap_interval(values: Floats, n: int = N_BOOTSTRAP) -> tuple[float, float]:
    """A percentile interval of 95 % for the mean of per-seed ``values`` (n_seeds,)."""
    means = values[resamples(len(values), n)].mean(axis=1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, 1 - (1 - LEVEL) / 2])
    return float(low), float(high)
