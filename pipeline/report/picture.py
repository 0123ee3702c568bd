"""A figure as a page carries it."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

from pipeline.report.captions import CAPTIONS


@dataclass(frozen=True)
class Picture:
    """A figure on the page.

    png : base64.  paper : which figure of the paper it is, if one.  links : files beside the page
    by what they are.  again : the command that draws it alone.
    """

    name: str
    title: str
    caption: str
    wide: bool
    png: str
    paper: str | None
    links: tuple[tuple[str, str], ...]
    again: str

    @classmethod
    def of(cls, folder: Path, name: str, *, again: str = "", linked: bool = False) -> Picture:
        """The figure ``folder/name.png`` with its caption; ``linked`` to its other files there."""
        caption = CAPTIONS[name]
        data = base64.b64encode((folder / f"{name}.png").read_bytes()).decode()
        kinds = {"PDF": "pdf", "data": "csv"} if linked else {}
        links = tuple((what, f"{folder.name}/{name}.{kind}") for what, kind in kinds.items())
        return cls(
            name, caption.title, caption.text, caption.wide, data, caption.paper, links, again
        )
