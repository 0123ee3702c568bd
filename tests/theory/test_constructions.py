"""The instances that attain the rate of the gap, and products of finitely many projections."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.theory.constructions import length, orders, slow_spiral, spiral
from pipeline.theory.learners import project


@pytest.mark.parametrize("eta", [0.05, 0.5, 1.0])
def test_all_gaps_of_the_spiral_are_equal_and_reach_the_sharp_bound_in_the_limit(eta):
    shares = []
    for n in (1, 10, 500):
        t = spiral(n, eta)
        np.testing.assert_allclose(t.gaps, t.gaps[0], rtol=1e-9)
        assert np.linalg.norm(t.r[0]) == pytest.approx(1)
        shares.append(t.gaps[0] / np.sqrt(eta / ((2 - eta) * n)))
    assert np.all(np.diff(shares) >= -1e-12)
    assert shares[-1] == pytest.approx(1, abs=0.03)
    assert shares[-1] <= 1 + 1e-12


def test_learner_of_the_spiral_is_a_function_of_the_point_and_its_own_prediction():
    t = spiral(40, 0.5)
    for k in range(2):
        assert len(np.unique(t.f[:-1, k])) == 40  # no prediction repeats, so none is asked for two


def test_slow_spiral_has_gaps_within_a_logarithm_of_the_bound_for_every_number_of_rounds():
    n = 400
    t = slow_spiral(n, 0.5)
    rounds = np.arange(n) + 2
    scaled = t.gaps * np.sqrt(rounds) * np.log(rounds)
    np.testing.assert_allclose(scaled, scaled[0], rtol=1e-9)
    assert np.square(t.r[-1]).sum() > 0.5


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 3),
    st.floats(0.05, 1.0),
    st.sampled_from(["turn", "lazy", "random"]),
)
def test_products_of_few_projections_have_finite_length(seed, k, eta, order):
    rng = np.random.default_rng(seed)
    family = [project(rng.normal(size=(5, int(rng.integers(1, 4))))) for _ in range(k)]
    assert length(family, eta, rng.normal(size=5), orders(seed)[order], 100).holds


def test_length_of_one_projection_is_that_of_a_geometric_series():
    # r = (3, 4), A on the first axis, η = ½: the length of n steps is 3 (1 − 2⁻ⁿ).
    A = project(np.array([[1.0], [0.0]]))
    check = length([A], 0.5, np.array([3.0, 4.0]), orders(0)["turn"], 10)
    assert check.measured == pytest.approx(3 * (1 - 2.0**-10))
