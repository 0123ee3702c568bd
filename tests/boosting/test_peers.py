"""Other methods, each against arithmetic done by hand, and all of them against what must hold."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from pipeline.boosting.algorithm import boost
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
from pipeline.boosting.peers.trees import CrossFittedTrees, Histogram, Lightgbm
from pipeline.boosting.rescaling import Adaptive
from pipeline.runs.kinds.corrections.measures import debiased_binned_square

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


def test_a_level_set_is_updated_only_if_its_validation_error_falls():
    # Level sets 0 and 1/2 as above, with means 1/2 and 1. Validation rows: 1/2 everywhere, so that
    # the first update removes their error and the second would make one.
    rows = sample([0.0, 1.0, 1.0, 1.0], [0.2, 0.2, 0.6, 0.6])
    others = sample([0.5] * 4, rows.f)
    validated = LevelSetBoosting(levels=2, validated=True)
    assert validated.validates
    assert not LevelSetBoosting().validates
    np.testing.assert_allclose(corrected(validated, rows, others), 0.5)


def test_a_validation_error_has_to_fall_by_a_share_of_gamma():
    # From 0 to 1/2, with validation rows at 0.253: the error falls by 4.7 %.
    rows, others = sample([0.0, 1.0], [0.0, 0.0]), sample([0.253, 0.253], [0.0, 0.0])
    for gamma, expected in ((0.04, 0.5), (0.05, 0.0)):
        method = LevelSetBoosting(levels=2, rounds=1, gamma=gamma, validated=True)
        np.testing.assert_allclose(corrected(method, rows, others), expected)


def test_a_level_set_of_one_row_is_left_as_it_is():
    rows = sample([0.0, 1.0, 1.0], [0.0, 0.0, 0.6])
    once = LevelSetBoosting(levels=2, rounds=1)
    np.testing.assert_allclose(corrected(once, rows), [0.5, 0.5, 0.5])
    validated = replace(once, validated=True)
    np.testing.assert_allclose(
        corrected(validated, rows, sample([1.0], [0.0])), [0.0, 0.0, 0.5]
    )  # one validation row


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


def test_what_is_right_within_half_of_alpha_is_not_patched():
    rows = sample([0.0, 1.0], [0.45, 0.45])  # mean 1/2, off by 0.05
    np.testing.assert_allclose(corrected(IterativePatching(alpha=0.11), rows), 0.45)
    np.testing.assert_allclose(corrected(IterativePatching(alpha=0.09), rows), 0.5)


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
    # glmnet: ½ mean (r/s − b x)² + λ/s ½ b² with s = sd(r), and x with mean square 1, so the slope
    # of r is mean(r x) / (1 + λ/s). Here s = 0.2.
    x = np.array([-1.0, 1.0] * 4)
    rows = sample(0.5 + 0.2 * x, np.full(8, 0.5), X=x[:, None], binary=True)
    once = AuditorBoosting(iterations=1, multiplicative=False, penalty=0.6)
    np.testing.assert_allclose(corrected(once, rows), 0.5 + 0.2 / 4 * x)


def test_one_shot_adds_a_groups_residual():
    group = np.arange(300) % 3 == 0
    rows = sample(np.where(group, 1.0, 0.0), np.zeros(300), groups=np.column_stack([group, ~group]))
    one = OneShotTrees(learning_rate=1.0, trees=1)
    np.testing.assert_allclose(corrected(one, rows), rows.y, atol=1e-6)


def test_one_shot_starts_from_f_and_stays_within_the_range_of_y():
    group = np.arange(300) % 3 == 0
    rows = sample(np.where(group, 1.0, 0.5), np.zeros(300), groups=np.column_stack([group, ~group]))
    one = OneShotTrees(learning_rate=0.1, trees=1, rows=1.0)
    found = corrected(one, replace(rows, y=np.where(group, 1.0, -0.5)))
    np.testing.assert_allclose(found, np.where(group, 0.1, -0.05), atol=1e-6)
    np.testing.assert_allclose(corrected(one, rows), 0.5)  # 0.1 and 0.05, below all of y


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


def test_one_shot_s_defaults_are_its_authors():
    lightgbm = pytest.importorskip("lightgbm")
    rows, others = drawn(600), drawn(300, seed=1)
    inputs = [np.column_stack([r.f, r.groups]) for r in (rows, others)]
    theirs = lightgbm.LGBMRegressor(
        learning_rate=0.01, n_estimators=5000, subsample=0.5, subsample_freq=1, max_bin=8192,
        min_data_in_bin=1, max_depth=2, boost_from_average=False, random_state=SEED, verbose=-1,
    )  # fmt: skip
    theirs.fit(
        inputs[0], rows.y - rows.f, eval_X=inputs[1], eval_y=others.y - others.f,
        callbacks=[lightgbm.early_stopping(50, verbose=False)],
    )  # fmt: skip
    fitted = OneShotTrees(in_sample=True).fit(rows, others, SEED)
    assert fitted.rounds == theirs.best_iteration_ > 100
    expected = np.clip(others.f + theirs.predict(inputs[1]), rows.y.min(), rows.y.max())
    np.testing.assert_allclose(fitted.predict(others), expected, atol=1e-6)


def on_a_grid(n, binary):
    """Rows of few distinct values, of which LightGBM makes the same bins from any sample."""
    rng = np.random.default_rng(6)
    X = rng.integers(0, 5, size=(n, 2)).astype(float)
    f, noise = (1 + X[:, 1]) / 8, rng.random(n)
    truth = f + 0.3 * (X[:, 0] > 2)
    y = (noise < truth).astype(float) if binary else truth + noise
    return sample(y, f, X, binary=binary)


def trees_of_each_fold(rows, seed, most):
    """Scores (folds + 1, most, n) of trees fitted without each fold and to all; the folds' rows."""
    lightgbm = pytest.importorskip("lightgbm")
    parameters = {"objective": "binary" if rows.binary else "regression", "verbosity": -1,
                  "deterministic": True, "num_threads": 1, "seed": seed}  # fmt: skip
    start = logit(rows.f) if rows.binary else rows.f
    folds = list(KFold(5, shuffle=True, random_state=seed).split(rows.X))
    everything = np.arange(len(rows))
    scores = []
    for used in [*(a for a, _ in folds), everything]:
        data = lightgbm.Dataset(rows.with_f[used], rows.y[used], init_score=start[used])
        booster = lightgbm.train(parameters, data, most)
        scores.append([
            start + booster.predict(rows.with_f, num_iteration=k, raw_score=True)
            for k in range(1, most + 1)
        ])  # fmt: skip
    return np.array(scores), [held for _, held in folds]


