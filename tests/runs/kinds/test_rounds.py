"""One run: what it writes, that it equals the estimator, and that nothing else can change it."""

import json

import numpy as np
import pandas as pd
import pytest

from pipeline.boosting import PAPER, Auditor, MulticalibrationBoostingRegressor
from pipeline.config.compose import load
from pipeline.datasets.library import Library
from pipeline.runs.keys import audit_seed, initial_key, run_key
from pipeline.runs.kinds.rounds import CommonGround, run

COLUMNS = [
    "dataset", "strategy", "seed", "round", "mse_train", "mse_test", "mce_train", "mce_test",
    "gap", "weight",
    "mce_train_random_leaf_values", "mce_train_fitted_leaf_values", "mce_test_random_leaf_values",
    "mce_test_fitted_leaf_values", "mce_floor_test", "mce2_debiased_test", "mce2_se_test",
    "mce_p_test",
]  # fmt: skip
QUICK = ["boosting.rounds=3", "boosting.trees=10"]


LIBRARY = Library()


def compute(*overrides):
    config = load([*QUICK, *overrides])
    return run(config, CommonGround(config, LIBRARY.design(config.dataset))).rounds


@pytest.fixture
def cli(command):
    """``cli(folder, *overrides)``: a command that succeeds."""

    def cli_(folder, *overrides):
        done = command(*QUICK, f"output_dir={folder}", *overrides)
        assert done.returncode == 0, done.stderr
        return done

    return cli_


def rounds_file(folder):
    (path,) = folder.glob("paper/runs/*/*/seed=*/rounds.csv")
    return path


@pytest.mark.parametrize("strategy", ["unit", "relaxed", "adaptive"])
def test_run_equals_the_estimator_and_a_direct_audit(strategy, paper_split):
    config = load([*QUICK, f"strategy={strategy}", "seed=5"])
    rounds = compute(f"strategy={strategy}", "seed=5")
    X_train, y_train, X_test, y_test = paper_split("german", 5)
    parameters = PAPER | {"n_rounds": 3, "n_trees": 10, "random_state": 5}
    model = MulticalibrationBoostingRegressor(
        rescaling=strategy, **(parameters | {"engine": config.engine.name})
    ).fit(X_train, y_train)
    np.testing.assert_allclose(rounds["mse_train"], model.losses_, rtol=1e-12)
    np.testing.assert_allclose(rounds["gap"][1:], model.gaps_, rtol=1e-12)
    np.testing.assert_allclose(rounds["weight"][1:], model.weights_, rtol=1e-12)
    auditor = Auditor(X_test, n_trees=100, depth=3, seed=audit_seed("german", 5))
    for t, f in enumerate(model.staged_predict(X_test)):
        assert rounds["mse_test"][t] == pytest.approx(np.mean((y_test - f) ** 2), rel=1e-12)
        assert rounds["mce_test"][t] == pytest.approx(
            auditor.error(y=y_test, prediction=f), rel=1e-9
        )


def test_table_has_a_row_per_round_and_no_gap_or_weight_at_the_start():
    rounds = compute()
    assert list(rounds.columns) == COLUMNS
    assert list(rounds["round"]) == [0, 1, 2, 3]
    assert rounds[["gap", "weight"]].iloc[0].isna().all()
    assert rounds.iloc[1:].notna().all().all()


def test_all_readings_can_be_recorded_at_once():
    rounds = compute()
    other = compute("audit=fitted_leaf_values")
    np.testing.assert_array_equal(rounds["mce_test_fitted_leaf_values"], other["mce_test"])


def test_strategies_share_round_0_and_the_audits_trees():
    config = load(QUICK)
    ground = CommonGround(config, LIBRARY.design(config.dataset))
    shared = {s: run(load([*QUICK, f"strategy={s}"]), ground).rounds for s in ("unit", "adaptive")}
    for strategy, rounds in shared.items():
        pd.testing.assert_frame_equal(rounds, compute(f"strategy={strategy}"), check_exact=True)


