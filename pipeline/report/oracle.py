"""The chapter on trees per round: what sets the rate of the gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from pipeline.analysis import oracle
from pipeline.report.picture import Picture

TONES = {"holds": "good", "partly": "partly", "fails": "bad"}


@dataclass(frozen=True)
class OracleChapter:
    """All that the chapter shows; ``rows`` are of its table, under ``head``.

    fewer : the same judged on fewer rows of the large tables, where that was run.
    """

    judged: oracle.Judged
    fewer: oracle.Judged | None
    tone: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    figures: Sequence[Picture]

    @classmethod
    def of(
        cls,
        runs: pd.DataFrame,
        reduced: pd.DataFrame | None,
        titles: Mapping[str, str],
        figures: Sequence[Picture],
    ) -> OracleChapter:
        """The chapter of the experiments' runs, of which ``reduced`` are on fewer rows."""
        judged = oracle.judge(runs)
        fewer = None if reduced is None else oracle.judge(reduced)
        means = oracle.summary(runs if reduced is None else pd.concat([runs, reduced]))
        trees = [int(k) for k in sorted(means["trees"].unique())]
        rows = []
        for dataset, title in titles.items():
            some = means[means["dataset"] == dataset]
            for _, group in some.groupby(["rows", "eta"], sort=False):
                rows.append([title, *_cells(group.set_index("trees"), trees)])
        head = ["Dataset", "Rows", "η", *(f"{k} trees" for k in trees), "1 − η",
                "Distinct predictions", "Test MSE / f₀'s"]  # fmt: skip
        return cls(judged, fewer, TONES[judged.verdict], head, rows, figures)


def _cells(by_trees: pd.DataFrame, trees: Sequence[int]) -> list[str]:
    last = by_trees.iloc[-1]
    factors = by_trees["factor"].reindex(list(trees))
    return [
        f"{last['rows']:g}",
        f"{last['eta']:g}",
        *("" if pd.isna(x) else f"{x:.2f}" for x in factors),
        f"{1 - last['eta']:g}",
        f"{last['distinct_start']:.0%} → {last['distinct_end']:.0%}",
        f"{last['mse_ratio']:.2f}",
    ]
