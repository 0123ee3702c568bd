"""From stored runs to figures, verdicts and a page that stands alone."""

import hashlib
import json
import shutil
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from pipeline.analysis.curves import Runs
from pipeline.chapters.figures import draw as figures
from pipeline.errors import UserError
from pipeline.paths import REFERENCE
from pipeline.report.place import report_folder
from pipeline.runs.plan import MissingRunsError
from pipeline.stages import figures as stage_figures
from pipeline.stages import report, reproduce

pytestmark = pytest.mark.slow


def test_page_has_a_row_per_moment_in_its_table_of_noise(smoke):
    noise = pd.read_csv(smoke / "noise.csv")
    assert list(noise["moment"]) == ["start", "best", "end"] * 2
    assert (noise["low"] <= noise["debiased"]).all()
    assert (noise["debiased"] <= noise["high"]).all()
    assert noise["significant_splits"].between(0, 1).all()
    assert "Is there anything to calibrate?" in (smoke / "report.html").read_text()


def test_folder_holds_tables_figures_and_page(smoke):
    rounds = pd.read_parquet(smoke / "rounds.parquet")
    assert len(rounds) == 2 * 3 * 2 * 7
    assert (rounds["boosting.trees"] == 10).all()  # settings stand beside the rounds
    assert rounds["strategy.offset"].dropna().unique() == [2.0]
    assert sorted(p.name for p in (smoke / "figures").iterdir()) == sorted(
        f"{name}.{kind}" for name in figures.FIGURES for kind in ("png", "pdf", "csv")
    )
    assert len(pd.read_csv(smoke / "summary.csv")) == 2 * 3
    for name in ("claims.json", "table1.csv"):  # of a replication alone
        assert not (smoke / name).exists()


def test_replications_folder_holds_verdicts_too(replication):
    verdicts = json.loads((replication / "claims.json").read_text())
    assert {
        "id", "text", "paper", "figure", "ours", "brief", "values", "rule", "verdict",
        "explanation", "range", "satisfied",
    } == set(verdicts[0])  # fmt: skip
    assert list(pd.read_csv(replication / "table1.csv")["dataset"])[:2] == [
        "California Housing", "Diabetes",
    ]  # fmt: skip


@pytest.mark.xdist_group("made once")
@pytest.mark.parametrize("which", ["smoke", "replication"])
def test_page_is_well_formed_needs_no_network_and_its_links_lead_somewhere(which, request):
    folder = request.getfixturevalue(which)
    page = (folder / "report.html").read_text()
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert "http" not in page.replace('xmlns="http://www.w3.org/1998/Math/MathML"', "")
    for link in parser.links:
        if link.startswith("#"):
            assert link == "#" or link[1:] in parser.ids, link
        else:
            assert (folder / link).is_file(), link
    assert page.count('alt=""') == 0
    assert "Commands that make this page" in page


def test_page_of_a_replication_shows_every_verdict_beside_its_figure(replication):
    page = (replication / "report.html").read_text()
    for claim in json.loads((replication / "claims.json").read_text()):
        assert f'id="claim-{claim["id"]}"' in page
        if claim["figure"]:
            assert f'href="#figure-{claim["figure"]}"' in page
            assert f'id="figure-{claim["figure"]}"' in page
    assert "a replication" in page
    assert "Figure 3 of the paper" in page
    assert "Seeds: 1 of the paper&#39;s 20." in page
    assert "strategy=unit seed=0" in page  # the command of one of its own runs


def test_page_of_other_settings_has_a_title_of_its_own_and_no_verdicts(smoke):
    page = (smoke / "report.html").read_text()
    assert "<h1>Multicalibration gradient boosting on Diabetes and German Credit</h1>" in page
    assert "boosting.trees: 10 instead of 100" in page
    assert "all five" not in page
    for words in ("Scorecard", "of the paper:", "Table 1"):
        assert words not in page
    assert "dataset=diabetes strategy=unit seed=0" in page


def test_other_settings_never_take_the_place_of_a_report(smoke, tmp_path, report_plan, few_figures):
    shutil.copytree(smoke, tmp_path / "mini")
    before = (tmp_path / "mini" / "report.html").read_bytes()
    other = report_plan(tmp_path, "boosting.eta=0.3", "experiment.name=mini", small=True)
    reproduce.main(other)
    assert (tmp_path / "mini" / "report.html").read_bytes() == before
    (variant,) = (tmp_path / "mini" / "variants").iterdir()
    assert "eta=0.3" in variant.name
    assert variant == report_folder(other)
    assert "boosting.eta: 0.3 instead of 0.5" in (variant / "report.html").read_text()


@pytest.mark.parametrize(
    ("overrides", "at_home"),
    [
        (["experiment=smoke"], True),
        (["experiment=smoke", "grid.workers=1", "stage=report"], True),
        (["experiment=smoke", "boosting.eta=0.3"], False),
        (["experiment=smoke", "experiment.seeds=[0]"], False),
        (["experiment=smoke", "experiment.name=paper"], False),
        (["experiment=smoke", "boosting.eta=0.3", "experiment.name=mine"], True),
    ],
)
def test_folder_of_a_shipped_experiment_is_for_what_its_file_says(
    overrides, at_home, report_plan, tmp_path
):
    plan = report_plan(tmp_path, *overrides)
    assert (report_folder(plan) == plan.store.root) == at_home


