"""The errata as a page of their own, in HTML and Markdown: what could be sent to the authors."""

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.report import latex
from pipeline.report.render import environment, render
from pipeline.theory.statements import ERRATA, LEVELS, UNNAMED

TITLE = "Errata to “On the Convergence of Multicalibration Gradient Boosting”"


Sections = Sequence[Mapping[str, Any]]  # title, meaning and points of each level


def make_errata(records: Sequence[Mapping[str, Any]]) -> Sections:
    """The page of a study's findings; a point whose statement held in it is left out."""
    by_id = {r["id"]: r for r in records if r["verdict"] != "holds"}
    points: dict[str, list[Mapping[str, str]]] = {level: [] for level in LEVELS}
    for erratum in ERRATA:
        if record := by_id.get(erratum["id"]):
            said = " ".join(filter(None, (record["evidence"] + ".", record["measured"])))
            command = f"python -m pipeline.theory {erratum['id']}"
            point = {**erratum, "where": record["where"], "evidence": said, "command": command}
            points[record["level"]].append(point)
    sections = ({**words, "points": points[level]} for level, words in LEVELS.items())
    return [section for section in sections if section["points"]]


def as_html(sections: Sections) -> str:
    """A page that needs no network."""
    return render("theory/errata.html", page=_page(sections), math=latex.inline)


def as_markdown(sections: Sections) -> str:
    """Markdown with formulas in LaTeX between dollar signs."""
    template = environment(autoescape=False).get_template("theory/errata.md")
    return template.render(page=_page(sections))


def _page(sections: Sections) -> dict[str, Any]:
    return {"title": TITLE, "sections": sections, "unnamed": UNNAMED}
