"""Figures of the theory chapter: measured values beside the paper's bounds and sharper ones.

Everything is drawn from what ``stage=theory`` wrote and from stored runs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipeline.analysis import style
from pipeline.analysis.certificates import certified
from pipeline.analysis.curves import FLOOR, SQUARE
from pipeline.analysis.evidence import Evidence
from pipeline.analysis.style import BLUE, GREEN, LOOKS, ORANGE, RED
from pipeline.boosting.arrays import Floats
from pipeline.theory.instances import SMOOTH
from pipeline.theory.study import Study

# The colour, matplotlib's format and the label of each series.
Lines = Mapping[str, tuple[str, str, str | None]]
PAPER, SHARPER = (ORANGE, "--", "paper"), (GREEN, "-.", "sharper (T4)")


def draw_all(study: Study, evidence: Evidence, leaves: Evidence | None, folder: Path) -> list[str]:
    """Write the chapter's figures; gives their names in order.

    leaves : the same runs with the errors of leaf indicators, of which certificates speak.
    """
    titles = style.plain(evidence.titles)
    curves = {str(figure): points for figure, points in study.curves.groupby("figure")}
    with style.styled():
        drawn = {
            "theory_rate": rate(curves["rate"]),
            "theory_datasets": datasets(study.exact, titles),
            "theory_contraction": contraction(curves["contraction"], curves["hard_bins"]),
            "theory_noise": noise(curves["noise"]),
            "theory_weights": weights(curves["weights"]),
            "theory_quadratic": quadratic(curves["quadratic"]),
            "theory_error": error(replace(evidence, titles=titles), study.gbdt),
        }
        if leaves is not None:
            certain = replace(leaves, titles=titles)
            drawn["theory_certificate"] = certificate(certain, study.widths)
        for name, figure in drawn.items():
            style.save(figure, folder, name)
    return list(drawn)


def rate(curves: pd.DataFrame) -> Figure:
    """Smallest gap against T."""
    figure, (smooth, spiral, path) = _panels(3, 10, 3.3)
    lines = {"paper": PAPER, "sharper": SHARPER, "measured": (BLUE, "-", "measured")}
    _loglog(smooth, curves, lines, "smooth")
    smooth.set(title="a smooth class", xlabel="T", ylabel="smallest gap", ylim=(1e-6, None))
    lines |= {
        "measured": (BLUE, "o", "a spiral per T"),
        "one instance": (RED, "-", "one spiral, gap of round T"),
    }
    _loglog(spiral, curves, lines, "spiral")
    spiral.set(title="two points, one learner", xlabel="T", ylim=(1e-4, None))
    path.plot(*_points(curves, "residual", "path"), color=BLUE, marker=".", linewidth=0.8)
    path.plot(0, 0, "+", color="black")
    path.set(title="the residual's way, T = 60", xlabel="first point", ylabel="second point")
    path.set_aspect("equal")
    for axes in (smooth, spiral):
        axes.legend(frameon=False, fontsize=8.5, loc="lower left")
    return figure


def datasets(exact: pd.DataFrame, titles: Mapping[str, str]) -> Figure:
    """Smallest gap on rows of the datasets, exact oracle, beside Unit's bounds."""
    shown = [d for d in titles if (exact["dataset"] == d).any()]
    figure, panels = _dataset_panels(shown, titles)
    for dataset, axes in panels.items():
        runs = exact[exact["dataset"] == dataset]
        one = runs[runs["strategy"] == runs["strategy"].iloc[0]]
        axes.loglog(one["round"], one["paper"], color="black", linestyle="--", label="paper (Unit)")
        axes.loglog(one["round"], one["sharp"], color="black", linestyle="-.", label="sharper")
        for strategy, group in runs.groupby("strategy", sort=False):
            look = LOOKS[str(strategy)]
            line = look.line | {"markevery": 0.12, "label": look.label}
            axes.loglog(group["round"], group["gap"].cummin(), **line)
        axes.set(xlabel="T", ylim=(1e-7, None))
    panels[shown[0]].set_ylabel("smallest gap")
    style.legend_below(figure, panels[shown[0]])
    return figure


