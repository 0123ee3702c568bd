"""Segments are named, honest and rare on calibrated data; groups, weights, pictures."""

import os

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from pipeline.boosting import MulticalibrationDisplay, audit_predictions
from pipeline.boosting.segments import COLUMNS, holm

mpl.use("Agg")


def table(rng, n):
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": rng.lognormal(size=n),
            "region": rng.choice(["North", "South", "East", "West"], n),
            "sex": rng.choice(["f", "m"], n),
            "owner": rng.random(n) < 0.4,
            "score": rng.normal(size=n),
        }
    )


def columns_in(rule):
    return {condition.split(" ")[0] for condition in rule.split(" and ")}


def matches(rule, frame):
    """Which rows of a frame a rule is about, read from its words."""
    inside = np.ones(len(frame), bool)
    for condition in rule.split(" and "):
        name, how = condition.split(" ", 1)
        values = frame[name]
        if how == "is missing":
            inside &= values.isna()
        elif how.startswith("in ("):
            low, high = (float(v) for v in how[4:-1].split(", "))
            inside &= (values > low) & (values <= high)
        elif how.startswith("= "):
            words = values.map("{:.4g}".format) if values.dtype.kind in "bif" else values
            inside &= words == how[2:]
        else:
            edge = float(how[2:])
            inside &= values <= edge if how.startswith("≤") else values > edge
    return np.asarray(inside)


def test_every_rule_describes_the_rows_it_counts():
    rng = np.random.default_rng(1)
    X = table(rng, 2000)
    X.loc[rng.random(2000) < 0.2, "income"] = np.nan
    f = rng.normal(size=2000)
    y = f + rng.normal(size=2000) + X["income"].isna() - (X["region"] == "East")
    result = audit_predictions(X, y, f)
    assert list(result.segments.columns) == COLUMNS
    frame = X.assign(prediction=f)
    for line in result.segments.itertuples():
        inside = matches(line.rule, frame)
        assert abs(2 * line.rows - inside.sum()) < 6 * np.sqrt(inside.sum())  # a random half
        assert line.outcome - line.prediction == pytest.approx(line.bias)
        assert line.low <= line.bias <= line.high
    words = " ".join(result.segments["rule"])
    assert "income is missing" in words
    assert "region = East" in words
    assert result.segments["p_value"].is_monotonic_increasing


def simulations(full):
    """How many; `make simulations` asks for all of them."""
    return full if os.environ.get("SIMULATIONS") == "full" else full // 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "planted", [pytest.param({"region"}, marks=pytest.mark.exhaustive), {"age", "region"}]
)
def test_planted_segment_is_found_and_named(planted):
    found, n = 0, simulations(100)
    for seed in range(n):
        rng = np.random.default_rng(seed)
        X, f = table(rng, 5000), rng.normal(size=5000)
        if planted == {"region"}:
            X["region"] = rng.choice(list("ABCDEFGHIJ"), 5000)
            inside = X["region"] == "C"  # a tenth
        else:
            inside = (X["age"] <= 43) & (X["region"] == "North")  # a tenth
        y = f + rng.normal(size=5000) + 0.3 * inside
        segments = audit_predictions(X, y, f, random_state=seed, n_trees=2).segments
        sure = segments[segments["p_value"] < 0.05]
        found += any(columns_in(rule) == planted for rule in sure["rule"])
    # Two columns at once are at the edge of what half of 5,000 rows can show: 95 measured.
    assert found / n >= (0.95 if planted == {"region"} else 0.9)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_intervals_of_tested_segments_cover_the_truth():
    population = table(np.random.default_rng(7), 30_000)
    population["prediction"] = np.random.default_rng(8).normal(size=30_000)

    def bias(frame):
        return 0.4 * ((frame["age"] <= 43) & (frame["region"] == "North"))

    hits, n = [], simulations(1000)
    for seed in range(n):
        rng = np.random.default_rng([seed, 2])
        X, f = table(rng, 1000), rng.normal(size=1000)
        y = f + (1 + 0.5 * (X["sex"] == "m")) * rng.normal(size=1000) + bias(X)
        segments = audit_predictions(X, y, f, random_state=seed, n_segments=1, n_trees=2).segments
        for line in segments.itertuples():
            truth = bias(population)[matches(line.rule, population)].mean()
            hits.append(line.low <= truth <= line.high)
    assert len(hits) >= 0.9 * n
    assert abs(np.mean(hits) - 0.95) <= max(0.02, 2 * np.sqrt(0.05 * 0.95 / n))


