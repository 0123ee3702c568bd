"""Tests of mean residuals: exact where the law is known, of the promised size where it is not.

`make simulations` runs the study in full and prints its table (one line per law and number of
rows: how often a calibrated model raises an alarm overall and in a segment, and how often the
interval of a fixed half of the rows covers its true bias).
"""

import os
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pipeline.boosting import Auditor, audit_predictions
from pipeline.boosting.bias_tests import (
    Moments,
    _grouped,
    _Saddlepoint,
    mean_test,
    one_per_cluster,
    rate_test,
)
from pipeline.boosting.rows import PredictedRows

FULL = os.environ.get("SIMULATIONS") == "full"

# --- laws and closed forms ------------------------------------------------------------------------


def brute_force_tails(f, total):
    """Both tails of the number of events, by adding up all outcomes."""
    below = above = 0.0
    for y in product((0, 1), repeat=len(f)):
        p = np.prod(np.where(y, f, 1 - f))
        below += p * (sum(y) <= total)
        above += p * (sum(y) >= total)
    return below, above


@given(st.lists(st.floats(0.01, 0.99), min_size=1, max_size=8), st.data())
@settings(deadline=None, max_examples=40)
def test_rate_test_adds_up_all_outcomes(probabilities, data):
    f = np.array(probabilities)
    y = np.array(data.draw(st.lists(st.booleans(), min_size=len(f), max_size=len(f))), float)
    tested = rate_test(y, f, np.full(len(f), 3.0))
    below, above = brute_force_tails(f, y.sum())
    assert tested.p_value == pytest.approx(min(1, 2 * below, 2 * above), rel=1e-9)
    assert tested.low - 1e-9 <= y.mean() - f.mean() <= tested.high + 1e-9


def test_interval_of_equal_probabilities_is_clopper_and_pearsons():
    y, f = np.repeat([1.0, 0.0], [7, 33]), np.full(40, 0.3)
    tested, exact = rate_test(y, f, np.ones(40)), stats.binomtest(7, 40, 0.3)
    interval = exact.proportion_ci(method="exact")
    assert (tested.low, tested.high) == pytest.approx(
        (interval.low - 0.3, interval.high - 0.3), abs=1e-6
    )


@given(st.integers(0, 60), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=50)
def test_p_value_and_interval_never_contradict_each_other(events, seed):
    rng = np.random.default_rng(seed)
    f, y = rng.uniform(0.01, 0.4, 60), (np.arange(60) < events) * 1.0
    residual = rng.exponential(size=60) * rng.normal() + rng.normal()
    moments = Moments(float(residual.var()), float(stats.skew(residual)) * 5)
    weights = rng.uniform(0.5, 2, 60)
    for tested in (
        rate_test(y, f, np.ones(60)),
        rate_test(y, f, weights),
        mean_test(residual, weights, moments),
    ):
        if abs(tested.p_value - 0.05) > 1e-3:
            assert (tested.p_value < 0.05) == (not tested.low <= 0 <= tested.high)


@pytest.mark.parametrize("shift", [0.9, 1.0, 1.15])
def test_saddlepoint_is_close_to_the_exact_law(shift):
    rng = np.random.default_rng(0)
    f = rng.uniform(0.02, 0.4, 3000)
    total = round(shift * f.sum())
    law, exact = _Saddlepoint(*_grouped(f), total, lattice=True), stats.poisson_binom(f)
    assert law.below(0.0) == pytest.approx(exact.cdf(total), rel=0.01)
    assert law.above(0.0) == pytest.approx(exact.sf(total - 1), rel=0.01, abs=1e-14)


def test_weighted_rates_follow_their_law():
    rng = np.random.default_rng(1)
    f, weights = rng.uniform(0.02, 0.3, 200), rng.pareto(2.5, 200) + 1
    drawn = (rng.random((20_000, 200)) < f) @ weights
    y = (rng.random(200) < 1.4 * f) * 1.0
    total = (weights * y).sum()
    expected = 2 * min((drawn >= total).mean(), (drawn <= total).mean())
    assert rate_test(y, f, weights).p_value == pytest.approx(expected, abs=0.01, rel=0.1)


