"""Tables in parts from the command line: rounds like any run's, here or on a cluster."""

import json
import os
import random
import shutil
import signal

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("lightgbm")

from pipeline import files
from pipeline.cli import run_stage
from pipeline.config.compose import load
from pipeline.datasets import parts
from pipeline.errors import ConfigError, DataError, UserError
from pipeline.runs.tidy import load_runs
from scripts import large_clusters, large_tables

ROWS = 6000


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    large_tables.write(large_tables.Planted(4), folder, ROWS, seed=0)
    return folder


def lines(folder, *more):
    return [
        "dataset=parquet", f"dataset.path={folder}", "dataset.target=y", "dataset.drop=[truth]",
        "dataset.prediction=f0", "engine=lightgbm", "engine.min_rows_in_leaf=20",
        "boosting.rounds=6", "boosting.trees=30", *more,
    ]  # fmt: skip


def whole(folder, out, *more):
    """The same for a table that is read whole."""
    given = lines(folder, f"output_dir={out}", *more)
    return [line for line in given if "prediction" not in line and not line.startswith("engine")]


def run_here(folder, out, *more):
    overrides = lines(folder, f"output_dir={out}", *more)
    run_stage(load(overrides), tuple(overrides))
    return load_runs(out / "own")


def test_planted_bias_is_removed_and_rounds_are_recorded(planted, tmp_path, capsys):
    rounds = run_here(planted, tmp_path)
    assert rounds["round"].tolist() == list(range(7))
    last = rounds.iloc[-1]
    # The noise has variance 1; f0's bias adds 0.36 to that.
    assert rounds["mse_test"].iloc[0] == pytest.approx(1.36, abs=0.15)
    assert last["mse_test"] < 1.15
    assert last["mce_test"] < 0.2 * rounds["mce_test"].iloc[0]
    recorded = rounds.loc[1:, ["gap", "weight", "mce2_se_test", "mce_p_test"]]
    assert np.isfinite(recorded.to_numpy()).all()
    (record,) = files.find(tmp_path / "own" / "runs", "*/*/*/run.json")
    sizes = json.loads(record.read_text())["sizes"]
    assert sizes["n_shards"] == 1
    assert sizes["n_train"] == pytest.approx(0.8 * ROWS, rel=0.05)
    capsys.readouterr()
    run_here(planted, tmp_path)
    assert "already computed" in capsys.readouterr().out


def classes(folder):
    """The planted table with a binary outcome c, probabilities p and weights w of its rows."""
    frame = pd.read_parquet(folder)
    rng = np.random.default_rng(3)
    score = (frame["truth"] - frame["truth"].mean()) / 2
    frame["c"] = np.where(rng.random(len(frame)) < 1 / (1 + np.exp(-score)), "yes", "no")
    frame["p"] = 1 / (1 + np.exp(-(score + 2 * (frame["f0"] - frame["truth"]))))
    frame["w"] = rng.integers(0, 4, len(frame))
    return frame.drop(columns=["y", "f0", "truth"])


CLASSES = (
    "dataset.target=c", "dataset.positive='yes'", "dataset.drop=[]", "boosting.loss=log",
    "dataset.weight=w", "dataset.prediction=p",
)  # fmt: skip


@pytest.fixture(scope="module")
def planted_classes(planted, tmp_path_factory):
    folder = tmp_path_factory.mktemp("classes")
    classes(planted).to_parquet(folder / "all.parquet", row_group_size=1000)
    return folder


def test_planted_bias_of_weighted_classes_is_removed(planted_classes, tmp_path):
    rounds = run_here(planted_classes, tmp_path, *CLASSES)
    assert rounds["loss_test"].iloc[-1] < 0.95 * rounds["loss_test"].iloc[0]
    assert rounds["loss_train"].is_monotonic_decreasing
    assert rounds["mce_test"].iloc[-1] < 0.4 * rounds["mce_test"].iloc[0]
    unweighted = run_here(planted_classes, tmp_path, *CLASSES, "dataset.weight=null",
                          "dataset.drop=[w]")  # fmt: skip
    assert len(set(unweighted["key"])) == 2


