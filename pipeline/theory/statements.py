"""The words of the statements and of the errata, from statements.yaml.

`findings` has the functions that try the statements. Each erratum belongs to a statement, whose
verdict and numbers are computed; a test holds that the errata are exactly the statements that do
not hold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

# A theorem or lemma, one clause of it, a displayed formula, a sentence of the text, a step of a
# proof whose result stands all the same, or a statement of ours.
Level = Literal["result", "clause", "display", "text", "proof", "ours"]


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A statement's words."""

    id: str
    level: Level
    where: str  # its place in the paper, or "ours"
    text: str
    correction: str = ""  # what holds instead
    remark: str = ""
    # Whether the bounds of its checks are tolerances on something that tends to zero
    limit: bool = False
    # If it needs one, what is ``stated``, why it is ``wrong``, and what holds ``instead``
    erratum: Mapping[str, str] | None = None


_WORDS: Mapping[str, Any] = yaml.safe_load(
    Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
)
STATEMENTS: Mapping[str, Statement] = {
    id_: Statement(id=id_, **words) for id_, words in _WORDS["statements"].items()
}
# Levels in the order of their weight: the ``title`` of their errata, and what one means.
LEVELS: Mapping[Level, Mapping[str, str]] = _WORDS["levels"]
# The errata with the id of their statement, in the order in which a page has them.
ERRATA: Sequence[Mapping[str, str]] = [
    {"id": id_, **(STATEMENTS[id_].erratum or {})} for id_ in _WORDS["errata"]
]
# Assumptions that a proof uses and its result does not name: ``where``, and which (``text``).
UNNAMED: Sequence[Mapping[str, str]] = _WORDS["unnamed"]
