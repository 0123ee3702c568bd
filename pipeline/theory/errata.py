"""What is wrong in the paper's theory, and how much it weighs; the words are in statements.yaml.

Each erratum belongs to a statement, whose verdict and numbers are computed; a test holds that the
errata are exactly the statements that do not hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.theory.statements import STATEMENTS, WORDS, Level


@dataclass(frozen=True)
class Erratum:
    """What is stated, why it is wrong (with the smallest example), and what holds instead."""

    id: str  # of the statement
    stated: str
    wrong: str
    instead: str


@dataclass(frozen=True)
class Unnamed:
    """An assumption that a proof uses and the result does not name."""

    where: str
    text: str


# Levels in the order of their weight: the title of their errata, and what one of them means.
LEVELS: Mapping[Level, tuple[str, str]] = {
    level: (words["title"], words["meaning"]) for level, words in WORDS["levels"].items()
}
ERRATA: Sequence[Erratum] = tuple(
    Erratum(id_, **(STATEMENTS[id_].erratum or {})) for id_ in WORDS["errata"]
)
UNNAMED: Sequence[Unnamed] = tuple(Unnamed(**words) for words in WORDS["unnamed"])