def test_longer_run_continues_the_checkpoint_of_a_shorter_one(
    planted_classes, tmp_path, caplog, monkeypatch
):
    caplog.set_level("INFO", "pipeline")
    run_here(planted_classes, tmp_path / "a", *CLASSES, "boosting.rounds=4")
    caplog.clear()
    run_here(planted_classes, tmp_path / "a", *CLASSES, "boosting.rounds=7")
    assert any("continues at round 5" in line for line in caplog.messages)
    told = [line for line in caplog.messages if line.startswith("round ")]
    assert [line.split(",")[0] for line in told] == [f"round {t} of 7" for t in (5, 6, 7)]
    assert all("loss" in line and "s left" in line for line in told)
    both = load_runs(tmp_path / "a" / "own")
    whole = run_here(planted_classes, tmp_path / "b", *CLASSES, "boosting.rounds=7")
    longer = both[both["boosting.rounds"] == 7].reset_index(drop=True)
    columns = ["round", "loss_train", "loss_test", "mce_test", "gap", "weight"]
    pd.testing.assert_frame_equal(longer[columns], whole[columns], check_exact=True)


@pytest.mark.parametrize("engine", ["exact", "lightgbm"])
@pytest.mark.parametrize("loss", ["squared", "log"])
def test_whole_weights_of_a_run_in_memory_are_repeated_rows(tmp_path, engine, loss):
    # Both sides of the split are all rows, so that repeated rows stay together.
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 4, (800, 3)).astype(float), columns=list("abc"))
    frame["y"] = (rng.random(800) < 0.2 + 0.2 * frame["a"]).astype(int)
    frame["w"] = rng.integers(1, 4, 800)
    repeated = frame.loc[frame.index.repeat(frame["w"])].assign(w=1)
    found = []
    for name, table in (("weighted", frame), ("repeated", repeated)):
        table.to_parquet(tmp_path / f"{name}.parquet")
        overrides = [
            "dataset=file", f"dataset.path={tmp_path / f'{name}.parquet'}", "dataset.target=y",
            "dataset.positive='1'", "dataset.weight=w", "dataset.test_size=0", f"engine={engine}",
            f"boosting.loss={loss}", "boosting.rounds=3", "boosting.trees=10", "initial.trees=1",
            "dataset.name=own", "strategy=adaptive", f"output_dir={tmp_path / name}",
        ]  # fmt: skip
        run_stage(load(overrides), tuple(overrides))
        found.append(load_runs(tmp_path / name / "own"))
    # The forest draws rows, so f_0 differs; the rounds correct it, and the audit is of the weights.
    columns = ["mse_train", "mce_train"]
    a, b = (runs[columns].iloc[-1].to_numpy() for runs in found)
    np.testing.assert_allclose(a, b, rtol=0.02, atol=2e-3)


def test_threads_change_no_number_and_other_rows_are_another_run(planted, tmp_path):
    named = "dataset.name=planted"
    one = run_here(planted, tmp_path / "one", named)
    two = run_here(planted, tmp_path / "two", named, "engine.threads=2")
    pd.testing.assert_frame_equal(one, two, check_exact=True)
    other = tmp_path / "other"
    large_tables.write(large_tables.Planted(4), other, ROWS, seed=1)
    both = run_here(other, tmp_path / "one", named)
    assert len(set(both["key"])) == len(set(both["data"])) == 2


@pytest.mark.exhaustive
def test_grid_of_strategies_has_a_report(planted, tmp_path):
    experiment = ["experiment=smoke", "experiment.datasets=[parquet]", "experiment.seeds=[0]",
                  "experiment.name=large", "stage=reproduce"]  # fmt: skip
    overrides = [*lines(planted, f"output_dir={tmp_path}", *experiment)[1:]]
    run_stage(load(overrides), tuple(overrides))
    assert set(load_runs(tmp_path / "large")["strategy"]) == {"unit", "relaxed", "adaptive"}
    assert (tmp_path / "large" / "report.html").is_file()


