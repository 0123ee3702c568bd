"""Table 1 is the same whether it is counted on the data or read from stored runs."""

import pandas as pd
import pytest

from pipeline.analysis.paper import TABLE1
from pipeline.analysis.table1 import table_of_designs, table_of_runs
from pipeline.config.compose import load


@pytest.fixture(scope="module")
def counted(design, dataset):
    return table_of_designs({name: (dataset(name).display, design(name)) for name in TABLE1})


def test_paper_and_ours_stand_side_by_side_with_a_reason_exactly_where_they_differ(counted):
    rows = counted.set_index("dataset")
    same = (
        (rows.raw_paper == rows.raw_ours)
        & (rows.features_paper == rows.features_ours)
        & (rows.rows_paper == rows.rows_ours)
    )
    assert set(rows.index[~same]) == {"Adult", "German Credit"}
    assert ((rows.why == "") == same).all()
    assert "101" in rows.why["Adult"]


def record(name, design, *overrides):
    """As much of a ``run.json`` as Table 1 needs."""
    n, d = design.X.shape
    config = load([f"dataset={name}", *overrides]).model_dump(mode="json")
    sizes = {"n_train": n - n // 5, "n_test": n // 5, "n_features": d}
    return {"key": {"name": name}, "config": config, "sizes": sizes}


def test_stored_runs_give_the_same_table(counted, design):
    records = [record(name, design(name)) for name in reversed(TABLE1) for _ in range(3)]
    pd.testing.assert_frame_equal(table_of_runs(records), counted)


def test_other_settings_and_other_datasets_show(design):
    change = "dataset.drop=[]"
    records = [record("adult", design("adult", change), change)]
    records.append(record("german", design("german")) | {"key": {"name": "mine"}})
    (row,) = table_of_runs(records).to_dict("records")
    assert (row["raw_ours"], row["features_ours"]) == (13, 99)
