"""Steps with the log-loss."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from pipeline.theory.instances import instance
from pipeline.theory.learners import project
from pipeline.theory.logloss import best_log_loss_step, log_loss


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 200))
def test_log_loss_step_is_the_minimiser_scipy_finds(seed):
    i = instance("sigmoid", seed)
    y = (np.random.default_rng(seed).random(len(i.y)) < 0.5).astype(float)
    B = i.learners(i.f0)[:, :3]
    h = best_log_loss_step(y, i.f0, project(B))
    theirs = minimize(lambda z: log_loss(y, i.f0 + B @ z), np.zeros(3), method="BFGS")
    assert log_loss(y, i.f0 + h) <= theirs.fun + 1e-8
    gradient = np.abs(B.T @ (y - 1 / (1 + np.exp(-(i.f0 + h))))).max()
    assert gradient < 1e-8 or np.abs(h).max() > 20  # unless the classes can be separated
