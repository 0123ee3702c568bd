"""Algorithm 1 with the log-loss, which the paper proves things of and does not try."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from pipeline.chapters.curves import CurvesChapter
from pipeline.chapters.logloss import effects
from pipeline.report.render import in_powers
from pipeline.runs.store import StoredRun


class Logloss(CurvesChapter):
    """The theorems that hold for the log-loss, on tables with two classes."""

    title = "Does it carry over to classes?"
    part = "Is the theory right?"
    order = 76
    varied = frozenset({"boosting.eta"})
    judges = effects.judge

    def of_run(self, stored: StoredRun, eta: float, gamma: float) -> dict[str, Any]:  # noqa: ARG002
        rounds = stored.rounds.sort_values("round", ignore_index=True)
        return effects.of_run(rounds, stored.record["sizes"]["n_train"], eta)

    def curves_of(self, rounds: pd.DataFrame) -> pd.DataFrame:
        return rounds[list(effects.CURVES)]

    def drawing(self, curves: pd.DataFrame, titles: Mapping[str, str]) -> Figure:
        return effects.draw(curves, titles)

    def content(self, runs: pd.DataFrame) -> Mapping[str, Any]:
        unit = runs[(runs["strategy"] == "unit") & (runs["eta"] == runs["eta"].max())]
        return {"table": effects.shown(runs), "m": in_powers(unit["m"].median())}


CHAPTER = Logloss()
