"""The paper's figures and a few more, from stored runs; nothing is fitted here but lines.

Every figure is a function of the runs alone, and its files are the same bytes every time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from pipeline import files
from pipeline.analysis.curves import (
    FLOOR,
    SQUARE,
    Runs,
    best_round,
    bootstrap_interval,
    corrected_error,
    fit_tail,
    rounded_r2,
    tail_start,
)
from pipeline.analysis.paper import LOWEST_R2
from pipeline.analysis.style import PANEL, STRATEGIES, Look, legend_below, plain, save, styled
from pipeline.analysis.summaries import best_round_table, curve_table, tail_table
from pipeline.boosting.arrays import Floats
from pipeline.processes import forked

NARROWEST = 4.6  # inches, for one dataset
STAR = 0.06  # of a panel: how near two stars cover each other
TRAINING = {"mse_train": "training MSE", "mce_train": "training MCE"}


def draw_all(runs: Runs, folder: Path, only: Sequence[str] = ()) -> list[str]:
    """Write every figure as PNG and PDF, and what it shows as CSV; gives their names in order.

    only : the names of some figures.
    """
    names = list(only) or list(FIGURES)
    runs = replace(runs, titles=plain(runs.titles))
    forked([partial(_draw, runs, folder, name) for name in names])
    return names


def _draw(runs: Runs, folder: Path, name: str) -> None:
    draw, table = FIGURES[name]
    with styled():
        save(draw(runs), folder, name)
    files.write_text(folder / f"{name}.csv", table(runs).to_csv(index=False))


# --- the paper's figures -----------------------------------------------------------------------


def gap(runs: Runs) -> Figure:
    """The prediction gap: linear above; below its logarithm with the tail's line.

    Of the paper's three strategies Unit's alone, as in the paper.
    """
    figure, axes = _panels(2, len(runs.datasets))
    t = np.arange(1, runs.n_rounds + 1)
    start = tail_start(runs.n_rounds)
    shown = ["unit"] if set(runs.strategies) == set(STRATEGIES) else runs.strategies
    for j, dataset in enumerate(runs.datasets):
        for k, strategy in enumerate(shown):
            curves = runs.curves(dataset, strategy, "gap")
            for i in range(2):
                _band(axes[i, j], t, curves[:, 1:], runs.looks[strategy], log=i == 1)
            fit = fit_tail(curves.mean(axis=0), start)
            tail = t[t >= start]
            axes[1, j].plot(
                tail, fit.gap(tail), color="black", linestyle=(0, (4, 2)), linewidth=1.6
            )
            axes[1, j].text(
                0.97, 0.95 - 0.11 * k, f"$R^2={rounded_r2(fit.r2)}$",
                color="black" if len(shown) == 1 else runs.looks[strategy].color,
                transform=axes[1, j].transAxes, ha="right", va="top",
            )  # fmt: skip
        _log_scale(axes[1, j])
        axes[0, j].set_ylim(bottom=0)
    axes[0, 0].set_ylabel(r"$\|f_{t+1}-f_t\|_2$")
    axes[1, 0].set_ylabel(r"$\|f_{t+1}-f_t\|_2$ (log)")
    return _finish(figure, axes, runs, legend=len(shown) > 1)


def training(runs: Runs) -> Figure:
    """Training MSE above, training MCE below, per strategy."""
    figure, axes = _panels(2, len(runs.datasets))
    t = np.arange(runs.n_rounds + 1)
    for i, (column, name) in enumerate(TRAINING.items()):
        for j, dataset in enumerate(runs.datasets):
            for strategy, look in runs.looks.items():
                _band(axes[i, j], t, runs.curves(dataset, strategy, column), look, log=True)
            _log_scale(axes[i, j])
        axes[i, 0].set_ylabel(name)
    return _finish(figure, axes, runs, legend=True)


def generalization(runs: Runs) -> Figure:
    """Test MCE, with a star at each strategy's best round, and the base strategy's noise floor."""
    figure, axes = _panels(1, len(runs.datasets), height=2.7)
    t = np.arange(runs.n_rounds + 1)
    for j, dataset in enumerate(runs.datasets):
        for strategy, look in runs.looks.items():
            _band(axes[0, j], t, runs.curves(dataset, strategy, "mce_test"), look, log=True)
        floor = np.sqrt(np.square(runs.curves(dataset, runs.base, FLOOR)).mean(axis=0))
        axes[0, j].plot(t, floor, color="black", linestyle=":", label="noise floor")
        _log_scale(axes[0, j])
        _stars(axes[0, j], runs, dataset, "mce_test")
    axes[0, 0].set_ylabel("test MCE")
    return _finish(figure, axes, runs, legend=True)


# --- beyond the paper ----------------------------------------------------------------------------


def tail(runs: Runs) -> Figure:
    """R² against the start of the tail, with single runs' spread; right: the contraction factor."""
    figure, axes = _panels(1, len(runs.datasets) + 1, height=2.7)
    table = tail_table(runs)
    # Single runs' R² over the last few rounds may be anything; the axis follows the mean curves.
    lowest = float(np.nanmin([table["r2"].min(), LOWEST_R2]))
    bottom = max(0.0, np.floor(20 * (lowest - 0.05)) / 20)
    color = runs.looks[runs.base].color
    for j, dataset in enumerate(runs.datasets):
        one = table[table["dataset"] == dataset]
        axes[0, j].fill_between(
            one["start"], one["low"], one["high"], color=color, alpha=0.2, linewidth=0
        )
        axes[0, j].plot(one["start"], one["r2"], color=color)
        axes[0, j].axhline(LOWEST_R2, color="black", linewidth=0.8, linestyle=":")
        axes[0, j].axvline(tail_start(runs.n_rounds), color="black", linewidth=0.8, linestyle="--")
        axes[0, j].set(title=runs.titles[dataset], xlabel="first round of the tail")
        axes[0, j].set_ylim(bottom, 1 + 0.02 * (1 - bottom))
    axes[0, 0].set_ylabel("$R^2$ of the log-gap")
    last = axes[0, -1]
    for k, dataset in enumerate(reversed(runs.datasets)):
        curves = runs.curves(dataset, runs.base, "gap")
        kappas = np.array([fit_tail(c, tail_start(runs.n_rounds)).kappa for c in curves])
        low, high = bootstrap_interval(kappas)
        last.plot(kappas, np.full(len(kappas), k), "|", color="grey", markersize=9)
        last.plot([low, high], [k, k], color="black", linewidth=3, solid_capstyle="butt")
        last.plot(kappas.mean(), k, "o", color=color, markersize=5)
    last.set_yticks(
        range(len(runs.datasets)), [_short(runs.titles[d]) for d in reversed(runs.datasets)]
    )
    last.set(title=r"contraction factor $\hat\kappa$", xlabel="runs, mean, 95 % interval")
    last.axvline(1.0, color="black", linewidth=0.8, linestyle=":")
    return figure


