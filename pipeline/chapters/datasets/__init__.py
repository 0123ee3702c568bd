"""Dataset by dataset: curves that answer to the mouse, and a table."""

import numpy as np
import pandas as pd

from pipeline.analysis.curves import rounded_r2
from pipeline.analysis.evidence import Evidence
from pipeline.analysis.summaries import summary_table
from pipeline.chapters.base import Chapter, Context, Section, write_table
from pipeline.report.charts import make_charts
from pipeline.report.render import percent


class Datasets(Chapter):
    """Every dataset's curves over rounds."""

    title = "Dataset by dataset"
    order = 30
    curated = {"paper/summary.csv": "summary.csv"}

    def section(self, context: Context) -> Section:
        evidence, summary = context.evidence, summary_table(context.evidence)
        write_table(context.folder / "summary.csv", summary)
        shown = _shown(evidence, summary)
        datasets = [
            (name, evidence.titles[name], _note(evidence, name), shown[summary["dataset"] == name])
            for name in evidence.datasets
        ]
        return Section({"charts": make_charts(evidence), "datasets": datasets})


CHAPTER = Datasets()


def _note(evidence: Evidence, dataset: str) -> str:
    size = evidence.sizes[evidence.sizes["dataset"] == dataset].iloc[0]
    n_train, n_test, columns = (int(size[k]) for k in ("n_train", "n_test", "n_features"))
    splits = evidence.rounds["seed"].nunique()
    return f"{n_train} training rows, {n_test} test rows, {columns} columns; {splits} splits."


def _shown(evidence: Evidence, summary: pd.DataFrame) -> pd.DataFrame:
    """The summary as people read it."""

    def change(column: str) -> "pd.Series[str]":
        return (summary[column] - 1).map(lambda v: percent(v, 0) if np.isfinite(v) else "—")

    return pd.DataFrame(
        {
            "Strategy": summary["strategy"].map({s: k.label for s, k in evidence.looks.items()}),
            "Last gap / first": summary["gap_ratio"].map("{:.3g}".format),
            "R² of the tail": summary["r2"].map(rounded_r2),
            "Factor per round": summary["kappa"].map("{:.3f}".format),
            "Training MSE": summary["mse_train_ratio"].map("{:.3g}".format),
            "Training MCE": summary["mce_train_ratio"].map("{:.2g}".format),
            "Test MSE": change("mse_test_ratio"),
            "Test MCE": change("mce_test_ratio"),
            "Best round": summary["best_round"].astype(str),
            "Test MSE there": change("mse_test_at_best"),
            "Test MCE there": change("mce_test_at_best"),
        }
    )
