"""One self-contained page: what was run, the scorecard, figures, tables, readings, provenance.

This module decides what is said; `templates` decides how it looks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pipeline.analysis.claims import Claim
from pipeline.analysis.evidence import Evidence
from pipeline.analysis.style import VERDICTS
from pipeline.analysis.table1 import COUNTS
from pipeline.report import readings, scorecards
from pipeline.report.chapter import Chapter
from pipeline.report.oracle import OracleChapter
from pipeline.report.picture import Picture

TEMPLATES = Path(__file__).parent / "templates"
TONES = {"replicated": "good", "partly": "partly", "not replicated": "bad"}


@dataclass(frozen=True)
class Row:
    """A line of the claims' scorecard."""

    id: str
    text: str
    third: str
    verdict: str
    tone: str
    ours: str
    explanation: str
    rule: str

    @classmethod
    def of(cls, claim: Claim) -> Row:
        """A claim's line; its third column is what the paper reports."""
        return cls(
            claim.id, claim.text, claim.paper, claim.verdict, TONES[claim.verdict], claim.ours,
            claim.explanation, claim.rule,
        )  # fmt: skip


@dataclass(frozen=True)
class Provenance:
    """What the runs were made with."""

    versions: str
    cpus: str
    commits: str
    seeds: str
    tables: Sequence[tuple[str, str]]

    @classmethod
    def of(cls, records: Sequence[Mapping[str, Any]]) -> Provenance:
        """From the runs' ``run.json``."""
        return cls(
            versions="; or ".join(
                sorted({", ".join(f"{k} {v}" for k, v in r["versions"].items()) for r in records})
            ),
            cpus=", ".join(sorted({str(r["cpu"]) for r in records})),
            commits=", ".join(sorted({str(r["git_commit"]) for r in records})),
            seeds=_ranges(sorted({int(r["seeds"]["split"]) for r in records})),
            tables=sorted({(str(r["key"]["name"]), str(r["data_sha256"])) for r in records}),
        )


@dataclass(frozen=True)
class Page:
    """All that goes on the page."""

    title: str
    n_runs: int
    boosting: Mapping[str, Any]
    computing: str
    wall: str
    tally: str
    claims: Sequence[Row]
    figures: Sequence[Picture]
    again: str
    noise: Sequence[Sequence[str]]
    table1: Sequence[Mapping[str, Any]]
    readings: Sequence[Sequence[str]]
    theory: Chapter | None
    oracle: OracleChapter | None
    provenance: Provenance


def make_page(
    evidence: Evidence,
    claims: Sequence[Claim],
    noise: pd.DataFrame,
    figures: Sequence[Picture],
    theory: Chapter | None,
    oracle: OracleChapter | None,
    again: str,
    wall_seconds: float | None,
) -> Page:
    """The page of an experiment; ``again`` are the commands that make it."""
    records = evidence.records
    return Page(
        title="Multicalibration gradient boosting: a replication",
        n_runs=len(records),
        boosting=records[0]["config"]["boosting"],
        computing=_clock(sum(r["duration_seconds"] for r in records)),
        wall="" if wall_seconds is None else _clock(wall_seconds),
        tally=scorecards.tally_of_claims(claims),
        claims=[Row.of(claim) for claim in claims],
        figures=figures,
        again=again,
        noise=_noise_rows(noise),
        table1=[{str(k): v for k, v in row.items()} for row in evidence.table1.to_dict("records")],
        readings=readings.ROWS,
        theory=theory,
        oracle=oracle,
        provenance=Provenance.of(records),
    )


def render(page: Page) -> str:
    """The page as HTML that needs no network."""
    return render_template("page.html", page=page, counts=COUNTS)


def render_template(name: str, **context: Any) -> str:
    """One of the templates, with style and script inlined."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name).render(
        **context,
        tones={TONES[verdict]: look for verdict, look in VERDICTS.items()},
        css=_inlined("style.css"),
        js=_inlined("script.js"),
    )


def _inlined(name: str) -> Markup:
    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))  # ours, no data in it


def _noise_rows(noise: pd.DataFrame) -> list[list[str]]:
    """The table of noise floors as people read it."""
    rows = []
    for r in noise.to_dict("records"):
        share = float(r["significant_splits"])
        rows.append(
            [
                str(r["dataset"]), f"{r['moment']} (round {r['round']})", f"{r['mce']:.3g}",
                f"{r['floor']:.3g}", f"{r['debiased']:.3g}", f"{r['low']:.3g} to {r['high']:.3g}",
                "not recorded" if np.isnan(share) else f"{share:.0%}",
            ]
        )  # fmt: skip
    return rows


def _ranges(values: Sequence[int]) -> str:
    if list(values) == list(range(values[0], values[-1] + 1)) and len(values) > 1:
        return f"{values[0]}–{values[-1]}"
    return ", ".join(map(str, values))


def _clock(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} minutes"