@pytest.mark.parametrize("binary", [False, True])
def test_cross_fitted_trees_are_those_of_a_loop_over_folds(binary):
    rows = on_a_grid(1000, binary)
    scores, held_out = trees_of_each_fold(rows, SEED, 80)
    predicted = sigmoid(scores) if binary else scores

    out_of_fold = np.empty((80, len(rows)))
    for k, held in enumerate(held_out):
        out_of_fold[:, held] = predicted[k][:, held]
    losses = np.array([rows.losses(p) for p in out_of_fold])
    best = int(losses.mean(axis=1).argmin())
    assert 0 < best < 60  # 20 trees follow, with which it ends

    method = CrossFittedTrees(patience=20)
    fitted = method.fit(rows, rows, SEED)
    assert fitted.rounds == best + 1
    average = scores[:5, best].mean(axis=0)
    np.testing.assert_allclose(
        fitted.predict(rows), sigmoid(average) if binary else average, atol=1e-9
    )
    np.testing.assert_allclose(
        corrected(replace(method, combine="refit"), rows), predicted[5, best], atol=1e-9
    )

    gain = rows.losses(rows.f) - losses[best]
    errors = gain.mean() / (gain.std() / np.sqrt(len(gain)))
    assert replace(method, caution=0.99 * errors).fit(rows, rows, SEED).rounds == best + 1
    nothing = replace(method, caution=1.01 * errors).fit(rows, rows, SEED)
    assert nothing.rounds == 0
    np.testing.assert_array_equal(nothing.predict(rows), rows.f)


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
        CrossFittedTrees(), Histogram(), GroupShift(), OneShotTrees(),
        AuditorBoosting("tree", multiplicative=False),
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


@pytest.mark.parametrize("kind", ["mcgrad", "estimator", "one_shot", "crossfitted"])
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
        lambda: CrossFittedTrees(combine="median"),
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


def test_hybrid_takes_the_weight_and_the_round_that_validation_rows_prefer():
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 3))
    y = X[:, 0] * X[:, 1] + random.normal(size=600) / 2

    def part(rows):
        nowhere = np.zeros((len(X[rows]), 1), bool)
        return Sample(
            X=X[rows], y=y[rows], f=np.zeros(len(X[rows])), binary=False, groups=nowhere,
            cells=np.zeros(len(X[rows]), np.int64),
        )  # fmt: skip

    train, validation, test = part(slice(0, 300)), part(slice(300, 450)), part(slice(450, 600))
    small = {"rounds": 3, "trees": 20}
    found = METHODS["hybrid"](**small).fit(train, validation, 0)
    stopped = METHODS["algorithm"](**small, stopped=True).fit(train, validation, 0)
    assert validation.loss(found.predict(validation)) < validation.loss(stopped.predict(validation))
    assert test.loss(found.predict(test)) < 0.7 * test.loss(test.f)
    backwards = replace(validation, y=-validation.y)  # rows that every correction makes worse
    assert METHODS["hybrid"](**small).fit(train, backwards, 0).rounds == 0