def contraction(smooth: pd.DataFrame, hard: pd.DataFrame) -> Figure:
    """κ and the measured factor over ρ; and the factor of a hard class over rounds."""
    figure, (left, right) = _panels(2, 9, 3.3)
    for kind, colour in zip(SMOOTH, (BLUE, ORANGE, GREEN, RED), strict=True):
        lines = {"bound": (colour, "--", None), "measured": (colour, "o-", kind)}
        _loglog(left, smooth, lines, kind)
    left.axhline(0.5, color="black", linewidth=0.8, linestyle=":")
    left.axhline(1.0, color="black", linewidth=0.8)
    left.set(title="smooth classes", xlabel="ρ (distance of the start)", ylabel="factor per round")
    left.plot([], [], color="black", linestyle="--", label="κ")
    left.legend(frameon=False, fontsize=8.5, ncols=2)
    every = hard.sort_values("x")
    right.plot(every["x"], every["y"], color=BLUE, zorder=1)
    right.scatter(*_points(hard, "unchanged"), color=BLUE, label="no point changes cell")
    right.scatter(*_points(hard, "changed"), color=RED, marker="x", label="some point does")
    right.axhline(0.5, color="black", linewidth=0.8, linestyle=":")
    right.set(title="hard bins", xlabel="round")
    right.legend(frameon=False, fontsize=8.5)
    return figure


def noise(curves: pd.DataFrame) -> Figure:
    """Smallest gap over ε."""
    lines = {
        "bound": (ORANGE, "--", "bound"),
        "floor": ("black", ":", "floor 2η√ε"),
        "measured": (BLUE, "o-", "measured"),
    }
    return _panel(curves, lines, xlabel="ε", ylabel="smallest gap of 200 rounds")


def weights(curves: pd.DataFrame) -> Figure:
    """|ω_t − 1| over rounds."""
    figure, (axes,) = _panels(1, 5, 3.2)
    for _, run in curves.groupby("series", sort=False):
        axes.loglog(run["x"], run["y"], color=GREEN, alpha=0.6)
    axes.set(xlabel="round", ylabel="|ω_t − 1|", ylim=(1e-15, None))
    return figure


def quadratic(curves: pd.DataFrame) -> Figure:
    """‖r₁‖/‖r₀‖ over ε."""
    lines = {
        "fixed": (RED, "-", "one learner, fixed"),
        "radial": (ORANGE, "-.", "radial functions of f"),
        "quadratic": (GREEN, "--", "learners span y's complement"),
    }
    return _panel(curves, lines, xlabel="‖r₀‖ = ε", ylabel="‖r₁‖ / ‖r₀‖")


def error_parts(mse: Floats, gap: Floats, n: int, eta: float) -> tuple[Floats, Floats]:
    """From a Unit run's curves: gap/η and √(2ε_t), each over √n, for rounds 0 … T − 1.

    mse : (T + 1,);  gap : (T + 1,), the first empty. With V = ½ n mse, h = Δ/η and
    ⟨r, h⟩ = (V_t − V_{t+1} + ½ gap²)/η, the loss after a full step is V_t − ⟨r, h⟩ + ½‖h‖².
    """
    v, step = 0.5 * n * mse, gap[1:] / eta
    inner = (v[:-1] - v[1:] + 0.5 * gap[1:] ** 2) / eta
    full = np.maximum(v[:-1] - inner + 0.5 * step**2, 0.0)
    return step / np.sqrt(n), np.sqrt(2 * full) / np.sqrt(n)


