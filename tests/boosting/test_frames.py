"""Tables, outcomes and predictions as people have them, and what is refused with which words."""

import datetime

import numpy as np
import pandas as pd
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.boosting import (
    MulticalibrationBoostingRegressor,
    audit_predictions,
    multicalibration_error,
)
from pipeline.boosting.frames import columns_of, outcomes_of, predictions_of

random = np.random.default_rng(0)
X = pd.DataFrame({"a": random.standard_normal(200), "g": random.choice(["u", "v"], 200)})
P = 1 / (1 + np.exp(-X["a"].to_numpy()))
Y = random.random(200) < P
BOTH = np.column_stack([1 - P, P])


@pytest.mark.parametrize(
    "y",
    [Y, Y.astype(int), Y.astype(float), np.where(Y, "yes", "no"), pd.Series(Y),
     pd.Series(Y, dtype="boolean"), pd.Series(np.where(Y, "yes", "no"), dtype="category"),
     pd.Series(Y.astype(int), dtype="Int64"), list(Y), Y.astype(object)],
    ids=str,
)  # fmt: skip
def test_outcomes_of_two_classes_are_the_same_however_they_are_written(y):
    np.testing.assert_array_equal(outcomes_of(y), Y.astype(float))


def test_audits_take_labels_and_probabilities_of_both_classes():
    expected = audit_predictions(X, Y.astype(float), P, n_segments=3)
    labels = np.where(Y, "yes", "no")
    found = audit_predictions(X, labels, BOTH, n_segments=3)
    assert (found.mce, found.p_value) == (expected.mce, expected.p_value)
    assert multicalibration_error(X, labels, BOTH) == multicalibration_error(X, Y.astype(float), P)
    np.testing.assert_array_equal(predictions_of(P[:, None]), P)


class Frame:
    """What polars and others have in common: a frame that turns into pandas' own."""

    def __init__(self, table):
        self.table = table

    def to_pandas(self):
        return self.table


@pytest.mark.parametrize(
    "table",
    [Frame(X), pyarrow.Table.from_pandas(X), X.convert_dtypes(dtype_backend="pyarrow")],
    ids=["frame", "arrow", "arrow dtypes"],
)
def test_frames_of_other_libraries_are_read(table):
    expected = MulticalibrationBoostingRegressor(n_rounds=2, random_state=0).fit(X, P)
    found = MulticalibrationBoostingRegressor(n_rounds=2, random_state=0).fit(table, P)
    np.testing.assert_array_equal(found.predict(table), expected.predict(X))


def test_all_problems_of_a_table_are_told_at_once():
    table = X.assign(c=1j, d=pd.Timestamp("2020"), e=np.inf)
    with pytest.raises(ValueError, match=r"'c' holds complex.*'d' holds dates.*'e' holds inf"):
        columns_of(table)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": np.ma.masked_array(P, Y)}, "y: is a masked array"),
        ({"X": np.ma.masked_array(np.ones((200, 2)))}, "X: is a masked array"),
        ({"y": P * 1j}, "y: must hold numbers"),
        ({"y": P * 1e160}, "y: its largest value"),
        ({"prediction": P * 1e-200}, "prediction: its largest value"),
        ({"sample_weight": P * 1e300}, "sample_weight: its largest value"),
        ({"sample_weight": np.eye(200)[0]}, "positive for two rows"),
        ({"y": np.array(["a", "b", "c", "d"] * 50)}, "y: has 4 classes"),
        ({"y": np.array([None, "b"] * 100)}, "y: holds missing cells"),
        ({"groups": ["g"], "X": pd.concat([X, X[["g"]]], axis=1)}, "several columns of that name"),
    ],
)
def test_what_cannot_be_audited_is_refused_in_a_sentence(arguments, message):
    use = {"X": X, "y": P, "prediction": P, "n_segments": 1} | arguments
    with pytest.raises(ValueError, match=message):
        audit_predictions(**use)


def test_an_id_of_many_words_is_refused_and_not_expanded():
    table = pd.DataFrame({"id": [f"k{i}" for i in range(5000)]})
    with pytest.raises(ValueError, match="'id' has 5000 levels"):
        audit_predictions(table, np.zeros(5000), np.zeros(5000))


def test_groups_are_named_by_whole_numbers_and_rare_pairs_are_left_out():
    numbers = 1_000_000 + random.integers(0, 3, 200)
    found = audit_predictions(X, P, P / 2, groups={"n": numbers, "g": X["g"]}, n_segments=1)
    rules = set(found.groups["rule"])
    assert {"n = 1000000", "n = 1000002", "g = u"} <= rules
    assert {"n = 1000001 and g = v"} <= rules or (
        ((numbers == 1_000_001) & (X["g"] == "v")).sum() < 30
    )


CELLS = st.sampled_from([True, False, 1, 0, 1.0, 2.5, "maybe", "True", "1", None, np.nan])


@settings(deadline=None, max_examples=40)
@given(st.lists(CELLS, min_size=30, max_size=30), st.randoms(use_true_random=False))
def test_prediction_of_a_row_does_not_depend_on_its_batch(cells, order):
    table = pd.DataFrame({"c": pd.Series(cells, dtype=object), "x": np.arange(30.0)})
    y = np.array([hash(str(c)) % 7 for c in cells], float)
    settings = {"early_stopping": False, "feedback": "none", "min_samples_leaf": 1}
    model = MulticalibrationBoostingRegressor(2, **settings, random_state=0)
    model.fit(table, y, initial_prediction=np.zeros(30))
    whole = model.predict(table, np.zeros(30))
    rows = list(range(30))
    order.shuffle(rows)
    for some in (rows[:7], rows[7:11], *([row] for row in rows[:5])):
        part = table.iloc[some]
        np.testing.assert_array_equal(model.predict(part, np.zeros(len(some))), whole[some])


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ([[1, 2]] * 200, "'l' holds lists or other objects"),
        ([{"a": 1}] * 200, "'l' holds lists or other objects"),
        (pd.Series([1] * 200, dtype=pd.ArrowDtype(pyarrow.duration("us"))), "dates or times"),
        ([datetime.time(1, 2)] * 200, "dates or times"),
    ],
)
def test_cells_that_are_no_words_or_numbers_are_refused_with_their_column(cells, says):
    with pytest.raises(ValueError, match=says):
        columns_of(X.assign(l=cells))


def test_a_number_and_its_word_are_one_level():
    (column,) = columns_of(pd.DataFrame({"m": [1, "1", 2.5, None] * 50}))
    assert column.levels == ("1", "2.5", "(missing)")
    found = audit_predictions(X.assign(m=[1, "1", 2.5, "b"] * 50), Y, P, groups=["m", "m"])
    assert found.groups["rule"].is_unique


@pytest.mark.parametrize(
    ("groups", "says"),
    [(3, "must be names of columns"), ({"a": 1}, r"has shape \(\)"), ({"a": [1, 2]}, r"\(200,\)")],
)
def test_groups_that_are_none_are_refused_in_a_sentence(groups, says):
    with pytest.raises(ValueError, match=says):
        audit_predictions(X, Y, P, groups=groups)
