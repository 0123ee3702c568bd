"""Claim 11: Table 1."""

from __future__ import annotations

from pipeline.analysis.evidence import Evidence
from pipeline.analysis.table1 import COUNTS
from pipeline.chapters.claims.rules import claim, grade, percent, where_not
from pipeline.judgement import Ruling

MOST_NUMBERS = 0.7


@claim(
    "11",
    text="Table 1: raw features, features and data points",
    paper=lambda e: f"{len(COUNTS) * len(e.table1)} numbers",
)
def table1_matches(e: Evidence) -> Ruling | None:
    """Number by number."""
    if e.table1.empty:
        return None
    table, good, wrong = e.table1, 0, []
    for row in table.to_dict("records"):
        for what in COUNTS:
            if row[f"{what}_paper"] == row[f"{what}_ours"]:
                good += 1
            else:
                ours, theirs = row[f"{what}_ours"], row[f"{what}_paper"]
                wrong.append(f"{row['dataset']} {what} {ours} instead of {theirs}")
    total = len(COUNTS) * len(table)
    verdict = grade(good, total, MOST_NUMBERS)
    return Ruling(
        measured=f"{good} of {total} agree",
        rule=f"all agree (partly: {percent(MOST_NUMBERS)} of them)",
        verdict=verdict,
        explanation=where_not(verdict, wrong, "Different"),
    )
