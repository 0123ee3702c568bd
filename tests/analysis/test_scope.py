"""What a grid is beside the paper's, and what its report may say."""

import pytest

from pipeline.analysis.scope import scope_of
from pipeline.config.compose import load
from pipeline.runs.plan import make_plan


def scope(*overrides):
    lines = ["experiment=paper", *overrides]
    return scope_of(make_plan(load(lines), lines))


def test_papers_grid_is_the_papers():
    papers = scope()
    assert papers.is_replication
    assert papers.banner == []
    assert papers.title == "Multicalibration gradient boosting: a replication"


def test_fewer_seeds_are_still_a_replication_that_says_so():
    fewer = scope("experiment.seeds=range(0,3)")
    assert fewer.is_replication
    assert fewer.banner == ["Seeds: 3 of the paper's 20.", "Verdicts of so few runs say little."]


def test_another_reading_is_a_replication_that_names_it():
    read = scope("dataset.target_scaling=standardise", "audit=fitted_leaf_values")
    assert read.is_replication
    (line,) = read.banner
    assert "dataset.target_scaling: standardise instead of none" in line
    assert "audit.reading: fitted_leaf_values" in line


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("boosting.eta=0.3", "boosting.eta: 0.3 instead of 0.5"),
        ("dataset.test_size=0.5", "dataset.test_size: 0.5 instead of 0.2"),
        ("experiment.datasets=[german]", "Not run: California Housing"),
        ("experiment.strategies=[unit]", "strategy relaxed"),
    ],
)
def test_other_settings_or_data_are_no_replication(override, words):
    other = scope(override)
    assert not other.is_replication
    assert words in " ".join(other.banner)
    assert "not judged here" in other.banner[-1]


def test_more_seeds_are_told_and_are_not_few():
    assert scope("experiment.seeds=range(0,25)").banner == [
        "Seeds: 20 of the paper's 20, 5 others."
    ]


def test_changed_settings_show_beside_a_strategy_of_ones_own(tmp_path):
    (tmp_path / "strategy").mkdir()
    text = "name: mine\ntarget: pipeline.boosting.rescaling.Unit\narguments: {}\n"
    (tmp_path / "strategy" / "mine.yaml").write_text(text)
    own = scope(
        f"hydra.searchpath=[{tmp_path}]", "experiment.strategies=[mine]", "dataset.test_size=0.5"
    )
    assert "strategy mine" in own.banner[0]
    assert "dataset.test_size: 0.5" in own.banner[0]


def test_title_of_ones_own_data_names_it(tmp_path):
    (tmp_path / "prices.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "dataset").mkdir()
    text = (
        f"name: prices\ntitle: Prices\nsource: file\npath: {tmp_path / 'prices.csv'}\ntarget: b\n"
    )
    (tmp_path / "dataset" / "prices.yaml").write_text(text)
    own = scope(f"hydra.searchpath=[{tmp_path}]", "experiment.datasets=[german,prices]")
    assert own.title == "Multicalibration gradient boosting on German Credit and Prices"
    assert "dataset prices" in own.banner[0]
    assert "dataset.path" not in " ".join(own.banner)
