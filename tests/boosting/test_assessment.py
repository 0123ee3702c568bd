"""The noise floor, the debiased error and its p-value: by hand, by brute force, by simulation."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from pipeline.boosting import Auditor, multicalibration_error
from pipeline.boosting.audit import READINGS, debiased_square_of, error_of


def slow_square(auditor, prediction, residual, weight):
    """Σ over pairs of different rows of w_i w_j r_i r_j K_ij / Σ w_i w_j, by the definition."""
    n = len(residual)
    K = np.zeros((n, n))
    for i in range(
        n
    ):  # the leaves of row i are found by a residual that is 1 there and 0 elsewhere
        one = np.zeros(n)
        one[i] = 1.0
        leaf = auditor.leaves(prediction=prediction, residual=one).sums
        for j in range(n):
            other = np.zeros(n)
            other[j] = 1.0
            sums = auditor.leaves(prediction=prediction, residual=other).sums
            K[i, j] = (leaf * sums).sum() / len(leaf)
    pairs = np.outer(weight, weight) * (1 - np.eye(n))
    return (pairs * np.outer(residual, residual) * K).sum() / pairs.sum()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.integers(3, 12), st.booleans())
def test_debiased_square_is_the_sum_over_pairs_of_different_rows(seed, n, weighted):
    rng = np.random.default_rng(seed)
    X, f, y = rng.normal(size=(n, 3)), rng.normal(size=n), rng.normal(size=n)
    weight = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    auditor = Auditor(X, n_trees=5, depth=2, seed=seed)
    ours = auditor.assess(y=y, prediction=f, sample_weight=weight, n_flips=0)
    expected = slow_square(auditor, f, y - f, weight)
    assert ours.debiased_square == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert ours.floor**2 == pytest.approx((weight**2 * (y - f) ** 2).sum() / weight.sum() ** 2)


def test_without_weights_the_formulas_are_those_of_mse_and_mce():
    rng = np.random.default_rng(0)
    n = 300
    X, f = rng.normal(size=(n, 4)), rng.normal(size=n)
    y = f + rng.normal(size=n)
    a = Auditor(X).assess(y=y, prediction=f)
    mse = np.mean((y - f) ** 2)
    assert a.mce == Auditor(X).error(y=y, prediction=f) == multicalibration_error(X, y, f)
    assert a.floor == pytest.approx(np.sqrt(mse / n))
    assert a.debiased_square == pytest.approx((n * a.mce**2 - mse) / (n - 1))
    assert a.debiased == pytest.approx(np.sign(a.debiased_square) * abs(a.debiased_square) ** 0.5)
    leaves = Auditor(X).leaves(prediction=f, residual=y - f, squares=True)
    assert debiased_square_of(leaves, "leaf_indicators") == pytest.approx(a.debiased_square)


def simulate(n_samples, bias, n=200, binary=False):
    """Assessments of samples from one law; the predictor is right but for a shift of x0 > 0."""
    out, means = [], []
    for seed in range(n_samples):
        rng = np.random.default_rng([seed, int(1000 * bias), binary])
        X = rng.normal(size=(n, 3))
        f = rng.uniform(0.2, 0.6, n)
        truth = f + bias * (X[:, 0] > 0)
        y = (rng.random(n) < truth) * 1.0 if binary else truth + 0.5 * rng.standard_t(5, n)
        auditor = Auditor(X, n_trees=20, seed=7)
        out.append(auditor.assess(y=y, prediction=f))
        # What the same trees say of the true bias, without noise.
        means.append(auditor.leaves(prediction=f, residual=truth - f, squares=True))
    return out, means


@pytest.mark.slow
@pytest.mark.parametrize("binary", [False, True])
def test_perfect_predictor_has_a_debiased_error_of_zero_on_average_and_uniform_p_values(binary):
    out, _ = simulate(1000, bias=0.0, binary=binary)
    squares = np.array([a.debiased_square for a in out])
    assert abs(squares.mean()) < 3 * squares.std() / np.sqrt(len(squares))
    plug_in = np.array([a.mce**2 for a in out])
    assert plug_in.mean() > 20 * plug_in.std() / np.sqrt(len(plug_in))  # which is not zero
    p = np.array([a.p_value for a in out])
    jitter = np.random.default_rng(0).random(len(p)) / 100  # steps of 1/100 made continuous
    assert kstest(p - jitter, "uniform").pvalue > 0.01


@pytest.mark.slow
def test_planted_bias_is_estimated_without_bias_and_its_standard_error_is_right():
    out, truths = simulate(400, bias=0.3)
    squares = np.array([a.debiased_square for a in out])
    # A sample's own truth: the same sum over pairs, of the bias without the noise.
    truth = np.array([debiased_square_of(t, "leaf_indicators") for t in truths])
    error = (squares - truth).std() / np.sqrt(len(squares))
    assert abs((squares - truth).mean()) < 3 * error
    claimed = np.mean([a.standard_error for a in out])
    assert claimed == pytest.approx((squares - truth).std(), rel=0.25)
    assert np.mean([a.p_value <= 0.05 for a in out]) > 0.8  # sensitive


@pytest.mark.slow
@pytest.mark.parametrize("reading", READINGS)
def test_every_readings_debiased_square_is_far_below_its_plug_in_on_calibrated_rows(reading):
    squares, plug_in = [], []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        X, f, noise = rng.normal(size=(150, 3)), rng.normal(size=150), rng.normal(size=150)
        leaves = Auditor(X, n_trees=20, seed=seed).leaves(
            prediction=f, residual=noise, squares=True
        )
        squares.append(debiased_square_of(leaves, reading))
        plug_in.append(error_of(leaves, reading) ** 2)
    if reading == "fitted_leaf_values":  # unbiased before it is squared, and only there
        assert abs(np.mean(squares)) < 0.3 * np.mean(plug_in)
        return
    error = np.std(squares) / np.sqrt(len(squares))
    assert abs(np.mean(squares)) < 3 * error
    assert np.mean(plug_in) > 6 * error


def test_frames_are_audited_with_their_words_and_missing_cells():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=200),
            "w": rng.choice(["u", "v", None], 200),
            "b": rng.random(200) < 0.5,
        }
    )
    frame.loc[::7, "a"] = np.nan
    f = rng.normal(size=200)
    y = f + (frame["w"] == "v")
    assert Auditor(frame).assess(y=y.to_numpy(float), prediction=f).p_value == 0.01
    a = frame["a"].to_numpy()
    low, high = np.nanmin(a), np.nanmax(a)
    by_hand = np.column_stack([
        np.where(np.isnan(a), low - (high - low) - 1, a),
        frame["w"] == "u", frame["w"] == "v", frame["w"].isna(), frame["b"],
    ]).astype(float)  # fmt: skip
    ours, theirs = (multicalibration_error(X, y, f) for X in (frame, by_hand))
    assert ours == theirs


def test_outcomes_and_predictions_cannot_be_taken_for_each_other():
    with pytest.raises(TypeError, match="positional"):
        Auditor(np.zeros((2, 1))).error(np.zeros(2), np.ones(2))


def test_zero_residuals_are_no_evidence_and_one_row_tells_nothing():
    X = np.random.default_rng(0).normal(size=(50, 2))
    assert Auditor(X).assess(y=X[:, 0], prediction=X[:, 0]).p_value == 1.0
    one = Auditor(X[:1]).assess(y=np.ones(1), prediction=np.zeros(1))
    assert np.isnan(one.p_value)
    assert np.isnan(one.debiased_square)
