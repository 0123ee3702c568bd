"""How much better or worse a method makes a model, with intervals, and how methods rank.

A *cell* is a (dataset, situation). In it, all methods have the same splits, so losses are compared
split by split; the splits of a table overlap, and the variance of a mean of their differences is
that of Nadeau and Bengio (2003). Between tables, changes are averaged as logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from pipeline.analysis.curves import mean_interval
from pipeline.chapters.practice.table import own_rows
from pipeline.runs.kinds.corrections.run import ORACLE

BASE = "nothing"
CELL = ["dataset", "situation"]
BEST_ROUND = "best round"  # what the bound of a method's rounds is called
PRACTICAL = 0.01  # a change of the loss that is worth a word


def with_bounds(table: pd.DataFrame) -> pd.DataFrame:
    """The methods' own ends, and of those with rounds the best round as a method of its own."""
    best = table[table["rule"] == ORACLE]
    kept = best[best["method"].isin(["unit", "relaxed", "adaptive"])]
    return pd.concat([own_rows(table), kept.assign(method=kept["method"] + f", {BEST_ROUND}")])


def changes(table: pd.DataFrame, base: str = BASE, measure: str = "loss") -> pd.DataFrame:
    """The change of each method's mean measure against another method's, per cell.

    change : relative to the other's mean.  low, high : its 95 % interval.  seeds : splits of both.
    failed : splits on which the method failed, which are left out.
    """
    rows = []
    for (dataset, situation), cell in table.groupby(CELL, sort=False):
        values = cell.pivot_table(index="seed", columns="method", values=measure, dropna=False)
        if base not in values:
            continue
        share = float(cell["test_share"].iloc[0])
        for method in cell["method"].drop_duplicates():
            both = values[[base, method]].dropna() if method != base else values[[base]].dropna()
            rows.append(
                {
                    "dataset": dataset,
                    "situation": situation,
                    "method": method,
                    "seeds": len(both),
                    "failed": int(values[method].isna().sum()),
                    **_change(both[base].to_numpy(), both[method].to_numpy(), share),
                }
            )
    return pd.DataFrame(rows)


def _change(base: np.ndarray, other: np.ndarray, share: float) -> dict[str, float]:
    if len(base) == 0:
        return dict.fromkeys(("base", "mean", "change", "low", "high"), np.nan)
    middle = float(base.mean())
    change, low, high = (v / middle for v in mean_interval(other - base, share))
    return {
        "base": middle,
        "mean": float(other.mean()),
        "change": change,
        "low": low,
        "high": high,
    }


def by_situation(changed: pd.DataFrame) -> pd.DataFrame:
    """Methods × situations: the mean change over tables, as of a geometric mean of ratios."""
    logs = changed.assign(log=np.log1p(changed["change"]))
    means = logs.pivot_table(index="method", columns="situation", values="log", sort=False)
    return means.apply(np.expm1)


@dataclass(frozen=True)
class Overall:
    """A method over all cells.

    change : mean, as of a geometric mean of ratios.  worst, worst_cell : the largest, and the
    dataset and situation where it is.
    helped, harmed : the share of cells whose interval lies below or above 0.  failed : runs.
    """

    change: float
    worst: float
    worst_cell: tuple[str, str]
    helped: float
    harmed: float
    failed: int


def overall(changed: pd.DataFrame) -> dict[str, Overall]:
    """Every method of a table of `changes`, as they come."""
    found = {}
    for method, cells in changed.groupby("method", sort=False):
        worst = cells.sort_values("change", na_position="first").iloc[-1]
        found[str(method)] = Overall(
            mean_change(cells),
            float(worst["change"]),
            (str(worst["dataset"]), str(worst["situation"])),
            float((cells["high"] < 0).mean()),
            float((cells["low"] > 0).mean()),
            int(cells["failed"].sum()),
        )
    return found


def mean_change(cells: pd.DataFrame) -> float:
    """The mean change over cells, as of a geometric mean of ratios."""
    return float(np.expm1(np.log1p(cells["change"].dropna().to_numpy(float)).mean()))


def ranks(changed: pd.DataFrame) -> tuple[pd.Series[float], float]:
    """Mean ranks of methods by their mean loss, and the critical difference between two.

    Ranks are of cells; the critical difference (Nemenyi, 5 %) counts tables, not cells, because the
    situations of one table share its rows.
    """
    losses = changed.pivot_table(index=CELL, columns="method", values="mean", sort=False)
    ranked = losses.rank(axis=1, na_option="bottom")
    k, n = ranked.shape[1], changed["dataset"].nunique()
    q = float(stats.studentized_range.ppf(1 - 0.05, k, np.inf)) / np.sqrt(2)
    return ranked.mean().sort_values(), float(q * np.sqrt(k * (k + 1) / (6 * n)))


def other_measures(table: pd.DataFrame) -> pd.DataFrame:
    """Per method, over all cells: what else was measured on test rows, and what it cost.

    mce, calibration : the debiased squares' mean per cell in units of the squared noise floor of
    the model as it is (0: none is left; 1: as large as the noise of the sample), median over cells.
    significant : share of runs with p below 5 %.  group, segment : median over cells of the mean
    worst bias, in standard deviations.
    """
    means = table.groupby([*CELL, "method"], sort=False)[
        ["mce2_debiased", "calibration2", "mce_floor", "group_bias", "segment_bias", "cpu_seconds",
         "peak_mb", "rounds"]
    ].mean()  # fmt: skip
    start = means.xs(BASE, level="method")["mce_floor"].rename("start")
    square = np.square(means.join(start, on=CELL)["start"])
    means = means.assign(
        mce=means["mce2_debiased"] / square,
        calibration=means["calibration2"] / square,
    )
    found = means.groupby("method", sort=False)[
        ["mce", "calibration", "group_bias", "segment_bias", "rounds"]
    ].median()
    costs = means.groupby("method", sort=False)[["cpu_seconds", "peak_mb"]].mean()
    told = table[table["mce_p"].notna()]
    sure = (told["mce_p"] < 0.05).groupby(told["method"], sort=False).mean()
    return found.join(costs).assign(significant=sure)
