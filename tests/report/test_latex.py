"""A small part of LaTeX as HTML."""

import re
import xml.etree.ElementTree as ET

import pytest

from pipeline.chapters.theory import PROOFS, fragments, proofs
from pipeline.report import latex


def test_formulas_become_mathml_and_words_are_escaped():
    html = latex.inline(r"If $a < b$ & ``so'' \emph{on, $x$}, then \[ \frac{1}{2} \] holds.")
    assert html.count("<math") == 3
    assert "&amp; “so”" in html
    assert "<em>on, <math" in html
    assert 'display="block"' in html
    assert "<mfrac>" in html


def test_blocks_are_theorems_folded_proofs_and_paragraphs():
    html = latex.document(
        "% a remark\n\\section*{Notation}\nOne.\n\nTwo.\n"
        "\\begin{theorem}[T0: a name]\nBe.\n\\end{theorem}\n\\begin{proof}\nClear.\n\\end{proof}\n"
    )
    assert "remark" not in html
    assert "<h3>Notation</h3>" in html
    assert re.findall(r"<p>(\w+)\.</p>", html) == ["One", "Two", "Be", "Clear"]
    assert '<p class="name">T0: a name</p>' in html
    assert '<details class="proof">' in html


@pytest.mark.parametrize("text", [r"an \unknown{thing}", "a lonely $ sign"])
def test_what_is_not_known_is_refused(text):
    with pytest.raises(ValueError, match="not known here"):
        latex.inline(text)


def test_every_proof_is_converted_to_well_formed_markup_and_is_in_the_document():
    root = ET.fromstring(f"<div>{proofs()}</div>")
    statements = root.findall(".//div[@class='theorem']")
    assert len(statements) == len(root.findall(".//details")) == len(fragments()) - 1
    assert {p.stem for p in PROOFS.glob("*.tex")} == {*fragments(), "proofs"}
