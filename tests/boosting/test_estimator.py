"""scikit-learn's conventions, initial predictions, and a defined answer for every edge case."""

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from pipeline.boosting import MulticalibrationBoostingRegressor
from pipeline.boosting.engines import ENGINES

SMALL = {"n_trees": 5, "random_state": 0}


def small(n_rounds=3, **parameters):
    return MulticalibrationBoostingRegressor(n_rounds, **(SMALL | parameters))


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    return X, X[:, 0] ** 2 + X[:, 1] + 0.1 * rng.normal(size=80)


@parametrize_with_checks(
    [small(2, engine=engine, init=DummyRegressor(), n_trees=40) for engine in ENGINES]
    + [small(1, rescaling="adaptive")]
)
def test_follows_every_convention_sklearn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("engine", ENGINES)
def test_works_in_a_pipeline_and_in_cross_validation(engine, rows):
    X, y = rows
    model = make_pipeline(StandardScaler(), small(engine=engine, n_trees=30))
    assert cross_val_score(model, X, y, cv=3).mean() > 0.3


@pytest.mark.parametrize("engine", ENGINES)
def test_survives_clone_and_pickling_with_the_same_predictions(engine, rows):
    X, y = rows
    model = small(engine=engine).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), pickle.loads(pickle.dumps(model)).predict(X))
    np.testing.assert_array_equal(model.predict(X), clone(model).fit(X, y).predict(X))


def test_keeps_feature_names_of_a_frame(rows):
    X, y = rows
    model = small().fit(pd.DataFrame(X, columns=list("abcd")), y)
    assert list(model.feature_names_in_) == list("abcd")
    assert model.n_features_in_ == 4
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pd.DataFrame(X, columns=list("abce")))


@pytest.mark.parametrize("engine", ENGINES)
def test_stages_run_from_the_initial_predictor_to_the_prediction(engine, rows):
    X, y = rows
    model = small(4, engine=engine).fit(X, y)
    stages = list(model.staged_predict(X))
    assert len(stages) == 5
    np.testing.assert_array_equal(stages[0], model.init_.predict(X))
    np.testing.assert_array_equal(stages[-1], model.predict(X))
    np.testing.assert_allclose(model.gaps_, [np.linalg.norm(b - a) for a, b in pairwise(stages)])
    np.testing.assert_allclose(model.losses_, [np.mean((y - f) ** 2) for f in stages])


@pytest.mark.parametrize("engine", ENGINES)
def test_each_new_row_follows_its_own_trajectory(engine, rows):
    X, y = rows
    model = small(engine=engine).fit(X[:60], y[:60])
    together = model.predict(X[60:])
    one_by_one = np.concatenate([model.predict(X[i : i + 1]) for i in range(60, 80)])
    np.testing.assert_array_equal(together, one_by_one)


def test_scores_computed_elsewhere_take_the_place_of_the_initial_predictor(rows):
    X, y = rows
    init = LinearRegression().fit(X, y)
    given = small().fit(X, y, initial_prediction=init.predict(X))
    fitted = small(init=LinearRegression()).fit(X, y)
    assert given.init_ is None
    np.testing.assert_array_equal(given.predict(X, init.predict(X)), fitted.predict(X))


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.zeros(79), r"shape \(79,\) instead of \(80,\)"),
        (np.zeros((80, 2)), r"shape \(80, 2\)"),
        (np.full(80, np.nan), "initial_prediction contains NaN"),
    ],
)
def test_unusable_initial_predictions_are_refused(scores, message, rows):
    with pytest.raises(ValueError, match=message):
        small().fit(*rows, initial_prediction=scores)


def test_initial_predictions_are_needed_or_refused_as_in_fit(rows):
    X, y = rows
    with pytest.raises(ValueError, match="is needed"):
        small().fit(X, y, initial_prediction=np.zeros(80)).predict(X)
    with pytest.raises(ValueError, match="its own initial predictor"):
        small().fit(X, y).predict(X, initial_prediction=np.zeros(80))


