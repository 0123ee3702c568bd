"""Engines of smooth functions, against closed forms, scikit-learn and finite differences."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from pipeline.boosting import MulticalibrationBoostingClassifier, MulticalibrationBoostingRegressor
from pipeline.boosting.algorithm import boost
from pipeline.boosting.engines import TreeSettings, make_engine
from pipeline.boosting.engines.smooth import BASES, SmoothEngine, Standardised
from pipeline.boosting.rescaling import Unit

random = np.random.default_rng(0)
X = random.standard_normal((120, 4)) * [1.0, 5.0, 0.1, 1.0] + 3.0
X[:, 3] = X[:, 3] > 3.0
F = random.standard_normal(120)
R = np.sin(X[:, 0]) * F + 0.1 * random.standard_normal(120)
NEW_X, NEW_F = X[:7] + 0.01, F[:7] - 0.3


def bound(name, l2=1e-3, trees=8, width=0.5, weights=None, rows=slice(None)):
    settings = TreeSettings(trees, 2, l2=l2)
    return SmoothEngine(name, settings, width).bind(X[rows], weights)


def standardised(X, F):
    Z = np.column_stack([X, F])
    return (Z - Z.mean(axis=0)) / Z.std(axis=0)


def test_linear_functions_are_least_squares():
    ensemble, h = bound("linear", l2=0.0).fit(F, R, 0)
    model = LinearRegression().fit(np.column_stack([X, F]), R)
    np.testing.assert_allclose(h, model.predict(np.column_stack([X, F])), atol=1e-8)
    expected = model.predict(np.column_stack([NEW_X, NEW_F]))
    np.testing.assert_allclose(ensemble.predict(NEW_X, NEW_F), expected, atol=1e-8)


@pytest.mark.parametrize("name", BASES)
def test_values_are_scikit_learns_ridge_regression_on_the_functions(name):
    fitter = bound(name, l2=0.7)
    B, _ = fitter.matrix(F)
    ensemble, h = fitter.fit(F, R, 0)
    np.testing.assert_allclose(h, Ridge(0.7).fit(B, R).predict(B), atol=1e-7)
    np.testing.assert_allclose(ensemble.predict(X, F), h, atol=1e-12)
    np.testing.assert_allclose(fitter.projector(F)(R), h, atol=1e-9)


@pytest.mark.parametrize("name", BASES)
def test_without_a_penalty_residuals_are_orthogonal_to_the_class(name):
    fitter = bound(name, l2=0.0)
    B, _ = fitter.matrix(F)
    _, h = fitter.fit(F, R, 0)
    assert np.abs(B.T @ (R - h)).max() < 1e-4 * np.abs(B.T @ R).max()
    assert abs((R - h).sum()) < 1e-8


@pytest.mark.parametrize("width", [0.0, 0.3])
def test_leaves_of_a_soft_tree_are_products_of_gates(width):
    trees = bound("soft_trees", trees=3, width=width).basis
    Z = standardised(X, F)
    leaves = trees(Z).reshape(len(Z), 3, 4)
    for i in range(0, 120, 17):
        for k in range(3):
            moved = Z[i, trees.columns[k]] - trees.cuts[k]
            g = (moved > 0).astype(float) if width == 0 else 1 / (1 + np.exp(-moved / width))
            left, right = (1 - g[0]) * np.array([1 - g[1], g[1]]), g[0] * np.array([1 - g[2], g[2]])
            np.testing.assert_allclose(sorted(leaves[i, k]), sorted([*left, *right]), atol=1e-12)
    np.testing.assert_allclose(leaves.sum(axis=2), 1.0)


@pytest.mark.parametrize("name", BASES)
def test_movement_is_the_norm_of_the_difference_of_two_projectors(name):
    fitter, other = bound(name, l2=0.1, width=2.0), F + 0.1 * random.standard_normal(120)
    matrices = [np.column_stack([fitter.projector(f)(e) for e in np.eye(120)]) for f in (F, other)]
    expected = np.linalg.norm(matrices[1] - matrices[0], 2)
    assert fitter.movement(F, other) == pytest.approx(expected, rel=0.02)


def test_linear_functions_contract_by_exactly_one_minus_eta():
    fitter, y = bound("linear", l2=0.0), F + R
    steps = boost(y, F, 6, 0.3, Unit(), lambda t, f, r: fitter.fit(f, r, t))
    gaps = np.array([step.gap for step in steps])
    np.testing.assert_allclose(gaps[1:] / gaps[:-1], 0.7, rtol=1e-4)


@pytest.mark.parametrize("name", BASES)
def test_whole_weights_are_repeated_rows(name):
    weights = random.integers(1, 4, 120).astype(float)
    repeated = np.repeat(np.arange(120), weights.astype(int))
    basis, units = bound(name).basis, Standardised.of(np.column_stack([X, F]))
    B = basis(units(np.column_stack([X, F])))
    h = bound(name, l2=0.7, weights=weights).fit(F, R, 0)[1]
    expected = Ridge(0.7).fit(B[repeated], R[repeated]).predict(B)
    np.testing.assert_allclose(h, expected, atol=1e-7)


def test_log_loss_of_linear_functions_is_logistic_regression():
    y = (R + random.standard_normal(120) > 0).astype(float)
    fitter, offset = bound("linear", l2=2.0), np.zeros(120)
    _, h = fitter.fit_log_loss(F, y, offset, 0)
    Z = standardised(X, F)
    model = LogisticRegression(C=0.5, tol=1e-10, max_iter=1000).fit(Z, y)
    np.testing.assert_allclose(h, model.decision_function(Z), atol=1e-4)


@pytest.mark.parametrize("name", BASES)
def test_log_loss_on_separable_rows_stays_finite(name):
    y = (F > 0).astype(float)
    ensemble, h = bound(name, l2=1e-6, trees=60).fit_log_loss(F, y, np.zeros(120), 0)
    assert np.isfinite(h).all()
    assert np.isfinite(ensemble.predict(NEW_X, NEW_F)).all()
    assert ((h > 0) == (y > 0)).mean() > 0.9


@pytest.mark.parametrize("name", BASES)
def test_estimators_take_smooth_engines(name):
    settings = {
        "engine": name, "max_leaf_nodes": None, "max_depth": 2, "n_rounds": 3,
        "early_stopping": False,
    }  # fmt: skip
    model = MulticalibrationBoostingRegressor(**settings, random_state=0)
    model.fit(X, R, initial_prediction=F)
    assert np.isfinite(model.predict(NEW_X, NEW_F)).all()
    labels = (R > 0).astype(int)
    classifier = MulticalibrationBoostingClassifier(**settings, random_state=0)
    classifier.fit(X, labels, initial_prediction=np.full(120, 0.5))
    assert np.isfinite(classifier.predict_proba(NEW_X, np.full(7, 0.5))).all()


def test_class_does_not_depend_on_the_seed_of_a_round():
    engine = make_engine("cosines", TreeSettings(5, l2=0.1))
    values = [engine.bind(X).fit(F, R, seed)[1] for seed in (0, 1)]
    np.testing.assert_array_equal(*values)


def test_soft_trees_without_a_small_depth_are_refused():
    model = MulticalibrationBoostingRegressor(engine="soft_trees", max_leaf_nodes=None, max_depth=9)
    with pytest.raises(ValueError, match="needs max_depth, at most 8"):
        model.fit(X, R, initial_prediction=F)
    with pytest.raises(ValueError, match="soft_trees"):  # the default depth has no limit
        MulticalibrationBoostingRegressor(engine="soft_trees").fit(X, R, initial_prediction=F)
