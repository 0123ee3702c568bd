"""The chapter on readings: every claim under every reading of the paper, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from pipeline.analysis import readings
from pipeline.analysis.claims import Claim
from pipeline.analysis.style import TONES

HEADS = {
    "target": "Target",
    "t": "t counted",
    "error": "Multicalibration error",
    "round_0": "Round 0 as a best round",
}
SIGNS = {"replicated": "●", "partly": "◐", "not replicated": "○"}
IN_WORDS = {"target": "target", "t": "t", "error": "error", "round_0": "round 0"}


@dataclass(frozen=True)
class Cell:
    """A verdict: its sign, its tone, and the whole of it for who points at it."""

    sign: str
    tone: str
    title: str


@dataclass(frozen=True)
class Head:
    """A heading over several columns."""

    text: str
    span: int


@dataclass(frozen=True)
class Line:
    """A claim in words with its cells and what its verdict depends on."""

    id: str
    text: str
    cells: Sequence[Cell]
    depends: str


@dataclass(frozen=True)
class ReadingsChapter:
    """All that the chapter shows.

    heads : rows of headings, the outermost choice first.  scores : the combinations that give most
    of the claims, and the default.  under_none : claims that no reading replicates.
    """

    n: int
    heads: Sequence[tuple[str, Sequence[Head]]]
    lines: Sequence[Line]
    score_head: Sequence[str]
    scores: Sequence[Sequence[str]]
    best: str
    under_none: Sequence[str]
    complete: bool


def make_chapter(table: pd.DataFrame, claims: Sequence[Claim]) -> ReadingsChapter:
    """From the table of `readings.verdicts`."""
    order = readings.AXES
    columns = list(table[order].drop_duplicates().itertuples(index=False, name=None))
    wide = table.set_index([*order, "claim"])["verdict"].to_dict()
    depends = readings.matters(table).set_index("claim")["depends_on"]
    lines = [
        Line(
            claim.id,
            claim.text,
            [_cell(column, wide[(*column, claim.id)]) for column in columns],
            ", ".join(IN_WORDS[axis] for axis in depends[claim.id]) or "nothing",
        )
        for claim in claims
        if claim.id in depends
    ]
    scores = readings.scores(table)
    top = scores.iloc[0]
    words = {claim.id: claim.text for claim in claims}
    return ReadingsChapter(
        n=len(columns),
        heads=[(HEADS[axis], _heads(columns, k)) for k, axis in enumerate(order)],
        lines=lines,
        score_head=[*(HEADS[axis] for axis in order), "Replicated", "Partly", "Not"],
        scores=[[str(v) for v in row] for row in scores.itertuples(index=False)],
        best=f"{int(top['replicated'])} of {len(lines)} claims",
        under_none=[f"{i} ({words[i]})" for i in readings.under_none(table)],
        complete=table[["target", "t"]].drop_duplicates().shape[0] == 4,
    )


def _cell(column: Sequence[str], verdict: str) -> Cell:
    return Cell(SIGNS[verdict], TONES[verdict], f"{verdict}: {', '.join(column)}")


def _heads(columns: Sequence[Sequence[str]], level: int) -> list[Head]:
    """Headings of one choice, each over the columns that share it and all choices before."""
    heads: list[tuple[Sequence[str], Head]] = []
    for column in columns:
        path = column[: level + 1]
        if heads and heads[-1][0] == path:
            heads[-1] = (path, Head(path[-1], heads[-1][1].span + 1))
        else:
            heads.append((path, Head(path[-1], 1)))
    return [head for _, head in heads]