@pytest.mark.parametrize("engine", ENGINES)
class TestEdgeCases:
    def test_zero_rounds_leave_the_initial_predictor(self, engine, rows):
        X, y = rows
        model = small(0, engine=engine).fit(X, y)
        np.testing.assert_array_equal(model.predict(X), model.init_.predict(X))
        assert model.gaps_.shape == model.weights_.shape == (0,)
        assert model.losses_.shape == (1,)

    @pytest.mark.parametrize("rescaling", ["unit", "relaxed", "adaptive"])
    def test_constant_target_is_a_fixed_point_of_unit_and_adaptive(self, engine, rescaling, rows):
        X, _ = rows
        model = small(engine=engine, rescaling=rescaling).fit(X, np.full(80, 7.0))
        if rescaling == "relaxed":  # its weights below 1 pull away, the residual's mean pulls back
            assert np.ptp(model.predict(X)) < 1e-12
        else:
            np.testing.assert_allclose(model.predict(X), 7.0)
            np.testing.assert_allclose(model.gaps_, 0.0, atol=1e-12)

    @pytest.mark.parametrize("rescaling", ["unit", "relaxed", "adaptive"])
    def test_zero_target_stays_zero_though_phi_is_zero(self, engine, rescaling, rows):
        X, _ = rows
        model = small(engine=engine, rescaling=rescaling).fit(X, np.zeros(80))
        np.testing.assert_array_equal(model.predict(X), 0.0)
        assert np.isfinite(model.weights_).all()

    def test_one_feature_is_enough(self, engine, rows):
        X, y = rows
        assert np.isfinite(small(engine=engine).fit(X[:, :1], y).predict(X[:, :1])).all()

    def test_a_feature_that_repeats_f_changes_nothing_on_training_rows(self, engine, rows):
        X, y = rows
        f0 = np.random.default_rng(1).normal(size=80)
        plain = small(1, engine=engine).fit(X, y, initial_prediction=f0)
        doubled = small(1, engine=engine).fit(np.column_stack([X, f0]), y, initial_prediction=f0)
        np.testing.assert_allclose(plain.losses_, doubled.losses_, rtol=1e-12)

    @pytest.mark.parametrize("n", [1, 2, 3])
    def test_a_handful_of_rows_is_fitted(self, engine, n, rows):
        X, y = rows
        model = small(engine=engine, init=DummyRegressor()).fit(X[:n], y[:n])
        assert (np.diff(model.losses_) <= 1e-15).all()

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_nan_or_infinity_is_refused(self, engine, bad, rows):
        X, y = rows
        holed = X.copy()
        holed[3, 1] = bad
        with pytest.raises(ValueError, match="X contains"):
            small(engine=engine).fit(holed, y)
        with pytest.raises(ValueError, match="y contains"):
            small(engine=engine).fit(X, np.where(np.arange(80) == 5, bad, y))
        with pytest.raises(ValueError, match="X contains"):
            small(engine=engine).fit(X, y).predict(holed)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"eta": 0}, "eta"),
        ({"eta": 1.5}, "eta"),
        ({"eta": "x"}, "eta"),
        ({"n_rounds": -1}, "n_rounds"),
        ({"n_rounds": 1.5}, "n_rounds"),
        ({"n_trees": 0}, "n_trees"),
        ({"max_depth": 0}, "max_depth"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"engine": "steam"}, "engine='steam'"),
        ({"rescaling": "wild"}, "rescaling='wild'"),
    ],
)
def test_parameter_out_of_range_is_refused_by_name(parameters, message, rows):
    model = MulticalibrationBoostingRegressor(**(SMALL | parameters))
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(*rows)


def test_random_state_may_be_a_generator_or_none(rows):
    X, y = rows
    a, b = (small(random_state=np.random.RandomState(5)).fit(X, y).predict(X) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    small(random_state=None).fit(X, y)
