"""The multicalibration error by the gap."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.theory.dynamics import run
from pipeline.theory.findings import error
from pipeline.theory.instances import KINDS, instance

SEEDS = st.integers(0, 10**6)
ANY = st.sampled_from(KINDS)
MANY = settings(max_examples=40, deadline=None)


@MANY
@given(SEEDS, ANY)
def test_step_in_the_proof_of_the_error_bound_needs_a_full_step(seed, kind):
    i = instance(kind, seed)
    assert not error.step_in_its_proof(run(i.y, i.f0, i.learners, 0.5, 1)).holds
    noisy = run(i.y, i.f0, i.learners, 1.0, 1, error=lambda _: 0.01)
    assert error.step_in_its_proof(noisy).holds


def test_error_can_grow_while_the_gap_vanishes_if_learners_are_unbounded():
    t = error.unbounded_learner(25)
    assert t.gaps[-1] < 1e-6
    np.testing.assert_allclose(t.errors, 1 / t.r[:-1, 0])


def test_squared_loss_decreases_by_the_square_of_the_mean():
    # r = (1, 3, 5), the first two in the group: best step 2, decrease (1 + 9 − 1 − 1)/6 = 8/6;
    # ½ · (4/3)² / (2/3) = 8/6, while ½ · (10/3)/(2/3) = 15/6.
    printed, right = error.squared_loss_decrease(np.array([1.0, 3, 5]), np.array([1.0, 1, 0]))
    assert right.holds
    assert printed.measured == pytest.approx((15 / 6 - 8 / 6) / (35 / 3))