def error(evidence: Evidence, gbdt: pd.DataFrame) -> Figure:
    """Training MCE of the stored Unit runs and its bound."""
    figure, panels = _dataset_panels(evidence.datasets, evidence.titles)
    sizes = evidence.sizes[evidence.sizes["strategy"] == "unit"].sort_values("seed")
    for dataset, axes in panels.items():
        columns = ("mse_train", "gap", "mce_train")
        mse, gap, mce = (evidence.curves(dataset, "unit", column) for column in columns)
        runs = zip(mse, gap, sizes.loc[sizes["dataset"] == dataset, "n_train"], strict=True)
        move, oracle = np.mean([error_parts(*run, evidence.eta) for run in runs], axis=0)
        t = np.arange(len(move))
        axes.semilogy(t, move + oracle, color="black", label="bound")
        axes.semilogy(t, move, color=ORANGE, linestyle="--", label="gap part")
        axes.semilogy(t, oracle, color=RED, linestyle=":", label="ε part")
        one = gbdt[gbdt["dataset"] == dataset]
        bracket = one["round"], one["epsilon_low"], one["epsilon_high"]
        axes.fill_between(*bracket, color=RED, alpha=0.25, lw=2, label="ε part, bracketed")
        axes.semilogy(t, mce.mean(axis=0)[:-1], color=BLUE, label="training MCE")
    style.legend_below(figure, panels[evidence.datasets[0]])
    return figure


def certificate(evidence: Evidence, widths: Mapping[str, float]) -> Figure:
    """What held-out rows certify of the stored Unit runs, beside plug-in and debiased errors."""
    figure, panels = _dataset_panels(evidence.datasets, evidence.titles)
    for dataset, axes in panels.items():
        mce, floor, square = (
            evidence.curves(dataset, "unit", column).mean(axis=0)
            for column in ("mce_test", FLOOR, SQUARE)
        )
        bounds = certified(evidence, dataset, widths[dataset]).mean(axis=0)
        t = np.arange(len(mce))
        axes.semilogy(t, bounds, color=RED, label="certified (95 %)")
        axes.semilogy(t, mce, color=BLUE, label="plug-in")
        axes.semilogy(t, floor, color="black", linestyle=":", label="noise floor")
        debiased = np.sqrt(np.where(square > 0, square, np.nan))
        axes.semilogy(t, debiased, color=GREEN, marker="x", label="debiased (where above 0)")
    panels[evidence.datasets[0]].set_ylabel("test MCE")
    style.legend_below(figure, panels[evidence.datasets[0]])
    return figure


def _panels(n: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure of ``width`` times ``height`` inches with a row of ``n`` panels."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(1, n, squeeze=False)[0])


def _panel(curves: pd.DataFrame, lines: Lines, **labels: str) -> Figure:
    """A figure of one panel with a legend."""
    figure, (axes,) = _panels(1, 5, 3.2)
    _loglog(axes, curves, lines)
    axes.set(**labels)
    axes.legend(frameon=False)
    return figure


def _dataset_panels(
    names: Iterable[str], titles: Mapping[str, str]
) -> tuple[Figure, dict[str, Axes]]:
    """A row of panels over rounds, one for each dataset and under its title."""
    shown = list(names)
    figure, panels = _panels(len(shown), style.PANEL * len(shown), 2.9)
    for axes, name in zip(panels, shown, strict=True):
        axes.set(title=titles[name], xlabel="round")
    return figure, dict(zip(shown, panels, strict=True))


def _points(curves: pd.DataFrame, series: str, panel: str = "") -> tuple[Floats, Floats]:
    """x and y of one figure's series."""
    some = curves[(curves["series"] == series) & (curves["panel"] == panel)]
    return some["x"].to_numpy(np.float64), some["y"].to_numpy(np.float64)


def _loglog(axes: Axes, curves: pd.DataFrame, lines: Lines, panel: str = "") -> None:
    """Draw series of one figure."""
    for series, (colour, line, label) in lines.items():
        axes.loglog(*_points(curves, series, panel), line, color=colour, label=label)
