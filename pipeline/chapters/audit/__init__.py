"""The audit's page: for each table or model, how much, how sure, where."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from pipeline.analysis.style import styled
from pipeline.boosting.display import MulticalibrationDisplay
from pipeline.boosting.inspection import shown
from pipeline.report.render import render as render_template

HEADS = {
    "rule": "Rule",
    "rows": "Rows",
    "prediction": "Prediction",
    "outcome": "Outcome",
    "bias": "Bias",
    "low": "from",
    "high": "to",
    "p_value": "p-value",
}


@dataclass(frozen=True)
class Part:
    """One audited table; ``summary`` has a row per prediction, pictures are base64 PNGs."""

    title: str
    note: str
    summary: pd.DataFrame
    tables: Sequence[tuple[str, pd.DataFrame]]
    reliability: str
    segments: str


def make_part(title: str, note: str, display: MulticalibrationDisplay) -> Part:
    """The part of a page about an audit of one or more predictions."""
    results = display.results_
    several = len(results) > 1
    summary = pd.DataFrame(
        [
            {
                "": name,
                "Rows": f"{r.n}",
                "Error": f"{r.mce:.4g}",
                "Floor": f"{r.floor:.4g}",
                "Without it": f"{r.debiased:.4g}",
                "p-value": f"{r.p_value:.2g}",
            }
            for name, r in results.items()
        ]
    )
    tables = [
        (f"{what}, {name}" if several else what, shown(table).rename(columns=HEADS))
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
        return Part(title, note, summary, tables, _png(reliability), _png(segments))


def render(title: str, lead: str, parts: Sequence[Part], command: str) -> str:
    """The page as HTML that needs no network."""
    page = {"title": title, "lead": lead, "command": command}
    return render_template("audit/page.html", page=page, parts=parts)


def _png(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=150, metadata={"Software": None})
    return base64.b64encode(buffer.getvalue()).decode()
