"""The theory chapter: what the page says about findings, their proofs and their figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from pipeline import theory
from pipeline.report import latex, scorecards
from pipeline.report.picture import Picture
from pipeline.report.scorecards import Tally
from pipeline.theory.instances import KINDS, N_INSTANCES
from pipeline.theory.rows import N_ROWS
from pipeline.theory.study import Study

TONES = {"holds": "good", "holds in a narrower regime": "partly", "fails as stated": "bad"}
PROOFS = Path(theory.__file__).parent / "proofs"
# The order in which proofs.tex has them.
FRAGMENTS = (
    "notation", "gaps", "spiral", "rate", "hard_splits", "logloss", "adaptive", "shift", "hybrid",
    "certificate",
)  # fmt: skip


@dataclass(frozen=True)
class Chapter:
    """All that the chapter shows.

    findings : records with ``third`` and ``tone`` beside their own entries.  proofs : as HTML.
    certificates : rows of the table of certified errors.
    """

    tallies: Sequence[Tally]
    findings: Sequence[Mapping[str, Any]]
    n_errata: int
    proofs: Markup
    certificates: Sequence[Sequence[str]]
    figures: Sequence[Picture]
    command: str
    kinds: Sequence[str] = KINDS
    n_instances: int = N_INSTANCES
    n_rows: int = N_ROWS


def make_chapter(
    study: Study, figures: Sequence[Picture], certificates: pd.DataFrame, n_errata: int
) -> Chapter:
    """The chapter of a study."""
    findings = [
        {**record, "third": record["where"], "tone": TONES[record["verdict"]]}
        for record in study.findings
    ]
    return Chapter(
        scorecards.tally_of_findings(study.findings),
        findings,
        n_errata,
        proofs(),
        [_certificate_row(r) for r in certificates.to_dict("records")],
        figures,
        "python -m pipeline.theory W8",
    )


def proofs() -> Markup:
    """The proofs, from their LaTeX."""
    return Markup("\n").join(
        latex.document((PROOFS / f"{name}.tex").read_text(encoding="utf-8")) for name in FRAGMENTS
    )


def _certificate_row(r: Mapping[Any, Any]) -> list[str]:
    numbers = [r[c] for c in ("plug_in", "debiased", "certified", "rmse", "bound_on_residuals",
                              "largest_residual")]  # fmt: skip
    return [r["dataset"], f"{r['moment']} (round {r['round']})", *(f"{x:.3g}" for x in numbers)]