def test_no_event_among_few_expected_proves_nothing():
    f = np.full(59, 0.64 / 59)
    tested = rate_test(np.zeros(59), f, np.ones(59))
    assert tested.p_value == 1.0
    assert tested.low == pytest.approx(-f[0])
    assert tested.high > 0


def test_symmetric_rows_have_students_test():
    rng = np.random.default_rng(0)
    residual = rng.normal(size=80)
    tested = mean_test(residual, np.ones(80), Moments(0.0, 0.0))
    student = stats.ttest_1samp(residual, 0.0)
    assert tested.p_value == pytest.approx(student.pvalue)
    assert (tested.low, tested.high) == pytest.approx(tuple(student.confidence_interval()))


def test_clusters_count_as_rows():
    rng = np.random.default_rng(0)
    means = rng.normal(size=30)
    rows = PredictedRows(
        y=np.repeat(means, 4), f=np.zeros(120), clusters=np.repeat(np.arange(30), 4)
    )
    residual, weights = one_per_cluster(rows)
    assert residual == pytest.approx(means)
    assert weights == pytest.approx(np.full(30, 4.0))


def test_repeated_rows_in_clusters_are_audited_as_the_rows_themselves():
    rng = np.random.default_rng(0)
    X, f = rng.normal(size=(400, 3)), rng.normal(size=400)
    y = f + rng.exponential(size=400) - 0.8
    once = Auditor(X, seed=1).assess(y=y, prediction=f)
    again = {k: np.repeat(v, 3, axis=0) for k, v in {"X": X, "y": y, "f": f}.items()}
    three = Auditor(again["X"], seed=1).assess(
        y=again["y"], prediction=again["f"], clusters=np.repeat(np.arange(400), 3).astype(str)
    )
    assert three.debiased_square == pytest.approx(once.debiased_square)
    assert three.floor == pytest.approx(once.floor)
    assert three.standard_error == pytest.approx(once.standard_error, rel=1e-3)
    assert three.p_value == once.p_value


def test_an_event_that_was_said_to_be_impossible_is_evidence_overall_and_in_its_group():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), (np.arange(200) < 40) * 1.0
    result = audit_predictions(X, y, np.zeros(200), groups={"g": y == 1}, n_trees=5)
    assert result.p_value == pytest.approx(1 / 1000)
    assert result.groups["p_value"].min() < 1e-9
    perfect = audit_predictions(X, np.zeros(200), np.zeros(200), n_trees=5)
    assert perfect.p_value == 1.0


@pytest.mark.parametrize(
    ("clusters", "message"),
    [
        (np.zeros(50), "all rows have the same label"),
        (np.zeros(3), r"have shape \(3,\) instead of \(50,\)"),
        (np.zeros((50, 2)), r"have shape \(50, 2\) instead of \(50,\)"),
    ],
)
def test_clusters_that_cannot_be_are_refused_in_a_sentence(clusters, message):
    rng = np.random.default_rng(0)
    X, f = rng.normal(size=(50, 2)), rng.normal(size=50)
    with pytest.raises(ValueError, match=f"clusters: {message}"):
        audit_predictions(X, f + rng.normal(size=50), f, clusters=clusters)


def test_clusters_without_weight_are_not_there():
    rng = np.random.default_rng(0)
    X, f, clusters = rng.normal(size=(600, 3)), rng.normal(size=600), np.arange(600) // 4
    y, kept = f + rng.normal(size=600), np.arange(600) >= 200
    some = audit_predictions(X, y, f, kept * 1.0, clusters=clusters, n_trees=5)
    alone = audit_predictions(X[kept], y[kept], f[kept], clusters=clusters[kept], n_trees=5)
    assert some.p_value == alone.p_value
    assert some.segments.equals(alone.segments)


# --- the simulation study ------------------------------------------------------------------------


def exponential(rng, n):
    return rng.exponential(size=n) - 1


def lognormal(sigma):
    return lambda rng, n: np.exp(sigma * rng.normal(size=n)) - np.exp(sigma**2 / 2)


def poisson(rng, n):
    return rng.poisson(0.05, n) - 0.05


def binary(rate):
    return lambda rng, n: (rng.random(n) < rate) - rate


