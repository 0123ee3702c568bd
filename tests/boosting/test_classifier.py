"""Two classes under the log-loss: scikit-learn's conventions and its boosting, round by round."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_wine, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from pipeline.boosting import PAPER, Adaptive, MulticalibrationBoostingClassifier
from pipeline.boosting.engines import TreeSettings, make_engine
from pipeline.boosting.logloss import LARGEST_LOGIT, LogLossAdaptive, logit, mean_log_loss, sigmoid
from pipeline.boosting.losses import fit_ensemble


def small(n_rounds=3, **parameters):
    return MulticalibrationBoostingClassifier(
        **(PAPER | {"n_rounds": n_rounds, "n_trees": 5, "random_state": 0} | parameters)
    )


def random_parts(estimator):
    """Checks that no estimator with bootstrap samples or folds passes."""
    reason = "other rows fall into other samples and folds"
    drawn = estimator.init is None or estimator.early_stopping
    return {"check_sample_weight_equivalence_on_dense_data": reason} if drawn else {}


@pytest.fixture
def rows():
    return make_classification(300, 6, flip_y=0.2, random_state=0)


@parametrize_with_checks(
    [
        small(2, init=DummyClassifier(), n_trees=30),
        small(1),
        small(4, early_stopping=True, init=LogisticRegression()),
        MulticalibrationBoostingClassifier(3, init=LogisticRegression(), random_state=0),
    ],
    expected_failed_checks=random_parts,
)
def test_follows_every_convention_sklearn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("engine", ["exact", "sklearn"])
@pytest.mark.parametrize("rate", [0.05, 0.1])
def test_round_from_zero_is_sklearns_gradient_boosting(rate, engine):
    X, y = make_classification(2000, 6, flip_y=0.2, random_state=0)  # enough to have no ties
    theirs = GradientBoostingClassifier(
        init="zero", n_estimators=20, learning_rate=rate, random_state=0
    ).fit(np.column_stack([X, np.zeros(2000)]), y)
    settings = TreeSettings(20, 3, rate)
    fitter = make_engine(engine, settings).bind(X)
    ensemble, h = fit_ensemble(fitter, y.astype(float), np.zeros(2000), np.zeros(2000), 0)
    expected = theirs.decision_function(np.column_stack([X, np.zeros(2000)]))
    np.testing.assert_allclose(h, expected, atol=1e-8)
    np.testing.assert_allclose(ensemble.predict(X, np.zeros(2000)), h, atol=1e-12)


@pytest.mark.parametrize("engine", ["exact", "sklearn"])
def test_rare_class_is_boosted_as_by_sklearn(engine):
    X, y = make_classification(3000, 6, weights=[0.96], flip_y=0.02, random_state=0)
    zero = np.zeros(3000)
    theirs = GradientBoostingClassifier(init="zero", n_estimators=30, random_state=0)
    expected = theirs.fit(np.column_stack([X, zero]), y).decision_function(
        np.column_stack([X, zero])
    )
    settings = TreeSettings(30, 3, 0.1)
    _, h = fit_ensemble(make_engine(engine, settings).bind(X), y.astype(float), zero, zero, 0)
    np.testing.assert_allclose(h, expected, atol=1e-8)


@pytest.mark.parametrize("rescaling", ["unit", "relaxed", "adaptive"])
def test_engines_agree_on_the_training_rows(rows, rescaling):
    X, y = rows
    exact, sklearn = (
        small(4, n_trees=30, rescaling=rescaling, engine=engine).fit(X, y)
        for engine in ("exact", "sklearn")
    )
    np.testing.assert_allclose(exact.decision_function(X), sklearn.decision_function(X), atol=1e-8)
    np.testing.assert_allclose(exact.gaps_, sklearn.gaps_, rtol=1e-9)


@pytest.mark.parametrize("engine", ["exact", "sklearn"])
def test_certain_and_wrong_rows_are_not_thrown_to_infinity(engine):
    X = np.arange(20.0)[:, None]
    y = (X[:, 0] > 9).astype(float)
    f = np.full(20, -40.0)  # so sure of class 0 that the curvature is gone
    settings = TreeSettings(30, 2, 0.1)
    _, h = fit_ensemble(make_engine(engine, settings).bind(X), y, f, f, 0)
    assert h[y == 1].min() > 0
    assert np.abs(h).max() <= 30 * LARGEST_LOGIT + 1e-9


def test_vanished_curvature_moves_rows_the_right_way():
    y = np.array([0.0, 0.0, 1.0, 1.0])
    f = np.array([800.0, 800.0, -800.0, -800.0])  # certain, wrong, and the curvature is zero
    settings = TreeSettings(1, 1, 0.1)
    fitter = make_engine("exact", settings).bind(np.arange(4.0)[:, None])
    _, h = fit_ensemble(fitter, y, f, f, 0)
    np.testing.assert_allclose(h, LARGEST_LOGIT * np.array([-1, -1, 1, 1]))


def test_any_two_labels_may_be_used(rows):
    X, y = rows
    words = np.array(["no", "yes"])[y]
    model = small(n_trees=20).fit(X, words)
    assert list(model.classes_) == ["no", "yes"]
    assert set(model.predict(X)) == {"no", "yes"}
    np.testing.assert_array_equal(model.predict(X) == "yes", model.predict_proba(X)[:, 1] > 0.5)
    with pytest.raises(ValueError, match="two classes"):
        small().fit(X, np.zeros(300))


def test_init_without_probabilities_is_refused_by_name(rows):
    with pytest.raises(ValueError, match=r"init=LinearRegression\(\): must be a classifier"):
        small(init=LinearRegression()).fit(*rows)


def test_stages_lead_from_the_initial_logits_to_the_prediction(rows):
    X, y = rows
    model = small(4, init=LogisticRegression()).fit(X, y)
    stages = list(model.staged_decision_function(X))
    np.testing.assert_allclose(stages[0], model.init_.decision_function(X), rtol=1e-6)
    np.testing.assert_array_equal(stages[-1], model.decision_function(X))
    np.testing.assert_allclose(model.gaps_, [np.linalg.norm(b - a) for a, b in pairwise(stages)])
    np.testing.assert_allclose(model.losses_, [mean_log_loss(y, f) for f in stages])
    last = list(model.staged_predict_proba(X))[-1]
    np.testing.assert_array_equal(last, model.predict_proba(X))
    np.testing.assert_allclose(last.sum(axis=1), 1)


@pytest.mark.parametrize("rescaling", ["unit", "adaptive"])
def test_training_loss_does_not_increase(rows, rescaling):
    model = small(6, n_trees=20, rescaling=rescaling).fit(*rows)
    assert (np.diff(model.losses_) <= 1e-12).all()


def test_survives_pickling(rows):
    X, y = rows
    model = small().fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.predict_proba(X), copy.predict_proba(X))


@pytest.mark.parametrize("seed", range(10))
def test_adaptive_weight_is_the_best_one_scipy_finds(seed):
    rng = np.random.default_rng(seed)
    phi = 3 * rng.normal(size=80)
    y = (rng.random(80) < sigmoid(0.6 * phi)).astype(float)
    w = LogLossAdaptive().weight(0, y, phi)
    best = minimize_scalar(lambda v: mean_log_loss(y, v * phi), bounds=(-5, 5), method="bounded",
                           options={"xatol": 1e-10})  # fmt: skip
    assert w == pytest.approx(best.x, abs=1e-5)


def test_adaptive_weight_is_one_where_the_candidate_vanishes():
    assert LogLossAdaptive().weight(0, np.array([0.0, 1.0]), np.zeros(2)) == 1.0


def test_adaptive_weight_does_not_carry_separated_rows_beyond_all_doubt():
    y, phi = np.array([0.0, 0.0, 1.0, 1.0]), np.array([-2.0, -4.0, 3.0, 5.0])
    assert LogLossAdaptive().weight(0, y, phi) * 5 == pytest.approx(LARGEST_LOGIT)
    assert LogLossAdaptive().weight(0, y, 10 * phi) == pytest.approx(1, abs=1e-6)  # beyond already
    X = np.linspace(-1, 1, 80)[:, None]
    model = small(10, rescaling="adaptive", n_trees=30).fit(X, X[:, 0] > 0)
    assert model.weights_.max() < 10
    assert np.abs(model.decision_function(X)).max() < 60


def test_adaptive_as_an_object_is_adaptive_by_name(rows):
    by_name, by_object = (small(rescaling=r).fit(*rows) for r in ("adaptive", Adaptive()))
    np.testing.assert_array_equal(by_name.weights_, by_object.weights_)


def test_adaptive_weight_counts_rows_by_their_weights():
    rng = np.random.default_rng(0)
    phi, times = rng.normal(size=50), rng.integers(1, 4, 50)
    y = (rng.random(50) < sigmoid(0.6 * phi)).astype(float)
    weighted = LogLossAdaptive().weight(0, y, phi, times.astype(float))
    repeated = LogLossAdaptive().weight(0, np.repeat(y, times), np.repeat(phi, times))
    assert weighted == pytest.approx(repeated, rel=1e-9)


@pytest.mark.parametrize("engine", ["exact", "sklearn"])
def test_weighted_round_is_sklearns_gradient_boosting(engine):
    X, y = make_classification(2000, 6, flip_y=0.2, random_state=0)
    w, zero = np.random.default_rng(0).lognormal(size=2000), np.zeros(2000)
    theirs = GradientBoostingClassifier(
        init="zero", n_estimators=20, min_samples_leaf=9, random_state=0
    ).fit(np.column_stack([X, zero]), y, sample_weight=w)
    settings = TreeSettings(20, 3, 0.1, min_samples_leaf=9)
    fitter = make_engine(engine, settings).bind(X, w)
    _, h = fit_ensemble(fitter, y.astype(float), zero, zero, 0, w)
    np.testing.assert_allclose(h, theirs.decision_function(np.column_stack([X, zero])), atol=1e-8)


def test_logit_and_sigmoid_are_inverse_and_finite():
    p = np.array([0.0, 1e-5, 0.3, 0.5, 1 - 1e-5, 1.0])
    assert np.isfinite(logit(p)).all()
    np.testing.assert_allclose(sigmoid(logit(p))[1:-1], p[1:-1], rtol=1e-9)
    assert sigmoid(np.array([-1000.0, 1000.0])).tolist() == [0, 1]


@pytest.fixture(scope="module")
def three():
    """Rows of three classes, named by words; a model that sees half of the columns."""
    X, y = load_wine(return_X_y=True)
    labels = np.array(["red", "rosé", "white"])[y]
    random = np.random.default_rng(0)
    X = np.vstack([X, X + 0.1 * X.std(axis=0) * random.standard_normal(X.shape)])
    return X, np.concatenate([labels, labels])


def test_each_of_many_classes_has_a_correction_as_of_two_classes(three):
    X, y = three
    init = LogisticRegression(C=1e-3, max_iter=2000).fit(X, y)
    model = MulticalibrationBoostingClassifier(5, init=init, init_cv="prefit", random_state=0)
    p = model.fit(X, y).predict_proba(X)
    assert list(model.classes_) == ["red", "rosé", "white"]
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    start = init.predict_proba(X)
    alone = []
    for k, label in enumerate(model.classes_):
        one = MulticalibrationBoostingClassifier(5, random_state=0)
        one.fit(X, y == label, initial_prediction=start[:, k])
        alone.append(one.predict_proba(X, start[:, k])[:, 1])
    expected = np.column_stack(alone)
    np.testing.assert_allclose(p, expected / expected.sum(axis=1, keepdims=True), rtol=1e-12)
    assert log_loss(y, p) < log_loss(y, start)
    assert set(model.predict(X)) == set(y)
    np.testing.assert_allclose(np.exp(model.decision_function(X)), p)
    with pytest.raises(ValueError, match="corrections_ has its own"):
        next(model.staged_decision_function(X))


def test_many_classes_take_weights_validation_rows_and_given_probabilities(three):
    X, y = three
    halves = np.arange(len(y)) % 2 == 0
    start = np.full((len(y), 3), 1 / 3)
    model = MulticalibrationBoostingClassifier(3, stack=False, random_state=0)
    model.fit(
        X[halves], y[halves], np.ones(halves.sum()), start[halves], X_val=X[~halves],
        y_val=y[~halves], initial_prediction_val=start[~halves],
    )  # fmt: skip
    assert (model.predict(X, start) == y).mean() > 0.9
    with pytest.raises(ValueError, match="initial_prediction: has shape"):
        model.predict(X, start[:, 0])


def test_a_class_that_a_fold_of_the_initial_predictor_lacks_has_probability_zero(three):
    X, y = three
    some = np.flatnonzero((y != "white") | (np.arange(len(y)) < 135))
    model = MulticalibrationBoostingClassifier(2, init_cv=KFold(5), random_state=0)
    assert np.isfinite(model.fit(X[some], y[some]).predict_proba(X)).all()
