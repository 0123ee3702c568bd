"""From stored runs to figures, verdicts and a page that stands alone."""

import hashlib
import json
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from pipeline.analysis import figures
from pipeline.analysis.curves import Runs
from pipeline.analysis.evidence import MissingRunsError, collect
from pipeline.errors import UserError
from pipeline.stages import report, reproduce

pytestmark = pytest.mark.slow


def test_page_has_a_row_per_moment_in_its_table_of_noise(smoke):
    noise = pd.read_csv(smoke / "noise.csv")
    assert list(noise["moment"]) == ["start", "best", "end"] * 2
    assert (noise["low"] <= noise["debiased"]).all()
    assert (noise["debiased"] <= noise["high"]).all()
    assert noise["significant_splits"].between(0, 1).all()
    assert "Is there anything to calibrate?" in (smoke / "report.html").read_text()


def test_verdicts_under_every_reading_are_those_of_the_claims(smoke):
    verdicts = pd.read_csv(smoke / "verdicts_by_reading.csv", index_col=0)
    claims = {c["id"]: c["verdict"] for c in json.loads((smoke / "claims.json").read_text())}
    assert list(verdicts.columns) == [
        "raw\nleaf\nindicators", "raw\nrandom\nleaf values", "raw\nfitted\nleaf values",
        "raw\ndebiased\n(test)",
    ]  # fmt: skip
    first = verdicts.iloc[:, 0]
    assert first.to_dict() == {i: v for i, v in claims.items() if i in first.index}
    without_mce = [i for i in verdicts.index if int(i.rstrip("abcd")) in (1, 2, 3, 4, 5, 12)]
    assert verdicts.loc[without_mce].eq(first[without_mce], axis=0).all(axis=None)


def test_runs_stored_without_the_noise_columns_get_them_from_what_they_have(
    smoke, tmp_path, report_plan
):
    complete = collect(report_plan(smoke.parent)).rounds
    columns = ["mce_floor_test", "mce2_debiased_test", "mce2_se_test", "mce_p_test"]
    shutil.copytree(smoke, tmp_path / "smoke")
    plan = report_plan(tmp_path)
    for run_id in plan.run_ids():
        stored = plan.store.load(run_id)
        shutil.rmtree(plan.store.runs / run_id.folder)
        plan.store.save(run_id, stored.rounds.drop(columns=columns), stored.record)
    older = collect(plan).rounds
    for name in columns[:2]:
        np.testing.assert_allclose(older[name], complete[name], rtol=1e-9)
    report.main(plan)
    assert "not recorded" in (tmp_path / "smoke" / "report.html").read_text()


def test_experiment_folder_holds_tables_verdicts_figures_and_page(smoke):
    rounds = pd.read_parquet(smoke / "rounds.parquet")
    assert len(rounds) == 2 * 3 * 2 * 7
    verdicts = json.loads((smoke / "claims.json").read_text())
    assert {"id", "text", "paper", "ours", "rule", "verdict", "explanation"} == set(verdicts[0])
    assert list(pd.read_csv(smoke / "table1.csv")["dataset"]) == ["Diabetes", "German Credit"]
    names = [f.__name__ for f in figures.FIGURES] + ["readings"]
    assert sorted(p.name for p in (smoke / "figures").iterdir()) == sorted(
        f"{name}.{kind}" for name in names for kind in ("png", "pdf")
    )


def test_page_is_well_formed_needs_no_network_and_shows_every_verdict_and_figure(smoke):
    page = (smoke / "report.html").read_text()
    assert not re.findall(r"""(?:src|href)=['"](?!data:|#)""", page)
    assert "http://" not in page
    assert "https://" not in page
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert page.count("data:image/png;base64,") == len(figures.FIGURES) + 1
    for statement in json.loads((smoke / "claims.json").read_text()):
        assert f'id="claim-{statement["id"]}"' in page
    assert "run it again" in page
    assert "experiment=smoke" in page


class Balanced(HTMLParser):
    """Fails on tags that are closed in the wrong order."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in {"meta", "img", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_drawing_twice_gives_the_same_bytes(smoke, tmp_path):
    titles = {"diabetes": "Diabetes", "german": "German"}
    runs = Runs(pd.read_parquet(smoke / "rounds.parquet"), titles)
    verdicts = pd.DataFrame({"raw": {"1a": "partly"}, "other": {"1a": "replicated"}})
    first, second = (
        hashes(figures.draw_all(runs, verdicts, tmp_path / d), tmp_path / d) for d in "ab"
    )
    assert first == second


def hashes(names, folder):
    files = [folder / f"{n}.{kind}" for n in names for kind in ("png", "pdf")]
    return [hashlib.sha256(f.read_bytes()).hexdigest() for f in files]


def test_report_is_drawn_from_the_store_without_fitting_anything(smoke, monkeypatch, report_plan):
    def forbidden(*_args, **_kwargs):
        raise AssertionError("a report must not compute runs")

    monkeypatch.setattr("pipeline.runs.run.CommonGround", forbidden)
    monkeypatch.setattr("pipeline.runs.run.run", forbidden)
    monkeypatch.setattr("pipeline.datasets.library.fetch", forbidden)
    monkeypatch.setattr("pipeline.datasets.library.preprocess", forbidden)
    report.main(report_plan(smoke.parent))


def test_missing_runs_are_counted_and_the_way_to_get_them_is_named(smoke, tmp_path, report_plan):
    shutil.copytree(smoke, tmp_path / "smoke")
    shutil.rmtree(next((tmp_path / "smoke" / "runs" / "german" / "unit").iterdir()))
    with pytest.raises(MissingRunsError, match=r"1 of 12 runs are not in .*german/unit.*stage=run"):
        report.main(report_plan(tmp_path))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ([], "needs a grid"),
        (["experiment=smoke", "experiment.strategies=[unit]"], "experiment.strategies must be"),
        (["experiment=smoke", "boosting.rounds=2"], "boosting.rounds=2: must be at least 6"),
        (["experiment=standardised"], "the paper's report is of raw targets"),
    ],
)
def test_what_cannot_be_reported_on_is_refused_before_anything_is_computed(
    overrides, message, tmp_path, report_plan
):
    for stage in (report, reproduce):
        with pytest.raises(UserError, match=message):
            stage.main(report_plan(tmp_path / "out", *(overrides or ["seed=0"])))
    assert not (tmp_path / "out").exists()
