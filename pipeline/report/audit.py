"""The audit's page: for each table or model, how much, how sure, where."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from pipeline.analysis.style import styled
from pipeline.boosting.display import MulticalibrationDisplay
from pipeline.boosting.inspection import shown
from pipeline.report.page import render_template

HEAD = ("Rule", "Rows", "Prediction", "Outcome", "Bias", "from", "to", "p-value")


@dataclass(frozen=True)
class Chapter:
    """One audited table; ``summary`` has a row per prediction, pictures are base64 PNGs."""

    title: str
    note: str
    summary: Sequence[Sequence[str]]
    tables: Sequence[tuple[str, Sequence[Sequence[str]]]]
    reliability: str
    segments: str


def make_chapter(title: str, note: str, display: MulticalibrationDisplay) -> Chapter:
    """The chapter of an audit of one or more predictions."""
    results = display.results_
    several = len(results) > 1
    summary = [
        [name, f"{r.n}", f"{r.mce:.4g}", f"{r.floor:.4g}", f"{r.debiased:.4g}", f"{r.p_value:.2g}"]
        for name, r in results.items()
    ]
    tables = [
        (f"{what}, {name}" if several else what, _cells(table))
        for name, r in results.items()
        for what, table in (("Worst segments", r.segments), ("Named groups", r.groups))
        if len(table)
    ]
    with styled():
        reliability = Figure(figsize=(5.2, 4.2), layout="constrained")
        display.plot(ax=reliability.subplots())
        n_lines = sum(len(r.segments) for r in results.values())
        segments = Figure(figsize=(9, 1.2 + 0.27 * n_lines), layout="constrained")
        display.plot_segments(ax=segments.subplots())
        return Chapter(title, note, summary, tables, _png(reliability), _png(segments))


def render(title: str, lead: str, chapters: Sequence[Chapter], command: str) -> str:
    """The page as HTML that needs no network."""
    page: Mapping[str, Any] = {
        "title": title, "lead": lead, "chapters": chapters, "command": command, "head": HEAD,
    }  # fmt: skip
    return render_template("audit.html", page=page)


def _cells(table: pd.DataFrame) -> list[list[str]]:
    return [[str(cell) for cell in row] for row in shown(table).itertuples(index=False)]


def _png(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=150, metadata={"Software": None})
    return base64.b64encode(buffer.getvalue()).decode()
