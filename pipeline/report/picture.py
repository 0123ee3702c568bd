"""A figure as a page carries it."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from pipeline.report.captions import CAPTIONS

SHOWN = 0.46  # of the pixels drawn: five datasets fill the page


@dataclass(frozen=True)
class Picture:
    """A figure on the page.

    png : base64.  width : the most pixels it is shown with, so that letters keep their size.
    paper : which figure of the paper it is, if one.  links : files beside the page by what they
    are.  again : the command that draws it alone.
    """

    name: str
    title: str
    caption: str
    wide: bool
    png: str
    width: int
    paper: str | None
    links: tuple[tuple[str, str], ...]
    again: str

    @classmethod
    def of(cls, folder: Path, name: str, *, again: str = "", linked: bool = False) -> Picture:
        """The figure ``folder/name.png`` with its caption; ``linked`` to its other files there."""
        caption = CAPTIONS[name]
        drawn = folder / f"{name}.png"
        data = base64.b64encode(drawn.read_bytes()).decode()
        with Image.open(drawn) as image:
            width = round(image.width * SHOWN)
        kinds = {"PDF": "pdf", "data": "csv"} if linked else {}
        links = tuple((what, f"{folder.name}/{name}.{kind}") for what, kind in kinds.items())
        return cls(
            name,
            caption.title,
            caption.text,
            caption.wide,
            data,
            width,
            caption.paper,
            links,
            again,
        )
