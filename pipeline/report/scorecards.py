"""Judgements and summaries as text for a terminal."""

from collections.abc import Sequence

import pandas as pd

from pipeline.analysis.curves import rounded_r2
from pipeline.judgement import Judgement, tally


def scorecard(judgements: Sequence[Judgement]) -> str:
    """A line per judgement, with what is to be said of those that do not hold, and their number."""
    width = max(len(j.verdict) for j in judgements) + 2
    lines = [f"{'':<5}{'verdict':<{width}}statement"]
    for j in judgements:
        paper = f" (paper: {j.paper})" if j.paper else ""
        lines.append(f"{j.id:<5}{j.verdict:<{width}}{j.text}{paper}")
        if j.explanation:
            lines.append(f"{'':<{5 + width}}{j.explanation}")
    return "\n".join([*lines, f"{len(judgements)} judged: {tally(judgements)}"])


def of_summary(summary: pd.DataFrame) -> str:
    """What a grid's runs came to, as a table: last round against the first, and the best one."""
    names = {
        "gap_ratio": "gap",
        "r2": "R²",
        "mse_train_ratio": "train MSE",
        "mce_train_ratio": "train MCE",
        "mse_test_ratio": "test MSE",
        "mce_test_ratio": "test MCE",
        "best_round": "best round",
        "mse_test_at_best": "MSE there",
        "mce_test_at_best": "MCE there",
    }
    table = summary[["dataset", "strategy", *names]].rename(columns=names)
    table["R²"] = table["R²"].map(rounded_r2)
    return "last round / round 0, and at the best round by test MCE\n" + table.to_string(
        index=False, float_format=lambda v: f"{v:.3g}"
    )
