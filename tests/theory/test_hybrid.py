"""The hybrid algorithm of the appendix."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.theory.dynamics import run_hybrid
from pipeline.theory.findings import hybrid
from pipeline.theory.instances import KINDS, instance

SEEDS = st.integers(0, 10**6)
ANY = st.sampled_from(KINDS)
MANY = settings(max_examples=40, deadline=None)


@MANY
@given(SEEDS, ANY, st.floats(0.05, 2.0), st.floats(0.02, 0.98))
def test_hybrid_obeys_its_rate_and_the_corrected_identity_but_not_the_printed_one(
    seed, kind, gamma, share
):
    i = instance(kind, seed)
    eta = share * 2 * gamma / (1 + gamma) ** 2
    strong = i.y + 0.3 * i.generator().normal(size=len(i.y))
    h = run_hybrid(i.y, i.f0, i.learners, strong, eta, gamma, 6)
    assert hybrid.hybrid_rate(h).holds
    printed, corrected = hybrid.hybrid_error(h)
    assert corrected.measured < 1e-10
    assert printed.measured > 1e-3


@MANY
@given(SEEDS, st.floats(0.01, 0.99))
def test_preconditioned_gradient_lemma_holds_for_matrices_that_commute(seed, share):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    p, q = rng.uniform(0.5, 2, 8), rng.uniform(0.5, 2, 8)
    P, Q = basis * p @ basis.T, basis * q @ basis.T
    vectors = rng.normal(size=(3, 8))
    assert hybrid.preconditioned_step(vectors[0], vectors[1], P, Q, vectors[2], share).holds


@MANY
@given(SEEDS, ANY, st.floats(0.05, 3.0), st.floats(0.02, 0.98))
def test_hybrid_obeys_the_sharper_rate_for_all_steps_below_its_limit(seed, kind, gamma, share):
    i = instance(kind, seed)
    eta = share * 2 / (1 + gamma)
    strong = i.y + 0.3 * i.generator().normal(size=len(i.y))
    h = run_hybrid(i.y, i.f0, i.learners, strong, eta, gamma, 6)
    kappa = hybrid.hybrid_kappa_sharp
    assert hybrid.hybrid_rate(h, kappa).holds
    assert kappa(eta, gamma) < 1
