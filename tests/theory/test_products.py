"""Products of finitely many projections."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.theory import products
from pipeline.theory.learners import project

SEEDS = st.integers(0, 10**6)
MANY = settings(max_examples=40, deadline=None)


@MANY
@given(SEEDS, st.integers(1, 3), st.floats(0.05, 1.0), st.sampled_from(["turn", "lazy", "random"]))
def test_products_of_few_projections_have_finite_length(seed, k, eta, order):
    rng = np.random.default_rng(seed)
    family = [project(rng.normal(size=(5, int(rng.integers(1, 4))))) for _ in range(k)]
    random = products.at_random(seed)
    orders = {"turn": products.in_turn, "lazy": products.laziest, "random": random}
    assert products.length(family, eta, rng.normal(size=5), orders[order], 100).holds


def test_length_of_one_projection_is_that_of_a_geometric_series():
    # r = (3, 4), A on the first axis, η = ½: the length of n steps is 3 (1 − 2⁻ⁿ).
    A = project(np.array([[1.0], [0.0]]))
    check = products.length([A], 0.5, np.array([3.0, 4.0]), products.in_turn, 10)
    assert check.measured == pytest.approx(3 * (1 - 2.0**-10))
