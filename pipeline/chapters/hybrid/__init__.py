"""The hybrid algorithm of the paper's appendix, on the paper's datasets."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from pipeline.chapters.curves import CurvesChapter
from pipeline.chapters.hybrid import effects
from pipeline.runs.store import StoredRun


class Hybrid(CurvesChapter):
    """Weak learners and a strong model, by its weight."""

    title = "Does a strong model beside the weak learners help?"
    part = "Is the theory right?"
    order = 77
    varied = frozenset({"boosting.gamma", "boosting.eta"})
    judges = effects.judge

    def of_run(self, stored: StoredRun, eta: float, gamma: float) -> dict[str, Any]:
        rounds = stored.rounds.sort_values("round", ignore_index=True)
        return effects.of_run(rounds, stored.record["sizes"], eta, gamma)

    def curves_of(self, rounds: pd.DataFrame) -> pd.DataFrame:
        return rounds[list(effects.CURVES)] / rounds[list(effects.CURVES)].iloc[0]

    def drawing(self, curves: pd.DataFrame, titles: Mapping[str, str]) -> Figure:
        return effects.draw(curves, titles)

    def content(self, runs: pd.DataFrame) -> Mapping[str, Any]:
        left = runs.groupby("title")["to_fixed_point"].median()
        return {"fixed": f"{left.min():.2f} to {left.max():.2f}"}


CHAPTER = Hybrid()
