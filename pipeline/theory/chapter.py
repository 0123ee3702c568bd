"""The theory chapter: findings on disk, figures, and the HTML that the report takes in."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline.theory import lab, pictures
from pipeline.theory.real import N_ROWS

EXACT, GBDT = "exact_rounds.csv", "gbdt_rounds.csv"  # what stage=theory measured on the datasets

WIDE = {"theory_error", "theory_datasets", "theory_contraction", "income"}  # figures

PLURAL = {
    "holds": "hold",
    "holds in a narrower regime": "hold in a narrower regime",
    "fails as stated": "fail as stated",
}

CSS = {
    "holds": "replicated",
    "holds in a narrower regime": "partly",
    "fails as stated": "not-replicated",
}


def write(folder: Path, findings: Sequence[lab.Finding]) -> str:
    """Write findings to ``folder``; gives the scorecard as text."""
    records = [finding.record() for finding in findings]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "findings.json").write_text(
        json.dumps(records, indent=2, ensure_ascii=False), encoding="utf-8"
    )
    return scorecard(records)


def scorecard(records: Sequence[Mapping[str, Any]]) -> str:
    """The findings as a table for a terminal."""
    lines = [f"{'':<4}{'verdict':<28}statement"]
    for r in records:
        lines.append(f"{r['id']:<4}{r['verdict']:<28}{r['text']} ({r['where']})")
        lines.append(f"{'':<32}{r['evidence']}")
        lines += [f"{'':<32}{r['correction']}"] if r["correction"] else []
    return "\n".join([*lines, tally(records)])


def tally(records: Sequence[Mapping[str, Any]]) -> str:
    """How many statements there are and what became of them; the paper's and ours apart."""
    theirs = [r["verdict"] for r in records if not r["ours"]]
    counts = ", ".join(f"{theirs.count(v)} {plural}" for v, plural in PLURAL.items())
    held = sum(r["verdict"] == "holds" for r in records if r["ours"])
    return (
        f"{len(theirs)} statements of the paper: {counts}; "
        f"{held} of {len(records) - len(theirs)} of ours hold"
    )


def render(folder: Path, rounds: pd.DataFrame | None, titles: Mapping[str, str], eta: float) -> str:
    """The chapter as HTML, with figures drawn anew; empty if the lab was not run."""
    path = folder / "findings.json"
    if not path.exists():
        return ""
    records = json.loads(path.read_text(encoding="utf-8"))
    exact, gbdt = (pd.read_csv(folder / name) for name in (EXACT, GBDT))
    names = pictures.draw_all(folder / "figures", exact, gbdt, rounds, titles, eta)
    if (folder / "figures" / "income.png").exists():  # scripts/adult_income.py draws it
        names.append("income")
    figures = "".join(_figure(folder / "figures" / f"{name}.png", name) for name in names)
    return (
        "<h1 id='theory'>Theory: statements as checks</h1><p>The dynamical system runs with "
        "an exact projector (singular values below 1e-10 of the largest count as zero) on "
        f"{lab.N_INSTANCES} random instances of each of {len(lab.KINDS)} classes of weak learners: "
        f"{', '.join(lab.KINDS)}; and, with the same classes, on {N_ROWS} training rows of each "
        "of the paper's datasets, with its forest as f₀. Bounds must hold on all that they speak "
        "of (smooth classes only, fewer instances where runs are long), identities to 1e-12, "
        "eigenvalues to 1e-7.</p>"
        f"<p>{tally(records)}.</p>{_table(records)}{_errata(records)}{figures}"
        "<p class='note'>Again: <code>make theory</code>; a single counterexample: <code>python -c "
        "'from pipeline.theory import counterexamples as c; print(c.not_quadratic(1e-6))'</code>"
        "</p>"
    )


def _table(records: Sequence[Mapping[str, Any]]) -> str:
    rows = "".join(
        f"<tr><td>{r['id']}</td><td>{html.escape(r['text'])}<details><summary>measured</summary>"
        f"<p>{html.escape(r['evidence'])}.</p><p>{html.escape(r['remark'])}</p></details></td>"
        f"<td>{html.escape(r['where'])}</td>"
        f"<td><span class='verdict {CSS[r['verdict']]}'>{r['verdict']}</span></td></tr>"
        for r in records
    )
    return (
        "<div class='scroll'><table class='score'><thead><tr><th></th><th>Statement</th>"
        f"<th>Where</th><th>Verdict</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _errata(records: Sequence[Mapping[str, Any]]) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(r['where'])}</td><td>{html.escape(r['text'])}</td>"
        f"<td>{html.escape(r['correction'])}</td><td>{html.escape(r['remark'] or r['evidence'])}"
        f"</td><td><code>{html.escape(COMMANDS[r['id']])}</code></td></tr>"
        for r in records
        if r["correction"] and r["verdict"] != "holds"
    )
    return (
        "<h2>Errata</h2><div class='scroll'><table><thead><tr><th>Where</th><th>Stated</th>"
        "<th>What holds</th><th>Evidence</th><th>Command</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _finding_command(chapter: str, position: int) -> str:
    return (
        'python -c "from pipeline.theory import lab; '
        f'print(list(lab.{chapter}(lab.Bank(10)))[{position}].evidence)"'
    )


def _counter_command(call: str) -> str:
    return f'python -c "from pipeline.theory import counterexamples as c; print(c.{call})"'


COMMANDS = {
    "M2": _finding_command("error_bounds", 1),
    "M5": _finding_command("error_bounds", 4),
    "L6": _counter_command("discontinuous_projector(1e-8)"),
    "R5": _finding_command("relaxed", 4),
    "R7": _finding_command("relaxed", 6),
    "W2": _counter_command("negative_first_weight()"),
    "W7": _finding_command("adaptive", 7),
    "W8": _counter_command("not_quadratic(1e-6)"),
    "H3": _finding_command("hybrid", 2),
}


def _figure(path: Path, name: str) -> str:
    title, caption = pictures.CAPTIONS[name]
    data = base64.b64encode(path.read_bytes()).decode()
    narrow = (
        ""
        if name in {"theory_error", "theory_datasets", "theory_contraction", "income"}
        else " class='readings'"
    )
    return (
        f"<section{narrow}><h2>{html.escape(title)}</h2><figure><a class='zoom' href='#' "
        f"title='zoom'><img alt='{html.escape(title)}' src='data:image/png;base64,{data}'></a>"
        f"<figcaption>{html.escape(caption)}</figcaption></figure></section>"
    )
