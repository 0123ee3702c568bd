"""Corrections as commands: one run, a grid, its table, and the chapter of the report."""

from types import SimpleNamespace

import pandas as pd
import pytest

from pipeline.chapters.practice import CHANGES_FILE, CHAPTER
from pipeline.chapters.practice import table as tables
from pipeline.config.compose import load
from pipeline.paths import REFERENCE
from pipeline.report.render import render
from pipeline.runs.plan import make_plan
from pipeline.stages import reproduce, run


def plan_of(folder, *overrides):
    lines = [*overrides, f"output_dir={folder}"]
    return make_plan(load(lines), lines)


def section_of(results, folder):
    """The chapter on a page in ``folder``, of experiments whose tables are below ``results``."""
    page = SimpleNamespace(
        scope=SimpleNamespace(is_replication=True),
        folder=folder,
        outputs=results,
    )
    return CHAPTER.section(page)


def test_one_run_prints_what_was_measured(tmp_path, capsys):
    one = ["experiment=correction", "dataset=german_class", "situation=moved",
           "method=group_shift", "seed=2"]  # fmt: skip
    run.main(plan_of(tmp_path, *one))
    out = capsys.readouterr().out
    for word in ("loss", "mce_p", "calibration2", "group_bias", "cpu_seconds"):
        assert word in out
    folders = list(tmp_path.glob("own/cases/german_class/moved-group_shift/seed=002-*"))
    assert len(folders) == 1
    run.main(plan_of(tmp_path, *one))  # it is there already
    assert capsys.readouterr().out == out.replace("stored in", "already computed:")


def test_a_grid_leaves_a_table_and_says_who_is_best(tmp_path, capsys):
    small = ["experiment=practice_smoke", "experiment.datasets=[german]", "experiment.seeds=[0,1]",
             "experiment.situations=[moved]", "experiment.methods=[nothing,group_shift,patching]",
             "experiment.name=mini", "grid.workers=1"]  # fmt: skip
    reproduce.main(plan_of(tmp_path, *small))
    out = capsys.readouterr().out
    order = [
        out.index(f"\n  {name}") for name in ("shift per group", "as it is", "iterative patch")
    ]
    assert order == sorted(order)
    runs, _ = tables.read(tmp_path / "mini" / tables.FILE)
    assert len(runs) == 6
    changed = pd.read_csv(tmp_path / "mini" / CHANGES_FILE)
    assert set(changed["method"]) == {"nothing", "group_shift", "patching"}
    shift = changed[changed["method"] == "group_shift"].iloc[0]
    assert shift["low"] <= shift["change"] <= shift["high"]
    assert shift["change"] < 0  # outcomes of the group had moved


def labels_of(runs, **methods):
    return tables.Labels(
        {d: d.title() for d in runs["dataset"].unique()},
        {s: f"the {s}" for s in runs["situation"].unique()},
        {m: m for m in runs["method"].unique()} | methods,
    )


def defaults_runs():
    rows = []
    for feedback, last in (("honest", 0.9), ("in_sample", 0.95)):
        for rule, loss in (("start", 1.0), ("own", last)):
            rows.append({"feedback": feedback, "stack": True, "rule": rule, "loss": loss})
    frame = pd.DataFrame(rows)
    return frame.assign(dataset="small", situation="forest", method="ours", seed=0)


def completed(frame, like):
    """The frame with all further columns of a table of runs."""
    others = {c: like[c].iloc[0] for c in like.columns if c not in frame}
    return frame.assign(**others)


@pytest.fixture(scope="module")
def beside(tmp_path_factory, practice_runs):
    folder = tmp_path_factory.mktemp("outputs")
    tuned = practice_runs[practice_runs["method"].isin(["nothing", "ours"])]
    tuned = tuned.replace({"method": {"ours": "ours_tuned"}})
    parts = {
        "practice": practice_runs,
        "practice_tuned": tuned,
        "practice_external": practice_runs,
        "practice_defaults": completed(defaults_runs(), practice_runs),
    }
    for name, runs in parts.items():
        tables.write(runs, folder / name, labels_of(runs, ours="ours <b>"))
    return folder


@pytest.fixture(scope="module")
def drawn(beside, tmp_path_factory):
    """The chapter, and the folder of its page."""
    folder = tmp_path_factory.mktemp("page")
    return section_of(beside, folder), folder


def test_the_chapter_shows_findings_tables_and_figures(drawn):
    section, folder = drawn
    chapter = section.content
    judged = [j.id for j in section.judgements]
    assert judged == ["P1", "P2", "P3", "P4", "P5", "P6a", "P6b", "P7", "P8"]
    assert [j.id for j in chapter["external"]["judged"]] == judged
    assert chapter["n_cells"] == 12
    assert chapter["failed"] == 0
    methods = chapter["methods"].set_index("Method")
    assert methods.index[0] == "residual"  # the best, as was planted
    assert chapter["defaults"]["chosen"] == "feedback = honest, stack = True"
    assert chapter["defaults"]["kept"]
    assert chapter["defaults"]["tried"]["mean change"].tolist() == ["−10.0 %", "−5.0 %"]
    ((name, before, after, _),) = chapter["tuned"]["table"].itertuples(index=False)
    assert name == "ours_tuned"
    assert before == after == methods.loc["ours <b>", "Change"]
    for name in ("practice", "practice_ranks"):
        assert (folder / "figures" / f"{name}.png").stat().st_size > 5000
    assert (folder / CHANGES_FILE).exists()


def test_names_on_the_page_are_escaped(drawn):
    section, _ = drawn
    html = render("practice/chapter.html", section=section, chapter=section.content)
    assert "ours &lt;b&gt;" in html
    assert "ours <b>" not in html
    assert "Twenty rounds with the paper&#39;s settings" in html


def test_a_table_without_a_model_as_it_is_has_no_chapter(tmp_path, practice_runs, caplog):
    some = practice_runs[practice_runs["method"] != "nothing"]
    tables.write(some, tmp_path / "practice", labels_of(some))
    assert section_of(tmp_path, tmp_path) is None
    assert "without method=nothing" in caplog.text


def test_an_experiment_that_was_not_run_is_lent_by_the_reference_and_a_damaged_one_is_not(
    tmp_path, caplog
):
    page = SimpleNamespace(scope=SimpleNamespace(is_replication=True), outputs=tmp_path)
    assert CHAPTER.result(page, "practice/practice.parquet") == REFERENCE / "practice.parquet"
    assert "practice" in CHAPTER.lent(page)
    page.scope.is_replication = False
    assert CHAPTER.lent(page) == []
    (tmp_path / "practice").mkdir()
    (tmp_path / "practice" / tables.FILE).write_text("no parquet")
    assert section_of(tmp_path, tmp_path) is None
    assert "stage=reproduce makes it anew" in caplog.text
