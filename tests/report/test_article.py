"""The article: every quoted number is that of the results, and a changed one stops the build."""

import json
import re
import shutil

import pytest

from pipeline.errors import UserError
from pipeline.paths import REFERENCE
from pipeline.report import article
from pipeline.stages import article as stage

TEXT = (article.SOURCE / "article.typ").read_text()
FACTS = json.loads((REFERENCE / "facts.json").read_text())


@pytest.fixture
def results(tmp_path):
    """A folder of results as the reference has them."""
    for name in article.DATA:
        shutil.copy(REFERENCE / name, tmp_path / name)
    shutil.copytree(REFERENCE / "figures", tmp_path / "figures")
    return tmp_path


def changed(results, key, value):
    facts = FACTS | {key: value}
    (results / "facts.json").write_text(json.dumps({k: v for k, v in facts.items() if v}))


def test_every_sentence_agrees_with_the_reference_result():
    assert article.compare(TEXT, FACTS) == []
    assert len(re.findall(r'#n\("', TEXT)) > 60
    assert len(re.findall(r'#v\("', TEXT)) > 30


def test_the_article_is_a_pdf_of_the_same_bytes_every_time(results):
    pytest.importorskip("typst")
    first, second = article.write(results), article.write(results)
    assert first.startswith(b"%PDF")
    assert first == second
    assert len(re.findall(rb"/Type\s*/Page\b", first)) >= 8


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("1a.verdict", "partly", "1a.verdict is now “partly”; the text says “replicated”"),
        ("practice.paper_ours_mean", "−3.0 %", "paper_ours_mean is now “−3.0 %”; the text says"),
        ("theory.whole", None, "theory.whole is not among the results"),
    ],
)
def test_a_changed_verdict_or_number_stops_the_build_and_names_the_line(
    results, key, value, message
):
    pytest.importorskip("typst")
    changed(results, key, value)
    with pytest.raises(UserError, match=re.escape(message)) as refused:
        article.write(results)
    assert re.search(r"line \d+:", str(refused.value))


def test_other_grids_and_missing_reports_have_no_article(tmp_path, report_plan):
    with pytest.raises(UserError, match="is about the paper's grid"):
        stage.main(report_plan(tmp_path, "experiment=smoke"))
    with pytest.raises(UserError, match="stage=reproduce makes it"):
        stage.main(report_plan(tmp_path, "experiment=paper"))