def in_clusters(rng, n):
    return np.repeat(rng.normal(size=n // 10), 10) + rng.normal(size=n)


NOISE = {
    "Gaussian": lambda rng, n: rng.normal(size=n),
    "t, 2 degrees": lambda rng, n: rng.standard_t(2, n),
    "exponential": exponential,
    "lognormal 0.5": lognormal(0.5),
    "lognormal 1": lognormal(1.0),
    "lognormal 1.5": lognormal(1.5),
    "Poisson 0.05": poisson,
    "binary 1 %": binary(0.01),
    "binary 2 %": binary(0.02),
    "binary 20 %": binary(0.2),
    "Gaussian, Pareto weights": lambda rng, n: rng.normal(size=n),
    "binary 20 %, Pareto weights": binary(0.2),
    "Gaussian, clusters of 10": in_clusters,
}
LEVEL_OF = {"binary 1 %": 0.01, "binary 2 %": 0.02, "Poisson 0.05": 0.05}


def table(law, n, seed):
    """Rows of a calibrated model: columns, outcomes, predictions, weights and clusters."""
    rng = np.random.default_rng([seed, n, list(NOISE).index(law)])
    X, noise = rng.normal(size=(n, 5)), NOISE[law](rng, n)
    rate = 0.2 if law.startswith("binary 20") else LEVEL_OF.get(law)
    f = rng.normal(size=n) if rate is None else np.full(n, rate)
    if law.endswith("clusters of 10"):
        X = np.repeat(X[::10], 10, axis=0)  # of the cluster
    weights = rng.pareto(2.5, n) + 1 if law.endswith("weights") else None
    clusters = np.arange(n) // 10 if law.endswith("clusters of 10") else None
    return {"X": X, "y": f + noise, "f": f, "weights": weights, "clusters": clusters}


def overall_alarm(law, n, seed):
    t = table(law, n, seed)
    assessed = Auditor(t["X"], seed=seed).assess(
        y=t["y"], prediction=t["f"], sample_weight=t["weights"], clusters=t["clusters"]
    )
    return assessed.p_value <= 0.05


def segments_of(law, n, seed):
    t = table(law, n, seed)
    return audit_predictions(
        t["X"], t["y"], t["f"], t["weights"], clusters=t["clusters"], random_state=seed, n_trees=1
    ).segments


def sizes(law, n, n_overall, n_segments):
    """Shares of alarms, overall and in any segment, and of first segments' intervals with 0."""
    overall = [overall_alarm(law, n, seed) for seed in range(n_overall)]
    found = [segments_of(law, n, seed) for seed in range(n_segments)]
    alarms = [(s["p_value"] <= 0.05).any() for s in found]
    lines = [s.sort_values("rows").iloc[-1] for s in found if len(s)]
    covered = [line["low"] <= 0 <= line["high"] for line in lines]
    return np.mean(overall), np.mean(alarms), np.mean(covered) if covered else np.nan


ALLOWED = 0.07
KNOWN = {("lognormal 1.5", 300): 0.13}  # overall; `significance` says so


SHORT = ("exponential", "binary 2 %", "Gaussian, clusters of 10")
CASES = [
    pytest.param(law, n, marks=[] if law in SHORT and n == 300 else pytest.mark.exhaustive)
    for n in (300, 2000, 20_000)
    for law in NOISE
    if n < 20_000 or FULL
]


@pytest.mark.slow
@pytest.mark.parametrize(("law", "n"), CASES)
def test_calibrated_models_rarely_raise_an_alarm(law, n):
    reps = (1000, 300) if FULL else (100, 30) if n == 300 else (40, 15)
    overall, segments, covered = sizes(law, n, *reps)
    print(f"{law:28} {n:6} overall {overall:6.1%} segments {segments:6.1%} covered {covered:6.1%}")
    limits = KNOWN.get((law, n), ALLOWED), ALLOWED
    for share, limit, count in zip((overall, segments), limits, reps, strict=True):
        assert share <= limit + (1 if FULL else 2.5) * np.sqrt(limit * (1 - limit) / count)
    assert not covered < 0.93 - 3 * np.sqrt(0.05 / reps[1])
