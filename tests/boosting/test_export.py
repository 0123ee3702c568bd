"""ONNX graphs of fitted models, held against `predict` in onnxruntime."""

import warnings

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_wine
from sklearn.linear_model import LogisticRegression, Ridge

from pipeline.boosting import (
    PAPER,
    MulticalibrationBoostingClassifier,
    MulticalibrationBoostingRegressor,
    to_onnx,
)

WORDS = np.array(["north", "south", "east", "west", "centre"], dtype=object)


def run(model, **inputs):
    graph = to_onnx(model)
    onnx.checker.check_model(graph)
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    assert {i.name for i in session.get_inputs()} == set(inputs)
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs), strict=True))


def fitted(estimator, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that nothing is kept
        return estimator.fit(*args, **kwargs)


@pytest.mark.parametrize("options", [{}, {**PAPER, "rescaling": "relaxed", "n_rounds": 3}])
def test_regressor_with_its_own_forest(options):
    X, y = load_diabetes(return_X_y=True)
    model = fitted(MulticalibrationBoostingRegressor(**options, random_state=0), X, y)
    assert model.best_round_ > 0
    np.testing.assert_allclose(run(model, X=X)["prediction"], model.predict(X), rtol=1e-12)


def test_model_of_the_user_is_an_input():
    X, y = load_diabetes(return_X_y=True)
    ridge = Ridge().fit(X[:100], y[:100])
    model = MulticalibrationBoostingRegressor(init=ridge, init_cv="prefit", random_state=0)
    model = fitted(model, X, y)
    found = run(model, X=X, initial_prediction=ridge.predict(X)[:, None])
    np.testing.assert_allclose(found["prediction"], model.predict(X), rtol=1e-12)


def table(n, seed):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": random.integers(20, 60, n) * 1.0,
            "region": random.choice(WORDS, n),
            "member": random.random(n) < 0.4,
        }
    )
    frame.loc[random.random(n) < 0.1, "age"] = np.nan
    frame.loc[random.random(n) < 0.1, "region"] = None
    odds = frame["age"].fillna(0) / 20 + 2 * frame["region"].isin(["east", "west"]) - 3
    return frame, np.where(random.random(n) < 1 / (1 + np.exp(-odds)), "yes", "no")


def inputs_of(frame):
    return {
        "age": frame[["age"]].to_numpy(float),
        "region": frame[["region"]].fillna("(missing)").to_numpy(object),
        "member": frame[["member"]].to_numpy(float),
    }


@pytest.mark.parametrize("engine", ["lightgbm", "lightgbm_lossless"])
def test_words_flags_and_missing_cells(engine):
    frame, y = table(800, 0)
    model = MulticalibrationBoostingClassifier(engine=engine, n_rounds=10, random_state=0)
    model = fitted(model, frame, y)
    assert model.best_round_ > 0
    new, _ = table(300, 1)
    new.loc[:20, "region"] = "abroad"  # a level that the model has not seen
    found = run(model, **inputs_of(new))
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(new), atol=1e-12)
    assert (found["label"] == model.predict(new)).all()


def test_more_than_two_classes_and_their_model_as_input():
    X, y = load_wine(return_X_y=True)
    classifier = LogisticRegression(C=1e-3, max_iter=5000).fit(X, y)
    model = MulticalibrationBoostingClassifier(
        init=classifier, init_cv="prefit", n_rounds=4, random_state=0
    )
    model = fitted(model, X, y)
    found = run(model, X=X, initial_prediction=classifier.predict_proba(X))
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), atol=1e-12)
    assert (found["label"] == model.predict(X)).all()


@settings(max_examples=10, deadline=None)
@given(
    feedback=st.sampled_from(["honest", "in_sample", "initial", "none"]),
    rescaling=st.sampled_from(["unit", "relaxed", "adaptive"]),
    stack=st.booleans(),
    seed=st.integers(0, 5),
)
def test_any_settings(feedback, rescaling, stack, seed):
    frame, y = table(400, seed)
    model = MulticalibrationBoostingClassifier(
        n_rounds=3, feedback=feedback, rescaling=rescaling, stack=stack, random_state=seed
    )
    model = fitted(model, frame, y)
    found = run(model, **inputs_of(frame))
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(frame), atol=1e-12)


def test_rounds_that_are_not_trees_are_refused():
    X, y = load_diabetes(return_X_y=True)
    model = MulticalibrationBoostingRegressor(
        engine="linear", n_rounds=1, early_stopping=False, feedback="in_sample", max_depth=3,
        max_leaf_nodes=None,
    )  # fmt: skip
    with pytest.raises(ValueError, match="cannot be stored or exported"):
        to_onnx(model.fit(X, y))
