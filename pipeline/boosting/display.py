"""Plots of an audit and of the rounds of a fit, by scikit-learn's Display convention."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pandas as pd

from .arrays import Floats
from .audit.auditor import Auditor, cluster_codes, is_binary
from .bias_tests import Moments
from .descriptions import described
from .frames import columns_of, outcomes_of, predictions_of
from .inspection import AuditResult, audit_predictions, groups_of
from .rows import PredictedRows, Rows
from .segments import COLUMNS, measure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#000000")
STYLES = (("-", "o"), ("--", "s"), (":", "^"))  # of the first prediction, the second, …
OVERALL = "all rows"
FEWEST_ROWS = 20  # in a bin of a curve


@described
class MulticalibrationDisplay:
    """Reliability curves, overall and per group, and the worst segments of one or two predictions.

    Use `from_predictions` or `from_estimator`; then `plot` (reliability) or `plot_segments` (a
    forest plot). For two models, or one before and after, give predictions by name.

    Parameters
    ----------
    results : mapping of name to AuditResult
        The audits.
    curves : mapping of (name, group) to DataFrame
        A row for each bin of predictions, with the columns of the audit's tables.

    Attributes
    ----------
    results_, curves_ : dict
        The parameters.
    figure_, ax_ : matplotlib figure and axes
        Those of the last plot.
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
        """Audit predictions and plot their reliability.

        Parameters
        ----------
        {held_out}
        prediction : array of shape (n,), or mapping of name to such
            The predictions.
        ax : matplotlib axes, optional
            Where to plot; a new figure by default.
        **options : dict
            Those of `audited`.

        Returns
        -------
        MulticalibrationDisplay
            The audited and plotted predictions.
        """
        return cls.audited(X, y, prediction, **options).plot(ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> Self:
        """Audit a fitted regressor, or a classifier of two classes, and plot its reliability.

        Parameters
        ----------
        estimator : fitted regressor or classifier
            The model.
        {held_out}
        **options : dict
            Those of `from_predictions`.

        Returns
        -------
        MulticalibrationDisplay
            The audited and plotted predictions.
        """
        if hasattr(estimator, "predict_proba"):
            prediction = np.asarray(estimator.predict_proba(X))
            if prediction.shape[1] != 2:
                raise ValueError(
                    f"estimator: has {prediction.shape[1]} classes instead of two; of one of them, "
                    "use from_predictions(X, y == label, probability)"
                )
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
        """Audit predictions, without a plot.

        Parameters
        ----------
        {held_out}
        prediction : array of shape (n,), or mapping of name to such
            The predictions.
        sample_weight, groups : optional
            As in `audit_predictions`.
        n_bins : int, default=10
            The number of bins of a reliability curve.
        n_segments : int, default=8
            The largest number of segments.
        random_state, clusters : optional
            As in `audit_predictions`.

        Returns
        -------
        MulticalibrationDisplay
            The audited predictions.
        """
        named = prediction if isinstance(prediction, Mapping) else {"prediction": prediction}
        for f in named.values():
            if np.ndim(f) == 2 and np.shape(f)[1] > 2:
                raise ValueError(
                    f"prediction: has {np.shape(f)[1]} columns; pass y == label and the "
                    "probability of that label"
                )
        common = (sample_weight, groups, random_state)
        more = {"n_segments": n_segments, "clusters": clusters}
        results = {name: audit_predictions(X, y, f, *common, **more) for name, f in named.items()}
        y_ = outcomes_of(y)
        weight = np.ones(len(y_)) if sample_weight is None else np.asarray(sample_weight, float)
        codes = None if clusters is None else cluster_codes(clusters, len(y_))
        curves = {}
        for name, f in named.items():
            f_ = predictions_of(f)
            binary = is_binary(y_, f_)
            rows = PredictedRows(y=y_, f=f_, weights=weight, binary=binary, clusters=codes)
            curves[name, OVERALL] = _curve(rows, np.arange(len(y_)), n_bins)
            for g in groups_of(groups, columns_of(X), len(y_)):
                for k, level in enumerate(g.levels):
                    inside = np.flatnonzero(g.codes == k)
                    curves[name, f"{g.name} = {level}"] = _curve(rows, inside, n_bins)
        return cls(results=results, curves=curves)

    def plot(self, ax: Any = None) -> Self:
        """Plot mean outcomes over mean predictions in equally large bins, with 95 % intervals.

        Parameters
        ----------
        {plotted}
        """
        ax = _axes(self, ax)
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
        """Plot the bias of the worst segments with 95 % intervals, the smallest p-value on top.

        Parameters
        ----------
        {plotted}
        """
        ax = _axes(self, ax)
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


@described
class RoundsDisplay:
    """The rounds of a fit: the loss of rows held out, what was kept, and how certain that is.

    Use `from_estimator`. All curves are relative to the initial predictor, which is 1.

    Parameters
    ----------
    curves : mapping of name to ndarray
        What f_0, f_1, … have, divided by what f_0 has.
    kept : tuple of (int, float, float, float)
        The best round of the first curve, and the loss with the whole correction (of all parts of a
        stack), relative to f_0's, with the ends of its 95 % interval.
    share : float
        The share of the correction that is kept.

    Attributes
    ----------
    curves_, kept_, share_ : dict, tuple, float
        The parameters.
    figure_, ax_ : matplotlib figure and axes
        Those of the last plot.
    """

    def __init__(
        self,
        *,
        curves: Mapping[str, Floats],
        kept: tuple[int, float, float, float],
        share: float,
    ) -> None:
        self.curves_, self.kept_, self.share_ = dict(curves), kept, share

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: Any = None,
        initial_prediction: Any = None,
        random_state: int = 0,
        ax: Any = None,
    ) -> Self:
        """Plot the rounds of a fitted estimator.

        Parameters
        ----------
        estimator : MulticalibrationBoostingRegressor or MulticalibrationBoostingClassifier
            Fitted with ``early_stopping`` by the loss; of more than two classes, one of its
            ``corrections_``.
        X : table or array of shape (n, d), optional
            Further rows, which it was not fitted to: their loss and multicalibration error after
            each round that is kept are plotted, too.
        y : array of shape (n,), optional
            Their outcomes.
        sample_weight : array of shape (n,), optional
            Their weights.
        initial_prediction : array of shape (n,), optional
            Their initial predictions, if `fit` was given such.
        random_state : int, default=0
            The seed of the audit's trees.
        ax : matplotlib axes, optional
            Where to plot; a new figure by default.

        Returns
        -------
        RoundsDisplay
            The plotted rounds.
        """
        found = getattr(estimator, "gain_", None)
        if found is None:
            raise ValueError(
                "estimator: has no held-out losses; it must be fitted with early_stopping=True and "
                "scoring='loss' (of more than two classes, pass one of its corrections_)"
            )
        losses = -estimator.validation_scores_
        first = "loss of the first part" if estimator.stack else "loss"
        curves = {f"{first}, rows held out in folds": losses / losses[0]}
        if X is not None:
            stages = list(estimator._staged_scores(X, initial_prediction, None))
            target = estimator._target(np.asarray(y), reset=False)
            loss, auditor = estimator._loss, Auditor(X, seed=random_state)
            rows = Rows(y=target, weights=sample_weight)
            mean = np.array([rows.mean(loss.of_rows(target, f)) for f in stages])
            error = [
                auditor.error(y=target, prediction=loss.response(f), sample_weight=sample_weight)
                for f in stages
            ]
            curves["loss, the rows given"] = mean / mean[0]
            curves["multicalibration error, the rows given"] = np.array(error) / error[0]
        after = (losses[0] - found.mean) / losses[0]
        width = 1.96 * found.error / losses[0]
        kept = (int(np.argmin(losses)), after, after - width, after + width)
        return cls(curves=curves, kept=kept, share=found.share).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Plot the curves.

        Parameters
        ----------
        {plotted}
        """
        ax = _axes(self, ax)
        for colour, (name, curve) in zip(COLOURS, self.curves_.items(), strict=False):
            ax.plot(np.arange(len(curve)), curve, color=colour, marker=".", label=name)
        best, after, low, high = self.kept_
        label = f"with all parts, ± 1.96 standard errors; {100 * self.share_:.0f} % is kept"
        ax.errorbar(
            best, after, [[after - low], [high - after]], color=COLOURS[-1], fmt="D", markersize=4,
            capsize=3, label=label,
        )  # fmt: skip
        ax.axhline(1.0, color="grey", linestyle=":")
        ax.set(xlabel="round", ylabel="relative to the initial predictor")
        ax.legend(frameon=False, fontsize=8)
        return self


def _axes(display: Any, ax: Any) -> Any:
    """Return axes, or those of a new figure; the display keeps both."""
    import matplotlib.pyplot as plt  # takes a while, and only plots need it

    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    display.ax_, display.figure_ = ax, ax.figure
    return ax


def _curve(rows: PredictedRows, inside: np.ndarray, n_bins: int) -> pd.DataFrame:
    """Return a line per bin of equally many rows, with the columns of the audit's tables."""
    order = inside[np.argsort(rows.f[inside], kind="stable")]
    n_bins = max(min(n_bins, len(order) // FEWEST_ROWS), 1)
    parts = np.array_split(order, n_bins)
    moments = Moments.of(rows)
    lines = [measure(f"bin {k}", rows, part, moments) for k, part in enumerate(parts)]
    return pd.DataFrame(lines, columns=COLUMNS)


def _literal(label: str) -> str:
    """Escape dollar signs, which would begin a formula."""
    return label.replace("$", r"\$")
