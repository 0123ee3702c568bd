"""Trees as arrays of nodes: the engines' own predictions to the bit, and only sound trees."""

import lightgbm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.boosting import (
    PAPER,
    MulticalibrationBoostingClassifier,
    MulticalibrationBoostingRegressor,
)
from pipeline.boosting.engines import TreeSettings, make_engine
from pipeline.boosting.engines.nodes import (
    LEAF,
    NODE,
    Nodes,
    add_up,
    lightgbm_nodes,
    single_precision,
)


def rows(n, seed=0):
    """A table with numbers, holes, zeros, codes of categories, and a target of all of them."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, 4))
    X[random.random(n) < 0.2, 1] = np.nan
    X[random.random(n) < 0.3, 2] = 0.0
    X[:, 3] = random.integers(0, 70, n)
    y = X[:, 0] + np.isnan(X[:, 1]) + (X[:, 3] % 7 == 2) + 0.1 * random.standard_normal(n)
    return X, y


@pytest.mark.parametrize("objective", ["regression", "binary"])
@pytest.mark.parametrize("seed", range(3))
def test_trees_of_lightgbm_predict_what_lightgbm_predicts(objective, seed):
    X, y = rows(800, seed)
    label = y > 0.5 if objective == "binary" else y
    parameters = {"objective": objective, "verbosity": -1, "min_data_in_leaf": 2, "seed": seed}
    data = lightgbm.Dataset(X, label, categorical_feature=[3], params=parameters)
    booster = lightgbm.train(parameters, data, 20)
    trees, gains = lightgbm_nodes(booster.model_to_string())
    new, _ = rows(500, seed + 100)
    new[:, 3][:5] = [500.0, -1.0, np.nan, 69.5, 1e12]  # never seen, or no category at all
    new[5:9, 0] = [np.inf, -np.inf, np.nan, 1e-40]
    out = np.empty(500)
    add_up(trees, np.ascontiguousarray(new[:, 1:]), np.ascontiguousarray(new[:, 0]), out)
    np.testing.assert_array_equal(out, booster.predict(new, raw_score=True))
    np.testing.assert_allclose(np.roll(gains, 1), booster.feature_importance("gain"), rtol=1e-6)


def test_forest_of_lightgbm_is_a_mean():
    X, y = rows(300)
    parameters = {
        "boosting": "rf", "bagging_fraction": 0.6, "bagging_freq": 1, "verbosity": -1
    }  # fmt: skip
    booster = lightgbm.train(parameters, lightgbm.Dataset(X, y), 15)
    out = np.empty(300)
    trees, _ = lightgbm_nodes(booster.model_to_string())
    add_up(trees, np.ascontiguousarray(X[:, 1:]), np.ascontiguousarray(X[:, 0]), out)
    np.testing.assert_allclose(out, booster.predict(X), rtol=1e-12)


@settings(deadline=None)
@given(
    st.floats(-(2.0**100), 2.0**100, width=32) | st.floats(-3, 3) | st.floats(-1e-44, 1e-44),
    st.integers(-3, 3),
)
def test_thresholds_for_doubles_decide_as_those_for_single_precision(threshold, step):
    t = np.array([threshold])
    c = single_precision(t)
    x = c.copy()
    for _ in range(abs(step)):
        x = np.nextafter(x, np.inf if step > 0 else -np.inf)
    for value in (x, t, t.astype(np.float32).astype(float), 2 * t, -t):
        assert (value <= c) == (value.astype(np.float32) <= t)


def test_exact_trees_as_nodes_predict_the_same_bits():
    X, y = rows(600)
    X = np.nan_to_num(X)
    f = np.random.default_rng(1).standard_normal(600)
    ensemble, _ = make_engine("exact", TreeSettings(30, 4)).bind(X).fit(f, y - f, 0)
    out = np.empty(600)
    add_up(ensemble.nodes(), X, f, out)
    np.testing.assert_array_equal(out, ensemble.predict(X, f))


@pytest.mark.parametrize("feedback", ["honest", "in_sample", "initial", "none"])
@pytest.mark.parametrize("parameters", [{}, {"rescaling": "relaxed", "stack": False}, PAPER])
def test_prediction_is_the_last_of_the_stages_to_the_bit(feedback, parameters):
    X, y = rows(400)
    settings = parameters | {"n_rounds": 4, "n_trees": 5, "feedback": feedback}
    model = MulticalibrationBoostingRegressor(**settings, random_state=0).fit(X, y)
    new, _ = rows(700, 5)
    *_, last = model.staged_predict(new)
    np.testing.assert_array_equal(model.predict(new), last)
    np.testing.assert_array_equal(model.predict(new[:1]), last[:1])


def test_logits_are_the_last_of_the_stages_to_the_bit():
    X, y = rows(400)
    model = MulticalibrationBoostingClassifier(n_rounds=4, random_state=0).fit(X, y > 0.5)
    *_, last = model.staged_predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(X), last)


def sound():
    nodes = np.zeros(3, NODE)
    nodes["feature"] = [0, LEAF, LEAF]
    nodes["left"][0], nodes["right"][0] = 1, 2
    nodes["number"] = [0.5, -1.0, 2.0]
    return Nodes(nodes, np.array([0]), np.empty(0, np.uint32), np.array([0, 1]))


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("left", [0, 0, 0]), ("left", [3, 0, 0]), ("right", [-1, 0, 0]), ("feature", [3, -1, -1]),
        ("feature", [-2, -1, -1]), ("flags", [9, 0, 0]), ("number", [0.5, np.nan, 0.0]),
        ("number", [0.5, np.inf, 0.0]),
    ],
)  # fmt: skip
def test_nodes_that_compiled_code_could_not_follow_are_refused(field, values):
    trees = sound()
    trees.check(2)
    trees.nodes[field] = values
    with pytest.raises(ValueError, match="not sound"):
        trees.check(2)


def test_damaged_models_of_lightgbm_are_refused():
    X, y = rows(100)
    text = lightgbm.train({"verbosity": -1}, lightgbm.Dataset(X, y), 3).model_to_string()
    lightgbm_nodes(text)
    random = np.random.default_rng(0)
    for _ in range(200):
        place = int(random.integers(0, text.index("end of trees")))
        damaged = text[:place] + chr(int(random.integers(33, 90))) + text[place + 1 :]
        try:
            lightgbm_nodes(damaged)
        except ValueError:
            continue  # what is not refused can be followed
    for broken in ("", "tree", text[:300], text.replace("left_child=", "left_child=777")):
        with pytest.raises(ValueError, match=r"model of LightGBM|not sound"):
            lightgbm_nodes(broken)
