"""A figure as a page carries it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from PIL import Image

SHOWN = 0.46  # of the pixels drawn: five datasets fill the page


@dataclass(frozen=True)
class Picture:
    """A figure on the page.

    wide : whether it needs the page's whole width.  png : base64.  width : the most pixels it is
    shown with, so that letters keep their size.  paper : which figure of the paper it is, if one.
    links : files next to the page by what they are.  again : the command that draws it alone.
    """

    name: str
    title: str
    text: str
    png: str
    width: int
    wide: bool = True
    paper: str | None = None
    links: tuple[tuple[str, str], ...] = ()
    again: str = ""

    @classmethod
    def of(
        cls, drawn: Path, captions: Path, *, again: str = "", linked: bool = False, **values: Any
    ) -> Picture:
        """The figure ``drawn`` (a PNG) with its words from a file of captions.

        linked : whether the page links to its other files.  values : what the words mention.
        """
        words = dict(_captions(captions)[drawn.stem])
        for key, value in values.items():
            words["text"] = words["text"].replace(f"{{{key}}}", str(value))
        kinds = {"PDF": "pdf", "data": "csv"} if linked else {}
        folder = drawn.parent.name
        with Image.open(drawn) as image:
            width = round(image.width * SHOWN)
        return cls(
            name=drawn.stem,
            png=base64.b64encode(drawn.read_bytes()).decode(),
            width=width,
            links=tuple((what, f"{folder}/{drawn.stem}.{kind}") for what, kind in kinds.items()),
            again=again,
            **words,
        )


@cache
def _captions(file: Path) -> Mapping[str, Mapping[str, Any]]:
    """Title, text and the like by the figure's name."""
    return yaml.safe_load(file.read_text(encoding="utf-8"))
