"""Runs with the squared loss."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.theory.dynamics import run
from pipeline.theory.instances import KINDS, instance
from pipeline.theory.learners import bins

SEEDS = st.integers(0, 10**6)
ANY = st.sampled_from(KINDS)
MANY = settings(max_examples=40, deadline=None)


@MANY
@given(SEEDS, ANY, st.floats(1e-6, 1.0))
def test_oracle_misses_the_optimum_by_exactly_its_error(seed, kind, epsilon):
    i = instance(kind, seed)
    t = run(i.y, i.f0, i.learners, i.eta, 3, error=lambda _: epsilon)
    for k in range(3):
        best = 0.5 * np.square(t.r[k] - t.A[k](t.r[k])).sum()
        assert 0.5 * np.square(t.r[k] - t.h[k]).sum() - best == pytest.approx(epsilon, rel=1e-6)


def test_hard_classes_contract_by_exactly_one_minus_eta_while_no_point_changes_cell():
    X = np.random.default_rng(0).normal(size=(30, 2))
    learners = bins(np.column_stack([np.ones(30), X]), np.array([0.0]))
    f0 = np.where(X[:, 0] > 0, 50.0, -50.0)
    t = run(f0 + X[:, 1], f0, learners, 0.3, 12)
    np.testing.assert_allclose(t.gaps[1:] / t.gaps[:-1], 0.7, rtol=1e-9)
