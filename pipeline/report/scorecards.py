"""Verdicts as text for a terminal, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.analysis.claims import Claim
from pipeline.analysis.style import VERDICTS

# How many of the paper's statements …
OF_THEORY = {
    "holds": "hold",
    "holds in a narrower regime": "hold in a narrower regime",
    "fails as stated": "fail as stated",
}


def of_claims(claims: Sequence[Claim]) -> str:
    """The claims' verdicts as a table."""
    lines = [f"{'':<5}{'verdict':<9}claim"]
    for c in claims:
        word = VERDICTS[c.verdict].word
        word = word.upper() if c.verdict == "not replicated" else word
        lines.append(f"{c.id:<5}{word:<9}{c.text} (paper: {c.paper})")
        if c.explanation:
            lines.append(f"{'':<14}{c.explanation}")
    return "\n".join([*lines, f"{len(claims)} claims: {tally_of_claims(claims)}"])


def tally_of_claims(claims: Sequence[Claim]) -> str:
    """How many claims have each verdict."""
    counts = Counter(c.verdict for c in claims)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)  # type: ignore[index]


def of_findings(records: Sequence[Mapping[str, Any]]) -> str:
    """The findings' verdicts as a table."""
    lines = [f"{'':<4}{'verdict':<28}statement"]
    for r in records:
        lines.append(f"{r['id']:<4}{r['verdict']:<28}{r['text']} ({r['where']})")
        lines.append(f"{'':<32}{r['evidence']}")
        lines += [f"{'':<32}{r['correction']}"] if r["correction"] else []
    return "\n".join([*lines, tally_of_findings(records)])


def tally_of_findings(records: Sequence[Mapping[str, Any]]) -> str:
    """How many statements there are and what became of them; the paper's and ours apart."""
    theirs = [r["verdict"] for r in records if not r["ours"]]
    counts = ", ".join(f"{theirs.count(v)} {plural}" for v, plural in OF_THEORY.items())
    held = sum(r["verdict"] == "holds" for r in records if r["ours"])
    return (
        f"{len(theirs)} statements of the paper: {counts}; "
        f"{held} of {len(records) - len(theirs)} of ours hold"
    )
