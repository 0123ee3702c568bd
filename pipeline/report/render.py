"""Templates as pages that need no network: style and script are inlined."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from pipeline.analysis.style import GREEN, RED, YELLOW
from pipeline.judgement import by_verdict, tally

TEMPLATES = Path(__file__).parent / "templates"
CHAPTERS = Path(__file__).parent.parent / "chapters"
# The background and text colour of verdicts; see `pipeline.judgement.TONES`.
COLOURS: Mapping[str, tuple[str, str]] = {
    "good": (GREEN, "white"),
    "partly": (YELLOW, "black"),
    "open": ("#6e7781", "white"),
    "bad": (RED, "white"),
}


def render(name: str, **context: Any) -> str:
    """A page from a template of `TEMPLATES` or, as ``chapter/file``, of a chapter."""
    return (
        environment(autoescape=True)
        .get_template(name)
        .render(
            **context,
            colours=COLOURS,
            css=_inlined("style.css"),
            js=_inlined("script.js"),
        )
    )


def environment(*, autoescape: bool) -> Environment:
    """How templates are read."""
    made = Environment(
        loader=FileSystemLoader([TEMPLATES, CHAPTERS]),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=not autoescape,
    )
    made.globals |= {"tally": tally, "by_verdict": by_verdict}
    made.filters["formulas"] = formulas
    return made


def formulas(text: object) -> Markup:
    """Text in which ``f_t`` and ``gap_{t+1}`` have their subscripts, and 5 % stays in one line."""
    whole = re.sub(r"(?<=\d) (?=%)", "\N{NO-BREAK SPACE}", escape(text))
    return Markup(_SUBSCRIPT.sub(lambda m: f"{m[1]}<sub>{m[2].strip('{}')}</sub>", whole))


# One letter, or gap, with one sign or a group below it; no part of a longer name or path.
_SUBSCRIPT = re.compile(r"(?<![\w/.])(gap|[^\W\d_])_(\{[^{}]*\}|\w)(?!\w)")


def signed(value: float, digits: int = 1, unit: str = "") -> str:
    """``−3.2``, ``+0.4`` or ``0.0``: with a sign and a real minus."""
    text = f"{value:+.{digits}f}"
    zero = f"{0:.{digits}f}"
    return (zero if text[1:] == zero else text.replace("-", "−")) + unit


def listed(names: Iterable[str]) -> str:
    """``A``, ``A and B``, ``A, B and C``."""
    *first, last = [*names] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def percent(change: float, digits: int = 1) -> str:
    """A relative change as ``−3.2 %``."""
    return signed(100 * change, digits, " %")


def share(value: float, digits: int = 1) -> str:
    """A share as ``49 %``."""
    return f"{round(100 * value, digits) + 0.0:g} %".replace("-", "−")


def changed(change: float) -> str:
    """A relative change in words: ``−3 %``, from a doubling on ``3.1 times as large``."""
    if change >= 1:
        return f"{1 + change:.1f} times as large"
    return percent(change, 0 if abs(change) >= 0.095 else 1)


def in_powers(value: float) -> str:
    """A small or large number as ``3·10⁻⁹``, with one digit."""
    digit, _, power = f"{value:.0e}".partition("e")
    return f"{digit}·10{str(int(power)).translate(_RAISED)}"


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _inlined(name: str) -> Markup:
    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))  # ours, no data in it
