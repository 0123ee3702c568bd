"""The errata, and their page."""

from pipeline.chapters.theory.errata import as_html, as_markdown, make_errata
from pipeline.theory.statements import ERRATA


def test_errata_are_exactly_the_statements_that_do_not_hold(study, failing, narrower):
    assert {e["id"] for e in ERRATA} == failing | narrower
    page = make_errata(study.findings)
    assert sum(len(section["points"]) for section in page) == len(ERRATA)
    levels = {r["id"]: r["level"] for r in study.findings}
    assert not [e["id"] for e in ERRATA if levels[e["id"]] == "ours"]


def test_errata_page_shows_formulas_and_its_markdown_keeps_them(study):
    page = make_errata(study.findings)
    html, markdown = as_html(page), as_markdown(page)
    assert html.count("<math") > 60
    assert "$" not in html.partition("<main>")[2]
    for erratum in ERRATA:
        id_ = erratum["id"]
        assert f'id="erratum-{id_}"' in html
        assert erratum["stated"] in markdown
        assert f"`python -m pipeline.theory {id_}`" in markdown
