"""Relaxed weights."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.boosting.rescaling import Relaxed
from pipeline.theory.dynamics import run
from pipeline.theory.findings import relaxed
from pipeline.theory.instances import KINDS, instance

SEEDS = st.integers(0, 10**6)
ANY = st.sampled_from(KINDS)
MANY = settings(max_examples=40, deadline=None)


@MANY
@given(SEEDS, ANY)
def test_relaxed_weights_obey_identity_lyapunov_function_and_bounds(seed, kind):
    i = instance(kind, seed)
    t = run(i.y, i.f0, i.learners, i.eta, 20, Relaxed())
    assert relaxed.residual_identity(t).measured < 1e-12
    falls, positive = relaxed.lyapunov(t)
    assert falls.measured < 1e-12
    assert positive.holds
    assert relaxed.residual_stays_between(t).holds
    assert relaxed.smallest_gap_relaxed(t).holds


@given(SEEDS)
@MANY
def test_relaxed_weights_raise_the_loss_of_targets_far_from_zero(seed):
    t = relaxed.relaxed_far_from_zero(seed)
    assert t.loss[1] > 1.2 * t.loss[0]
