"""What a chapter is; the page and the stages know chapters by this alone."""

import base64
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import yaml
from matplotlib.figure import Figure
from PIL import Image

from pipeline import files
from pipeline.analysis.evidence import Evidence
from pipeline.analysis.scope import Scope
from pipeline.analysis.style import save, styled
from pipeline.judgement import Judgement
from pipeline.paths import REFERENCE
from pipeline.report.render import CHAPTERS
from pipeline.runs.plan import Plan

SHOWN = 0.46  # of the pixels of a figure: five datasets fill the page
# The reader's questions, in the order in which the page answers them.
PARTS = (
    "Did it replicate?",
    "What do the figures measure?",
    "Does feeding predictions back help?",
    "Should I use it, and how?",
    "Is the theory right?",
    "How was the paper read?",
    "Data and provenance",
)


@dataclass(frozen=True)
class Context:
    """What the chapters of a page are made from: an experiment's runs and where things are.

    folder : of the report.
    """

    plan: Plan
    evidence: Evidence
    scope: Scope
    folder: Path

    @property
    def outputs(self) -> Path:
        """The folder in which experiments have theirs."""
        return self.plan.store.root.parent


@dataclass(frozen=True)
class Section:
    """A chapter of one page.

    content : what its template calls ``chapter``.  judgements : what it judges.  figures : the
    pictures of what it draws.  title : its heading, if it is not the chapter's.  facts : numbers as
    sentences quote them, in the chapter's ``headline.html`` (the first screen) and in the article.
    """

    content: Mapping[str, Any] = field(default_factory=dict)
    judgements: Sequence[Judgement] = ()
    figures: Sequence[Mapping[str, Any]] = ()
    title: str | None = None
    facts: Mapping[str, str] = field(default_factory=dict)


class Chapter(ABC):
    """A chapter.

    title : its heading.  part : the one of `PARTS` that it belongs to.  order : its place on the
    page.  curated : files that belong to the committed reference, relative to the output folder,
    and what they are called there.
    """

    title: ClassVar[str]
    part: ClassVar[str]
    order: ClassVar[int]
    curated: ClassVar[Mapping[str, str]] = {}

    @property
    def name(self) -> str:
        """That of its folder; also its anchor on the page."""
        return type(self).__module__.rpartition(".")[2]

    def check(self, plan: Plan) -> None:  # noqa: B027
        """Raise `ConfigError` for an experiment that the chapter cannot be made of."""

    def measure(self, plan: Plan) -> str:
        """Keep what an experiment of its own says in the experiment's folder; say it in words."""
        raise NotImplementedError(f"{self.name} has no experiment of its own")

    @abstractmethod
    def section(self, context: Context) -> Section | None:
        """The chapter on a page; None where there is nothing to show."""

    def result(self, context: Context, name: str) -> Path:
        """A curated file of another experiment, such as ``practice/practice.parquet``.

        A replication takes the one of the committed reference if the experiment was not run here.
        """
        own = context.outputs / name
        lent = REFERENCE / self.curated[name]
        return lent if context.scope.is_replication and not own.exists() else own

    def lent(self, context: Context) -> list[str]:
        """The experiments whose results come from the committed reference."""
        files = [name for name in self.curated if not name.startswith("paper/")]
        lent = (name for name in files if self.result(context, name).is_relative_to(REFERENCE))
        return sorted({name.partition("/")[0] for name in lent})

    def picture(
        self, drawn: Path, *, again: str = "", linked: bool = False, **values: Any
    ) -> dict[str, Any]:
        """What templates show of a figure (a PNG), with its words from the chapter's captions.

        again : the command that draws it alone.  linked : whether the page links to its other
        files.  values : what the words mention.
        """
        words = dict(_captions(CHAPTERS / self.name / "captions.yaml")[drawn.stem])
        for key, value in values.items():
            words["text"] = words["text"].replace(f"{{{key}}}", str(value))
        folder, name = drawn.parent.name, drawn.stem
        kinds = {"PDF": "pdf", "data": "csv"} if linked else {}
        with Image.open(drawn) as image:
            width = round(image.width * SHOWN)
        return {
            "name": name,
            "alt": words["title"],
            "png": base64.b64encode(drawn.read_bytes()).decode(),
            "width": width,  # the most pixels it is shown with, so that letters keep their size
            "wide": True,  # whether it needs the page's whole width
            "key": False,  # whether it is shown first
            "paper": None,  # which figure of the paper it is, if one
            "links": [(what, f"{folder}/{name}.{kind}") for what, kind in kinds.items()],
            "again": again,
            **words,
        }

    def draw(
        self, make: Callable[[], Figure], folder: Path, name: str, **options: Any
    ) -> dict[str, Any]:
        """Draw a figure, write it below ``folder``, and give it as a `picture`."""
        with styled():
            save(make(), folder, name)
        return self.picture(folder / f"{name}.png", **options)


@cache
def _captions(file: Path) -> Mapping[str, Mapping[str, Any]]:
    """Title, text and the like by the figure's name."""
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def write_table(path: Path, table: pd.DataFrame, **options: Any) -> None:
    """Put a table into a CSV file, in the place of an earlier one."""
    files.write_text(path, table.to_csv(index=False, **options))


def write_judgements(path: Path, judgements: Sequence[Judgement]) -> None:
    """Put judgements into a JSON file, in the place of an earlier one."""
    records = [judgement.record() for judgement in judgements]
    files.write_text(path, json.dumps(records, indent=2, ensure_ascii=False))
