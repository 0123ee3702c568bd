"""The replication report as a PDF: prose by hand, numbers and figures from stored results.

The source is Typst. ``#n("key", "text")`` stands for a fact of ``facts.json`` and ``#v("claim",
"verdict")`` for a verdict; both say what the author saw. What has changed since is refused, because
the sentence around it has to be read again.
"""

import json
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pipeline.errors import UserError
from pipeline.report.render import CHAPTERS

SOURCE = Path(__file__).parent / "article"
DATA = ("facts.json", "claims.json", "noise.csv", "table1.csv")  # of a folder of results
CHOICES = CHAPTERS / "readings" / "choices.yaml"
_QUOTED = re.compile(r'#(?P<kind>[nv])\("(?P<key>[^"]+)", "(?P<text>[^"]*)"\)')


def compare(source: str, facts: Mapping[str, str]) -> list[str]:
    """A line for each quoted number or verdict that the results do not bear out."""
    wrong = []
    for number, line in enumerate(source.splitlines(), start=1):
        for quoted in _QUOTED.finditer(line):
            key = quoted["key"] + (".verdict" if quoted["kind"] == "v" else "")
            found = facts.get(key)
            if found != quoted["text"]:
                now = "is not among the results" if found is None else f"is now “{found}”"
                wrong.append(f"line {number}: {key} {now}; the text says “{quoted['text']}”")
    return wrong


def write(results: Path) -> bytes:
    """The PDF of the article with the facts, tables and figures of a folder of results."""
    try:
        import typst
    except ImportError:
        raise UserError(
            "stage=article: needs the extra article; make article installs it"
        ) from None
    facts = json.loads((results / "facts.json").read_text(encoding="utf-8"))
    wrong = compare((SOURCE / "article.typ").read_text(encoding="utf-8"), facts)
    if wrong:
        raise UserError(
            f"the article does not agree with {results}; read these sentences of "
            f"{(SOURCE / 'article.typ').name} again: {'; '.join(wrong)}"
        )
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        shutil.copytree(SOURCE, root, dirs_exist_ok=True)
        shutil.copytree(results / "figures", root / "figures")
        for file in (*(results / name for name in DATA), CHOICES):
            shutil.copyfile(file, root / file.name)
        return typst.compile(root / "article.typ", root=root, ignore_system_fonts=True, timestamp=0)
