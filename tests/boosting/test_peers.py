"""Other methods, each against arithmetic done by hand, and all of them against what must hold."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from pipeline.boosting.algorithm import boost
from pipeline.boosting.calibration import debiased_binned_square
from pipeline.boosting.logloss import logit, sigmoid
from pipeline.boosting.peers import METHODS
from pipeline.boosting.peers.algorithm import Algorithm, Estimator
from pipeline.boosting.peers.auditors import AuditorBoosting
from pipeline.boosting.peers.base import Range, Sample
from pipeline.boosting.peers.level_sets import LevelSetBoosting
from pipeline.boosting.peers.one_shot import OneShotTrees
from pipeline.boosting.peers.patching import IterativePatching
from pipeline.boosting.peers.recalibration import (
    GroupShift,
    IsotonicRecalibration,
    LinearRecalibration,
)
from pipeline.boosting.peers.trees import Histogram, Lightgbm
from pipeline.boosting.rescaling import Adaptive

SEED = 3


def sample(y, f, X=None, groups=None, cells=None, binary=False):
    n = len(y)
    return Sample(
        X=np.zeros((n, 1)) if X is None else np.asarray(X, float),
        y=np.asarray(y, float),
        f=np.asarray(f, float),
        groups=np.zeros((n, 0), bool) if groups is None else np.asarray(groups, bool),
        cells=np.zeros(n, int) if cells is None else np.asarray(cells),
        binary=binary,
    )


def corrected(method, rows, validation=None):
    return method.fit(rows, rows if validation is None else validation, SEED).predict(rows)


def drawn(n, seed=0, binary=False):
    """Rows of which a group, a third, is predicted too low."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    group = X[:, 1] > 0.4
    signal = X[:, 0]
    if binary:
        y = (rng.random(n) < sigmoid(signal + 1.5 * group)).astype(float)
        f = sigmoid(signal)
    else:
        y, f = signal + 1.0 * group + 0.5 * rng.normal(size=n), signal
    groups, cells = np.column_stack([group, ~group]), group.astype(int)
    return Sample(X=X, y=y, f=f, groups=groups, cells=cells, binary=binary)


# --- by hand -------------------------------------------------------------------------------------


def test_linear_recalibration_finds_a_line():
    f = np.arange(5.0)
    rows = sample(2 * f + 1, f)
    np.testing.assert_allclose(corrected(LinearRecalibration(), rows), rows.y)


def test_linear_recalibration_of_classes_is_logistic_regression_on_the_logit():
    rows = drawn(400, binary=True)
    z = logit(rows.f)[:, None]
    expected = LogisticRegression(C=1e12, max_iter=1000).fit(z, rows.y).predict_proba(z)[:, 1]
    np.testing.assert_allclose(corrected(LinearRecalibration(), rows), expected, atol=1e-4)


def test_isotonic_recalibration_pools_what_falls():
    rows = sample([1.0, 0.0, 5.0], [0.0, 1.0, 2.0])
    np.testing.assert_allclose(corrected(IsotonicRecalibration(), rows), [0.5, 0.5, 5.0])
    other = drawn(200)
    expected = IsotonicRegression(out_of_bounds="clip").fit(other.f, other.y).predict(other.f)
    np.testing.assert_allclose(corrected(IsotonicRecalibration(), other), expected)


def test_each_cell_is_shifted_by_its_mean_residual_and_small_ones_by_that_of_all():
    # Cell 0: residuals 1, 3; cell 1: residual −1, one row only. All together: mean 1.
    rows = sample([1.0, 3.0, -1.0], [0.0, 0.0, 0.0], cells=[0, 0, 1])
    np.testing.assert_allclose(corrected(GroupShift(min_rows=2), rows), [2.0, 2.0, 1.0])


def test_a_shift_of_logits_makes_a_cells_mean_right():
    rows = drawn(2000, binary=True)
    found = corrected(GroupShift(), rows)
    for cell in (0, 1):
        inside = rows.cells == cell
        assert found[inside].mean() == pytest.approx(rows.y[inside].mean(), abs=1e-3)
    moved = logit(found) - logit(rows.f)
    assert np.ptp(moved[rows.cells == 1]) < 1e-9


