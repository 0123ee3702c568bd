"""Figures of corrections."""

import textwrap
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from pipeline.analysis.style import BLUE, GREEN
from pipeline.chapters.practice.effects import by_situation, overall, ranks
from pipeline.report.render import percent

EFFECTS, RANKS = "practice", "practice_ranks"
CLIPPED = 0.5  # changes beyond this have the same colour


def draw_effects(
    changed: pd.DataFrame, methods: Mapping[str, str], situations: Mapping[str, str]
) -> Figure:
    """Methods × situations, coloured by the mean change of the test loss; best methods first."""
    grid = by_situation(changed)
    found = sorted(overall(changed).items(), key=lambda item: item[1].change)
    grid = grid.loc[[name for name, _ in found], [s for s in situations if s in grid]]
    last = np.array([[row.change, row.worst] for _, row in found])
    table = np.column_stack([grid.to_numpy(), last])
    lines = textwrap.TextWrapper(11, break_long_words=False, break_on_hyphens=False)
    heads = [*(lines.fill(situations[str(s)]) for s in grid), "all", "worst\ncell"]
    figure = Figure(figsize=(1.6 + 0.95 * len(heads), 1.1 + 0.27 * len(grid)), layout="constrained")
    axes = figure.subplots()
    norm = TwoSlopeNorm(0.0, -CLIPPED, CLIPPED)
    axes.imshow(np.clip(table, -CLIPPED, CLIPPED), cmap="RdBu_r", norm=norm, aspect="auto")
    for (i, j), value in np.ndenumerate(table):
        text = "" if np.isnan(value) else _short(value)
        colour = "white" if abs(value) > 0.6 * CLIPPED else "black"
        axes.text(j, i, text, ha="center", va="center", color=colour, fontsize=8)
    axes.set_xticks(range(len(heads)), heads, fontsize=8)
    axes.set_yticks(
        range(len(grid)), [methods.get(str(m), str(m)) for m in grid.index], fontsize=8.5
    )
    axes.xaxis.tick_top()
    axes.set_title("Change of the mean test loss, %", loc="left", fontsize=9.5)
    axes.axvline(len(heads) - 2.5, color="white", linewidth=3)
    axes.tick_params(length=0)
    axes.grid(False)
    for side in axes.spines.values():
        side.set_visible(False)
    return figure


def draw_ranks(changed: pd.DataFrame, methods: Mapping[str, str]) -> Figure:
    """Mean ranks on a line, with the critical difference between two methods."""
    means, critical = ranks(changed)
    figure = Figure(figsize=(7.2, 0.8 + 0.25 * len(means)), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(means))[::-1]
    axes.hlines(places, 1, means.to_numpy(), color="#cccccc", linewidth=1)
    axes.plot(means.to_numpy(), places, "o", color=BLUE, markersize=6)
    best = float(means.iloc[0])
    axes.axvspan(best, best + critical, color=GREEN, alpha=0.12, linewidth=0)
    for place, value in zip(places, means, strict=True):
        axes.annotate(
            f"{value:.1f}", (value, place), (6, -3), textcoords="offset points", fontsize=8
        )
    axes.set_yticks(places, [methods.get(str(m), str(m)) for m in means.index], fontsize=8.5)
    axes.set(xlabel="mean rank of the mean test loss (1 is best)", xlim=(1, len(means) + 0.5))
    axes.grid(axis="y", visible=False)
    return figure


def _short(change: float) -> str:
    if change > 1:
        return f"×{1 + change:.1f}"
    return (
        percent(change).removesuffix(" %")
        if abs(change) < 0.0995
        else f"{100 * change:+.0f}".replace("-", "−")
    )
