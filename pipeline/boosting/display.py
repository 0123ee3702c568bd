"""Plots of an audit, by scikit-learn's Display convention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pandas as pd

from .audit.auditor import cluster_codes, is_binary
from .bias_tests import Moments
from .frames import columns_of, outcomes_of, predictions_of
from .inspection import AuditResult, audit_predictions, groups_of
from .rows import PredictedRows
from .segments import COLUMNS, measure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#000000")
STYLES = (("-", "o"), ("--", "s"), (":", "^"))  # of the first prediction, the second, …
OVERALL = "all rows"
FEWEST_ROWS = 20  # in a bin of a curve


class MulticalibrationDisplay:
    """Reliability curves, overall and per group, and the worst segments of one or two predictions.

    Use `from_predictions` or `from_estimator`; then `plot` (reliability) or `plot_segments` (a
    forest plot). For two models, or one before and after, give predictions by name.

    Attributes
    ----------
    results_ : name → `AuditResult`.
    curves_ : (name, group) → frame with a row per bin of predictions, as the audit's tables.
    figure_, ax_ : of the last plot.
    """

    def __init__(
        self, *, results: Mapping[str, AuditResult], curves: Mapping[tuple[str, str], pd.DataFrame]
    ) -> None:
        self.results_ = dict(results)
        self.curves_ = dict(curves)

    @classmethod
    def from_predictions(
        cls, X: Any, y: Any, prediction: Any, *, ax: Any = None, **options: Any
    ) -> Self:
        """Audit predictions (n,), or several by name, and plot their reliability.

        options : those of `audited`.
        """
        return cls.audited(X, y, prediction, **options).plot(ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> Self:
        """Audit a fitted regressor, or a classifier of two classes, and plot its reliability."""
        if hasattr(estimator, "predict_proba"):
            prediction = np.asarray(estimator.predict_proba(X))
            if prediction.shape[1] != 2:
                raise ValueError(f"estimator: has {prediction.shape[1]} classes instead of two")
            y = np.asarray(y) == estimator.classes_[1]
            return cls.from_predictions(X, y, prediction[:, 1], **options)
        return cls.from_predictions(X, y, estimator.predict(X), **options)

    @classmethod
    def audited(
        cls,
        X: Any,
        y: Any,
        prediction: Any,
        *,
        sample_weight: Any = None,
        groups: Any = None,
        n_bins: int = 10,
        n_segments: int = 8,
        random_state: int | None = 0,
        clusters: Any = None,
    ) -> Self:
        """Audit predictions (n,), or several by name, without a plot.

        sample_weight, groups, n_segments, random_state, clusters : as in `audit_predictions`.
        n_bins : of the reliability curves.
        """
        named = prediction if isinstance(prediction, Mapping) else {"prediction": prediction}
        common = (sample_weight, groups, random_state)
        options = {"n_segments": n_segments, "clusters": clusters}
        results = {
            name: audit_predictions(X, y, f, *common, **options) for name, f in named.items()
        }
        y_ = outcomes_of(y)
        weight = np.ones(len(y_)) if sample_weight is None else np.asarray(sample_weight, float)
        codes = None if clusters is None else cluster_codes(clusters, len(y_))
        curves = {}
        for name, f in named.items():
            f_ = predictions_of(f)
            binary = is_binary(y_, f_)
            rows = PredictedRows(y=y_, f=f_, weights=weight, binary=binary, clusters=codes)
            curves[name, OVERALL] = _curve(rows, np.arange(len(y_)), n_bins)
            for group, inside in _members(groups, X, len(y_)):
                curves[name, group] = _curve(rows, inside, n_bins)
        return cls(results=results, curves=curves)

    def plot(self, ax: Any = None) -> Self:
        """Plot mean outcomes over mean predictions in equally large bins, with 95 % intervals."""
        ax = self._axes(ax)
        ends = []
        names, groups = (list(dict.fromkeys(key[i] for key in self.curves_)) for i in (0, 1))
        for (name, group), curve in self.curves_.items():
            colour = COLOURS[groups.index(group) % len(COLOURS)]
            style, marker = STYLES[names.index(name) % len(STYLES)]
            label = _literal(group if len(self.results_) == 1 else f"{name}, {group}")
            errors = [curve["bias"] - curve["low"], curve["high"] - curve["bias"]]
            ax.errorbar(
                curve["prediction"], curve["outcome"], errors, color=colour, marker=marker,
                linestyle=style, markersize=4, linewidth=1.8 if group == OVERALL else 1.1,
                capsize=2, label=label,
            )  # fmt: skip
            ends += [curve["prediction"].min(), curve["prediction"].max()]
        ax.plot([min(ends), max(ends)], [min(ends), max(ends)], color="grey", linestyle=":")
        ax.set(xlabel="mean prediction", ylabel="mean outcome")
        ax.legend(frameon=False, fontsize=8)
        return self

    def plot_segments(self, ax: Any = None) -> Self:
        """Plot the bias of the worst segments with 95 % intervals, the smallest p-value on top."""
        ax = self._axes(ax)
        labels: list[str] = []
        for k, (name, result) in enumerate(self.results_.items()):
            table = result.segments
            places = -np.arange(len(labels), len(labels) + len(table), dtype=float)
            errors = [table["bias"] - table["low"], table["high"] - table["bias"]]
            significant = table["p_value"] < 0.05
            ax.errorbar(
                table["bias"], places, xerr=errors, color=COLOURS[k % len(COLOURS)], fmt="o",
                capsize=2, markersize=6, label=_literal(name),
            )  # fmt: skip
            hollow = table["bias"][~significant], places[~significant]
            ax.plot(*hollow, "o", color="white", markersize=3, zorder=5)
            labels += [f"{r} ({n})" for r, n in zip(table["rule"], table["rows"], strict=True)]
        ax.axvline(0.0, color="grey", linestyle=":")
        ax.set_yticks(-np.arange(len(labels)), [_literal(label) for label in labels], fontsize=8)
        ax.set(xlabel="outcome − prediction (hollow: p ≥ 0.05)")
        if len(self.results_) > 1:
            ax.legend(frameon=False, fontsize=8)
        return self

    def _axes(self, ax: Any) -> Any:
        import matplotlib.pyplot as plt  # takes a while, and only plots need it

        if ax is None:
            _, ax = plt.subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax


def _curve(rows: PredictedRows, inside: np.ndarray, n_bins: int) -> pd.DataFrame:
    """Return a line per bin of equally many rows, with the columns of the audit's tables."""
    order = inside[np.argsort(rows.f[inside], kind="stable")]
    n_bins = max(min(n_bins, len(order) // FEWEST_ROWS), 1)
    parts = np.array_split(order, n_bins)
    moments = Moments.of(rows)
    lines = [measure(f"bin {k}", rows, part, moments) for k, part in enumerate(parts)]
    return pd.DataFrame(lines, columns=COLUMNS)


def _members(groups: Any, X: Any, n: int) -> list[tuple[str, np.ndarray]]:
    """Return each level of each group with its rows."""
    return [
        (f"{g.name} = {level}", np.flatnonzero(g.codes == k))
        for g in groups_of(groups, columns_of(X), n)
        for k, level in enumerate(g.levels)
    ]


def _literal(label: str) -> str:
    """Escape dollar signs, which would begin a formula."""
    return label.replace("$", r"\$")