def test_level_sets_get_their_means_where_there_is_nothing_else_to_learn_from():
    # Two levels, grid 0, 1/2, 1. Predictions 0.2 lie at 0 and 0.6 at 1/2; the means of y there are
    # 1/2 and 1. These lie on the grid, so that a second round changes nothing.
    rows = sample([0.0, 1.0, 1.0, 1.0], [0.2, 0.2, 0.6, 0.6])
    fitted = LevelSetBoosting(levels=2).fit(rows, rows, SEED)
    np.testing.assert_allclose(fitted.predict(rows), [0.5, 0.5, 1.0, 1.0])
    assert fitted.rounds == 3  # two at least, and the last, which is not rounded


def test_level_sets_learn_a_line_each():
    # One level set, at 1/2; y = x, which a line fits at once; the last round is not rounded.
    x = np.array([0.0, 0.1, 0.9, 1.0])
    rows = sample(x, np.full(4, 0.5), X=x[:, None])
    np.testing.assert_allclose(corrected(LevelSetBoosting(levels=2), rows), x, atol=1e-9)


def test_level_sets_move_by_the_learning_rate():
    rows = sample([0.0, 1.0, 1.0, 1.0], [0.2, 0.2, 0.6, 0.6])
    one = LevelSetBoosting(levels=2, rounds=1, learning_rate=0.5)
    # From 0 half way to 1/2, and from 1/2 half way to 1.
    np.testing.assert_allclose(corrected(one, rows), [0.25, 0.25, 0.75, 0.75])


def test_a_patch_moves_an_interval_to_its_mean():
    # All rows at 1/4, in the interval (0, 1/2]; y has mean 3/4: moved by 1/2 to 3/4.
    rows = sample([0.0, 1.0, 1.0, 1.0], np.full(4, 0.25))
    fitted = IterativePatching(width=0.5).fit(rows, rows, SEED)
    np.testing.assert_allclose(fitted.predict(rows), 0.75)
    assert fitted.rounds == 2  # the second finds nothing


def test_a_group_is_patched_apart():
    # Over all rows the mean is right, 1/2; in each group it is wrong by 1/2.
    member = np.array([True, True, False, False])
    rows = sample([1.0, 1.0, 0.0, 0.0], np.full(4, 0.5), groups=np.column_stack([member, ~member]))
    np.testing.assert_allclose(
        corrected(IterativePatching(width=1.0, sweeps=1), rows), 0.5
    )  # one interval: the final mean undoes it
    np.testing.assert_allclose(corrected(IterativePatching(width=0.5), rows), [1.0, 1.0, 0.0, 0.0])


def test_what_is_right_within_alpha_is_not_patched():
    rows = sample([0.0, 1.0], [0.45, 0.45])  # mean 1/2, off by 0.05
    np.testing.assert_allclose(corrected(IterativePatching(alpha=0.1), rows), 0.45)


def test_an_auditor_moves_against_the_residual_it_finds():
    # y = 1/2 + x / 5: the auditor finds f − y = −x / 5.
    x = np.array([-1.0, 1.0] * 4)
    rows = sample(0.5 + 0.2 * x, np.full(8, 0.5), X=x[:, None], binary=True)
    added = AuditorBoosting(iterations=1, multiplicative=False, penalty=0.0)
    np.testing.assert_allclose(corrected(added, rows), rows.y)
    factor = AuditorBoosting(iterations=1, penalty=0.0)
    np.testing.assert_allclose(corrected(factor, rows), 0.5 * np.exp(0.2 * x))


def test_the_bucket_with_most_to_find_is_updated_first():
    # Bucket 0 (f = 1/4) is right; in bucket 1 (f = 3/4) y = f + x / 10.
    x = np.array([-1.0, 1.0] * 4)
    f = np.repeat([0.25, 0.75], 4)
    rows = sample(f + 0.1 * x * (f > 0.5), f, X=x[:, None], binary=True)
    once = AuditorBoosting(iterations=1, multiplicative=False, penalty=0.0)
    np.testing.assert_allclose(corrected(once, rows), rows.y)


def test_an_auditor_that_finds_nothing_ends_it():
    rows = sample([0.2, 0.8], [0.2, 0.8], binary=True)
    assert AuditorBoosting().fit(rows, rows, SEED).rounds == 0


