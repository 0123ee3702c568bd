"""The exact forest is scikit-learn's: the same samples, and trees whose every split is a best."""

import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from pipeline.boosting import PAPER, ExactRandomForestRegressor, MulticalibrationBoostingRegressor
from pipeline.boosting.engines.exact.forest import bootstrap, grow_forest

SD = 1e-9


def both(X, y, n_trees=20, depth=5, seed=0):
    ours = ExactRandomForestRegressor(n_trees, max_depth=depth, random_state=seed).fit(X, y)
    theirs = RandomForestRegressor(n_trees, max_depth=depth, random_state=seed).fit(X, y)
    return ours, theirs


def states(forest):
    return [tree.random_state for tree in forest.estimators_]


def gains(x, y, w):
    """Of all splits of a node along one feature, with scikit-learn's idea of different values."""
    order = np.argsort(x, kind="stable")
    x, w, s = x[order], w[order], (w * y)[order]
    count, total = np.cumsum(w)[:-1], np.cumsum(s)[:-1]
    n, mean = w.sum(), s.sum() / w.sum()
    legal = x[1:] > x[:-1] + np.float32(1e-7)
    return ((total - count * mean) ** 2 / (count * (n - count)))[legal]


def is_greedy(trees, k, X, y, w, node=0):
    """Whether every split of a tree is as good as the best one, found by looking at all of them."""
    threshold, feature = trees.threshold[k], trees.feature[k]
    if node >= len(threshold):
        return True
    y = y - np.average(y, weights=w)
    best = max((gains(x, y, w).max(initial=-1.0) for x in X.T), default=-1.0)
    if np.isinf(threshold[node]):  # a leaf: nothing to split, or nothing to gain
        return best < 0 or np.average(y * y, weights=w) <= 1e-15 + 1e-12 * np.abs(y).max() ** 2
    right = X[:, feature[node]] > threshold[node]
    count, total = w[~right].sum(), (w * y)[~right].sum()
    gain = total**2 / (count * (w.sum() - count))
    return (
        gain >= best * (1 - 1e-8) - 1e-20
        and is_greedy(trees, k, X[~right], y[~right], w[~right], 2 * node + 1)
        and is_greedy(trees, k, X[right], y[right], w[right], 2 * node + 2)
    )


def assert_same_trees(X, y, ours, theirs):
    """In-bag values are equal, or the tree is another one that scikit-learn's rules allow.

    Gives the number of trees that differ.
    """
    X32, n_ties = X.astype(np.float32), 0
    tolerance = SD * y.std() + 1e-13 * np.abs(y).max()
    for k, (tree, draws) in enumerate(
        zip(theirs.estimators_, bootstrap(states(theirs), len(y)), strict=True)
    ):
        drawn = draws > 0
        distance = np.abs(ours.forest_.predict_tree(X, k) - tree.predict(X32))[drawn].max()
        if distance > tolerance:
            n_ties += 1
            w = draws[drawn].astype(float)
            assert is_greedy(ours.forest_.trees, k, X32[drawn], y[drawn], w), f"tree {k}"
    return n_ties


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n"),
    [("diabetes", None), ("german", None), ("crime", None), ("california", 5000), ("adult", 5000)],
)
def test_every_trees_in_bag_values_are_sklearns(name, n, paper_split):
    X, y, *_ = paper_split(name, n=n)
    ours, theirs = both(X, y)
    assert assert_same_trees(X, y, ours, theirs) <= 4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["diabetes", pytest.param("german", marks=pytest.mark.exhaustive)])
def test_forest_is_as_close_to_sklearns_as_sklearns_with_other_ties(name, paper_split):
    distances = {"ours": [], "theirs": []}
    for seed in range(5):
        X, y, X_test, _ = paper_split(name, seed)
        ours, theirs = both(X, y, 40, seed=seed)
        draws = bootstrap(states(theirs), len(y)).astype(float)
        retied = [
            DecisionTreeRegressor(max_depth=5, random_state=k).fit(X, y, sample_weight=w)
            for k, w in enumerate(draws)
        ]
        for rows in (X, X_test):
            reference = theirs.predict(rows)
            other = np.mean([tree.predict(rows) for tree in retied], axis=0)
            distances["ours"].append(np.abs(ours.predict(rows) - reference).mean())
            distances["theirs"].append(np.abs(other - reference).mean())
    assert np.mean(distances["ours"]) <= 1.3 * np.mean(distances["theirs"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.one_of(st.integers(2, 30), st.integers(200, 500)),
    levels=st.lists(st.sampled_from([1, 2, 3, 40, 10**6]), min_size=1, max_size=5),
    target=st.sampled_from(["continuous", "integers", "constant", "shifted"]),
    depth=st.integers(1, 7),
)
def test_trees_are_greedy_on_any_table(seed, n, levels, target, depth):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, k, n) / k for k in levels])
    y = {
        "continuous": rng.normal(size=n),
        "integers": rng.integers(-2, 3, n).astype(float),
        "constant": np.full(n, 3.7),
        "shifted": 1e5 + rng.normal(size=n),
    }[target]
    ours, theirs = both(X, y, 3, depth, seed)
    assert_same_trees(X, y, ours, theirs)
    X32 = X.astype(np.float32)
    for k, draws in enumerate(bootstrap(states(theirs), n)):
        drawn, w = draws > 0, draws[draws > 0].astype(float)
        assert is_greedy(ours.forest_.trees, k, X32[drawn], y[drawn], w)


