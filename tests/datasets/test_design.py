"""Raw tables become the paper's design matrices, and nothing is learned from test rows."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split

from pipeline.analysis.paper import TABLE1
from pipeline.config.compose import load
from pipeline.datasets.canonical import canonicalise, content_hash
from pipeline.datasets.design import preprocess, split
from pipeline.datasets.sources import RawTable
from pipeline.errors import DataError

NAMES = list(TABLE1)


def raw(frame, target=("y",)):
    table = canonicalise(frame)
    return RawTable(table, content_hash(table), "test", target)


@cache
def toy(*overrides):
    """A dataset config for frames made up in this file."""
    return load(["dataset.name=toy", "dataset.target=y", *overrides]).dataset


@pytest.fixture(scope="module")
def designs(design):
    return {name: design(name) for name in NAMES}


def test_row_and_feature_counts_match_table_1_where_the_paper_is_consistent(designs):
    shapes = {name: design.X.shape for name, design in designs.items()}
    assert shapes["california"] == (20640, 8)
    assert shapes["diabetes"] == (442, 10)
    assert shapes["german"] == (1000, 48)
    assert shapes["crime"] == (1994, 122)


def test_adult_has_the_papers_101_columns_only_before_the_described_removals(
    designs, library, dataset
):
    table = library.table(dataset("adult"))
    whole = pd.get_dummies(table.frame, drop_first=True).shape[1]
    assert whole == TABLE1["adult"][1]
    removed = table.frame.drop(columns=["education", "education-num", "hours-per-week"])
    assert designs["adult"].X.shape == (32561, pd.get_dummies(removed, drop_first=True).shape[1])


@pytest.mark.parametrize("name", NAMES)
def test_design_matrix_equals_pandas_get_dummies(name, designs, library, dataset):
    config = dataset(name)
    frame = library.table(config).frame
    covariates = frame.drop(columns=[*config.target_columns, *config.drop])
    expected = pd.get_dummies(covariates, drop_first=True, dtype=float, prefix_sep="=")
    ours = pd.DataFrame(designs[name].X, columns=list(designs[name].feature_names))
    assert set(ours.columns) == set(expected.columns)
    pd.testing.assert_frame_equal(ours[expected.columns], expected)
    target = frame[list(config.target_columns)].sum(axis=1)
    np.testing.assert_array_equal(designs[name].y, target)


def test_adult_target_is_the_sum_of_years_of_education_and_weekly_hours(designs):
    # The file's first person: education-num 13, hours-per-week 40.
    assert designs["adult"].y[0] == 53
    assert not any(n.startswith(("education", "hours")) for n in designs["adult"].feature_names)


def test_unknown_workclass_is_a_level_of_its_own(design):
    assert "workclass=?" in design("adult", "dataset.drop_first=false").feature_names


@pytest.mark.parametrize("seed", [0, 19])
def test_crime_is_imputed_with_training_means_like_sklearn_does(designs, dataset, seed):
    ours = split(designs["crime"], dataset("crime"), seed)
    train, test = train_test_split(designs["crime"].X, test_size=0.2, random_state=seed)
    imputer = SimpleImputer(keep_empty_features=True).fit(train)
    np.testing.assert_allclose(ours.X_train, imputer.transform(train), rtol=1e-12)
    np.testing.assert_allclose(ours.X_test, imputer.transform(test), rtol=1e-12)
    assert np.isnan(designs["crime"].X).sum() == 22 * 1675 + 1


@pytest.mark.parametrize("name", NAMES)
def test_split_is_the_literal_80_20_shuffle_of_the_seed(name, designs, dataset):
    ours = split(designs[name], dataset(name), seed=3)
    _, _, y_train, y_test = train_test_split(
        designs[name].X, designs[name].y, test_size=0.2, random_state=3
    )
    np.testing.assert_array_equal(ours.y_train, y_train)
    np.testing.assert_array_equal(ours.y_test, y_test)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.floats(1, 1e6))
def test_test_rows_never_influence_what_is_learned(seed, noise):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.normal(size=40), "b": rng.normal(size=40), "y": rng.random(40)})
    frame.loc[rng.random(40) < 0.3, "a"] = np.nan
    config = toy("dataset.target_scaling=standardise")
    before = split(preprocess(raw(frame), config), config, seed=1)
    _, test_rows = train_test_split(np.arange(40), test_size=0.2, random_state=1)
    frame.loc[test_rows, ["a", "b", "y"]] += noise
    after = split(preprocess(raw(frame), config), config, seed=1)
    np.testing.assert_array_equal(before.X_train, after.X_train)
    np.testing.assert_array_equal(before.y_train, after.y_train)


def test_standardised_target_has_zero_mean_and_unit_sd_on_training_rows(designs, dataset):
    config = dataset("german", "dataset.target_scaling=standardise")
    ours = split(designs["german"], config, seed=0)
    assert abs(ours.y_train.mean()) < 1e-12
    assert abs(ours.y_train.std() - 1) < 1e-12


def test_column_without_any_training_value_becomes_constant_zero():
    frame = pd.DataFrame({"a": [np.nan] * 10, "b": range(10), "y": range(10)})
    ours = split(preprocess(raw(frame), toy()), toy(), seed=0)
    assert (ours.X_train[:, 0] == 0).all()


BAD_TABLES = [
    ({"x": [1, 2], "y": ["a", "b"]}, [], "dataset.target=y: must be a numeric column"),
    ({"x": [1, 2], "y": [1, np.nan]}, [], "1 of 2 rows have a missing"),
    ({"x": [1, 2], "z": [1, 2]}, [], "dataset.target=y: toy has no such column; it has x, z"),
    ({"x": [1, np.inf], "y": [1, 2]}, [], "'x' holds infinite"),
    ({"x": [1, np.nan], "y": [1, 2]}, ["dataset.missing=reject"], "'x' has missing cells"),
    ({"y": [1, 2]}, [], "no covariate is left"),
    ({"x": list("abc"), "y": [1, 2, 3]}, ["dataset.max_levels=2"], "3 levels.*dataset.drop"),
    ({"x": [1, 2], "y": [1, 2]}, ["dataset.drop=[q]"], "dataset.drop=q: toy has no such column"),
]


@pytest.mark.parametrize(("columns", "overrides", "message"), BAD_TABLES)
def test_unusable_table_is_refused_with_the_column_named(columns, overrides, message):
    with pytest.raises(DataError, match=message):
        preprocess(raw(pd.DataFrame(columns)), toy(*overrides))


def test_date_column_is_refused_with_the_way_out():
    frame = pd.DataFrame({"when": pd.date_range("2020", periods=3), "y": [1, 2, 3]})
    with pytest.raises(DataError, match=r"'when' holds dates.*dataset.drop=\[when\]"):
        raw(frame)


def test_one_row_cannot_be_split():
    frame = pd.DataFrame({"x": [1.0], "y": [1.0]})
    with pytest.raises(DataError, match="leaves 0 of 1 rows to train on"):
        split(preprocess(raw(frame), toy()), toy(), seed=0)


@pytest.mark.parametrize(("size", "words"), [(1e200, "too large"), (1e-200, "too small")])
def test_target_whose_squares_overflow_or_vanish_is_refused(size, words):
    frame = pd.DataFrame({"x": np.arange(5.0), "y": np.arange(5.0) * size})
    with pytest.raises(DataError, match=f"{words} to be squared"):
        preprocess(raw(frame), toy())


def test_feature_beyond_single_precision_is_refused_with_its_name():
    frame = pd.DataFrame({"x": np.arange(5.0) * 1e39, "y": np.arange(5.0)})
    with pytest.raises(DataError, match="column 'x' holds values beyond 3e"):
        preprocess(raw(frame), toy())


def test_one_row_to_train_on_is_too_few():
    frame = pd.DataFrame({"x": np.arange(60.0), "y": np.arange(60.0)})
    design = preprocess(raw(frame), toy())
    with pytest.raises(DataError, match="leaves 1 of 60 rows"):
        split(design, toy("dataset.test_size=0.97"), 0)


def test_without_a_split_all_rows_are_on_both_sides():
    frame = pd.DataFrame({"x": np.arange(60.0), "y": np.arange(60.0)})
    whole = split(preprocess(raw(frame), toy()), toy("dataset.test_size=0"), 3)
    np.testing.assert_array_equal(whole.y_train, frame["y"])
    np.testing.assert_array_equal(whole.X_test, whole.X_train)