def test_a_ridge_auditor_shrinks_as_glmnet_does():
    # glmnet: ½ mean (r − b x)² + λ/2 b², x with mean square 1: b = mean(r x) / (1 + λ).
    x = np.array([-1.0, 1.0] * 4)
    rows = sample(0.5 + 0.2 * x, np.full(8, 0.5), X=x[:, None], binary=True)
    once = AuditorBoosting(iterations=1, multiplicative=False, penalty=1.0)
    np.testing.assert_allclose(corrected(once, rows), 0.5 + 0.1 * x)


def test_one_shot_adds_a_groups_residual():
    group = np.arange(300) % 3 == 0
    rows = sample(np.where(group, 1.0, 0.0), np.zeros(300), groups=np.column_stack([group, ~group]))
    one = OneShotTrees(learning_rate=1.0, trees=1)
    np.testing.assert_allclose(corrected(one, rows), rows.y, atol=1e-6)


def test_groups_of_less_than_a_percent_are_none():
    small = np.zeros(1000, bool)
    small[:5] = True
    rows = sample(np.zeros(1000), np.zeros(1000), groups=np.column_stack([small, ~small]))
    assert list(rows.large_groups) == [1]


# --- against others' code ------------------------------------------------------------------------


def test_mcgrad_is_adaptive_with_eta_one_where_bins_lose_nothing():
    mcgrad = pytest.importorskip("mcgrad.methods", reason="extra 'peers'")
    pd = pytest.importorskip("pandas")
    rows = drawn(300, seed=4)
    rounds, trees, depth = 5, 20, 3
    theirs = mcgrad.RegressionMCGrad(
        num_rounds=rounds, early_stopping=False, random_state=0,
        lightgbm_params={
            "n_estimators": trees, "max_depth": depth, "num_leaves": 2**depth,
            "learning_rate": 0.1, "min_child_samples": 1, "min_sum_hessian_in_leaf": 0.0,
            "max_bin": 65_535, "min_data_in_bin": 1, "feature_pre_filter": False,
            "num_threads": 1,
        },
    )  # fmt: skip
    names = [f"x{j}" for j in range(3)]
    frame = pd.DataFrame(rows.X, columns=names).assign(score=rows.f, label=rows.y)
    theirs.fit(frame, "score", "label", numerical_feature_column_names=names)
    found = theirs.predict(
        frame, "score", numerical_feature_column_names=names, return_all_rounds=True
    )

    def fit_round(t, f, residual):  # literally, with scikit-learn, from zero as MCGrad does
        Z = np.column_stack([rows.X, f])
        model = GradientBoostingRegressor(
            init="zero", n_estimators=trees, max_depth=depth, learning_rate=0.1, random_state=t
        )
        model.fit(Z, residual)
        return model, model.predict(Z)

    steps = list(boost(rows.y, rows.f, rounds, 1.0, Adaptive(), fit_round))
    np.testing.assert_allclose(found, [step.f for step in steps], atol=1e-6)
    np.testing.assert_allclose(theirs.unshrink_factors, [step.weight for step in steps], atol=1e-8)


def test_algorithm_is_the_paper_s_unless_told_otherwise():
    from pipeline.boosting import PAPER, MulticalibrationBoostingRegressor

    rows = drawn(200)
    direct = MulticalibrationBoostingRegressor(**PAPER, random_state=SEED)
    direct.fit(rows.X, rows.y, initial_prediction=rows.f)
    np.testing.assert_array_equal(corrected(Algorithm(), rows), direct.predict(rows.X, rows.f))


def test_a_stopped_algorithm_uses_the_round_that_is_best_on_validation_rows():
    rows, others = drawn(300), drawn(300, seed=1)
    fitted = Algorithm(stopped=True, trees=20).fit(rows, others, SEED)
    losses = [others.loss(f) for f in fitted.stages(others)]
    assert fitted.rounds == int(np.argmin(losses)) < 20
    assert others.loss(fitted.predict(others)) == min(losses)


# --- all of them ---------------------------------------------------------------------------------

