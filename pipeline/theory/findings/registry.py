"""A finding: a statement, what was tried, and the verdict that follows.

A statement *holds* if it holds on all that was tried, as printed. If it does not, but does under a
further condition, it *holds in a narrower regime*; otherwise it *fails as stated*, and a corrected
form may have been checked beside it. Verdicts are computed.

How much a failure means depends on the statement's level: a theorem, one clause of it, a displayed
formula, a sentence of the text, or a step of a proof whose result stands all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from pipeline.theory.checks import ROUNDING, Check
from pipeline.theory.trials import Trials

Verdict = Literal["holds", "holds in a narrower regime", "fails as stated"]
Level = Literal["result", "clause", "display", "text", "proof", "ours"]


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What was tried of a statement.

    stated : checks of the statement as printed, each of a regime or of none;  narrower : of the
    same under the condition in the statement's correction;  corrected : of another form, given
    there;  measured : what else was seen, in words.
    """

    stated: Sequence[Check]
    narrower: Sequence[Check] = ()
    corrected: Sequence[Check] = ()
    measured: str = ""


Try = Callable[[Trials], Tried]


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A statement before it is tried.

    where : its place in the paper, or "ours".  correction : what holds instead.
    limit : the checks' bounds are tolerances on something that tends to zero.
    """

    id: str
    level: Level
    where: str
    text: str
    try_: Try
    correction: str = ""
    remark: str = ""
    limit: bool = False


@dataclass(frozen=True)
class Usage:
    """How the checks of a regime went, and how much of their bounds was used."""

    regime: str
    checks: int
    hold: int
    median: float | None
    most: float | None

    def __str__(self) -> str:
        """For a terminal."""
        used = "" if self.most is None else f", of the bound {self.median:.2g} in the median, "
        used += "" if self.most is None else f"{self.most:.2g} at most"
        return f"{self.regime}: {self.hold} of {self.checks} hold{used}"

    def record(self, *, limit: bool) -> dict[str, Any]:
        """JSON-ready; of a ``limit`` the bounds are tolerances, of which no share is used."""
        return asdict(self) | ({"median": None, "most": None} if limit else {})

    @classmethod
    def of(cls, regime: str, checks: Sequence[Check]) -> Usage:
        """Of the checks of one regime; identities and exact zeros use no share of a bound."""
        ratios = [c.ratio for c in checks if c.bound > ROUNDING and np.isfinite(c.ratio)]
        return cls(
            regime,
            len(checks),
            sum(c.holds for c in checks),
            float(np.median(ratios)) if ratios else None,
            float(max(ratios)) if ratios else None,
        )


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A statement and what became of it; see `Statement` and `Tried`."""

    id: str
    level: Level
    where: str
    text: str
    stated: Sequence[Check]
    correction: str = ""
    narrower: Sequence[Check] = ()
    corrected: Sequence[Check] = ()
    remark: str = ""
    measured: str = ""
    limit: bool = False

    @property
    def ours(self) -> bool:
        """Whether it is not the paper's."""
        return self.level == "ours"

    @property
    def verdict(self) -> Verdict:
        """Computed from the checks."""
        if not self.stated:
            raise ValueError(f"{self.id}: nothing was tried")
        if all(c.holds for c in self.stated):
            return "holds"
        if self.narrower and all(c.holds for c in self.narrower):
            return "holds in a narrower regime"
        return "fails as stated"

    @property
    def regimes(self) -> list[Usage]:
        """The stated checks by regime, in the order in which regimes came."""
        names = list(dict.fromkeys(c.regime for c in self.stated))
        return [Usage.of(name, [c for c in self.stated if c.regime == name]) for name in names]

    @property
    def evidence(self) -> str:
        """How many checks held, and how much of the bound was used at most."""
        good, regimes = sum(c.holds for c in self.stated), len(self.regimes)
        text = f"{good} of {len(self.stated)} checks hold"
        text += f" in {regimes} regimes" if regimes > 1 else ""
        most = Usage.of("", self.stated).most
        if good == len(self.stated) and most is not None and not self.limit:
            text += f"; at most {most:.2g} of the bound is used"
        for name, checks in (("narrower", self.narrower), ("corrected", self.corrected)):
            if checks:
                text += f"; {name} form: {sum(c.holds for c in checks)} of {len(checks)}"
        return text

    def record(self) -> dict[str, Any]:
        """JSON-ready."""
        raw = asdict(self)
        del raw["stated"], raw["narrower"], raw["corrected"], raw["limit"]
        return raw | {
            "ours": self.ours,
            "verdict": self.verdict,
            "evidence": self.evidence,
            "regimes": [usage.record(limit=self.limit) for usage in self.regimes],
        }


REGISTRY: dict[str, Statement] = {}


def finding(
    id_: str,
    *,
    level: Level,
    where: str,
    text: str,
    correction: str = "",
    remark: str = "",
    limit: bool = False,
) -> Callable[[Try], Try]:
    """Register how a statement is tried; findings come in the order of registration."""

    def register(try_: Try) -> Try:
        if id_ in REGISTRY:
            raise ValueError(f"finding {id_}: registered twice")
        REGISTRY[id_] = Statement(
            id=id_, level=level, where=where, text=text, try_=try_, correction=correction,
            remark=remark, limit=limit,
        )  # fmt: skip
        return try_

    return register


def find(id_: str, trials: Trials) -> Finding:
    """Try one statement."""
    s = REGISTRY[id_]
    tried = s.try_(trials)
    return Finding(
        id=s.id,
        level=s.level,
        where=s.where,
        text=s.text,
        stated=tried.stated,
        correction=s.correction,
        narrower=tried.narrower,
        corrected=tried.corrected,
        remark=s.remark,
        measured=tried.measured,
        limit=s.limit,
    )


def find_all(trials: Trials) -> list[Finding]:
    """Try all statements, in the paper's order."""
    return [find(id_, trials) for id_ in REGISTRY]
