"""A judgement: a statement, the rule that decides it, what was measured, and the verdict.

Every claim of the paper, every finding about its theory and every conclusion about practice is
one. The functions that judge are kept in a `Registry`, one for each subject, in the order in which
they are registered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, TypeVar

E = TypeVar("E")  # what a subject is judged by

# What each verdict counts as; in the order in which verdicts are counted.
TONES: Mapping[str, str] = {
    "replicated": "good",
    "holds": "good",
    "partly": "partly",
    "holds in a narrower regime": "partly",
    "undecided": "open",
    "not replicated": "bad",
    "does not hold": "bad",
    "fails as stated": "bad",
}


@dataclass(frozen=True)
class Measured:
    """Measured values as a small table; the first column says what a row is about."""

    head: tuple[str, ...]  # (m,) names of columns
    rows: tuple[tuple[str, ...], ...]  # m cells each

    @classmethod
    def of(cls, what: str, columns: str | tuple[str, ...], values: Mapping[str, Any]) -> Measured:
        """Values, or tuples of values, by what they are about."""
        head = (columns,) if isinstance(columns, str) else columns
        rows = ((name, *([v] if isinstance(v, str) else v)) for name, v in values.items())
        return cls((what, *head), tuple(tuple(map(str, row)) for row in rows))

    def __str__(self) -> str:
        """As prose."""
        _, *names = self.head
        rows = "; ".join(" ".join((row[0], " / ".join(row[1:]))) for row in self.rows)
        return f"{' / '.join(names)}: {rows}"


@dataclass(frozen=True, kw_only=True)
class Ruling:
    """What a rule finds."""

    measured: str | Measured  # the measured values
    brief: str = ""  # the same in a line, where they are a table
    rule: str  # the rule in words, made from its own thresholds
    verdict: str
    explanation: str = ""  # where the statement fails, or nothing
    details: Mapping[str, Any] = field(default_factory=dict)  # values that sentences quote


@dataclass(frozen=True, kw_only=True)
class Judgement(Ruling):
    """A statement with its ruling."""

    id: str
    text: str
    paper: str = ""  # what the paper reports, or where it states it
    figure: str | None = None  # the figure that shows it

    @property
    def tone(self) -> str:
        """How a page colours the verdict: good, partly, open or bad."""
        return TONES[self.verdict]

    @property
    def values(self) -> Measured | None:
        """The measured values, where they are a table."""
        return self.measured if isinstance(self.measured, Measured) else None

    def record(self) -> dict[str, Any]:
        """JSON-ready: measured values as prose and, where they are a table, as that."""
        return {
            "id": self.id,
            "text": self.text,
            "paper": self.paper,
            "figure": self.figure,
            "ours": str(self.measured),
            "brief": self.brief or str(self.measured),
            "rule": self.rule,
            "verdict": self.verdict,
            "explanation": self.explanation,
            "values": asdict(self.values) if self.values else None,
            **self.details,
        }


Text = str | Callable[[Any], str]
Judge = Callable[[E], Ruling | None]


class Registry(Generic[E]):
    """The judges of one subject; called as a decorator it adds one.

    A judge gives None where what it is about was not run.
    """

    def __init__(self) -> None:
        self.judges: dict[str, tuple[Judge[E], Mapping[str, Any]]] = {}

    def __call__(
        self, id_: str, *, text: Text, paper: Text = "", figure: str | None = None
    ) -> Callable[[Judge[E]], Judge[E]]:
        """Register a judge; text and paper may depend on the evidence."""

        def register(judge: Judge[E]) -> Judge[E]:
            if id_ in self.judges:
                raise ValueError(f"{id_}: registered twice")
            self.judges[id_] = judge, {"text": text, "paper": paper, "figure": figure}
            return judge

        return register

    def judge(self, id_: str, evidence: E) -> Judgement | None:
        """Judge one statement; None if the evidence does not speak of it."""
        judge, words = self.judges[id_]
        ruling = judge(evidence)
        if ruling is None:
            return None
        said = {k: v(evidence) if callable(v) else v for k, v in words.items()}
        return Judgement(id=id_, **said, **vars(ruling))

    def judge_all(self, evidence: E) -> list[Judgement]:
        """Judge all statements that the evidence speaks of, in order."""
        found = (self.judge(id_, evidence) for id_ in self.judges)
        return [judgement for judgement in found if judgement is not None]


def grade(parts: Iterable[bool]) -> str:
    """The verdict of a statement of several parts: all hold, some do, or none."""
    found = list(parts)
    return "holds" if all(found) else "partly" if any(found) else "does not hold"


def by_verdict(judgements: Iterable[Judgement]) -> dict[str, list[Judgement]]:
    """The statements of each verdict, in the order of `TONES`."""
    judged = list(judgements)
    found = {verdict: [j for j in judged if j.verdict == verdict] for verdict in TONES}
    return {verdict: some for verdict, some in found.items() if some}


def tally(judgements: Iterable[Judgement]) -> str:
    """How many statements have each verdict: ``12 replicated, 8 partly, 1 not replicated``."""
    return ", ".join(f"{len(some)} {verdict}" for verdict, some in by_verdict(judgements).items())
