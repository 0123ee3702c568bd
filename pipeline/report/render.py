"""Templates as pages that need no network: style and script are inlined."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pipeline.analysis.style import GREEN, RED, YELLOW
from pipeline.judgement import tally

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
            charts_js=_inlined("charts.js"),
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
    made.globals["tally"] = tally
    return made


def signed(value: float, digits: int = 1, unit: str = "") -> str:
    """``−3.2``, ``+0.4`` or ``0.0``: with a sign and a real minus."""
    text = f"{value:+.{digits}f}"
    zero = f"{0:.{digits}f}"
    return (zero if text[1:] == zero else text.replace("-", "−")) + unit


def percent(change: float, digits: int = 1) -> str:
    """A relative change as ``−3.2 %``."""
    return signed(100 * change, digits, " %")


def in_powers(value: float) -> str:
    """A small or large number as ``3·10⁻⁹``, with one digit."""
    digit, _, power = f"{value:.0e}".partition("e")
    return f"{digit}·10{str(int(power)).translate(_RAISED)}"


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _inlined(name: str) -> Markup:
    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))  # ours, no data in it
