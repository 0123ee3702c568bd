"""What is wrong in the paper's theory, and how much it weighs; the words are in errata.yaml.

Each point belongs to a finding, whose verdict and numbers are computed; a test holds that the
points are exactly the findings that do not hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from pipeline.theory.findings.registry import Level

# Levels in the order of their weight, with what a point of that level means.
LEVELS: Mapping[Level, tuple[str, str]] = {
    "result": (
        "A theorem and its lemma fail",
        "The statement is false as it stands, under every reading of its assumptions.",
    ),
    "clause": (
        "A clause needs a condition",
        "One sentence of a result holds under a condition that is not named; the rest stands.",
    ),
    "display": ("A formula lacks something", "A displayed formula; nothing else rests on it."),
    "text": (
        "The text disagrees with itself",
        "A sentence says more, or a constant less, than the paper's own statements.",
    ),
    "proof": (
        "A step of a proof is wrong and the result stands",
        "A repaired proof is given for each.",
    ),
}


@dataclass(frozen=True)
class Erratum:
    """A point: what is stated, why it is wrong (with the smallest example), what holds instead."""

    id: str  # of the finding
    stated: str
    wrong: str
    instead: str


@dataclass(frozen=True)
class Unnamed:
    """An assumption that a proof uses and the result does not name."""

    where: str
    text: str


_WORDS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
ERRATA: Sequence[Erratum] = tuple(Erratum(**point) for point in _WORDS["errata"])
UNNAMED: Sequence[Unnamed] = tuple(Unnamed(**point) for point in _WORDS["unnamed"])
