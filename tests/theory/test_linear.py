"""The linear rate and its Lipschitz constants."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.theory.findings import linear
from pipeline.theory.instances import SMOOTH, instance
from pipeline.theory.learners import project
from pipeline.theory.trials import unit_run

SEEDS = st.integers(0, 10**6)
ANY_SMOOTH = st.sampled_from(SMOOTH)
MANY = settings(max_examples=40, deadline=None)


@MANY
@given(SEEDS, ANY_SMOOTH)
def test_linear_rate_holds_with_the_measured_constant(seed, kind):
    assert linear.linear_rate(unit_run(instance(kind, seed))).holds


@MANY
@given(SEEDS, ANY_SMOOTH, st.floats(1e-6, 0.1))
def test_lipschitz_lemmas_hold_and_the_sharper_forms_too(seed, kind, distance):
    i = instance(kind, seed)
    other = i.f0 + distance * i.generator().normal(size=len(i.y))
    u, v = i.learners(i.f0), i.learners(other)
    if project(u).U.shape == project(v).U.shape:
        paper, sharp = linear.projector_difference(u, v)
        assert paper.holds
        assert sharp.holds
        assert sharp.bound < paper.bound
    assert all(check.holds for check in linear.class_difference(i.learners, i.f0, other))


def test_projector_jumps_where_the_class_loses_rank():
    distance, difference = linear.discontinuous_projector(1e-9)
    assert distance < 2e-9
    assert difference == pytest.approx(1)
