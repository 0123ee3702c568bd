"""The paper's empirical claims as records: what is stated, and the rule that judges it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pipeline.analysis.evidence import Evidence

Verdict = Literal["replicated", "partly", "not replicated"]
Text = str | Callable[[Evidence], str]


@dataclass(frozen=True)
class Measured:
    """Measured values as a small table; the first column says of what.

    head : (m,) names of columns.  rows : m cells each.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, what: str, columns: str | tuple[str, ...], values: Mapping[str, Any]) -> Measured:
        """Values, or tuples of them, by what they are of."""
        head = (columns,) if isinstance(columns, str) else columns
        rows = ((name, *([v] if isinstance(v, str) else v)) for name, v in values.items())
        return cls((what, *head), tuple(tuple(map(str, row)) for row in rows))

    def __str__(self) -> str:
        """As prose."""
        _, *names = self.head
        rows = "; ".join(" ".join((row[0], " / ".join(row[1:]))) for row in self.rows)
        return f"{' / '.join(names)}: {rows}"


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What a rule finds.

    ours : the measured values.  rule : the rule in words, from its own thresholds.
    explanation : where the claim fails, or nothing.
    """

    ours: str | Measured
    rule: str
    verdict: Verdict
    explanation: str = ""


Judge = Callable[[Evidence], Judgement | None]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A claim before it is judged; ``judge`` gives None where its datasets were not run.

    figure : the name of the figure that shows it, if one does.
    """

    id: str
    text: Text
    paper: Text
    figure: str | None
    judge: Judge


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim and what became of it."""

    id: str
    text: str
    paper: str
    figure: str | None
    ours: str | Measured
    rule: str
    verdict: Verdict
    explanation: str


REGISTRY: dict[str, Rule] = {}


def claim(
    id_: str, *, text: Text, paper: Text, figure: str | None = None
) -> Callable[[Judge], Judge]:
    """Register a rule as the judge of a claim; claims are judged in the order of registration."""

    def register(judge: Judge) -> Judge:
        if id_ in REGISTRY:
            raise ValueError(f"claim {id_}: registered twice")
        REGISTRY[id_] = Rule(id=id_, text=text, paper=paper, figure=figure, judge=judge)
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
                    figure=rule.figure,
                    **vars(judgement),
                )
            )
    return claims


def as_records(claims: Iterable[Claim]) -> list[dict[str, Any]]:
    """JSON-ready; measured values as prose and, where they are a table, as that."""
    return [
        asdict(c)
        | {"ours": str(c.ours), "values": asdict(c.ours) if isinstance(c.ours, Measured) else None}
        for c in claims
    ]


def _worded(text: Text, evidence: Evidence) -> str:
    return text if isinstance(text, str) else text(evidence)
