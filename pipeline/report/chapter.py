"""The theory chapter: what the page says about findings, and their figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.report import scorecards
from pipeline.report.picture import Picture
from pipeline.theory.instances import KINDS, N_INSTANCES
from pipeline.theory.rows import N_ROWS
from pipeline.theory.study import Study

TONES = {"holds": "good", "holds in a narrower regime": "partly", "fails as stated": "bad"}


@dataclass(frozen=True)
class Chapter:
    """All that the chapter shows.

    findings, errata : records with ``third``, ``tone`` and ``command`` beside their own entries.
    """

    tally: str
    findings: Sequence[Mapping[str, Any]]
    errata: Sequence[Mapping[str, Any]]
    figures: Sequence[Picture]
    command: str
    kinds: Sequence[str] = KINDS
    n_instances: int = N_INSTANCES
    n_rows: int = N_ROWS


def make_chapter(study: Study, figures: Sequence[Picture]) -> Chapter:
    """The chapter of a study."""
    findings = [
        {
            **record,
            "third": record["where"],
            "tone": TONES[record["verdict"]],
            "command": command_for(record["id"]),
        }
        for record in study.findings
    ]
    errata = [r for r in findings if r["correction"] and r["verdict"] != "holds"]
    tally = scorecards.tally_of_findings(study.findings)
    return Chapter(tally, findings, errata, figures, command_for("W8"))


def command_for(id_: str) -> str:
    """The command that tries one statement."""
    return f"python -m pipeline.theory {id_}"
