"""How the paper may be read: every claim under every reading of what the text leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from pipeline.analysis.scope import scope_of
from pipeline.chapters.base import Chapter, Context, Section, write_table
from pipeline.chapters.claims import claim as claims
from pipeline.chapters.readings import verdicts
from pipeline.errors import ConfigError
from pipeline.judgement import TONES, Judgement
from pipeline.report.place import report_folder
from pipeline.runs.plan import Plan

FILE = "readings.csv"
HEADS = {
    "target": "Target",
    "t": "t counted",
    "error": "Multicalibration error",
    "round_0": "Round 0 as a best round",
}
SIGNS = {"good": "●", "partly": "◐", "bad": "○"}
CHOICES = Path(__file__).parent / "choices.yaml"


class Readings(Chapter):
    """The claims' verdicts over the readings whose runs are stored."""

    title = "How the paper may be read"
    order = 60
    curated = {f"paper/{FILE}": FILE}

    def check(self, plan: Plan) -> None:
        if not plan.is_grid or not scope_of(_default(plan)).is_replication:
            raise ConfigError(
                "experiment.chapters: readings needs the paper's datasets, strategies and "
                "settings, such as experiment=readings (fewer seeds: 'experiment.seeds=[0,1]')"
            )

    def measure(self, plan: Plan) -> str:
        table, file = verdicts.verdicts(_default(plan)), report_folder(plan) / FILE
        write_table(file, table)
        best = verdicts.scores(table).rename(columns={"round_0": "round 0"})
        failing = ", ".join(verdicts.under_none(table)) or "no claim"
        return (
            f"{best.to_string(index=False)}\n"
            f"{len(best)} readings of {table['claim'].nunique()} claims\n"
            f"replicated under none of them: {failing}\n"
            f"table: {file}"
        )

    def section(self, context: Context) -> Section | None:
        if not context.scope.is_replication:
            return None
        table = verdicts.verdicts(context.plan, context.evidence)
        write_table(context.folder / FILE, table)
        return Section(_content(table, claims.judge_all(context.evidence)))


CHAPTER = Readings()


def _default(plan: Plan) -> Plan:
    """Of a plan with several readings, the one that is taken by default."""
    first = verdicts.variants(plan)[0].plan.configs
    return replace(plan, configs=tuple(c for c in plan.configs if c in first))


def _content(table: pd.DataFrame, judged: Sequence[Judgement]) -> dict[str, Any]:
    """heads : rows of headings (text, columns), the outermost choice first.  lines : a claim each,
    with a sign, a tone and a tooltip for every reading.  complete : whether all readings were run.
    """
    axes = verdicts.AXES
    columns = list(table[axes].drop_duplicates().itertuples(index=False, name=None))
    found = table.set_index([*axes, "claim"])["verdict"].to_dict()
    depends = verdicts.matters(table).set_index("claim")["depends_on"]
    lines = []
    for claim in judged:
        if claim.id in depends:
            words = [found[(*column, claim.id)] for column in columns]
            cells = [
                (SIGNS[TONES[v]], TONES[v], f"{v}: {', '.join(column)}")
                for v, column in zip(words, columns, strict=True)
            ]
            changing = ", ".join(axis.replace("_", " ") for axis in depends[claim.id])
            lines.append((claim.id, claim.text, cells, changing or "nothing"))
    scores = verdicts.scores(table)
    names = {**HEADS, "replicated": "Replicated", "partly": "Partly", "not replicated": "Not"}
    texts = {claim.id: claim.text for claim in judged}
    return {
        "choices": pd.DataFrame(yaml.safe_load(CHOICES.read_text(encoding="utf-8"))).rename(
            columns={"question": "Question", "reading": "Here", "key": "Key", "why": "Why"}
        ),
        "n": len(columns),
        "heads": [(HEADS[axis], _heads(columns, k)) for k, axis in enumerate(axes)],
        "lines": lines,
        "scores": scores.rename(columns=names).astype(str),
        "best": f"{int(scores['replicated'].iloc[0])} of {len(lines)} claims",
        "under_none": [f"{i} ({texts[i]})" for i in verdicts.under_none(table)],
        "complete": len(table[["target", "t"]].drop_duplicates())
        == len(verdicts.SCALINGS) * len(verdicts.OFFSETS),
    }


def _heads(columns: Sequence[Sequence[str]], level: int) -> list[tuple[str, int]]:
    """Headings of one choice, each over the columns that share it and all choices before."""
    paths = (tuple(column[: level + 1]) for column in columns)
    return [(path[-1], len(list(same))) for path, same in groupby(paths)]
