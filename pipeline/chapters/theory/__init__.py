"""The theory: every statement of the paper as a check, errata, certificates and proofs."""

import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from pipeline import files, theory
from pipeline.analysis.certificates import certificate_table
from pipeline.analysis.evidence import Evidence
from pipeline.analysis.style import STRATEGIES
from pipeline.chapters.base import Chapter, Context, Section, write_table
from pipeline.chapters.theory import errata
from pipeline.errors import ConfigError
from pipeline.judgement import TONES
from pipeline.report import latex
from pipeline.report.place import report_folder
from pipeline.report.render import listed
from pipeline.runs.compilation import compile_kernels
from pipeline.runs.plan import Plan
from pipeline.theory.figures import draw_all
from pipeline.theory.instances import KINDS, N_INSTANCES
from pipeline.theory.rows import N_ROWS
from pipeline.theory.study import Study, conduct

log = logging.getLogger("pipeline")

LEAVES = "leaf_indicators"  # the one reading of the error that can be certified
VERDICTS = ("holds", "holds in a narrower regime", "fails as stated")
# What a statement of each level is.
LEVELS: Mapping[str, str] = {
    "result": "theorems, lemmas, propositions",
    "clause": "a clause of one, judged apart",
    "display": "formulas of the text",
    "text": "sentences of the text",
    "proof": "steps of proofs",
    "ours": "ours",
}
PROOFS = Path(theory.__file__).parent / "proofs"


class Theory(Chapter):
    """Statements tried on random instances and on rows of the datasets."""

    title = "The paper's statements as checks"
    part = "Is the theory right?"
    order = 71
    curated = {
        **{f"theory/{file}": f"theory/{file}" for file in Study.FILES},
        "paper/theory/errata.html": "theory/errata.html",
        "paper/theory/errata.md": "theory/errata.md",
    }

    def check(self, plan: Plan) -> None:
        if not set(STRATEGIES) <= {config.strategy.label for config in plan.configs}:
            raise ConfigError(
                f"experiment.chapters: theory needs strategies {', '.join(STRATEGIES)}"
            )

    def measure(self, plan: Plan) -> str:
        compile_kernels()
        study, folder = conduct(plan), report_folder(plan)
        study.write(folder)
        return f"{scorecard(study.findings)}\nfindings: {folder / Study.FINDINGS}"

    def section(self, context: Context) -> Section | None:
        evidence = context.evidence
        source = self.result(context, f"theory/{Study.FINDINGS}").parent
        study = Study.read(source)
        if study is None or not set(STRATEGIES) <= set(evidence.strategies):
            return None
        if not set(evidence.datasets) <= set(study.widths):
            log.warning("%s is of other datasets: stage=reproduce makes it anew", source)
            return None
        folder, leaves = context.folder / "theory", _of_leaf_indicators(evidence)
        names = draw_all(study, evidence, leaves, folder / "figures")
        points = errata.make_errata(study.findings)
        n_errata = sum(len(section["points"]) for section in points)
        files.write_text(folder / "errata.html", errata.as_html(points))
        files.write_text(folder / "errata.md", errata.as_markdown(points))
        certificates = pd.DataFrame()
        if leaves is not None:
            certificates = certificate_table(leaves, study.widths, study.largest)
            write_table(folder / "certificates.csv", certificates)
        content = {
            "kinds": KINDS,
            "n_instances": N_INSTANCES,
            "n_rows": N_ROWS,
            "levels": levels(study.findings),
            "findings": [
                {
                    **record,
                    "paper": record["where"],
                    "brief": record["evidence"],
                    "tone": TONES[record["verdict"]],
                }
                for record in study.findings
            ],
            "n_errata": n_errata,
            "certificates": _certificates(certificates),
            "proofs": proofs(),
        }
        pictures = [
            self.picture(folder / "figures" / f"{name}.png", n_rows=N_ROWS) for name in names
        ]
        return Section(content, figures=pictures, facts=_facts(study, n_errata))


