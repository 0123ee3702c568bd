"""Adaptive weights, and the rate that is not quadratic."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.boosting.rescaling import Adaptive
from pipeline.theory.dynamics import run
from pipeline.theory.findings import adaptive, unit
from pipeline.theory.instances import KINDS, SMOOTH, instance
from pipeline.theory.learners import project

SEEDS = st.integers(0, 10**6)
ANY = st.sampled_from(KINDS)
MANY = settings(max_examples=40, deadline=None)


@MANY
@given(SEEDS, ANY)
def test_adaptive_weights_obey_the_identity_and_the_new_rates(seed, kind):
    i = instance(kind, seed)
    t = run(i.y, i.f0, i.learners, i.eta, 30, Adaptive())
    assert adaptive.loss_is_monotone(t).holds
    assert adaptive.weights_are_not_negative(t).holds
    assert adaptive.adaptive_identity(t).measured < 1e-12
    assert adaptive.smallest_gap_adaptive(t).holds
    assert unit.smallest_projection(t).holds


@MANY
@given(SEEDS, ANY, st.floats(0.01, 1.0))
def test_eigenvalue_lemma_holds(seed, kind, eta):
    i = instance(kind, seed)
    v = i.generator().normal(size=len(i.y))
    A = project(i.learners(i.f0)).matrix()
    assert adaptive.eigenvalues(A, v / np.linalg.norm(v), eta).holds


def test_first_adaptive_weight_can_be_negative():
    # φ_0 = −3 + ½ · 4 = −1, so ω_0 = yφ_0/φ_0² = −1.
    assert adaptive.one_point(-3.0).w[0] == pytest.approx(-1)
    assert adaptive.negative_first_weight(instance("rbf", 0)) < 0


def test_update_can_vanish_at_the_start_without_calibration():
    # φ_0 = −1 + ½ · (1 − (−1)) = 0 while r_0 = 2 lies in the span.
    t = adaptive.one_point(-1.0)
    assert (np.linalg.norm(t.phi[0]), t.projected[0]) == pytest.approx((0.0, 2.0))


def test_residual_of_the_counterexample_does_not_tend_to_zero():
    # f_t(2) : f_t(3) stays 1 : −ε, so the residual's limit is ε/√(1 + ε²).
    y, epsilon = np.array([1.0, 1.0, 0.0]), 0.1
    first = lambda f: np.array([[1.0], [0.0], [0.0]])  # noqa: E731
    t = run(y, y - [0, 0, epsilon], first, 1.0, 500, Adaptive())
    assert np.linalg.norm(t.r[-1]) == pytest.approx(epsilon / np.sqrt(1 + epsilon**2), rel=1e-9)


@pytest.mark.parametrize("kind", SMOOTH)
def test_rate_is_not_quadratic_for_classes_that_depend_on_predictions(kind):
    ratios = [adaptive.not_quadratic_smooth(instance(kind, 3), e) for e in (1e-2, 1e-4, 1e-6)]
    assert min(ratios) > 0.3


def test_rate_is_quadratic_where_the_learners_span_the_complement_of_the_target():
    constants = [adaptive.quadratic(e, seed=1) for e in (1e-2, 1e-3, 1e-4)]
    assert max(constants) < 2 * min(constants)


@pytest.mark.parametrize("epsilon", [1e-2, 1e-4, 1e-6])
def test_quadratic_rate_fails_on_a_diagonal_example(epsilon):
    actual, stated = adaptive.not_quadratic(epsilon)
    assert actual == pytest.approx(1, abs=epsilon)
    assert stated == 0


@MANY
@given(SEEDS, ANY, st.floats(0.05, 1.0))
def test_next_residual_of_adaptive_is_a_product_of_two_projections(seed, kind, eta):
    i = instance(kind, seed)
    step = adaptive.next_residual(i.y, i.f0, project(i.learners(i.f0)).matrix(), eta)
    np.testing.assert_allclose(step.actual, step.true, atol=1e-10 * np.linalg.norm(i.y))
