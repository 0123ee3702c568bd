"""Words and missing cells as numbers: the same answer for every later table."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import OneHotEncoder

from pipeline.boosting.encoding import Encoding, check_levels
from pipeline.boosting.frames import columns_of


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "age": [31.0, np.nan, 50.0, 40.0],
            "town": ["Ulm", "Bonn", None, "Ulm"],
            "member": [True, False, True, True],
            "grade": pd.Categorical(["b", "a", "b", "c"], categories=["c", "b", "a"]),
        }
    )


def test_levels_are_sklearns_indicators(frame):
    encoding = Encoding.learn(frame[["grade", "town"]].dropna())
    theirs = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    theirs.fit(frame[["grade", "town"]].dropna().astype(str))
    new = pd.DataFrame({"grade": ["a", "z"], "town": ["Kiel", "Bonn"]})
    np.testing.assert_array_equal(encoding.encode(new), theirs.transform(new))
    assert encoding.names == ("grade=a", "grade=b", "grade=c", "town=Bonn", "town=Ulm")


def test_a_missing_number_lies_below_all_others_and_a_missing_word_is_a_level(frame):
    encoding = Encoding.learn(frame)
    X = encoding.encode(frame)
    assert encoding.names[:4] == ("age", "town=Bonn", "town=Ulm", "town=(missing)")
    assert X[1, 0] < 31
    np.testing.assert_array_equal(X[2, 1:4], [0, 0, 1])
    assert list(encoding.origin) == [0, 1, 1, 1, 2, 3, 3, 3]
    assert np.isfinite(X).all()


def test_new_levels_and_new_missing_cells_have_an_answer(frame):
    encoding = Encoding.learn(frame.dropna())
    new = pd.DataFrame(
        {"age": [np.nan], "town": ["Rome"], "member": [None], "grade": [None]}
    ).astype({"member": "boolean"})
    X = encoding.encode(new)
    assert np.isfinite(X).all()
    assert X[0, 0] < 31  # below all others, as if they had been there
    assert not X[0, 1 : 1 + 2].any()


def test_a_column_without_any_number_stays_a_column():
    encoding = Encoding.learn(pd.DataFrame({"a": [np.nan, np.nan], "b": [1.0, 2.0]}))
    np.testing.assert_array_equal(encoding.encode(pd.DataFrame({"a": [0.0], "b": [3.0]})), [[0, 3]])


def test_a_matrix_without_missing_cells_is_not_copied():
    X = np.random.default_rng(0).normal(size=(20, 3))
    assert Encoding.learn(X).encode(X) is X
    holed = X.copy()
    holed[4, 1] = np.nan
    filled = Encoding.learn(X).encode(holed)
    assert filled[4, 1] < X[:, 1].min()
    np.testing.assert_array_equal(np.delete(filled, 4, 0), np.delete(X, 4, 0))


@pytest.mark.parametrize("low", [1.7e9, 20240101.0, -3e38, 1e-30, 0.0])
def test_a_missing_cell_can_be_told_from_the_lowest_number_in_single_precision(low):
    X = np.array([[low], [low], [np.nan]])
    filled = Encoding.learn(X).encode(X).astype(np.float32)
    assert np.isfinite(filled).all()
    assert filled[2, 0] < filled[0, 0]


def test_types_that_pandas_changed_along_the_way_are_seen_through(frame):
    encoding = Encoding.learn(frame)
    X = encoding.encode(frame)
    one_by_one = [encoding.encode(frame.iloc[k].to_frame().T) for k in range(4)]
    np.testing.assert_array_equal(np.vstack(one_by_one), X)
    np.testing.assert_array_equal(encoding.encode(frame.astype(object)), X)
    assert Encoding.learn(frame.astype(object)).names == encoding.names
    numbers = pd.DataFrame({"kind": pd.Categorical([1, 2, 2])})
    learned = Encoding.learn(numbers)
    for type_ in (int, float, object, str):
        np.testing.assert_array_equal(
            learned.encode(numbers.astype(type_)), [[1, 0], [0, 1], [0, 1]]
        )


def test_a_level_called_missing_is_not_a_missing_cell():
    encoding = Encoding.learn(pd.DataFrame({"a": ["missing", None, "b"]}))
    assert len(set(encoding.names)) == 3


def test_words_where_numbers_were_and_numbers_where_words_were_are_refused(frame):
    encoding = Encoding.learn(frame)
    with pytest.raises(ValueError, match=r"'age' held numbers .* now it has 'old'"):
        encoding.encode(frame.assign(age=["old"] * 4))
    with pytest.raises(ValueError, match="'town' held categories"):
        encoding.encode(frame.assign(town=[1.0, 2, 3, 4]))


def test_identifiers_are_refused_before_they_become_thousands_of_columns():
    names = pd.DataFrame({"id": [f"customer {k}" for k in range(1200)]})
    with pytest.raises(ValueError, match=r"'id' has 1200 levels, more than 1000; leave it out"):
        check_levels(columns_of(names))