def test_named_groups_and_their_intersections_are_tested_on_all_rows():
    rng = np.random.default_rng(0)
    X, p = table(rng, 4000), rng.uniform(0.2, 0.8, 4000)
    y = (rng.random(4000) < p + 0.15 * ((X["sex"] == "f") & (X["region"] == "West"))) * 1.0
    groups = audit_predictions(X, y, p, groups=["sex", "region"]).groups
    assert len(groups) == 2 + 4 + 8
    assert groups["rule"][0] == "sex = f and region = West"
    inside = (X["sex"] == "f") & (X["region"] == "West")
    assert groups["rows"][0] == inside.sum()
    assert groups["bias"][0] == pytest.approx((y - p)[inside].mean())
    by_hand = audit_predictions(X, y, p, groups={"g": X["sex"]}).groups
    assert list(by_hand["rule"]) == ["g = f", "g = m"]


def test_holm_steps_down():
    lines = [dict.fromkeys(COLUMNS, 1.0) | {"rule": r, "p_value": p}
             for r, p in (("a", 0.01), ("b", 0.04), ("c", 0.03))]  # fmt: skip
    table_ = holm(pd.DataFrame(lines))
    assert dict(zip(table_["rule"], table_["p_value"], strict=True)) == pytest.approx(
        {"a": 0.03, "c": 0.06, "b": 0.06}
    )


def test_rows_without_weight_are_not_there_and_the_same_seed_gives_the_same_result():
    rng = np.random.default_rng(0)
    X, f = table(rng, 600), rng.normal(size=600)
    y, weight = f + rng.normal(size=600), np.repeat([1.0, 0.0], [400, 200])
    some, alone = (
        audit_predictions(X, y, f, sample_weight=weight),
        audit_predictions(X[:400], y[:400], f[:400]),
    )
    assert some.mce == alone.mce
    assert some.p_value == alone.p_value
    pd.testing.assert_frame_equal(some.segments, alone.segments)
    assert "400 rows" in str(some)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(3)}, "y: has 3 rows instead of X's 50"),
        ({"prediction": np.full(50, np.nan)}, "prediction: holds NaN"),
        ({"y": ["a"] * 50}, "y: has 1 classes"),
        ({"sample_weight": -np.ones(50)}, "sample_weight: must not be negative"),
        ({"groups": ["nope"]}, "not columns of X, which has age"),
        ({"X": pd.DataFrame({"d": pd.date_range("2020", periods=50)})}, "'d' holds dates"),
    ],
)
def test_unusable_input_is_refused_by_name(change, message):
    rng = np.random.default_rng(0)
    use = {"X": table(rng, 50), "y": np.zeros(50), "prediction": np.zeros(50)} | change
    with pytest.raises(ValueError, match=message):
        audit_predictions(**use)


def test_display_draws_curves_per_group_segments_and_two_models():
    rng = np.random.default_rng(0)
    X, f = table(rng, 800), rng.normal(size=800)
    y = f + rng.normal(size=800)
    display = MulticalibrationDisplay.from_predictions(
        X, y, {"before": f, "after": f + 0.1}, groups=["sex"], n_segments=3
    )
    assert set(display.curves_) == {
        (m, g) for m in ("before", "after") for g in ("all rows", "sex = f", "sex = m")
    }
    curve = display.curves_["before", "all rows"]
    assert curve["rows"].sum() == 800
    assert len(display.ax_.get_legend().get_texts()) == 6
    display.plot_segments()
    assert len(display.ax_.get_yticks()) == sum(len(r.segments) for r in display.results_.values())


def test_display_takes_a_fitted_regressor_or_classifier():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X[:, 0] + rng.normal(size=300)
    regressor = LinearRegression().fit(X, y)
    display = MulticalibrationDisplay.from_estimator(regressor, X, y)
    assert display.results_["prediction"].n == 300
    words = np.where(y > 0, "yes", "no")
    display = MulticalibrationDisplay.from_estimator(LogisticRegression().fit(X, words), X, words)
    assert display.curves_["prediction", "all rows"]["outcome"].between(0, 1).all()
