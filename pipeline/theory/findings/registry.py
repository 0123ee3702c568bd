"""A finding: a statement, what was tried, and the verdict that follows.

A statement *holds* if it holds on all that was tried, as printed. If it does not, but does under a
further condition, it *holds in a narrower regime*; otherwise it *fails as stated*, and a corrected
form may have been checked beside it. Verdicts are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from pipeline.theory.checks import ROUNDING, Check
from pipeline.theory.trials import Trials

Verdict = Literal["holds", "holds in a narrower regime", "fails as stated"]


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What was tried of a statement.

    stated : checks of the statement as printed;  narrower : of the same under the condition in
    the statement's correction;  corrected : of another form, given there;  remark : what else
    was measured, in words.
    """

    stated: Sequence[Check]
    narrower: Sequence[Check] = ()
    corrected: Sequence[Check] = ()
    remark: str = ""


Try = Callable[[Trials], Tried | None]


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A statement before it is tried; ``try_`` gives None where its data was not measured.

    where : its place in the paper, or "ours".  correction : what holds instead.
    limit : the checks' bounds are tolerances on something that tends to zero.
    """

    id: str
    where: str
    text: str
    try_: Try
    correction: str = ""
    remark: str = ""
    limit: bool = False


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A statement and what became of it; see `Statement` and `Tried`."""

    id: str
    where: str
    text: str
    stated: Sequence[Check]
    correction: str = ""
    narrower: Sequence[Check] = ()
    corrected: Sequence[Check] = ()
    remark: str = ""
    limit: bool = False

    @property
    def ours(self) -> bool:
        """Whether it is not the paper's."""
        return self.where.startswith("ours")

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
    def evidence(self) -> str:
        """How many checks held, and how much of the bound was used at most."""
        good = sum(c.holds for c in self.stated)
        text = f"{good} of {len(self.stated)} checks hold"
        ratios = [c.ratio for c in self.stated if c.bound > ROUNDING and np.isfinite(c.ratio)]
        if good == len(self.stated) and ratios and not self.limit:
            text += f"; at most {max(ratios):.2g} of the bound is used"
        for name, checks in (("narrower", self.narrower), ("corrected", self.corrected)):
            if checks:
                text += f"; {name} form: {sum(c.holds for c in checks)} of {len(checks)}"
        return text

    def record(self) -> dict[str, Any]:
        """JSON-ready."""
        raw = asdict(self)
        del raw["stated"], raw["narrower"], raw["corrected"], raw["limit"]
        return raw | {"ours": self.ours, "verdict": self.verdict, "evidence": self.evidence}


REGISTRY: dict[str, Statement] = {}


def finding(
    id_: str,
    *,
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
            id=id_, where=where, text=text, try_=try_, correction=correction, remark=remark,
            limit=limit,
        )  # fmt: skip
        return try_

    return register


def find(id_: str, trials: Trials) -> Finding | None:
    """Try one statement; None where its data was not measured."""
    s = REGISTRY[id_]
    tried = s.try_(trials)
    if tried is None:
        return None
    return Finding(
        id=s.id,
        where=s.where,
        text=s.text,
        stated=tried.stated,
        correction=s.correction,
        narrower=tried.narrower,
        corrected=tried.corrected,
        remark=tried.remark or s.remark,
        limit=s.limit,
    )


def find_all(trials: Trials) -> list[Finding]:
    """Try all statements, in the paper's order."""
    return [f for f in (find(id_, trials) for id_ in REGISTRY) if f is not None]
