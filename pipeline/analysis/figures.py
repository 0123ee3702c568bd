"""The paper's figures and a few more, from stored runs; nothing is fitted here but lines.

Every figure is a function of the runs alone, and its files are the same bytes every time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from pipeline.analysis.curves import (
    FLOOR,
    SQUARE,
    Runs,
    best_round,
    bootstrap_best_rounds,
    bootstrap_interval,
    corrected_error,
    fit_tail,
    tail_start,
)
from pipeline.analysis.paper import LOWEST_R2
from pipeline.analysis.style import BLUE, LOOKS, PANEL, VERDICTS, legend_below, plain, save, styled
from pipeline.boosting.arrays import Floats


def draw_all(runs: Runs, verdicts: pd.DataFrame, folder: Path) -> list[str]:
    """Write every figure as PNG and PDF; gives their names in order.

    verdicts : see `readings`.
    """
    names = []
    runs = replace(runs, titles=plain(runs.titles))
    with styled():
        for draw in FIGURES:
            save(draw(runs), folder, draw.__name__)
            names.append(draw.__name__)
        save(readings(verdicts), folder, readings.__name__)
    return [*names, readings.__name__]


# --- the paper's figures -----------------------------------------------------------------------


def gap(runs: Runs) -> Figure:
    """The prediction gap under Unit: linear above; below its logarithm with the tail's line."""
    figure, axes = _panels(2, len(runs.datasets))
    t = np.arange(1, runs.n_rounds + 1)
    start = tail_start(runs.n_rounds)
    for j, dataset in enumerate(runs.datasets):
        curves = runs.curves(dataset, "unit", "gap")
        for i in range(2):
            _band(axes[i, j], t, curves[:, 1:], "unit", log=i == 1)
        fit = fit_tail(curves.mean(axis=0), start)
        tail = t[t >= start]
        axes[1, j].plot(tail, fit.gap(tail), color="black", linestyle=(0, (4, 2)), linewidth=1.6)
        _log_scale(axes[1, j])
        axes[1, j].text(
            0.97, 0.95, f"$R^2={fit.r2:.2f}$", transform=axes[1, j].transAxes, ha="right", va="top"
        )
        axes[0, j].set_title(runs.titles[dataset])
        axes[0, j].set_ylim(bottom=0)
    axes[0, 0].set_ylabel(r"$\|f_{t+1}-f_t\|_2$")
    axes[1, 0].set_ylabel(r"$\|f_{t+1}-f_t\|_2$ (log)")
    return _finish(figure, axes, runs)


def training(runs: Runs) -> Figure:
    """Training MSE above, training MCE below, per strategy."""
    figure, axes = _panels(2, len(runs.datasets))
    t = np.arange(runs.n_rounds + 1)
    for j, dataset in enumerate(runs.datasets):
        for i, column in enumerate(("mse_train", "mce_train")):
            for strategy in runs.strategies:
                _band(axes[i, j], t, runs.curves(dataset, strategy, column), strategy, log=True)
            _log_scale(axes[i, j])
        axes[0, j].set_title(runs.titles[dataset])
    axes[0, 0].set_ylabel("training MSE")
    axes[1, 0].set_ylabel("training MCE")
    return _finish(figure, axes, runs, legend=True)


def generalization(runs: Runs) -> Figure:
    """Test MCE, with a star at each strategy's best round."""
    figure, axes = _panels(1, len(runs.datasets), height=2.7)
    t = np.arange(runs.n_rounds + 1)
    for j, dataset in enumerate(runs.datasets):
        for strategy in runs.strategies:
            _band(axes[0, j], t, runs.curves(dataset, strategy, "mce_test"), strategy, log=True)
        for strategy in runs.strategies:
            curves = runs.curves(dataset, strategy, "mce_test")
            best = best_round(curves)
            axes[0, j].plot(
                best, curves.mean(axis=0)[best], marker="*", markersize=13, linestyle="none",
                color=LOOKS[strategy].color, markeredgecolor="black", markeredgewidth=0.7,
                zorder=5,
            )  # fmt: skip
        _log_scale(axes[0, j])
        axes[0, j].set_title(runs.titles[dataset])
    axes[0, 0].set_ylabel("test MCE")
    return _finish(figure, axes, runs, legend=True)


# --- beyond the paper ----------------------------------------------------------------------------


