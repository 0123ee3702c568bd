"""The paper's empirical claims as records: what is stated, and the rule that judges it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pipeline.analysis.evidence import Evidence

Verdict = Literal["replicated", "partly", "not replicated"]
Text = str | Callable[[Evidence], str]


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What a rule finds.

    ours : the measured values.  rule : the rule in words, from its own thresholds.
    explanation : where the claim fails, or nothing.
    """

    ours: str
    rule: str
    verdict: Verdict
    explanation: str = ""


Judge = Callable[[Evidence], Judgement | None]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A claim before it is judged; ``judge`` gives None where its datasets were not run."""

    id: str
    text: Text
    paper: Text
    judge: Judge


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim and what became of it."""

    id: str
    text: str
    paper: str
    ours: str
    rule: str
    verdict: Verdict
    explanation: str


REGISTRY: dict[str, Rule] = {}


def claim(id_: str, *, text: Text, paper: Text) -> Callable[[Judge], Judge]:
    """Register a rule as the judge of a claim; claims are judged in the order of registration."""

    def register(judge: Judge) -> Judge:
        if id_ in REGISTRY:
            raise ValueError(f"claim {id_}: registered twice")
        REGISTRY[id_] = Rule(id=id_, text=text, paper=paper, judge=judge)
        return judge

    return register


def judge_all(evidence: Evidence) -> list[Claim]:
    """All claims that the evidence speaks of, in the paper's order."""
    claims = []
    for rule in REGISTRY.values():
        judgement = rule.judge(evidence)
        if judgement is not None:
            claims.append(
                Claim(
                    id=rule.id,
                    text=_worded(rule.text, evidence),
                    paper=_worded(rule.paper, evidence),
                    **vars(judgement),
                )
            )
    return claims


def as_records(claims: Iterable[Claim]) -> list[dict[str, Any]]:
    """JSON-ready."""
    return [asdict(c) for c in claims]


def _worded(text: Text, evidence: Evidence) -> str:
    return text if isinstance(text, str) else text(evidence)