@pytest.mark.exhaustive
def test_variations_of_a_strategy_are_curves_of_their_own(tmp_path, report_plan, few_figures):
    lines = ["experiment.datasets=[diabetes]", "experiment.strategies=[unit,relaxed]",
             "experiment.vary={strategy.offset:[2,3]}"]  # fmt: skip
    plan = report_plan(tmp_path, *lines, small=True)
    reproduce.main(plan)
    rounds = pd.read_parquet(report_folder(plan) / "rounds.parquet")
    assert set(rounds["strategy"]) == {"unit", "relaxed offset=2", "relaxed offset=3"}
    page = (report_folder(plan) / "report.html").read_text()
    assert "Relaxed offset=3" in page


def test_figure_is_redrawn_from_the_table_alone_to_the_same_bytes(smoke, tmp_path, report_plan):
    source = tmp_path / "elsewhere.parquet"
    shutil.copy(smoke / "rounds.parquet", source)
    stage_figures.main(
        report_plan(tmp_path, f"figures.source={source}", "figures.only=[gap,debiased]")
    )
    folder = tmp_path / "figures" / tmp_path.name
    drawn = sorted(p.name for p in folder.iterdir())
    assert drawn == sorted(f"{n}.{k}" for n in ("gap", "debiased") for k in ("png", "pdf", "csv"))
    for name in drawn:
        assert (folder / name).read_bytes() == (smoke / "figures" / name).read_bytes()


def test_figures_of_the_committed_reference_are_drawn_on_a_fresh_clone(tmp_path, report_plan):
    source = REFERENCE / "rounds.parquet"
    stage_figures.main(report_plan(tmp_path, f"figures.source={source}", "figures.only=[gap]"))
    drawn = pd.read_csv(tmp_path / "figures" / "reference" / "gap.csv").query("strategy == 'unit'")
    means = pd.read_parquet(source).query("strategy == 'unit'").groupby(["dataset", "round"])
    expected = means["gap"].mean().dropna()
    np.testing.assert_allclose(drawn.set_index(["dataset", "round"])["mean"].sort_index(), expected)
    assert (tmp_path / "figures" / "reference" / "gap.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ([], "needs a table"),
        (["figures.source=no.parquet"], "there is no such file"),
        (["figures.source=README.md"], "cannot be read as parquet"),
        (["figures.only=[gp]"], "there is no figure gp; there are gap, training"),
    ],
)
def test_figures_that_cannot_be_drawn_are_refused_in_words(
    overrides, message, report_plan, tmp_path
):
    with pytest.raises(UserError, match=message):
        stage_figures.main(report_plan(tmp_path, *(overrides or ["seed=0"])))


def test_own_table_without_what_rounds_have_is_refused(tmp_path, report_plan):
    pd.DataFrame({"a": [1.0]}).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(UserError, match="is no table of rounds; it has no column"):
        stage_figures.main(report_plan(tmp_path, f"figures.source={tmp_path / 'x.parquet'}"))


class Balanced(HTMLParser):
    """Fails on tags that are closed in the wrong order."""

    def __init__(self):
        super().__init__()
        self.open, self.links, self.ids = [], [], set()

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids.add(given.get("id"))
        if tag == "a":
            self.links.append(given["href"])
        if tag not in {"meta", "img", "br", "input"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.exhaustive  # make test redraws two figures, from a table
def test_drawing_twice_gives_the_same_bytes(smoke, tmp_path):
    rounds = pd.read_parquet(smoke / "rounds.parquet").query("dataset == 'german'")
    runs = Runs(rounds, {"german": "German"})
    first, second = (hashes(figures.draw_all(runs, tmp_path / d), tmp_path / d) for d in "ab")
    assert first == second


def hashes(names, folder):
    files = [folder / f"{n}.{kind}" for n in names for kind in ("png", "pdf")]
    return [hashlib.sha256(f.read_bytes()).hexdigest() for f in files]


def test_report_is_drawn_from_the_store_without_fitting_anything(
    smoke, monkeypatch, report_plan, few_figures
):
    def forbidden(*_args, **_kwargs):
        raise AssertionError("a report must not compute runs")

    monkeypatch.setattr("pipeline.runs.kinds.rounds.CommonGround", forbidden)
    monkeypatch.setattr("pipeline.runs.kinds.rounds.run", forbidden)
    monkeypatch.setattr("pipeline.datasets.library.fetch", forbidden)
    monkeypatch.setattr("pipeline.datasets.library.preprocess", forbidden)
    report.main(report_plan(smoke.parent))


def test_missing_runs_are_counted_and_the_way_to_get_them_is_named(smoke, tmp_path, report_plan):
    shutil.copytree(smoke, tmp_path / "mini")
    shutil.rmtree(next((tmp_path / "mini" / "runs" / "german" / "unit").iterdir()))
    with pytest.raises(MissingRunsError, match=r"1 of 12 runs are not in .*german/unit.*stage=run"):
        report.main(report_plan(tmp_path))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ([], "needs a grid"),
        (
            ["experiment=smoke", "experiment.vary={boosting.eta:[0.3,0.5]}"],
            "this grid varies boosting.eta; stage=compare",
        ),
        (["experiment=smoke", "boosting.rounds=2"], "boosting.rounds=2: must be at least 6"),
        (["experiment=smoke", "dataset.test_size=0"], "a report is of held-out rows"),
    ],
)
def test_what_cannot_be_reported_on_is_refused_before_anything_is_computed(
    overrides, message, tmp_path, report_plan
):
    for stage in (report, reproduce):
        with pytest.raises(UserError, match=message):
            stage.main(report_plan(tmp_path / "out", *(overrides or ["seed=0"])))
    assert not (tmp_path / "out").exists()
