"""Theorem 4.1 and sharper bounds, on random instances."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.theory.dynamics import run
from pipeline.theory.findings import error, unit
from pipeline.theory.instances import KINDS, instance
from pipeline.theory.logloss import run_log_loss
from pipeline.theory.trials import unit_run

SEEDS = st.integers(0, 10**6)
ANY = st.sampled_from(KINDS)
MANY = settings(max_examples=40, deadline=None)


@MANY
@given(SEEDS, ANY, st.sampled_from([0.0, 0.01, 0.2]))
def test_no_rescaling_obeys_its_bounds(seed, kind, noise):
    t = unit_run(instance(kind, seed), noise=noise)
    for check in (
        unit.loss_rises_by_at_most_the_error,
        unit.average_gap,
        unit.smallest_gap,
        error.error_by_gap,
    ):
        assert check(t).holds


@MANY
@given(SEEDS, ANY)
def test_sum_of_squared_gaps_is_known_exactly_for_every_step_size(seed, kind):
    t = unit_run(instance(kind, seed), any_step=True)
    assert unit.sum_of_gaps_is_known(t).measured < 1e-12
    assert unit.smallest_gap_sharp(t).holds


@MANY
@given(SEEDS, ANY, st.sampled_from(["random", "along", "against"]), st.floats(0.0, 0.3))
def test_gaps_are_bounded_without_a_condition_on_the_step_size(seed, kind, direction, noise):
    i = instance(kind, seed)
    t = run(i.y, i.f0, i.learners, min(i.eta, 0.99), 10, error=lambda _: noise, direction=direction)
    assert t.convexity == t.smoothness == 1
    assert unit.gaps_without_step_condition(t, exact=False).holds
    assert unit.smallest_error(t).holds
    assert unit.loss_rises_by_at_most_the_error(t).holds


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**4), st.booleans(), st.floats(0.1, 1.0))
def test_error_of_the_log_loss_obeys_its_bound_separable_or_not(seed, separable, share):
    i = instance("sigmoid", seed)
    score = i.learners.H @ i.generator().normal(size=3)
    score += 0.0 if separable else i.generator().normal(size=len(score))
    y = (score > np.median(score)).astype(float)
    t = run_log_loss(y, 0.3 * i.f0, i.learners, i.eta, 5, share)
    # A share s of the best step has ε_t ≤ (1 − s) D_t, by convexity.
    assert np.all(t.epsilon <= (1 - share) * t.loss[:-1] + 1e-9)
    assert t.smoothness == 0.25
    assert unit.smallest_error(t).holds
    assert unit.smallest_error_relative(t, 1 - share + 1e-9).holds