CHAPTER = Theory()


def _facts(study: Study, n_errata: int) -> dict[str, str]:
    """How many numbered results hold, which do not or need a condition, and every verdict."""
    verdicts: dict[str, set[str]] = {}  # by number: a theorem may have several clauses
    names: dict[str, str] = {}
    for record in study.findings:
        if record["level"] in {"result", "clause"}:
            for number in re.findall(r"\b(?:4|A)\.\d+", record["where"]):
                verdicts.setdefault(number, set()).add(record["verdict"])
                names.setdefault(number, re.sub(r"\(\d+\)$", "", record["where"]))
    fail = [n for n, found in verdicts.items() if "fails as stated" in found]
    narrower = [n for n, found in verdicts.items() if n not in fail and found != {"holds"}]
    return {
        "numbered": str(len(verdicts)),
        "whole": str(len(verdicts) - len(fail) - len(narrower)),
        "narrower": listed(names[n] for n in narrower),
        "fail": listed(names[n] for n in fail),
        "statements": str(len(study.findings)),
        "ours": str(sum(r["level"] == "ours" for r in study.findings)),
        "errata": str(n_errata),
        **{r["id"]: r["verdict"] for r in study.findings},
    }


def _of_leaf_indicators(evidence: Evidence) -> Evidence | None:
    """The runs with the one reading that can be certified, if they recorded it."""
    reading = evidence.records[0]["config"]["audit"]["reading"]
    if reading == LEAVES:
        return evidence
    return evidence.under(LEAVES) if f"mce_test_{LEAVES}" in evidence.rounds else None


def levels(records: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[int], list[str]]]:
    """Of each level: what it is, how many statements have each verdict, and which do not hold."""
    found = []
    for level, name in LEVELS.items():
        some = [r for r in records if r["level"] == level]
        counts = [sum(r["verdict"] == verdict for r in some) for verdict in VERDICTS]
        if some:
            found.append((name, counts, [r["id"] for r in some if r["verdict"] != "holds"]))
    return found


def scorecard(records: Sequence[Mapping[str, Any]]) -> str:
    """The findings' verdicts for a terminal, and their number by level."""
    lines = [f"{'':<4}{'verdict':<28}statement"]
    for r in records:
        lines.append(f"{r['id']:<4}{r['verdict']:<28}{r['text']} ({r['where']})")
        lines.append(f"{'':<32}{r['evidence']}")
        lines += [f"{'':<32}{r['correction']}"] if r["correction"] else []
    lines.append(f"{'':<32}{'hold':>6}{'narrower':>10}{'fail':>6}")
    for name, (holds, narrower, fails), broken in levels(records):
        counts = f"{holds:>6}{narrower:>10}{fails:>6}"
        lines.append(f"{name:<32}{counts}  {', '.join(broken)}".rstrip())
    return "\n".join(lines)


def _certificates(table: pd.DataFrame) -> pd.DataFrame:
    """The certified errors as people read them."""
    if table.empty:
        return table
    numbers = {
        "plug_in": "Plug-in",
        "debiased": "Debiased",
        "certified": "Certified",
        "rmse": "RMSE",
        "bound_on_residuals": "Bound on residuals",
        "largest_residual": "Largest seen",
    }
    shown = table[list(numbers)].map("{:.3g}".format).rename(columns=numbers)
    moment = table["moment"] + " (round " + table["round"].astype(str) + ")"
    return pd.concat([table["dataset"].rename("Dataset"), moment.rename("Moment"), shown], axis=1)


def fragments() -> list[str]:
    """The names of the files that proofs.tex includes, in its order."""
    whole = (PROOFS / "proofs.tex").read_text(encoding="utf-8")
    return re.findall(r"\\input\{(\w+)\}", whole)


def proofs() -> Markup:
    """The proofs, from their LaTeX."""
    files = [(PROOFS / f"{name}.tex").read_text(encoding="utf-8") for name in fragments()]
    return Markup("\n").join(map(latex.document, files))
