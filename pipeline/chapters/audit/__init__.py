"""The audit's page: for each table or model, how much, how sure, where."""

import base64
import io
from collections.abc import Sequence
from typing import Any

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


def make_part(title: str, note: str, display: MulticalibrationDisplay) -> dict[str, Any]:
    """What the page shows of an audit of one or more predictions; pictures are base64 PNGs."""
    results = display.results_
    summary = pd.DataFrame(
        [
            {
                "": name,
                "Rows": f"{r.n}",
                "Error": f"{r.mce:.4g}",
                "Noise floor": f"{r.floor:.4g}",
                "Debiased": f"{r.debiased:.4g}".replace("-", "−"),
                "p-value": f"{r.p_value:.2g}",
            }
            for name, r in results.items()
        ]
    )
    tables = [
        (f"{what}, {name}" if len(results) > 1 else what, shown(table).rename(columns=HEADS))
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
        pictures = {"reliability": _png(reliability), "segments": _png(segments)}
    return {"title": title, "note": note, "summary": summary, "tables": tables, **pictures}


def render(title: str, lead: str, parts: Sequence[dict[str, Any]], command: str) -> str:
    """The page as HTML that needs no network."""
    page = {"title": title, "lead": lead, "command": command}
    return render_template("audit/page.html", page=page, parts=parts)


def _png(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=150, metadata={"Software": None})
    return base64.b64encode(buffer.getvalue()).decode()
