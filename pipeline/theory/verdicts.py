"""How a statement's checks give its verdict, and the registry of the functions that try statements.

A statement *holds* if it holds on all that was tried, as printed. If it does not, but does under a
further condition, it *holds in a narrower regime*; otherwise it *fails as stated*, and a corrected
form may have been checked beside it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from pipeline.judgement import Judgement, Registry, Ruling
from pipeline.theory.checks import ROUNDING, Check, CheckOf, check_runs
from pipeline.theory.statements import STATEMENTS, Statement
from pipeline.theory.trials import Trials

RULE = (
    "holds: all checks of the statement as printed do; holds in a narrower regime: not all of them "
    "do, but all under the condition in the correction; fails as stated: otherwise"
)


def usage(regime: str, checks: Sequence[Check]) -> dict[str, Any]:
    """How many checks of a regime hold, and which share of their bounds is used.

    median, most : None where no check has a share, as of identities and of bounds that are zero.
    """
    ratios = [c.ratio for c in checks if c.bound > ROUNDING and np.isfinite(c.ratio)]
    return {
        "regime": regime,
        "checks": len(checks),
        "hold": sum(c.holds for c in checks),
        "median": float(np.median(ratios)) if ratios else None,
        "most": float(max(ratios)) if ratios else None,
    }


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What was tried of a statement."""

    stated: Sequence[Check]  # checks of the statement as printed
    narrower: Sequence[Check] = ()  # checks of it under the condition in the statement's correction
    corrected: Sequence[Check] = ()  # checks of another form, given in the correction
    measured: str = ""  # further measured values, in words

    @property
    def verdict(self) -> str:
        """One of the three of this module's docstring."""
        if not self.stated:
            raise ValueError("nothing was tried")
        if all(c.holds for c in self.stated):
            return "holds"
        if self.narrower and all(c.holds for c in self.narrower):
            return "holds in a narrower regime"
        return "fails as stated"

    @property
    def regimes(self) -> list[dict[str, Any]]:
        """The `usage` of the stated checks by regime, in the order in which regimes first occur."""
        names = dict.fromkeys(c.regime for c in self.stated)
        return [usage(name, [c for c in self.stated if c.regime == name]) for name in names]

    def evidence(self, *, limit: bool) -> str:
        """How many checks hold and, unless of a ``limit``, the largest share of a bound used."""
        total = usage("", self.stated)
        text = f"{total['hold']} of {total['checks']} checks hold"
        text += f" in {len(self.regimes)} regimes" if len(self.regimes) > 1 else ""
        if total["hold"] == total["checks"] and total["most"] is not None and not limit:
            text += f"; at most {total['most']:.2g} of the bound is used"
        for name, checks in (("narrower", self.narrower), ("corrected", self.corrected)):
            if checks:
                text += f"; {name} form: {sum(c.holds for c in checks)} of {len(checks)}"
        return text


def ruling(statement: Statement, tried: Tried) -> Ruling:
    """What follows for a statement; the checks themselves are kept under ``tried``."""
    # Of a limit, the bounds are tolerances, of which no share is used.
    unused = {"median": None, "most": None} if statement.limit else {}
    words = {name: getattr(statement, name) for name in ("level", "where", "correction", "remark")}
    return Ruling(
        measured=tried.measured,
        rule=RULE,
        verdict=tried.verdict,
        explanation=statement.correction,
        details=words
        | {
            "ours": statement.level == "ours",
            "evidence": tried.evidence(limit=statement.limit),
            "regimes": [regime | unused for regime in tried.regimes],
            "tried": tried,
        },
    )


def record(finding: Judgement) -> dict[str, Any]:
    """A finding, JSON-ready, as findings.json has it."""
    words = ("id", "level", "where", "text", "correction", "remark")
    results = ("measured", "ours", "verdict", "evidence", "regimes")
    entries = {**vars(finding), **finding.details}
    return {name: entries[name] for name in (*words, *results)}


REGISTRY: Registry[Trials] = Registry()
Try = Callable[[Trials], Tried]
Runs = Callable[[Trials], Any]  # a list, or a mapping of lists by regime
C = TypeVar("C", bound=CheckOf[Any])


def tries(id_: str) -> Callable[[Try], Try]:
    """Register a function that tries the statement ``id_`` of statements.yaml."""
    statement = STATEMENTS[id_]

    def register(try_: Try) -> Try:
        add = REGISTRY(id_, text=statement.text, paper=statement.where)
        add(lambda trials: ruling(statement, try_(trials)))
        return try_

    return register


def tries_on(
    id_: str, runs: Runs, *, narrower: Runs | None = None, corrected: bool = False
) -> Callable[[C], C]:
    """Register a check of one run: it tries the statement ``id_`` on each of some ``runs``.

    narrower : runs under the condition in the statement's correction.  corrected : whether the
    check gives two, the second of which is of the corrected form.
    """

    def register(check: C) -> C:
        def try_(trials: Trials) -> Tried:
            found = check_runs(check, runs(trials))
            if corrected:
                return Tried(stated=found[::2], corrected=found[1::2])
            under = check_runs(check, narrower(trials)) if narrower else ()
            return Tried(stated=found, narrower=under)

        tries(id_)(try_)
        return check

    return register
