"""The page that sets experiments side by side."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipeline import files
from pipeline.analysis.curves import SQUARE
from pipeline.analysis.style import titled
from pipeline.chapters.comparison.differences import Comparison
from pipeline.chapters.figures import CHAPTER as FIGURES_CHAPTER
from pipeline.chapters.figures.draw import draw_all
from pipeline.report.render import percent
from pipeline.report.render import render as render_template

FIGURES = ("training", "generalization", "test_errors")
WORDS = {
    "mse_train": "training MSE",
    "mse_test": "test MSE",
    "mce_train": "training MCE",
    "mce_test": "test MCE",
    SQUARE: "debiased test MCE²",
}


def render(
    comparison: Comparison,
    differences: pd.DataFrame,
    names: Sequence[str],
    folder: Path,
    command: str,
) -> str:
    """Draw the figures below ``folder``, and return the page as HTML that needs no network."""
    parts = []
    for k, within in enumerate(comparison.withins):
        runs = comparison.runs(within)
        if not runs.datasets or len(runs.strategies) < 2:
            continue  # nothing to set side by side
        place = folder / "figures" / (files.slug(within.replace(" ", "-")) or "strategies")
        drawn = draw_all(runs, place, FIGURES)
        some = differences[differences["strategy"] == within]
        parts.append(
            {
                "name": f"part{k}",
                "title": titled(within) if within else "",
                "figures": [FIGURES_CHAPTER.picture(place / f"{name}.png") for name in drawn],
                "table": pd.DataFrame([_row(runs.titles, r) for r in some.to_dict("records")]),
            }
        )
    page = {
        "title": " compared with ".join(names),
        "n_variants": len(comparison.variants),
        "what": "settings" if comparison.withins != [""] else "strategies",
        "baseline": comparison.baseline,
        "parts": parts,
        "command": command,
    }
    return render_template("comparison/page.html", page=page)


def _row(titles: Mapping[str, str], r: Mapping[Any, Any]) -> dict[str, str]:
    values = np.array([r["difference"], r["low"], r["high"]])
    if r["measure"] == SQUARE or not r["baseline"]:  # no share of what may be zero or negative
        difference, low, high = (f"{v:+.3g}".replace("-", "−") for v in values)
    else:
        difference, low, high = (percent(v / r["baseline"]) for v in values)
    return {
        "Dataset": titles[r["dataset"]],
        "Setting": r["variant"],
        "Error at the end": WORDS[r["measure"]],
        "Baseline": f"{r['baseline']:.4g}".replace("-", "−"),
        "Here": f"{r['mean']:.4g}".replace("-", "−"),
        "Difference": difference,
        "95 % interval": f"{low} to {high}",
    }