@pytest.mark.slow
@pytest.mark.exhaustive
def test_grid_that_is_killed_has_stored_the_runs_that_ended(
    planted, tmp_path, start_process, finish, eventually
):
    grid = ["experiment=smoke", "experiment.datasets=[parquet]", "experiment.seeds=[0]",
            "experiment.name=large", "boosting.rounds=30"]  # fmt: skip
    arguments = [*lines(planted)[1:], *grid]
    process = start_process(tmp_path, *arguments)
    runs, kept = tmp_path / "large" / "runs", tmp_path / "large" / "checkpoints"
    eventually(lambda: files.find(runs, "*/*/seed=*") and files.find(kept, "*/*/*/round-0001.json"))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    ended = len(files.find(runs, "*/*/seed=*"))
    assert 1 <= ended < 3
    code, output = finish(start_process(tmp_path, *arguments))
    assert code == 0, output
    assert f"{ended} of 3 runs are in" in output
    undisturbed = tmp_path / "undisturbed"
    overrides = [*arguments, f"output_dir={undisturbed}"]
    run_stage(load(overrides), tuple(overrides))
    pd.testing.assert_frame_equal(
        load_runs(tmp_path / "large"), load_runs(undisturbed / "large"), check_exact=True
    )


@pytest.mark.slow
@pytest.mark.exhaustive
def test_cluster_gives_what_one_process_gives_and_a_killed_driver_is_gone_on_with(
    planted, tmp_path, dask_cluster, start_process, finish, eventually
):
    address, workers = dask_cluster
    more = [f"grid.scheduler='{address}'", "dataset.name=planted"]
    one = run_here(planted, tmp_path / "one", "dataset.name=planted")
    code, output = finish(start_process(tmp_path / "two", *lines(planted, *more)))
    assert code == 0, output
    assert "about" in output  # time left
    two = load_runs(tmp_path / "two" / "own")
    columns = ["mse_train", "mse_test", "mce_train", "mce_test", "gap", "weight"]
    np.testing.assert_allclose(two[columns], one[columns], rtol=1e-9)
    process = start_process(tmp_path / "killed", *lines(planted, *more))
    kept = tmp_path / "killed" / "own" / "checkpoints"
    eventually(lambda: files.find(kept, "*/*/*/round-0002.json"))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not files.find(tmp_path / "killed" / "own" / "runs", "*/*/*")
    code, output = finish(start_process(tmp_path / "killed", *lines(planted, *more)))
    assert code == 0, output
    assert "continues at round" in output
    again = load_runs(tmp_path / "killed" / "own")
    pd.testing.assert_frame_equal(again, two, check_exact=True)
    # A worker that no nanny replaces is waited for, and then a sentence.
    os.kill(workers[0].pid, signal.SIGKILL)
    quick = ["grid.patience=3", "boosting.rounds=40", "seed=5"]
    process = start_process(tmp_path / "lost", *lines(planted, *more, *quick))
    eventually(lambda: files.find(tmp_path / "lost" / "own", "checkpoints/*/*/*/round-0001.json"))
    os.kill(workers[1].pid, signal.SIGKILL)
    code, output = finish(process, timeout=120)
    assert code == 1
    assert "no Dask worker came within 3 s" in output
    assert "Traceback" not in output


@pytest.mark.slow
@pytest.mark.exhaustive
def test_cluster_over_tls_that_loses_workers_and_its_scheduler_gives_the_same_numbers(
    planted_classes, tmp_path, start_process, finish, eventually, monkeypatch
):
    if shutil.which("openssl") is None:
        pytest.skip("certificates are made by openssl")
    named = [*CLASSES, "dataset.name=classes", "boosting.rounds=40"]
    one = large_clusters.Cluster(tmp_path)
    for name, value in one.environment.items():
        monkeypatch.setenv(name, value)
    try:
        more = [*named, f"grid.scheduler={one.note}"]
        code, output = finish(start_process(tmp_path / "a", *lines(planted_classes, *more)))
        assert code == 0, output
        process = start_process(tmp_path / "b", *lines(planted_classes, *more))
        kept = tmp_path / "b" / "own" / "checkpoints"
        eventually(lambda: files.find(kept, "*/*/*/round-0002.json"))
        one.kill("worker", random.Random(0))
        eventually(lambda: files.find(kept, "*/*/*/round-0006.json"))
        one.kill("scheduler", random.Random(0))
        code, output = finish(process)
        assert code == 1
        assert "lost and repeated" in output
        assert "the scheduler is gone" in output
        code, output = finish(start_process(tmp_path / "b", *lines(planted_classes, *more)))
        assert code == 0, output
        assert "continues at round" in output
    finally:
        one.stop()
    a, b = (load_runs(tmp_path / place / "own") for place in "ab")
    pd.testing.assert_frame_equal(a, b, check_exact=True)