def best_rounds(runs: Runs) -> Figure:
    """How stable is a best round? Its distribution over bootstrap samples of the seeds."""
    figure, axes = _panels(len(runs.strategies), len(runs.datasets), height=1.45)
    shares = dict(iter(best_round_table(runs).groupby(["dataset", "strategy"])))
    for j, dataset in enumerate(runs.datasets):
        for i, strategy in enumerate(runs.strategies):
            one, look = shares[dataset, strategy], runs.looks[strategy]
            axes[i, j].bar(one["round"], one["share"], color=look.color, width=0.9)
            best = best_round(runs.curves(dataset, strategy, "mce_test"))
            axes[i, j].plot(best, 1.12, marker="v", color="black", markersize=5)
            axes[i, j].set(ylim=(0, 1.25), yticks=(0, 0.5, 1), xlim=(-0.7, runs.n_rounds + 0.7))
            axes[i, 0].set_ylabel(look.printed)
    return _finish(figure, axes, runs, x="best round by test MCE")


def test_errors(runs: Runs) -> Figure:
    """Test MSE and test MCE relative to the start: does one best round suit both?"""
    figure, axes = _panels(2, len(runs.datasets))
    t = np.arange(runs.n_rounds + 1)
    for j, dataset in enumerate(runs.datasets):
        for i, column in enumerate(("mse_test", "mce_test")):
            for strategy in runs.strategies:
                mean = runs.curves(dataset, strategy, column).mean(axis=0)
                look = runs.looks[strategy]
                axes[i, j].plot(t, mean / mean[0], markevery=2, label=look.printed, **look.line)
            axes[i, j].axhline(1.0, color="black", linewidth=0.8, linestyle=":")
        _log_scale(axes[1, j])
        for i, column in enumerate(("mse_test", "mce_test")):
            _stars(axes[i, j], runs, dataset, column, relative=True)
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
            look = runs.looks[strategy]
            floor = np.square(runs.curves(dataset, strategy, FLOOR)).mean(axis=0) / unit
            axes[0, j].plot(t, floor, color=look.color, linestyle=":", linewidth=1.1)
            curves = runs.curves(dataset, strategy, SQUARE) / unit
            error = corrected_error(curves, runs.test_share(dataset))
            mean = curves.mean(axis=0)
            _fill(axes[0, j], t, mean - error, mean + error, look)
            axes[0, j].plot(t, mean, label=look.printed, markevery=2, **look.line)
        axes[0, j].plot([], [], color="black", linestyle=":", label="floor")
        axes[0, j].axhline(0.0, color="black", linewidth=0.8)
        axes[0, j].set_yscale("symlog", linthresh=1.0)
        axes[0, j].yaxis.set_major_formatter(FuncFormatter(_number))
    axes[0, 0].set_ylabel("debiased MCE² / floor²")
    return _finish(figure, axes, runs, legend=True)


