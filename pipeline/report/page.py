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
from pipeline.analysis.claims.registry import Measured
from pipeline.analysis.curves import rounded_r2
from pipeline.analysis.evidence import Evidence
from pipeline.analysis.scope import Scope
from pipeline.analysis.style import TONES, VERDICTS
from pipeline.analysis.table1 import COUNTS
from pipeline.report import readings, scorecards
from pipeline.report.chapter import Chapter
from pipeline.report.charts import Charts, make_charts
from pipeline.report.oracle import OracleChapter
from pipeline.report.picture import Picture
from pipeline.report.practice import PracticeChapter
from pipeline.report.statements import ReadingsChapter

TEMPLATES = Path(__file__).parent / "templates"
SUMMARY = (
    "Strategy", "Last gap / first", "R² of the tail", "Factor per round", "Training MSE",
    "Training MCE", "Test MSE", "Test MCE", "Best round", "Test MSE there", "Test MCE there",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A line of the claims' scorecard; ``values`` if what was measured is a table."""

    id: str
    text: str
    third: str
    verdict: str
    tone: str
    ours: str
    values: Measured | None
    figure: str | None
    explanation: str
    rule: str

    @classmethod
    def of(cls, claim: Claim) -> Row:
        """A claim's line; its third column is what the paper reports."""
        values = claim.ours if isinstance(claim.ours, Measured) else None
        return cls(
            claim.id, claim.text, claim.paper, claim.verdict, TONES[claim.verdict],
            str(claim.ours), values, claim.figure, claim.explanation, claim.rule,
        )  # fmt: skip


@dataclass(frozen=True)
class DatasetSection:
    """What a dataset's section shows beside its chart; ``rows`` as `SUMMARY` heads them."""

    name: str
    title: str
    note: str
    rows: Sequence[Sequence[str]]


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
class Contents:
    """All that a page is made from.

    again : the commands that make it.  claims, readings, theory, oracle, practice : of a
    replication alone.
    """

    scope: Scope
    evidence: Evidence
    claims: Sequence[Claim]
    noise: pd.DataFrame
    summary: pd.DataFrame
    figures: Sequence[Picture]
    again: str
    readings: ReadingsChapter | None
    theory: Chapter | None
    oracle: OracleChapter | None
    practice: PracticeChapter | None
    wall_seconds: float | None


@dataclass(frozen=True)
class Page:
    """All that goes on the page; ``contents`` are anchors and titles."""

    title: str
    scope: Scope
    contents: Sequence[tuple[str, str]]
    n_runs: int
    boosting: Mapping[str, Any]
    computing: str
    wall: str
    tally: str
    claims: Sequence[Row]
    claims_of: Mapping[str, Sequence[str]]
    papers_figures: Sequence[Picture]
    further_figures: Sequence[Picture]
    again: str
    charts: Charts
    datasets: Sequence[DatasetSection]
    base: str
    noise: Sequence[Sequence[str]]
    table1: Sequence[Mapping[str, Any]]
    chosen: Sequence[Sequence[str]]
    readings: ReadingsChapter | None
    theory: Chapter | None
    oracle: OracleChapter | None
    practice: PracticeChapter | None
    provenance: Provenance


def make_page(parts: Contents) -> Page:
    """The page of an experiment."""
    evidence, records = parts.evidence, parts.evidence.records
    shown_by: dict[str, list[str]] = {}
    for claim in parts.claims:
        shown_by.setdefault(claim.figure or "", []).append(claim.id)
    return Page(
        title=parts.scope.title,
        scope=parts.scope,
        contents=_contents(parts),
        n_runs=len(records),
        boosting=records[0]["config"]["boosting"],
        computing=_clock(sum(r["duration_seconds"] for r in records)),
        wall="" if parts.wall_seconds is None else _clock(parts.wall_seconds),
        tally=scorecards.tally_of_claims(parts.claims) if parts.claims else "",
        claims=[Row.of(claim) for claim in parts.claims],
        claims_of=shown_by,
        papers_figures=[p for p in parts.figures if p.paper],
        further_figures=[p for p in parts.figures if not p.paper],
        again=parts.again,
        charts=make_charts(evidence),
        datasets=[_dataset_section(evidence, parts.summary, d) for d in evidence.datasets],
        base=evidence.looks[evidence.base].label,
        noise=_noise_rows(parts.noise),
        table1=[{str(k): v for k, v in row.items()} for row in evidence.table1.to_dict("records")]
        if parts.claims
        else [],
        chosen=readings.ROWS if parts.claims else [],
        readings=parts.readings,
        theory=parts.theory,
        oracle=parts.oracle,
        practice=parts.practice,
        provenance=Provenance.of(records),
    )


def _contents(parts: Contents) -> list[tuple[str, str]]:
    papers = "The paper's figures" if parts.claims else "Gaps and errors over rounds"
    found = [
        ("scorecard", "Scorecard" if parts.claims else ""),
        ("figures", papers),
        ("curves", "Dataset by dataset"),
        ("further", "Further figures"),
        ("noise", "Is there anything to calibrate?"),
        ("table1", "Table 1" if parts.claims else ""),
        ("readings", "How the paper may be read" if parts.claims else ""),
        ("practice", "Practice: does it help, against whom, and when?" if parts.practice else ""),
        ("oracle-chapter", "What sets the rate of the gaps?" if parts.oracle else ""),
        ("theory", "Theory: statements as checks" if parts.theory else ""),
        ("provenance", "Provenance"),
    ]
    return [(anchor, title) for anchor, title in found if title]


def _dataset_section(evidence: Evidence, summary: pd.DataFrame, dataset: str) -> DatasetSection:
    size = evidence.sizes[evidence.sizes["dataset"] == dataset].iloc[0]
    n_train, n_test, columns = (int(size[k]) for k in ("n_train", "n_test", "n_features"))
    splits = evidence.rounds["seed"].nunique()
    note = f"{n_train} training rows, {n_test} test rows, {columns} columns; {splits} splits."
    rows = [
        [
            evidence.looks[str(r["strategy"])].label,
            f"{r['gap_ratio']:.3g}", rounded_r2(r["r2"]), f"{r['kappa']:.3f}",
            f"{r['mse_train_ratio']:.3g}", f"{r['mce_train_ratio']:.2g}",
            _change(r["mse_test_ratio"]), _change(r["mce_test_ratio"]), str(r["best_round"]),
            _change(r["mse_test_at_best"]), _change(r["mce_test_at_best"]),
        ]
        for r in summary[summary["dataset"] == dataset].to_dict("records")
    ]  # fmt: skip
    return DatasetSection(dataset, evidence.titles[dataset], note, rows)


def _change(ratio: float) -> str:
    """0.55 as "−45 %"."""
    if not np.isfinite(ratio):
        return "—"
    return f"{100 * (ratio - 1):+.0f} %".replace("-", "−")


def render(page: Page) -> str:
    """The page as HTML that needs no network."""
    return render_template("page.html", page=page, counts=COUNTS, summary=SUMMARY)


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
        charts_js=_inlined("charts.js"),
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
