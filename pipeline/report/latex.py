"""A small part of LaTeX as HTML: paragraphs, formulas as MathML, theorems and proofs.

Formulas are converted by latex2mathml, which browsers show without a script. What is not known is
refused rather than shown raw.
"""

import re
from collections.abc import Iterator

from latex2mathml.converter import convert
from markupsafe import Markup, escape

_MATH = re.compile(r"\\\[(?P<display>.+?)\\\]|\$(?P<inline>[^$]+)\$", re.DOTALL)
_EMPHASIS = re.compile(r"\\emph\{((?:[^{}$]|\$[^$]*\$)*)\}")
_BLOCK = re.compile(
    r"\\begin\{(?P<kind>theorem|proof)\}(?:\[(?P<title>[^\]]*)\])?(?P<body>.+?)\\end\{(?P=kind)\}"
    r"|\\section\*\{(?P<section>[^}]*)\}",
    re.DOTALL,
)
_EM_BEGIN, _EM_END = "\x01", "\x02"


def document(source: str) -> Markup:
    """A fragment of a document: sections, theorems, proofs (folded) and paragraphs between them."""
    text = re.sub(r"(?m)^%.*\n?", "", source)
    return Markup("\n").join(_blocks(text))


def inline(text: str) -> Markup:
    """One paragraph's words and formulas."""
    marked = _EMPHASIS.sub(rf"{_EM_BEGIN}\1{_EM_END}", text.strip())
    html = Markup("").join(_pieces(marked))
    return html.replace(_EM_BEGIN, Markup("<em>")).replace(_EM_END, Markup("</em>"))


def _blocks(text: str) -> Iterator[Markup]:
    at = 0
    for match in _BLOCK.finditer(text):
        yield from _paragraphs(text[at : match.start()])
        at = match.end()
        if match["section"] is not None:
            yield Markup("<h3>{}</h3>").format(match["section"])
            continue
        body = Markup("\n").join(_paragraphs(match["body"]))
        if match["kind"] == "proof":
            yield Markup('<details class="proof"><summary>Proof</summary>{}</details>').format(body)
        else:
            title = inline(match["title"] or "")
            yield Markup('<div class="theorem"><p class="name">{}</p>{}</div>').format(title, body)
    yield from _paragraphs(text[at:])


def _paragraphs(text: str) -> Iterator[Markup]:
    for paragraph in re.split(r"\n\s*\n", text):
        if paragraph.strip():
            yield Markup("<p>{}</p>").format(inline(paragraph))


def _pieces(text: str) -> Iterator[Markup]:
    at = 0
    for match in _MATH.finditer(text):
        yield _words(text[at : match.start()])
        at = match.end()
        if match["display"] is not None:
            yield Markup(convert(match["display"].strip(), display="block"))
        else:
            yield Markup(convert(match["inline"].strip()))
    yield _words(text[at:])


def _words(text: str) -> Markup:
    if "\\" in text or "$" in text:
        raise ValueError(f"{text.strip()!r}: holds a LaTeX command that is not known here")
    return escape(text.replace("``", "“").replace("''", "”").replace("--", "–"))
