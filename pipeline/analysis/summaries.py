"""Runs in numbers: the tables behind the figures, and a line per dataset and strategy."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd

from pipeline.analysis.curves import (
    SQUARE,
    Runs,
    bootstrap_best_rounds,
    corrected_error,
    fit_tail,
    tail_start,
)
from pipeline.boosting.audit import signed_root


def curve_table(runs: Runs, columns: Sequence[str]) -> pd.DataFrame:
    """Mean, standard deviation and corrected standard error over seeds of columns of the rounds."""
    tables = []
    for dataset, strategy, column in product(runs.datasets, runs.strategies, columns):
        curves = runs.curves(dataset, strategy, column)
        table = {
            "dataset": dataset,
            "strategy": strategy,
            "measure": column,
            "round": np.arange(curves.shape[1]),
            "mean": curves.mean(axis=0),
            "sd": curves.std(axis=0, ddof=1) if len(curves) > 1 else 0.0,
            "corrected_se": corrected_error(curves, runs.test_share(dataset)),
        }
        tables.append(pd.DataFrame(table))
    return pd.concat(tables, ignore_index=True).dropna(subset="mean")


def tail_table(runs: Runs) -> pd.DataFrame:
    """R² of the line through the base strategy's log-gap for every start of the tail.

    Of the mean curve, and the 10 % and 90 % quantiles of single runs.
    """
    rows = []
    for dataset in runs.datasets:
        curves = runs.curves(dataset, runs.base, "gap")
        for start in range(1, runs.n_rounds - 1):
            single = np.array([fit_tail(c, start).r2 for c in curves])
            known = single[np.isfinite(single)]
            low, high = np.quantile(known, [0.1, 0.9]) if len(known) else (np.nan, np.nan)
            r2 = fit_tail(curves.mean(axis=0), start).r2
            rows.append((dataset, runs.base, start, r2, low, high))
    return pd.DataFrame(rows, columns=["dataset", "strategy", "start", "r2", "low", "high"])


def best_round_table(runs: Runs) -> pd.DataFrame:
    """How often each round has the smallest mean test MCE in bootstrap samples of the seeds."""
    rows = []
    for dataset, strategy in product(runs.datasets, runs.strategies):
        samples = bootstrap_best_rounds(runs.curves(dataset, strategy, "mce_test"))
        share = np.bincount(samples, minlength=runs.n_rounds + 1) / len(samples)
        rows += [(dataset, strategy, t, float(s)) for t, s in enumerate(share)]
    return pd.DataFrame(rows, columns=["dataset", "strategy", "round", "share"])


def summary_table(runs: Runs) -> pd.DataFrame:
    """A row per dataset and strategy, of curves averaged over seeds.

    Ratios are of the last round to round 0 (of the gap: to round 1), ``*_at_best`` of the round
    with the smallest test MCE. ``r2`` and ``kappa`` are of the tail's line; debiased errors are
    signed roots of mean squares.
    """
    rows = []
    for dataset, strategy in product(runs.datasets, runs.strategies):
        mean = {
            c: runs.curves(dataset, strategy, c).mean(axis=0)
            for c in ("gap", "mse_train", "mce_train", "mse_test", "mce_test", SQUARE)
            if c in runs.rounds
        }
        errors = [c for c in mean if c not in {"gap", SQUARE}]
        fit = fit_tail(mean["gap"], tail_start(runs.n_rounds))
        best = int(mean["mce_test"].argmin())
        moments = {"start": 0, "at_best": best, "end": -1} if SQUARE in mean else {}
        rows.append(
            {
                "dataset": dataset,
                "strategy": strategy,
                "gap_ratio": mean["gap"][-1] / mean["gap"][1],
                "r2": fit.r2,
                "kappa": fit.kappa,
                **{f"{c}_ratio": mean[c][-1] / mean[c][0] for c in errors},
                "best_round": best,
                **{f"{c}_at_best": mean[c][best] / mean[c][0] for c in errors if "test" in c},
                **{f"debiased_{m}": signed_root(mean[SQUARE][t]) for m, t in moments.items()},
            }
        )
    return pd.DataFrame(rows)
