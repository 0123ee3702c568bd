"""Claim 11: Table 1."""

from __future__ import annotations

from pipeline.analysis.claims.registry import Judgement, claim
from pipeline.analysis.claims.wording import grade, percent, where_not
from pipeline.analysis.evidence import Evidence
from pipeline.analysis.table1 import COUNTS

MOST_NUMBERS = 0.7


@claim(
    "11",
    text="Table 1: raw features, features and data points",
    paper=lambda e: f"{len(COUNTS) * len(e.table1)} numbers",
)
def table1_matches(e: Evidence) -> Judgement | None:
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
    return Judgement(
        ours=f"{good} of {total} agree",
        rule=f"all agree (partly: {percent(MOST_NUMBERS)} of them)",
        verdict=verdict,
        explanation=where_not(verdict, wrong, "Different"),
    )