def test_with_one_feature_there_are_no_ties_and_out_of_bag_values_are_sklearns_too():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 1)), rng.normal(size=400)
    ours = ExactRandomForestRegressor(60, oob_score=True, random_state=3).fit(X, y)
    theirs = RandomForestRegressor(60, max_depth=5, oob_score=True, random_state=3).fit(X, y)
    elsewhere = rng.normal(size=(200, 1))
    np.testing.assert_allclose(ours.predict(elsewhere), theirs.predict(elsewhere), atol=1e-12)
    np.testing.assert_allclose(ours.oob_prediction_, theirs.oob_prediction_, atol=1e-12)
    assert ours.oob_score_ == pytest.approx(theirs.oob_score_, abs=1e-12)


def test_rows_in_every_sample_have_no_out_of_bag_value_and_that_is_said():
    X, y = np.arange(6.0)[:, None], np.arange(6.0)
    with pytest.warns(UserWarning, match="have no out-of-bag prediction"):
        forest = ExactRandomForestRegressor(1, oob_score=True, random_state=0).fit(X, y)
    in_bag = bootstrap([np.random.RandomState(0).randint(2**31 - 1)], 6)[0] > 0
    np.testing.assert_array_equal(np.isnan(forest.oob_prediction_), in_bag)


def test_ties_between_features_are_broken_by_the_trees_own_seed():
    rng = np.random.default_rng(0)
    column = rng.normal(size=80)
    X = np.column_stack([column, column**3, np.exp(column)])  # three features, one order of rows
    forest = grow_forest(X, np.sign(column), list(range(150)), 1)
    assert np.bincount(forest.trees.feature[:, 0], minlength=3).min() > 30


def test_threads_do_not_change_the_forest(paper_split):
    X, y, *_ = paper_split("german")
    alone, together = (
        ExactRandomForestRegressor(31, n_jobs=n_jobs, random_state=0).fit(X, y) for n_jobs in (1, 3)
    )
    for a, b in zip(alone.forest_.trees, together.forest_.trees, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_model_starts_from_the_forest_of_its_engine(paper_split):
    X, y, *_ = paper_split("diabetes")
    for engine, forest in (
        ("exact", ExactRandomForestRegressor(100, random_state=4)),
        ("sklearn", RandomForestRegressor(100, max_depth=5, random_state=4)),
    ):
        settings = PAPER | {"n_rounds": 0, "engine": engine, "random_state": 4}
        model = MulticalibrationBoostingRegressor(**settings).fit(X, y)
        np.testing.assert_array_equal(model.predict(X), forest.fit(X, y).predict(X))


def test_forest_survives_pickling_and_its_size_does_not_depend_on_the_rows():
    rng = np.random.default_rng(0)
    sizes = []
    for n in (100, 3000):
        X = rng.normal(size=(n, 2))
        forest = ExactRandomForestRegressor(10, random_state=0).fit(X, X[:, 0])
        pickled = pickle.dumps(forest)
        np.testing.assert_array_equal(pickle.loads(pickled).predict(X), forest.predict(X))
        sizes.append(len(pickled))
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"n_estimators": 0}, "n_estimators == 0"), ({"max_depth": 13}, "must be from 1 to 12")],
)
def test_parameters_out_of_range_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        ExactRandomForestRegressor(**parameters).fit(np.ones((4, 1)), np.arange(4.0))


@pytest.mark.slow
@parametrize_with_checks(
    [ExactRandomForestRegressor(5, random_state=0)],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": "other rows fall into other samples"
    },
)
def test_scikit_learns_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", ["whole", "skewed"])
def test_weighted_trees_are_sklearns(kind, paper_split):
    X, y, *_ = paper_split("california", n=2000)
    rng = np.random.default_rng(0)
    w = rng.integers(0, 4, len(y)).astype(float) if kind == "whole" else rng.lognormal(size=len(y))
    ours = ExactRandomForestRegressor(10, random_state=0).fit(X, y, sample_weight=w)
    theirs = RandomForestRegressor(10, max_depth=5, random_state=0).fit(X, y, sample_weight=w)
    same = 0
    for k, draws in enumerate(bootstrap(states(theirs), len(y), w)):
        seen = draws > 0
        reference = theirs.estimators_[k].predict(X[seen].astype(np.float32))
        distance = np.abs(ours.forest_.predict_tree(X[seen], k) - reference).max()
        same += distance <= SD * y.std()
        assert distance <= SD * y.std() or is_greedy(
            ours.forest_.trees, k, X[seen].astype(np.float32), y[seen], draws[seen]
        )
    assert same >= 8  # the others have a tie
