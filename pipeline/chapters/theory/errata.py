"""The errata as a page of their own, in HTML and Markdown: what could be sent to the authors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.report import latex
from pipeline.report.render import environment, render
from pipeline.theory.errata import ERRATA, LEVELS, UNNAMED, Erratum, Unnamed

TITLE = "Errata to “On the Convergence of Multicalibration Gradient Boosting”"


@dataclass(frozen=True)
class Point:
    """An erratum with its place and its numbers."""

    erratum: Erratum
    where: str
    evidence: str
    command: str


@dataclass(frozen=True)
class Section:
    """The points of one level."""

    title: str
    lead: str
    points: Sequence[Point]


@dataclass(frozen=True)
class Errata:
    """All that the page shows."""

    title: str
    sections: Sequence[Section]
    unnamed: Sequence[Unnamed]


def make_errata(records: Sequence[Mapping[str, Any]]) -> Errata:
    """The page of a study's findings; a point whose statement held in it is left out."""
    by_id = {r["id"]: r for r in records if r["verdict"] != "holds"}
    points = [(by_id[e.id], e) for e in ERRATA if e.id in by_id]
    sections = [
        Section(title, lead, [_point(e, r) for r, e in points if r["level"] == level])
        for level, (title, lead) in LEVELS.items()
    ]
    shown = [section for section in sections if section.points]
    return Errata(TITLE, shown, UNNAMED)


def _point(erratum: Erratum, record: Mapping[str, Any]) -> Point:
    said = " ".join(filter(None, (record["evidence"] + ".", record["measured"])))
    return Point(erratum, record["where"], said, f"python -m pipeline.theory {erratum.id}")


def as_html(errata: Errata) -> str:
    """A page that needs no network."""
    return render("theory/errata.html", page=errata, math=latex.inline)


def as_markdown(errata: Errata) -> str:
    """Markdown with formulas in LaTeX between dollar signs."""
    return environment(autoescape=False).get_template("theory/errata.md").render(page=errata)
