"""Verdicts as text for a terminal, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from pipeline.analysis import readings
from pipeline.analysis.claims import Claim
from pipeline.analysis.curves import rounded_r2
from pipeline.analysis.style import VERDICTS
from pipeline.theory.findings import Level

OF_THEORY = ("holds", "holds in a narrower regime", "fails as stated")
# What a statement of each level is.
LEVELS: Mapping[Level, str] = {
    "result": "theorems, lemmas, propositions",
    "clause": "a clause of one, judged apart",
    "display": "formulas of the text",
    "text": "sentences of the text",
    "proof": "steps of proofs",
    "ours": "ours",
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


def of_summary(summary: pd.DataFrame) -> str:
    """What a grid's runs came to, as a table: last round against the first, and the best one."""
    names = {
        "gap_ratio": "gap", "r2": "R²", "mse_train_ratio": "train MSE", "mce_train_ratio":
        "train MCE", "mse_test_ratio": "test MSE", "mce_test_ratio": "test MCE",
        "best_round": "best round", "mse_test_at_best": "MSE there", "mce_test_at_best":
        "MCE there",
    }  # fmt: skip
    table = summary[["dataset", "strategy", *names]].rename(columns=names)
    table["R²"] = table["R²"].map(rounded_r2)
    return "last round / round 0, and at the best round by test MCE\n" + table.to_string(
        index=False, float_format=lambda v: f"{v:.3g}"
    )


def of_readings(table: pd.DataFrame) -> str:
    """How many claims each reading gives, and which claims none gives."""
    names = {"target": "target", "t": "t", "error": "error", "round_0": "round 0"}
    best = readings.scores(table).rename(columns=names)
    failing = readings.under_none(table)
    return "\n".join(
        [
            best.to_string(index=False),
            f"{len(best)} readings of {table['claim'].nunique()} claims",
            f"replicated under none of them: {', '.join(failing) or 'no claim'}",
        ]
    )


def of_findings(records: Sequence[Mapping[str, Any]]) -> str:
    """The findings' verdicts as a table, and their tally by level."""
    lines = [f"{'':<4}{'verdict':<28}statement"]
    for r in records:
        lines.append(f"{r['id']:<4}{r['verdict']:<28}{r['text']} ({r['where']})")
        lines.append(f"{'':<32}{r['evidence']}")
        lines += [f"{'':<32}{r['correction']}"] if r["correction"] else []
    lines.append(f"{'':<32}{'hold':>6}{'narrower':>10}{'fail':>6}")
    for tally in tally_of_findings(records):
        counts = f"{tally.holds:>6}{tally.narrower:>10}{tally.fails:>6}"
        lines.append(f"{tally.level:<32}{counts}  {', '.join(tally.broken)}".rstrip())
    return "\n".join(lines)


@dataclass(frozen=True)
class Tally:
    """How many statements of a level hold, need a condition or fail; ``broken``: the latter two."""

    level: str
    holds: int
    narrower: int
    fails: int
    broken: tuple[str, ...]


def tally_of_findings(records: Sequence[Mapping[str, Any]]) -> list[Tally]:
    """What became of the statements of each level; the paper's first, ours last."""
    tallies = []
    for level, name in LEVELS.items():
        some = [r for r in records if r["level"] == level]
        counts = [sum(r["verdict"] == verdict for r in some) for verdict in OF_THEORY]
        broken = tuple(r["id"] for r in some if r["verdict"] != "holds")
        if some:
            tallies.append(Tally(name, counts[0], counts[1], counts[2], broken))
    return tallies
