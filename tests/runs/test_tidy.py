"""All stored runs as one frame, with the settings that differ as columns."""

import numpy as np
import pandas as pd
import pytest

import pipeline
from pipeline.errors import DataError
from pipeline.runs.store import RunId, RunStore


def save(folder, dataset="german", strategy="unit", seed=0, **settings):
    key = {
        "name": dataset, "seed": seed, "data": dataset, "numerics": 2,
        "dataset": {"target": f"y of {dataset}"}, "strategy": {"name": strategy},
        "boosting": {"rounds": 1, "eta": 0.5},
    }  # fmt: skip
    for name, value in settings.items():
        section, _, leaf = name.partition("__")
        key[section][leaf] = value
    rounds = pd.DataFrame(
        {
            "dataset": dataset,
            "strategy": strategy,
            "seed": seed,
            "round": [0, 1],
            "gap": [np.nan, 1],
            **dict.fromkeys(["weight", "mse_train", "mse_test", "mce_train", "mce_test"], 1.0),
        }
    )
    run_id = RunId(dataset, strategy, seed, key)
    return RunStore(folder).save(run_id, rounds, {"sizes": {"n_train": 8, "n_test": 2}})


def test_settings_that_differ_are_columns_and_others_are_not(tmp_path):
    save(tmp_path / "a")
    save(tmp_path / "a", dataset="adult")  # another target, which is no setting of one dataset
    save(tmp_path / "b", boosting__eta=0.3)
    save(tmp_path / "b", strategy="relaxed", strategy__offset=2.0)
    runs = pipeline.load_runs(tmp_path / "*")
    front = ["experiment", "dataset", "strategy", "seed", "boosting.eta", "round"]
    assert list(runs.columns[:6]) == front
    assert len(runs) == 8
    assert runs.groupby("experiment")["boosting.eta"].unique().map(set).to_dict() == {
        "a": {0.5}, "b": {0.3, 0.5},
    }  # fmt: skip
    assert set(runs["n_test"]) == {2}
    assert runs["key"].nunique() == 4


def test_strategys_own_setting_is_a_column_where_it_differs(tmp_path):
    save(tmp_path / "a")
    for offset in (2.0, 3.0):
        save(tmp_path / "a", strategy="relaxed", strategy__offset=offset)
    runs = pipeline.load_runs(str(tmp_path / "a"))
    assert set(runs.loc[runs["strategy"] == "relaxed", "strategy.offset"]) == {2.0, 3.0}
    assert runs.loc[runs["strategy"] == "unit", "strategy.offset"].isna().all()


def test_damaged_run_is_left_out_with_a_warning(tmp_path, caplog):
    save(tmp_path / "a")
    folder = save(tmp_path / "a", seed=1)
    (folder / "rounds.csv").write_text("x")
    assert set(pipeline.load_runs(tmp_path / "a")["seed"]) == {0}
    assert "does not match its checksum; left out" in caplog.text


def test_no_runs_are_an_error_in_words(tmp_path):
    with pytest.raises(DataError, match="no stored runs are there"):
        pipeline.load_runs(tmp_path / "*")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pipeline.nothing
