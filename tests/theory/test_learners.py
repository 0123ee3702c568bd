"""Classes of weak learners, and the projectors on their span."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.theory.instances import KINDS, instance
from pipeline.theory.learners import bins, linear, project, rbf, sigmoid, soft_tree

SEEDS = st.integers(0, 10**6)
ANY = st.sampled_from(KINDS)
MANY = settings(max_examples=40, deadline=None)


@MANY
@given(SEEDS, ANY)
def test_projector_is_that_of_the_pseudo_inverse(seed, kind):
    i = instance(kind, seed)
    B = i.learners(i.f0)
    A = project(B)
    np.testing.assert_allclose(A.matrix(), B @ np.linalg.pinv(B, rcond=1e-10), atol=1e-8)
    assert A.U.shape[1] == np.linalg.matrix_rank(B, rtol=1e-10)


def test_class_rows_are_kronecker_products():
    i = instance("rbf", 0)
    B, G = i.learners(i.f0), i.learners.g(i.f0)
    np.testing.assert_allclose(B[4], np.kron(i.learners.H[4], G[4]))


def test_projector_of_nothing_is_zero():
    assert not project(np.zeros((3, 2)))(np.ones(3)).any()


@pytest.mark.parametrize(
    "make",
    [
        lambda H: rbf(H, np.array([-1.0, 0.5]), 0.8),
        lambda H: sigmoid(H, np.array([0.0, 1.0]), 0.4),
        linear,
    ],
)
def test_slopes_bound_finite_differences(make):
    learners = make(np.ones((4001, 1)))
    u = np.linspace(-5, 5, 4001)
    rate = np.linalg.norm(np.diff(learners.g(u), axis=0), axis=1) / np.diff(u)
    assert rate.max() <= learners.slope
    single = np.abs(np.diff(learners.g(u), axis=0)).max() / (u[1] - u[0])
    assert single <= learners.lipschitz * (1 + 1e-9)


def test_soft_tree_leaves_are_a_partition_of_one():
    X = np.random.default_rng(0).normal(size=(30, 3))
    H = soft_tree(X, np.array([0.0, 0.5, -1.0]), 0.3)
    assert H.shape == (30, 8)
    np.testing.assert_allclose(H.sum(axis=1), 1)


def test_hard_bins_have_one_cell_per_prediction():
    learners = bins(np.ones((5, 1)), np.array([0.0, 1.0]))
    np.testing.assert_array_equal(
        learners(np.array([-3.0, 0.0, 0.5, 1.0, 9.0])).argmax(axis=1), [0, 0, 1, 1, 2]
    )
