"""The registry of claims, verdicts by shares, and the words of rules from their thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from pipeline.analysis.evidence import Evidence
from pipeline.judgement import Registry

claim: Registry[Evidence] = Registry()


MOST = 0.6  # the share of datasets or cases that makes a claim hold "partly"

_NUMBERS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_FRACTIONS = {0.1: "a tenth", 0.2: "a fifth", 1 / 3: "a third"}


def grade(good: int, total: int, enough: float = MOST) -> str:
    """replicated if all of ``total`` hold, partly if at least the share ``enough`` does."""
    if good == total:
        return "replicated"
    return "partly" if good >= enough * total else "not replicated"


def enough_of(total: int, enough: float = MOST) -> str:
    """How many `grade` asks for at least: "three of five"."""
    least = ceil(enough * total - 1e-9)
    return f"{least} of {total}" if total > 10 else f"{number(least)} of {number(total)}"


def number(n: int) -> str:
    """A small number as a word."""
    return _NUMBERS[n] if n < len(_NUMBERS) else str(n)


def fraction(share: float) -> str:
    """0.2 as "a fifth"."""
    return _FRACTIONS.get(share, f"{share:g} times")


def percent(share: float) -> str:
    """0.05 as "5 %"."""
    return f"{100 * share:g} %"


def where_not(verdict: str, failing: Sequence[str], what: str) -> str:
    """Where a claim fails; nothing if it does not."""
    if verdict == "replicated":
        return ""
    return f"{what}: {', '.join(failing)}." if failing else what