def tail(runs: Runs) -> Figure:
    """R² against the start of the tail, with single runs' spread; right: the contraction factor."""
    figure, axes = _panels(1, len(runs.datasets) + 1, height=2.7)
    starts = range(1, runs.n_rounds - 1)
    for j, dataset in enumerate(runs.datasets):
        curves = runs.curves(dataset, "unit", "gap")
        single = np.array([[fit_tail(c, s).r2 for s in starts] for c in curves])
        low, high = np.nanquantile(single, [0.1, 0.9], axis=0)
        axes[0, j].fill_between(starts, low, high, color=BLUE, alpha=0.2, linewidth=0)
        mean = curves.mean(axis=0)
        axes[0, j].plot(starts, [fit_tail(mean, s).r2 for s in starts], color=BLUE)
        axes[0, j].axhline(LOWEST_R2, color="black", linewidth=0.8, linestyle=":")
        axes[0, j].axvline(tail_start(runs.n_rounds), color="black", linewidth=0.8, linestyle="--")
        axes[0, j].set(title=runs.titles[dataset], ylim=(0, 1.02), xlabel="first round of the tail")
    axes[0, 0].set_ylabel("$R^2$ of the log-gap")
    last = axes[0, -1]
    for k, dataset in enumerate(reversed(runs.datasets)):
        curves = runs.curves(dataset, "unit", "gap")
        kappas = np.array([fit_tail(c, tail_start(runs.n_rounds)).kappa for c in curves])
        low, high = bootstrap_interval(kappas)
        last.plot(kappas, np.full(len(kappas), k), "|", color="grey", markersize=9)
        last.plot([low, high], [k, k], color="black", linewidth=3, solid_capstyle="butt")
        last.plot(kappas.mean(), k, "o", color=BLUE, markersize=5)
    last.set_yticks(
        range(len(runs.datasets)), [_short(runs.titles[d]) for d in reversed(runs.datasets)]
    )
    last.set(title=r"contraction factor $\hat\kappa$", xlabel="runs, mean, 95 % interval")
    last.axvline(1.0, color="black", linewidth=0.8, linestyle=":")
    return figure


def best_rounds(runs: Runs) -> Figure:
    """How stable is a best round? Its distribution over bootstrap samples of the seeds."""
    figure, axes = _panels(len(runs.strategies), len(runs.datasets), height=1.45)
    t = np.arange(runs.n_rounds + 1)
    for j, dataset in enumerate(runs.datasets):
        for i, strategy in enumerate(runs.strategies):
            curves = runs.curves(dataset, strategy, "mce_test")
            samples = bootstrap_best_rounds(curves)
            share = np.bincount(samples, minlength=len(t)) / len(samples)
            axes[i, j].bar(t, share, color=LOOKS[strategy].color, width=0.9)
            axes[i, j].plot(
                best_round(curves), 1.04, marker="v", color="black", clip_on=False, markersize=5
            )
            axes[i, j].set(ylim=(0, 1), xlim=(-0.7, runs.n_rounds + 0.7))
            axes[i, 0].set_ylabel(LOOKS[strategy].label)
        axes[0, j].set_title(runs.titles[dataset])
    _round_labels(axes, runs, "best round by test MCE")
    return figure


def test_errors(runs: Runs) -> Figure:
    """Test MSE and test MCE relative to the start: does one best round suit both?"""
    figure, axes = _panels(2, len(runs.datasets))
    t = np.arange(runs.n_rounds + 1)
    for j, dataset in enumerate(runs.datasets):
        for i, column in enumerate(("mse_test", "mce_test")):
            for strategy in runs.strategies:
                mean = runs.curves(dataset, strategy, column).mean(axis=0)
                look = LOOKS[strategy]
                axes[i, j].plot(t, mean / mean[0], markevery=2, label=look.label, **look.line)
                best = int(mean.argmin())
                axes[i, j].plot(
                    best, mean[best] / mean[0], marker="*", markersize=12, linestyle="none",
                    color=look.color, markeredgecolor="black", markeredgewidth=0.7, zorder=5,
                )  # fmt: skip
            axes[i, j].axhline(1.0, color="black", linewidth=0.8, linestyle=":")
        _log_scale(axes[1, j])
        axes[0, j].set_title(runs.titles[dataset])
    axes[0, 0].set_ylabel("test MSE / at start")
    axes[1, 0].set_ylabel("test MCE / at start")
    return _finish(figure, axes, runs, legend=True)


