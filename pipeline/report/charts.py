"""Curves that answer to the mouse: Bokeh's figures and library, inlined in the page.

A dataset has two figures, with a linear and a logarithmic scale, of which one is shown; their
sources hold one measure at a time, which `templates/charts.js` exchanges.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from bokeh.core.types import ID
from bokeh.embed import json_item
from bokeh.layouts import column
from bokeh.models import ColumnDataSource, CustomJSTickFormatter, HoverTool, LogTicker
from bokeh.plotting import figure
from bokeh.resources import Resources
from markupsafe import Markup

from pipeline.analysis.curves import SQUARE, Runs

MEASURES = {
    "mce_test": "test MCE",
    "mse_test": "test MSE",
    "mce_train": "training MCE",
    "mse_train": "training MSE",
    "gap": "prediction gap",
    SQUARE: "debiased test MCE²",
}
SIGNED = (SQUARE,)  # measures that may be negative, and have no logarithm
DIGITS = 5
Bands = dict[str, dict[str, list[float | None]]]  # y, low and high by strategy
MARKERS = {
    "o": "circle",
    "s": "square",
    "x": "x",
    "D": "diamond",
    "^": "triangle",
    "v": "inverted_triangle",
    "P": "plus",
    "h": "hex",
}
DASHES = {"-": "solid", "--": "dashed", "-.": "dashdot", ":": "dotted"}


def make_charts(runs: Runs, prefix: str = "") -> dict[str, Any]:
    """The curves of all datasets; with a ``prefix`` to their names, several may share a page.

    json : for a script element (no ``</script>`` can end it early): by dataset, measure and
    strategy the mean and the ends of a band of one standard deviation; Bokeh's documents.
    """
    measures = {name: title for name, title in MEASURES.items() if name in runs.rounds}
    data = {f"{prefix}{d}": {m: _bands(runs, d, m) for m in measures} for d in runs.datasets}
    first = next(iter(measures))
    items = {name: _item(runs, name, bands[first]) for name, bands in data.items()}
    text = json.dumps({"data": data, "items": items, "signed": list(SIGNED)})
    safe = Markup(text.replace("<", "\\u003c"))
    return {"measures": measures, "strategies": runs.looks, "json": safe}


def _bands(runs: Runs, dataset: str, measure: str) -> Bands:
    bands = {}
    for strategy in runs.strategies:
        curves = runs.curves(dataset, strategy, measure)
        mean = curves.mean(axis=0)
        sd = curves.std(axis=0, ddof=1) if len(curves) > 1 else np.zeros_like(mean)
        bands[strategy] = {
            "y": _rounded(mean), "low": _rounded(mean - sd), "high": _rounded(mean + sd),
        }  # fmt: skip
    return bands


def _rounded(values: np.ndarray) -> list[float | None]:
    return [float(f"{v:.{DIGITS}g}") if np.isfinite(v) else None for v in values]


def _item(runs: Runs, name: str, bands: Bands) -> Any:
    x = np.arange(runs.n_rounds + 1).tolist()
    sources = {
        s: ColumnDataSource({"x": x, **bands[s]}, name=f"source/{name}/{s}")
        for s in runs.strategies
    }
    drawn = [_figure(runs, name, sources, scale) for scale in ("linear", "log")]
    return json_item(column(*drawn, sizing_mode="stretch_width"), ID(f"chart-{name}"))


def _figure(runs: Runs, name: str, sources: Mapping[str, Any], scale: str) -> Any:
    hover = HoverTool(
        mode="vline",
        tooltips=[("", "$name"), ("round", "@x"), ("mean", "@y{0.0000a}"),
                  ("± 1 sd", "@low{0.0000a} … @high{0.0000a}")],
    )  # fmt: skip
    plot: Any = figure(
        name=f"{scale}/{name}",
        height=330,
        sizing_mode="stretch_width",
        y_axis_type="log" if scale == "log" else "linear",
        x_axis_label="round",
        tools=["pan", "box_zoom", "reset", "save", hover],
        visible=scale == "log",
    )
    plot.toolbar.logo = None
    if scale == "log":
        plot.yaxis.ticker = LogTicker(mantissas=[1, 2, 5])
        plot.yaxis.formatter = CustomJSTickFormatter(code="return String(+tick.toPrecision(3))")
    hovered = []
    for strategy, look in runs.looks.items():
        source, line = sources[strategy], {"line_color": look.color, "line_width": 2}
        shown = [
            plot.varea(
                "x", "low", "high", source=source, fill_color=look.color, fill_alpha=0.14
            ),
            plot.line("x", "y", source=source, line_dash=DASHES[look.linestyle], **line),
            plot.scatter(
                "x", "y", source=source, size=6, marker=MARKERS[look.marker],
                line_color=look.color, fill_color=look.color, name=look.label,
            ),
        ]  # fmt: skip
        for renderer in shown:
            renderer.tags = [strategy]
        hovered.append(shown[-1])
    hover.renderers = hovered
    return plot


@cache
def bokeh() -> Markup:
    """BokehJS, unable to fetch what it would for formulas, icons and maps; none is used here."""
    scripts = Resources(mode="inline", components=["bokeh"], log_level="error").js_raw
    text = "\n".join(scripts).replace("</script", "<\\/script")
    return Markup(re.sub(r"https://(cdn\.|maps\.)[^\"'`]*", "about:blank", text))
