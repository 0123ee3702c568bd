"""A figure as a page carries it."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

from pipeline.report.captions import CAPTIONS


@dataclass(frozen=True)
class Picture:
    """A figure on the page; ``png`` is base64."""

    name: str
    title: str
    caption: str
    wide: bool
    png: str

    @classmethod
    def of(cls, folder: Path, name: str) -> Picture:
        """The figure ``folder/name.png`` with its caption."""
        caption = CAPTIONS[name]
        data = base64.b64encode((folder / f"{name}.png").read_bytes()).decode()
        return cls(name, caption.title, caption.text, caption.wide, data)