INSTALLED = [
    pytest.param(kind, id=kind, marks=[pytest.mark.slow] if kind == "mcgrad" else [])
    for kind in METHODS
]


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("kind", INSTALLED)
def test_no_method_looks_at_the_outcomes_of_rows_it_predicts(kind, binary):
    if kind == "mcgrad":
        pytest.importorskip("mcgrad", reason="extra 'peers'")
    rows, validation, test = (drawn(n, seed, binary) for n, seed in ((400, 0), (150, 1), (100, 2)))
    fitted = METHODS[kind]().fit(rows, validation, SEED)
    blank = replace(test, y=np.full(100, np.nan))
    found = fitted.predict(test)
    np.testing.assert_array_equal(found, fitted.predict(blank))
    assert found.shape == (100,)
    assert np.isfinite(found).all()
    if binary:
        assert found.min() >= 0.0
        assert found.max() <= 1.0


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize(
    "method",
    [
        Algorithm(stopped=True, trees=20), Estimator(), Lightgbm(start="model"), Lightgbm(),
        Histogram(), GroupShift(), OneShotTrees(), AuditorBoosting("tree", multiplicative=False),
    ],
    ids=lambda m: type(m).__name__,
)  # fmt: skip
def test_a_large_bias_of_a_group_is_found_by_whoever_sees_groups(method, binary):
    rows, validation, test = (drawn(n, s, binary) for n, s in ((3000, 0), (1000, 1), (3000, 2)))
    found = method.fit(rows, validation, SEED).predict(test)
    group = test.cells == 1
    before, after = (abs((test.y - f)[group].mean()) for f in (test.f, found))
    assert after < before / 3
    assert test.loss(found) < test.loss(test.f)


@pytest.mark.parametrize("kind", ["mcgrad", "estimator", "one_shot"])
def test_a_model_fitted_to_the_same_rows_is_judged_on_the_validation_rows(kind):
    if kind == "mcgrad":
        pytest.importorskip("mcgrad", reason="extra 'peers'")
    rows, validation = drawn(400), drawn(200, seed=1)
    seen = replace(rows, f=rows.y.copy())  # nothing seems wrong
    method = METHODS[kind](in_sample=True)
    assert method.validates
    assert not METHODS[kind]().validates
    fitted = method.fit(seen, validation, SEED)
    assert validation.loss(fitted.predict(validation)) <= validation.loss(validation.f) * 1.001


def test_unknown_words_are_refused():
    for make in (
        lambda: Lightgbm(start="f"),
        lambda: LevelSetBoosting(learner="forest"),
        lambda: AuditorBoosting(auditor="lasso"),
    ):
        with pytest.raises(ValueError, match="must be"):
            make()


# --- what they share -----------------------------------------------------------------------------


def test_rows_can_be_taken_and_put_together():
    rows = drawn(10)
    halves = rows.take(np.arange(4)) + rows.take(np.arange(4, 10))
    assert len(halves) == 10
    np.testing.assert_array_equal(halves.X, rows.X)
    np.testing.assert_array_equal(halves.groups, rows.groups)
    np.testing.assert_array_equal(halves.with_f[:, -1], rows.f)


def test_the_log_loss_of_a_certain_mistake_is_that_of_one_in_a_million():
    wrong = sample([1.0], [0.0], binary=True)
    assert wrong.loss(wrong.f) == pytest.approx(np.log(1e6), rel=1e-6)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_a_range_goes_to_shares_and_back(values):
    y = np.array(values)
    scale = Range.of(sample(y, y))
    shares = scale.to(y)
    assert shares.min() >= 0.0
    assert shares.max() <= 1.0
    np.testing.assert_allclose(scale.back(shares), y, atol=1e-6 * (1 + np.ptp(y)))


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000))
def test_the_binned_error_of_a_perfect_model_is_zero_on_average(seed):
    rng = np.random.default_rng(seed)
    p = rng.random((200, 100))
    values = [debiased_binned_square((rng.random(100) < q).astype(float), q) for q in p]
    error = np.std(values) / np.sqrt(len(values))
    assert abs(np.mean(values)) < 5 * error


def test_the_binned_error_by_hand():
    # Two bins: residuals 1, 3 → (16 − 10) / 2 = 3; and 0, 2 → (4 − 4) / 2 = 0. Half of each.
    f = np.array([0.0, 0.0, 1.0, 1.0])
    r = np.array([1.0, 3.0, 0.0, 2.0])
    assert debiased_binned_square(f + r, f, n_bins=2) == pytest.approx(1.5)