# Each figure and the table of what it shows.
FIGURES: Mapping[str, tuple[Callable[[Runs], Figure], Callable[[Runs], pd.DataFrame]]] = {
    "gap": (gap, partial(curve_table, columns=["gap"])),
    "training": (training, partial(curve_table, columns=["mse_train", "mce_train"])),
    "generalization": (generalization, partial(curve_table, columns=["mce_test"])),
    "tail": (tail, tail_table),
    "best_rounds": (best_rounds, best_round_table),
    "test_errors": (test_errors, partial(curve_table, columns=["mse_test", "mce_test"])),
    "debiased": (debiased, partial(curve_table, columns=[SQUARE, FLOOR])),
}


# --- shared --------------------------------------------------------------------------------------


def _panels(n_rows: int, n_columns: int, height: float = 2.1) -> tuple[Figure, np.ndarray]:
    width = max(PANEL * n_columns, NARROWEST)
    figure = Figure(figsize=(width, height * n_rows + 0.35), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False)


def _band(axes: Axes, t: np.ndarray, curves: Floats, look: Look, *, log: bool = False) -> None:
    """The mean over seeds with a band of one standard deviation."""
    mean, sd = curves.mean(axis=0), curves.std(axis=0, ddof=1) if len(curves) > 1 else 0.0
    # On a log scale a band that reaches below zero would hide the curve: it ends at a hundredth.
    low = np.maximum(mean - sd, mean / 100) if log else mean - sd
    _fill(axes, t, low, mean + sd, look)
    axes.plot(t, mean, label=look.printed, markevery=2, **look.line)


def _fill(axes: Axes, t: np.ndarray, low: Floats, high: Floats, look: Look) -> None:
    """A band with edges, so that bands that overlap can be told apart."""
    axes.fill_between(t, low, high, color=look.color, alpha=0.1, linewidth=0)
    for edge in (low, high):
        axes.plot(t, edge, color=look.color, linestyle=look.linestyle, linewidth=0.6, alpha=0.6)


def _stars(axes: Axes, runs: Runs, dataset: str, column: str, *, relative: bool = False) -> None:
    """A star at each strategy's smallest mean; where several would cover each other, one in one."""
    seen: list[tuple[float, float]] = []
    for strategy in runs.strategies:
        mean = runs.curves(dataset, strategy, column).mean(axis=0)
        best = int(mean.argmin())
        point = (best, mean[best] / (mean[0] if relative else 1.0))
        x, y = axes.transData.transform(point)
        width, height = axes.bbox.width, axes.bbox.height
        covered = sum(abs(x - a) / width < STAR and abs(y - b) / height < STAR for a, b in seen)
        seen.append((x, y))
        axes.plot(
            *point, marker="*", markersize=(17, 11, 6)[min(covered, 2)],
            linestyle="none", color=runs.looks[strategy].color, markeredgecolor="black",
            markeredgewidth=0.6, zorder=5 + len(seen), clip_on=False,
        )  # fmt: skip


def _finish(
    figure: Figure, axes: np.ndarray, runs: Runs, *, legend: bool = False, x: str = "round"
) -> Figure:
    """Titles of datasets above the columns, rounds below, and a legend for all."""
    for panel, dataset in zip(axes[0], runs.datasets, strict=True):
        panel.set_title(runs.titles[dataset])
    ticks = np.arange(0, runs.n_rounds + 1, max(runs.n_rounds // 4, 1))
    for panel in axes.flat:
        panel.set_xticks(ticks)
    for panel in axes[-1]:
        panel.set_xlabel(x)
    if legend:
        legend_below(figure, axes[0, 0])
    return figure


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
    if value <= 0 or 1e-3 <= value < 1e5:
        return f"{value:g}"
    exponent = int(np.floor(np.log10(value) + 1e-9))
    factor = value / 10.0**exponent
    front = "" if abs(factor - 1) < 1e-6 else rf"{factor:g}\times"
    return f"${front}10^{{{exponent}}}$"


def _short(title: str) -> str:
    return title.replace(" Housing", "").replace(" Credit", "").replace("Communities and ", "")
