"""Another feature than f_t."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.boosting import trajectories
from pipeline.boosting.losses import SquaredLoss
from pipeline.boosting.rescaling import Relaxed, Unit
from pipeline.boosting.rows import Rows
from pipeline.theory.checks import check_runs
from pipeline.theory.findings import feedback
from pipeline.theory.instances import KINDS, SMOOTH, instance

SEEDS = st.integers(0, 10**6)
MANY = settings(max_examples=20, deadline=None)


@dataclass(frozen=True)
class LeastSquares:
    """An engine for the library's own trajectories: least squares on the class at (X, feature)."""

    learners: object
    X: np.ndarray = None
    theta: np.ndarray = None

    def bind(self, X, weights=None):
        return replace(self, X=X)

    def fit(self, f, residual, seed):
        B = self._class(self.X, f)
        fitted = replace(self, theta=np.linalg.lstsq(B, residual, rcond=1e-10)[0])
        return fitted, B @ fitted.theta

    def predict(self, X, f):
        return self._class(X, f) @ self.theta

    def _class(self, X, f):
        return replace(self.learners, H=X)(f)


@pytest.mark.parametrize("rescaling", [Unit(), Relaxed()])
@pytest.mark.parametrize("name", trajectories.FEEDBACK)
def test_trajectories_are_those_of_the_library(name, rescaling):
    i = instance("linear", 3)
    fit = feedback.crossed(i, name, 6, rescaling)
    engine = LeastSquares(i.learners)
    options = trajectories.BoostingSettings(SquaredLoss(), engine, i.eta, rescaling, 0, name)
    starts = [i.f0] * feedback.N_FOLDS
    library = trajectories.CrossFit(options, Rows(y=i.y), i.learners.H, starts, fit.fold, 6)
    for found, f in zip(library.stages(), fit.honest, strict=True):
        np.testing.assert_allclose(f, found, rtol=1e-8)
    for t, f in zip(fit.runs, library.scores, strict=True):
        np.testing.assert_allclose(t.f[-1], f, rtol=1e-8)


@MANY
@given(SEEDS, st.sampled_from(feedback.TAME))
def test_a_feature_out_of_fold_leaves_loss_gaps_and_weights_to_the_theorems(seed, kind):
    for rescaling, checks in feedback.EXACT_ORACLE.values():
        fit = feedback.crossed(instance(kind, seed), "honest", rescaling=rescaling)
        for check in checks:
            assert all(found.holds for found in check_runs(check, fit.runs))


@MANY
@given(SEEDS, st.sampled_from(KINDS))
def test_gaps_shrink_by_one_minus_eta_if_the_feature_stands_still(seed, kind):
    gaps, loss = feedback.fixed_feature(instance(kind, seed))
    assert gaps.measured < 1e-12
    assert loss.holds


@MANY
@given(SEEDS, st.sampled_from(SMOOTH), st.sampled_from([1e-2, 1e-3]))
def test_trajectories_out_of_fold_have_a_rate_together(seed, kind, rho):
    i = instance(kind, seed)
    close = replace(i, f0=i.y - rho * (i.y - i.f0))
    assert feedback.rate_of_all(feedback.crossed(close, "honest")).holds


@pytest.mark.parametrize("name", feedback.FEATURES)
def test_error_over_f_stays_where_the_gap_vanishes(name):
    fit = feedback.three_rows((0.0, 2.0, 0.0), name, 0.5)
    assert fit.runs[0].gaps[-1] < 1e-5
    assert fit.runs[0].errors[-1] < 1e-5  # over (x, g_t)
    np.testing.assert_allclose([fit.error_over_f(0, t) for t in range(20)], 1.0)


def test_error_over_f_vanishes_with_the_feature_in_sample():
    assert feedback.three_rows((0.0, 2.0, 0.0), "in_sample", 0.5, 60).error_over_f(0) < 1e-9


def test_error_over_f_stays_with_a_feature_that_moves():
    fit = feedback.three_rows((-1.0, 2.0, 0.0), "honest", 1.0, 5)
    # By hand: round 0 finds the mean of the two rows and moves their feature to −1; round 1 has
    # b = (0, 2) and corrects the second row alone.
    expected = [[0, 0], [1, 1], [1, 0], [1, 0], [1, 0], [1, 0]]
    np.testing.assert_allclose(fit.runs[0].f, expected, atol=1e-12)
    np.testing.assert_allclose(fit.honest[1:, 1:], -1.0)
    assert fit.error_over_f(0) == pytest.approx(1.0)


@pytest.mark.parametrize("tau", [-1.0, 0.5, 2.0])
def test_own_y_comes_back_through_the_other_trajectory_after_two_rounds(tau):
    eta, epsilon = 0.5, 0.1
    fit = feedback.three_rows((tau, epsilon, -epsilon), "honest", eta)
    back = eta**2 * epsilon * tau / (1 + eta**2 * tau**2)
    np.testing.assert_allclose(fit.honest[:3, 0], [0, 0, back], atol=1e-15)


@pytest.mark.parametrize("name", trajectories.FEEDBACK)
def test_out_of_fold_scores_are_free_of_a_rows_own_y_except_by_features_out_of_fold(name):
    changes = feedback.change_with_own_y(instance("linear", 1), name)
    assert (changes[: feedback.FREE_OF_Y] == 0).all()
    assert (changes == 0).all() == (name != "honest")
