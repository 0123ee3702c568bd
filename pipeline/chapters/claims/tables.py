"""Claim 11: Table 1."""

from __future__ import annotations

import numpy as np

from pipeline.analysis.evidence import Evidence
from pipeline.analysis.table1 import COUNTS
from pipeline.chapters.claims.rules import VERDICTS, claim, grades, where_not
from pipeline.judgement import Ruling


@claim(
    "11",
    text="Table 1: raw features, features and data points",
    paper=lambda e: f"{len(COUNTS) * len(e.table1)} numbers",
)
def table1_matches(e: Evidence) -> Ruling | None:
    """Number by number."""
    if e.table1.empty:
        return None
    cells = [
        (f"{row['dataset']} {what}", row[f"{what}_ours"], row[f"{what}_paper"])
        for row in e.table1.to_dict("records")
        for what in COUNTS
    ]
    wrong = [f"{name} {ours} instead of {paper}" for name, ours, paper in cells if ours != paper]
    equal = np.array([[ours == paper for _, ours, paper in cells]])
    verdict = VERDICTS[grades(equal)[0]]
    return Ruling(
        measured=f"{len(cells) - len(wrong)} of {len(cells)} agree",
        rule="all agree (partly: at least half of them)",
        verdict=verdict,
        explanation=where_not(verdict, wrong, "Different"),
    )
