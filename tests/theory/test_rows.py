"""Rows of datasets as instances, and the oracle error of trees."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor

from pipeline.theory.dynamics import run
from pipeline.theory.findings import unit
from pipeline.theory.rows import equal_values, leading_directions, oracle_error, real_instances

SEEDS = st.integers(0, 10**6)
MANY = settings(max_examples=40, deadline=None)


@MANY
@given(SEEDS, st.integers(1, 4), st.integers(1, 12))
def test_oracle_error_brackets_what_a_fully_grown_tree_can_reach(seed, n_x, n_f):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, n_x, size=(30, 2)).astype(float)
    f, residual = rng.integers(0, n_f, size=30) / 3, rng.normal(size=30)
    # Trees of any depth reach each cell's mean; sums of shallow ones are in between.
    fits = [
        DecisionTreeRegressor().fit(Z, residual).predict(Z)
        for Z in (np.column_stack([X, f]), f[:, None])
    ]
    by_rows, by_values = (0.5 * np.square(residual - fit).sum() for fit in fits)
    low, high = oracle_error(X, f, residual, 0.5 * fits[0])
    loss = 0.5 * np.square(residual - 0.5 * fits[0]).sum()
    assert low == pytest.approx(max(loss - by_values, 0), abs=1e-12)
    assert high == pytest.approx(loss - by_rows, abs=1e-12)
    assert low <= high + 1e-12


@pytest.mark.parametrize("n_columns", [0, 1, 2, 5])
def test_any_number_of_features_makes_instances(n_columns):
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(80), rng.normal(size=(80, n_columns))])
    X = np.column_stack([X, X[:, -1]])  # a constant one and a copy tell nothing new
    directions = leading_directions(X)
    assert directions.shape == (80, 3)
    if n_columns:
        np.testing.assert_allclose(directions.std(axis=0), 1)
    for i in real_instances(X, rng.normal(size=80) + 1):
        assert unit.sum_of_gaps_is_known(run(i.y, i.f0, i.learners, i.eta, 5)).holds


def test_stumps_on_distinct_predictions_alone_leave_no_error():
    f, residual = np.linspace(0, 1, 20), np.random.default_rng(0).normal(size=20)
    low, high = oracle_error(np.zeros((20, 1)), f, residual, np.zeros(20))
    assert low == high == pytest.approx(0.5 * np.square(residual).sum())


def test_predictions_closer_than_a_tree_can_cut_share_a_cell():
    f = np.array([0.0, 5e-8, 1e-7, 1.0])
    assert equal_values(f).tolist() == [0, 0, 0, 1]
