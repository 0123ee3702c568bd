"""What the stages that only look print."""

import re

import numpy as np
import pandas as pd
import pytest

from pipeline.errors import ConfigError, DataError
from pipeline.stages import audit, fetch, preprocess, table1


def test_fetch_says_what_the_table_is(report_plan, tmp_path, capsys):
    fetch.main(report_plan(tmp_path, "dataset=german"))
    out = capsys.readouterr().out
    assert out.startswith("German Credit: 1000 rows x 21 columns from bundled snapshot")


def test_preprocess_describes_every_column_of_the_design(report_plan, tmp_path, capsys):
    preprocess.main(report_plan(tmp_path, "dataset=diabetes"))
    out = capsys.readouterr().out
    assert "design matrix 442 x 10 from 10 covariates" in out
    assert "target target: mean 152.133, sd 77.0057" in out
    assert out.splitlines()[4].split()[0] == "age"


def test_table1_counts_under_the_overrides_of_datasets(report_plan, tmp_path, capsys):
    table1.main(report_plan(tmp_path, "++dataset.drop_first=false"))
    out = capsys.readouterr().out
    german = next(line for line in out.splitlines() if "German" in line)
    assert german.split()[-4:] == ["48", "62", "1000", "1000"]


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    rng = np.random.default_rng(0)
    n = 3000
    frame = pd.DataFrame({"age": rng.integers(18, 80, n), "region": rng.choice(["N", "S"], n)})
    p = rng.uniform(0.2, 0.6, n)
    truth = p + 0.3 * ((frame["region"] == "N") & (frame["age"] <= 40))
    frame["outcome"] = (rng.random(n) < truth).astype(int)
    frame = frame.assign(old=p, new=truth, name=[f"row {i}" for i in range(n)])
    path = tmp_path_factory.mktemp("audit") / "scores.csv"
    frame.to_csv(path, index=False)
    return path


def file_plan(report_plan, scores, folder, *overrides):
    lines = ["dataset=file", f"dataset.path={scores}", "dataset.target=outcome", "stage=audit"]
    return report_plan(folder, *lines, *overrides)


def test_audit_of_a_file_prints_the_segment_and_writes_a_page_outside_the_experiments(
    report_plan, scores, tmp_path, capsys
):
    drop = "dataset.drop=[name,new]"
    audit.main(file_plan(report_plan, scores, tmp_path, "audit.prediction=old", drop))
    out = capsys.readouterr().out
    assert re.search(r"age ≤ (3[6-9]|4[0-4]) and region = N ", out)
    page = tmp_path / "audit" / "scores" / "audit.html"
    assert page.exists()
    assert f"page: {page}" in out
    assert "http" not in page.read_text()
    assert not (tmp_path / "paper").exists()


def test_two_models_are_set_side_by_side_with_named_groups(report_plan, scores, tmp_path, capsys):
    lines = ["audit.compare=[old,new]", "audit.groups=[region]", "dataset.drop=[name]"]
    audit.main(file_plan(report_plan, scores, tmp_path, *lines))
    old, new = capsys.readouterr().out.split("new: ")
    assert "region = N" in old
    p_values = [float(part.split("p-value ")[1].split()[0]) for part in (old, new)]
    assert p_values[0] == 0.001
    assert p_values[1] > 0.05


@pytest.mark.parametrize(
    ("overrides", "error", "message"),
    [
        ([], ConfigError, "audit.prediction"),
        (["audit.prediction=nope"], DataError, "nope: scores has no such column"),
        (["audit.prediction=region"], DataError, "region: must be a column of numbers"),
    ],
)
def test_audit_that_cannot_be_is_refused_in_a_sentence(
    report_plan, scores, tmp_path, overrides, error, message
):
    with pytest.raises(error, match=message):
        audit.main(file_plan(report_plan, scores, tmp_path, *overrides))


def test_audit_of_a_grid_has_a_chapter_for_each_initial_forest(smoke, report_plan, capsys):
    audit.main(report_plan(smoke.parent))
    out = capsys.readouterr().out
    assert out.count("initial forest: ") == 2
    assert (smoke / "audit.html").read_text().count("<h2>") == 2