def test_scheduler_file_that_is_none_is_one_sentence(planted, tmp_path):
    (tmp_path / "note.json").write_text("[]")
    for name in ("note.json", "absent.json"):
        with pytest.raises(UserError, match=f"{name}: is no scheduler file"):
            run_here(planted, tmp_path, f"grid.scheduler={tmp_path / name}")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["dataset.target=nothing"], "no column 'nothing'"),
        (["stage=audit"], "not for tables in parts"),
        (["dataset.target_scaling=standardise"], "must be none for a table in parts"),
        (["dataset.missing=reject"], "takes missing cells"),
        (["dataset.target=g"], "must hold numbers"),
        (["dataset.prediction=g"], "must hold numbers"),
        (
            ["strategy=custom", "strategy.target=tests.runs.kinds.strategies.Halfway"],
            "reduced_weight",
        ),
        (["boosting.loss=log"], "needs a dataset with dataset.positive"),
        (["dataset.weight=g"], "must hold numbers"),
    ],
)
def test_what_is_not_for_tables_in_parts_is_one_sentence(planted, tmp_path, more, says):
    with pytest.raises((ConfigError, DataError), match=says):
        run_here(planted, tmp_path, *more)


def test_table_that_does_not_fit_is_refused_with_the_way_out(planted, tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "_memory", lambda: 1e6)
    overrides = whole(planted, tmp_path)
    with pytest.raises(DataError, match=r"6,000 rows of 8 columns need some .* engine=lightgbm"):
        run_stage(load(overrides), tuple(overrides))
    monkeypatch.setattr(parts, "MAX_ROWS", 5999)
    with pytest.raises(DataError, match=r"more than engine=exact takes .* engine=lightgbm"):
        run_stage(load(overrides), tuple(overrides))


def test_folder_that_fits_is_read_whole_by_the_exact_engine(planted, tmp_path):
    overrides = whole(planted, tmp_path, "boosting.rounds=2")
    run_stage(load(overrides), tuple(overrides))
    assert len(load_runs(tmp_path / "own")) == 3
    overrides.append("dataset.prediction=f0")
    with pytest.raises(ConfigError, match=r"dataset\.prediction: is for"):
        run_stage(load(overrides), tuple(overrides))


def test_missing_cells_and_categories_are_left_to_lightgbm_where_asked(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=800), "w": rng.choice(list("pqrs"), 800)})
    frame["y"] = frame["w"].isin(["p", "r"]) + frame["a"].isna() + 0.1 * rng.normal(size=800)
    frame.loc[rng.random(800) < 0.2, "a"] = np.nan
    frame.to_parquet(tmp_path / "own.parquet")
    base = ["dataset=file", f"dataset.path={tmp_path / 'own.parquet'}", "dataset.target=y",
            "engine=lightgbm", "boosting.rounds=1", f"output_dir={tmp_path}"]  # fmt: skip
    for native in ("true", "false"):
        overrides = [*base, f"engine.native={native}"]
        run_stage(load(overrides), tuple(overrides))
    runs = load_runs(tmp_path / "own")
    assert set(runs["engine.native"]) == {True, False}
    last = runs[runs["round"] == 1].set_index("engine.native")["mse_train"]
    assert last[True] != last[False]


def test_repeated_tables_have_the_columns_and_words_of_the_dataset(tmp_path):
    german = large_tables.Repeated(pd.DataFrame({"x": [1.0, 2.0], "w": ["a", "b"]}))
    large_tables.write(german, tmp_path, 1000, 0)
    frame = pd.read_parquet(tmp_path)
    assert set(frame["w"]) == {"a", "b"}
    assert len(frame) == 1000
    assert frame.groupby("w")["x"].mean().to_dict() == pytest.approx({"a": 1, "b": 2}, abs=0.01)
