"""scikit-learn's conventions, initial predictions, and a defined answer for every edge case."""

import pickle
import warnings
from itertools import pairwise

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from pipeline.boosting import (
    PAPER,
    MulticalibrationBoostingClassifier,
    MulticalibrationBoostingRegressor,
)

SMALL = PAPER | {"n_rounds": 3, "n_trees": 5, "random_state": 0}

ENGINES = ("exact", "sklearn")  # which grow the same trees


def small(n_rounds=3, **parameters):
    return MulticalibrationBoostingRegressor(**(SMALL | {"n_rounds": n_rounds} | parameters))


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    return X, X[:, 0] ** 2 + X[:, 1] + 0.1 * rng.normal(size=80)


def random_parts(estimator):
    """Checks that no estimator with bootstrap samples or folds passes."""
    reason = "other rows fall into other samples and folds"
    drawn = estimator.init is None or estimator.early_stopping
    return {"check_sample_weight_equivalence_on_dense_data": reason} if drawn else {}


@parametrize_with_checks(
    [small(2, engine=engine, init=DummyRegressor(), n_trees=40) for engine in ENGINES]
    + [
        small(1, rescaling="adaptive"),
        small(4, early_stopping=True),
        MulticalibrationBoostingRegressor(3, init=LinearRegression(), random_state=0),
    ],
    expected_failed_checks=random_parts,
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

    def test_infinity_and_targets_that_are_no_numbers_are_refused(self, engine, rows):
        X, y = rows
        holed = X.copy()
        holed[3, 1] = np.inf
        with pytest.raises(ValueError, match="X contains"):
            small(engine=engine).fit(holed, y)
        with pytest.raises(ValueError, match="X contains"):
            small(engine=engine).fit(X, y).predict(holed)
        for bad in (np.nan, np.inf):
            with pytest.raises(ValueError, match="y contains"):
                small(engine=engine).fit(X, np.where(np.arange(80) == 5, bad, y))


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


# --- weights, tables, sizes -----------------------------------------------------------------------


@pytest.mark.parametrize("rescaling", ["unit", "adaptive"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", [MulticalibrationBoostingRegressor, "classifier"])
def test_whole_weights_are_repeated_rows(kind, engine, rescaling):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + rng.normal(size=300)
    f0 = 0.3 * X[:, 1]
    times = rng.integers(0, 4, 300)
    rows = np.repeat(np.arange(300), times)
    parameters = SMALL | {"n_trees": 20, "engine": engine, "rescaling": rescaling}
    if kind == "classifier":
        model, y, f0 = MulticalibrationBoostingClassifier(**parameters), y > 0, 1 / (1 + np.exp(f0))
    else:
        model = kind(**parameters)
    weighted = clone(model).fit(X, y, sample_weight=times, initial_prediction=f0)
    repeated = clone(model).fit(X[rows], y[rows], initial_prediction=f0[rows])
    for name in ("losses_", "gaps_", "weights_"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-9)
    np.testing.assert_allclose(
        weighted.predict(X[rows], f0[rows]), repeated.predict(X[rows], f0[rows]), atol=1e-9
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_weights_of_one_change_nothing_and_bad_ones_are_refused(engine, rows):
    X, y = rows
    plain, ones = (small(engine=engine).fit(X, y, w) for w in (None, np.ones(80)))
    np.testing.assert_array_equal(plain.predict(X), ones.predict(X))
    for bad, message in ((-np.ones(80), "[Nn]egative"), (np.zeros(80), "non-zero"),
                         (np.ones(79), "shape")):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            small(engine=engine).fit(X, y, bad)


def test_engines_agree_under_weights_and_leaf_sizes_through_all_rounds(paper_split):
    X, y, *_ = paper_split("diabetes")
    w = np.random.default_rng(0).lognormal(size=len(y))
    exact, sklearn = (
        small(6, n_trees=40, min_samples_leaf=7, rescaling="adaptive", engine=engine).fit(
            X, y, sample_weight=w, initial_prediction=y.mean() + 100 * X[:, 0]
        )
        for engine in ENGINES
    )
    np.testing.assert_allclose(exact.losses_, sklearn.losses_, rtol=1e-9)
    np.testing.assert_allclose(exact.gaps_, sklearn.gaps_, rtol=1e-9)


def test_the_squared_loss_with_weights_never_rises(rows):
    X, y = rows
    w = np.random.default_rng(0).lognormal(size=80)
    model = small(6, n_trees=20, rescaling="adaptive").fit(X, y, sample_weight=w)
    assert (np.diff(model.losses_) <= 1e-12).all()


@pytest.mark.parametrize("parameters", [{"min_samples_leaf": 20}, {"max_features": 0.3}])
@pytest.mark.parametrize("engine", ENGINES)
def test_tamed_rounds_fit_less_closely(parameters, engine, paper_split):
    X, y, *_ = paper_split("diabetes")
    wild, tamed = (
        small(3, n_trees=60, engine=engine, **p).fit(X, y).losses_[-1] for p in ({}, parameters)
    )
    assert wild < tamed < np.var(y)


@pytest.mark.parametrize("kind", [MulticalibrationBoostingRegressor, "classifier"])
def test_engines_agree_about_what_subsampling_does_on_average(kind, paper_split):
    X, y, X_test, _ = paper_split("diabetes")
    f0, f0_test = X[:, 0] * 1000 + y.mean(), X_test[:, 0] * 1000 + y.mean()
    if kind == "classifier":
        kind, y = MulticalibrationBoostingClassifier, y > y.mean()
        f0, f0_test = (1 / (1 + np.exp(-10 * x[:, 0])) for x in (X, X_test))
    means = []
    for engine in ENGINES:
        parameters = SMALL | {"n_trees": 30, "subsample": 0.4, "engine": engine}
        models = [kind(**(parameters | {"random_state": seed})) for seed in range(12)]
        fits = [model.fit(X, y, initial_prediction=f0) for model in models]
        predict = "predict" if kind is MulticalibrationBoostingRegressor else "decision_function"
        means.append(np.mean([getattr(m, predict)(X_test, f0_test) for m in fits], axis=0))
    assert np.corrcoef(*means)[0, 1] > 0.99
    assert np.abs(means[0] - means[1]).mean() < 0.15 * means[0].std()


@pytest.mark.parametrize("engine", ENGINES)
def test_one_is_all_features_whatever_its_type(engine, rows):
    X, y = rows
    whole, share = (
        small(engine=engine, max_features=m).fit(X, y, initial_prediction=np.zeros(80)).losses_
        for m in (1, 1.0)
    )
    np.testing.assert_array_equal(whole, share)


@pytest.mark.parametrize("least", [1e-10, 1e-20, 1e-300])
def test_rows_of_next_to_no_weight_are_next_to_not_there(least, rows):
    X, y = rows
    there = np.arange(80) % 3 > 0
    f0 = np.zeros(80)
    weighted = small(n_trees=30).fit(X, y, np.where(there, 1.0, least), initial_prediction=f0)
    absent = small(n_trees=30).fit(X[there], y[there], initial_prediction=f0[there])
    assert np.isfinite(weighted.feature_importances_).all()
    assert weighted.losses_[-1] < 2 * absent.losses_[-1]


def test_weights_that_overflow_are_refused(rows):
    with pytest.raises(ValueError, match="between 1e-100 and 1e100"):
        small().fit(*rows, np.linspace(0.5, 1, 80) * 1e300)


def test_tables_with_words_and_holes_are_fitted_and_predicted(rows):
    X, y = rows
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["town"] = np.where(X[:, 0] > 0, "Ulm", "Bonn")
    frame["flag"] = X[:, 1] > 0
    frame.loc[::9, "c"] = np.nan
    model = small(n_trees=40).fit(frame, y + (frame["town"] == "Ulm"))
    assert list(model.get_feature_names_out())[-3:] == ["town=Bonn", "town=Ulm", "flag"]
    assert model.feature_importances_.shape == (6,)
    new = frame.assign(town="Rome", a=np.nan)
    assert np.isfinite(model.predict(new)).all()
    with pytest.raises(ValueError, match="'a' held numbers"):
        model.predict(frame.assign(a="x"))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a", "c", "d", "town", "flag"]])


def test_missing_cells_of_an_array_are_fitted(rows):
    X, y = rows
    holed = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    hidden = np.isnan(holed[:, 0])
    model = small(6, n_trees=40).fit(holed, y + 5 * hidden)
    predicted = model.predict(holed)
    assert predicted[hidden].mean() - predicted[~hidden].mean() > 3
    assert np.isfinite(small().fit(X, y).predict(holed)).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_values_beyond_single_precision_are_refused_and_closer_ones_are_equal(engine, rows):
    X, y = rows
    model = small(engine=engine, init=DummyRegressor())
    wide = X.copy()
    wide[0, 0] = 1e39
    with pytest.raises(ValueError, match="too large for"):
        model.fit(wide, y)
    with pytest.raises(ValueError, match="too large for"):
        model.fit(X, y).predict(wide)
    near = np.full((80, 1), 0.1)
    near[::2] += 1e-12  # another float64, the same float32
    np.testing.assert_array_equal(np.ptp(model.fit(near, y).predict(near)), 0.0)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_pickle_holds_the_model_and_not_its_rows(engine):
    rng = np.random.default_rng(0)
    sizes = []
    for n in (3000, 30_000):
        X = rng.normal(size=(n, 3))
        y = X[:, 0] ** 2 + rng.normal(size=n)
        model = small(3, engine=engine, init_cv="oob").fit(X, y)
        sizes.append(len(pickle.dumps(model)))
    assert sizes[1] < 1.1 * sizes[0]


def test_importances_tell_what_the_rounds_looked_at(rows):
    X, y = rows
    f0 = np.random.default_rng(1).normal(size=80)
    by_f = small(n_trees=30, max_depth=1).fit(X, f0**3, initial_prediction=f0)
    assert by_f.f_importance_ > 0.8
    by_x = small(n_trees=30).fit(X, y, initial_prediction=np.zeros(80))
    assert by_x.f_importance_ < 0.3
    assert by_x.feature_importances_[:2].sum() > 0.6
    for model in (by_f, by_x):
        total = model.feature_importances_.sum() + model.f_importance_
        assert total == pytest.approx(1)
    untouched = small(0).fit(X, y)
    assert untouched.feature_importances_.sum() == untouched.f_importance_ == 0


def test_progress_is_shown_when_asked_for(rows, capfd):
    small(early_stopping=True, verbose=1).fit(*rows)
    shown = capfd.readouterr().err
    assert "part 1 of 3" in shown
    small(early_stopping=True).fit(*rows)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_fit_works_inside_of_any_backend_of_joblib(backend):
    X, y = load_diabetes(return_X_y=True)
    alone = MulticalibrationBoostingRegressor(n_rounds=2, random_state=0).fit(X, y).predict(X)
    with joblib.parallel_config(backend, n_jobs=2):
        found = MulticalibrationBoostingRegressor(n_rounds=2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(found.predict(X), alone)


def test_number_of_threads_changes_no_bit():
    X, y = load_diabetes(return_X_y=True)
    found = [
        MulticalibrationBoostingRegressor(n_rounds=2, random_state=0, n_jobs=n_jobs)
        .fit(X, y)
        .predict(X)
        for n_jobs in (None, 2, 2)
    ]
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


def test_small_share_of_few_rows_is_at_least_one_row():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = MulticalibrationBoostingRegressor(
        n_rounds=2, subsample=0.01, early_stopping=False, feedback="in_sample"
    )
    assert np.isfinite(model.fit(X, X[:, 0]).predict(X)).all()


def test_groups_may_be_labels_of_any_kind():
    X, y = load_diabetes(return_X_y=True)
    mixed = pd.Series([1, "a", None, 2.5] * 111)[: len(y)]
    plain = mixed.map({1: 0, "a": 1, 2.5: 2}).fillna(3)
    for groups in (mixed, plain, [("u",), ("v", 1), ("w",), ("x",)] * 110 + [("u",)] * 2):
        model = MulticalibrationBoostingRegressor(n_rounds=2, random_state=0)
        assert model.fit(X, y, groups=groups).n_features_in_ == 10


def test_fold_whose_rows_have_one_class_is_no_error():
    random = np.random.default_rng(0)
    X, groups = random.normal(size=(60, 2)), np.arange(60) // 12
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = MulticalibrationBoostingClassifier(n_rounds=2, random_state=0)
        model.fit(X, groups == 0, groups=groups)
    assert np.isfinite(model.predict_proba(X)).all()