def test_files_hold_the_table_and_all_that_made_it(tmp_path, cli):
    done = cli(tmp_path, "strategy=adaptive", "seed=7")
    path = rounds_file(tmp_path)
    assert str(path.parent) in done.stdout
    assert len(done.stdout.splitlines()) == 2 + 4 + 1
    record = json.loads((path.parent / "run.json").read_text())
    assert record["config"]["boosting"]["rounds"] == 3
    assert record["data_sha256"] == LIBRARY.sha256(load().dataset)
    assert record["seeds"]["split"] == record["seeds"]["initial"] == 7
    assert len(record["seeds"]["rounds"]) == 3
    assert {"python", "numpy", "scikit-learn", "numba"} <= record["versions"].keys()
    assert record["cpu"]
    assert record["duration_seconds"] > 0
    assert path.parent.name.startswith("seed=007-")


def test_process_of_its_own_gives_the_same_bits_as_one_that_did_other_things(
    tmp_path, start_process, finish
):
    code, output = finish(start_process(tmp_path, *QUICK, "seed=3"))
    assert code == 0, output
    first = rounds_file(tmp_path).read_bytes()
    np.random.seed(1)  # noqa: NPY002
    compute("dataset=diabetes")
    assert compute("seed=3").to_csv(index=False).encode() == first


def test_stored_run_is_not_computed_again_and_a_changed_key_is_named(tmp_path, cli):
    first = cli(tmp_path)
    again = cli(tmp_path)
    assert "already computed" in again.stdout
    assert again.stdout.splitlines()[:-1] == first.stdout.splitlines()[:-1]
    changed = cli(tmp_path, "boosting.eta=0.25")
    assert "differ: boosting.eta: 0.25 instead of 0.5" in changed.stderr


def test_run_that_cannot_be_is_one_sentence_without_a_traceback(tmp_path, command):
    (tmp_path / "mine.csv").write_text("x,y\n1,2\n")
    own = ["dataset=file", f"dataset.path={tmp_path}/mine.csv", "dataset.target=y"]
    done = command(*own, f"output_dir={tmp_path}")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "error: mine: dataset.test_size=0.2 leaves 0 of 1 rows to train on; at least 2 are needed"
    )
    assert "Traceback" not in done.stderr


def test_own_file_under_a_papers_name_is_looked_at_though_the_run_is_stored(tmp_path, cli, command):
    cli(tmp_path)
    (tmp_path / "g.csv").write_text("credit_amount,x\n" + "1,2\n" * 50)
    own = ["dataset.source=file", f"dataset.path={tmp_path}/g.csv"]
    done = command(*QUICK, f"output_dir={tmp_path}", *own)
    assert done.returncode == 1
    assert "german: the table has no column" in done.stderr


def test_user_table_runs_end_to_end(tmp_path, cli):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "c": rng.choice(list("ab"), 60)})
    frame.assign(price=2 * frame["x"]).to_csv(tmp_path / "mine.csv", index=False)
    done = cli(
        tmp_path, "dataset=file", f"dataset.path={tmp_path}/mine.csv", "dataset.target=price"
    )
    assert done.stdout.startswith("mine / unit / seed 0")


def test_key_depends_on_what_changes_numbers_and_on_nothing_else():
    base = run_key(load(), "d")
    for same in (
        ["output_dir=x"],
        ["dataset.source=sklearn"],
        ["dataset.title=x"],
        ["dataset.id=3"],
    ):
        assert run_key(load(same), "d") == base
    for other in (
        ["boosting.eta=1"],
        ["seed=1"],
        ["strategy=relaxed"],
        ["dataset.test_size=0.3"],
        ["initial.trees=9"],
        ["audit.depth=2"],
        ["dataset.target_scaling=standardise"],
    ):
        assert run_key(load(other), "d") != base
    assert run_key(load(), "e") != base
    assert initial_key(load(["strategy=relaxed"]), "d") == initial_key(load(), "d")


def test_audit_seed_depends_on_dataset_and_seed_alone():
    assert audit_seed("german", 0) == 2989906244686460074
    assert len({audit_seed(d, s) for d in ("german", "adult") for s in range(20)}) == 40