def debiased(runs: Runs) -> Figure:
    """Test MCE², its noise floor, and what is left without it; in units of the floor at the start.

    Squares, because only they can be averaged without bias; linear near zero.
    """
    figure, axes = _panels(1, len(runs.datasets), height=2.9)
    t = np.arange(runs.n_rounds + 1)
    for j, dataset in enumerate(runs.datasets):
        unit = float(np.square(runs.curves(dataset, runs.strategies[0], FLOOR)[:, 0]).mean())
        for strategy in runs.strategies:
            look = LOOKS[strategy]
            floor = np.square(runs.curves(dataset, strategy, FLOOR)).mean(axis=0) / unit
            axes[0, j].plot(t, floor, color=look.color, linestyle=":", linewidth=1.1)
            curves = runs.curves(dataset, strategy, SQUARE) / unit
            error = corrected_error(curves, runs.test_share(dataset))
            mean = curves.mean(axis=0)
            axes[0, j].fill_between(
                t, mean - error, mean + error, color=look.color, alpha=0.18, linewidth=0
            )
            axes[0, j].plot(t, mean, label=look.label, markevery=2, **look.line)
        axes[0, j].plot([], [], color="black", linestyle=":", label="floor")
        axes[0, j].axhline(0.0, color="black", linewidth=0.8)
        axes[0, j].set_yscale("symlog", linthresh=1.0)
        axes[0, j].yaxis.set_major_formatter(FuncFormatter(_number))
        axes[0, j].set_title(runs.titles[dataset])
    axes[0, 0].set_ylabel("debiased MCE² / floor²")
    return _finish(figure, axes, runs, legend=True)


def readings(verdicts: pd.DataFrame) -> Figure:
    """Which verdicts depend on how the paper is read? Claims × readings, as colours.

    verdicts : index claim ids, columns readings, values verdicts.
    """
    n, m = verdicts.shape
    figure = Figure(figsize=(1.5 + 1.25 * m, 1.2 + 0.28 * n), layout="constrained")
    axes = figure.subplots()
    for i in range(n):
        for j in range(m):
            look = VERDICTS[str(verdicts.iloc[i, j])]
            axes.add_patch(Rectangle((j, i), 1, 1, facecolor=look.color, edgecolor="white"))
            axes.text(
                j + 0.5, i + 0.5, look.word, ha="center", va="center", fontsize=8, color=look.text
            )
    axes.set(xlim=(0, m), ylim=(n, 0))
    axes.set_xticks(np.arange(m) + 0.5, list(verdicts.columns), fontsize=8)
    axes.set_yticks(np.arange(n) + 0.5, list(verdicts.index))
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return figure


FIGURES: Sequence[Callable[[Runs], Figure]] = (
    gap,
    training,
    generalization,
    tail,
    best_rounds,
    test_errors,
    debiased,
)


# --- shared --------------------------------------------------------------------------------------


def _panels(n_rows: int, n_columns: int, height: float = 2.1) -> tuple[Figure, np.ndarray]:
    figure = Figure(figsize=(PANEL * n_columns, height * n_rows + 0.35), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False)


def _band(axes: Axes, t: np.ndarray, curves: Floats, strategy: str, *, log: bool = False) -> None:
    """The mean over seeds with a band of one standard deviation."""
    mean, sd = curves.mean(axis=0), curves.std(axis=0, ddof=1) if len(curves) > 1 else 0.0
    look = LOOKS[strategy]
    # On a log scale a band that reaches below zero would hide the curve: it ends at a hundredth.
    low = np.maximum(mean - sd, mean / 100) if log else mean - sd
    axes.fill_between(t, low, mean + sd, color=look.color, alpha=0.18, linewidth=0)
    axes.plot(t, mean, label=look.label, markevery=2, **look.line)


def _finish(figure: Figure, axes: np.ndarray, runs: Runs, *, legend: bool = False) -> Figure:
    _round_labels(axes, runs, "round")
    if legend:
        legend_below(figure, axes[0, 0])
    return figure


def _round_labels(axes: np.ndarray, runs: Runs, text: str) -> None:
    ticks = np.arange(0, runs.n_rounds + 1, max(runs.n_rounds // 4, 1))
    for row in axes:
        for panel in row:
            panel.set_xticks(ticks)
    for panel in axes[-1]:
        panel.set_xlabel(text)


def _log_scale(axes: Axes) -> None:
    """A logarithmic y axis whose labels are plain numbers at 1, 2, 5, 10, …"""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    decades = np.log10(high / low)
    subs = (
        (1.0,) if decades > 2.2 else (1.0, 2.0, 5.0) if decades > 0.6 else (1, 1.2, 1.5, 2, 3, 5, 8)
    )
    axes.yaxis.set_major_locator(LogLocator(subs=subs, numticks=12))
    axes.yaxis.set_major_formatter(FuncFormatter(_number))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _number(value: float, _: object = None) -> str:
    """200, 0.05, 10⁶."""
    if value <= 0:
        return f"{value:g}"
    if 1e-3 <= value < 1e5:
        return f"{value:g}"
    exponent = int(np.floor(np.log10(value) + 1e-9))
    factor = value / 10.0**exponent
    front = "" if abs(factor - 1) < 1e-6 else rf"{factor:g}\times"
    return f"${front}10^{{{exponent}}}$"


def _short(title: str) -> str:
    return title.replace(" Housing", "").replace(" Credit", "").replace("Communities and ", "")
