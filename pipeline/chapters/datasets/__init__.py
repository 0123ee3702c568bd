"""What the runs came to: the last round and the best one, for each dataset and strategy."""

import numpy as np
import pandas as pd

from pipeline.analysis.curves import rounded_r2
from pipeline.analysis.evidence import Evidence
from pipeline.analysis.summaries import summary_table
from pipeline.chapters.base import Chapter, Context, Section, write_table


class Datasets(Chapter):
    """A row per dataset and strategy."""

    title = "Dataset by dataset"
    part = "Did it replicate?"
    order = 30
    curated = {"paper/summary.csv": "summary.csv"}

    def section(self, context: Context) -> Section:
        summary = summary_table(context.evidence)
        write_table(context.folder / "summary.csv", summary)
        return Section({"table": _shown(context.evidence, summary)})


CHAPTER = Datasets()


def _shown(evidence: Evidence, summary: pd.DataFrame) -> pd.DataFrame:
    """The summary as people read it."""

    def ratio(column: str) -> "pd.Series[str]":
        return summary[column].map(lambda v: f"{v:.3g}" if np.isfinite(v) else "—")

    return pd.DataFrame(
        {
            "Dataset": summary["dataset"].map(evidence.titles),
            "Strategy": summary["strategy"].map({s: k.label for s, k in evidence.looks.items()}),
            "Gap": ratio("gap_ratio"),
            "Factor per round": ratio("kappa"),
            "R² of the tail": summary["r2"].map(rounded_r2),
            "Training MSE": ratio("mse_train_ratio"),
            "Training MCE": ratio("mce_train_ratio"),
            "Test MSE": ratio("mse_test_ratio"),
            "Test MCE": ratio("mce_test_ratio"),
            "Best round": summary["best_round"].astype(str),
            "Test MSE there": ratio("mse_test_at_best"),
            "Test MCE there": ratio("mce_test_at_best"),
        }
    )
