"""The statements' words, from statements.yaml; `findings` has the functions that try them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

# A theorem or lemma, one clause of it, a displayed formula, a sentence of the text, a step of a
# proof whose result stands all the same, or a statement of ours.
Level = Literal["result", "clause", "display", "text", "proof", "ours"]


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A statement's words.

    where : its place in the paper, or "ours".  correction : what holds instead.  limit : whether
    the bounds of its checks are tolerances on something that tends to zero.  erratum : the words
    of the erratum, if it needs one; see `errata`.
    """

    id: str
    level: Level
    where: str
    text: str
    correction: str = ""
    remark: str = ""
    limit: bool = False
    erratum: Mapping[str, str] | None = None


WORDS: Mapping[str, Any] = yaml.safe_load(
    Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
)
STATEMENTS: Mapping[str, Statement] = {
    id_: Statement(id=id_, **words) for id_, words in WORDS["statements"].items()
}
