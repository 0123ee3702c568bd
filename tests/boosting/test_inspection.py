"""Segments are named, honest and rare on calibrated data; groups, weights, pictures."""

import os

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from pipeline.boosting import (
    MulticalibrationBoostingRegressor,
    MulticalibrationDisplay,
    RoundsDisplay,
    audit_predictions,
)
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


@pytest.fixture(scope="module")
def three_classes():
    """Rows whose class "b" is twice as probable as said where x > ½, at the cost of "c"."""
    random = np.random.default_rng(5)
    x = random.random(3000)
    proba = np.column_stack([np.full(3000, 0.3), np.full(3000, 0.3), np.full(3000, 0.4)])
    truth = proba.copy()
    truth[x > 0.5] = [0.3, 0.6, 0.1]
    y = np.array(["a", "b", "c"])[(random.random(3000)[:, None] > truth.cumsum(axis=1)).sum(axis=1)]
    return pd.DataFrame({"x": x}), y, proba


def test_each_of_many_classes_and_the_top_label_are_audited(three_classes):
    X, y, proba = three_classes
    result = audit_predictions(X, y, proba, n_segments=3)
    assert list(result.classes) == ["a", "b", "c"]
    assert result.classes["a"].p_value > 0.05
    assert result.classes["b"].p_value < 0.01
    one = audit_predictions(X, y == "b", proba[:, 1], n_segments=3)
    pd.testing.assert_frame_equal(result.classes["b"].segments, one.segments)
    top = audit_predictions(X, y == "c", proba[:, 2], n_segments=3)  # "c" is always the top label
    assert result.mce == top.mce
    assert "top label" in str(result)
    assert result.class_table().loc["b", "mce"] == one.mce


def test_classes_that_do_not_fit_the_probabilities_are_refused(three_classes):
    X, y, proba = three_classes
    with pytest.raises(ValueError, match=r"3000 rows and 2 classes"):
        audit_predictions(X, np.where(y == "c", "a", y), proba)
    with pytest.raises(ValueError, match="has the label 'c'"):
        audit_predictions(X, y, proba, classes=["a", "b", "d"])


def test_rounds_are_plotted_with_what_was_kept(three_classes):
    X, _, _ = three_classes
    random = np.random.default_rng(0)
    y = np.sin(6 * X["x"]) + random.normal(size=len(X)) / 4
    train, test = X.index < 2000, X.index >= 2000
    model = MulticalibrationBoostingRegressor(init=DummyRegressor(), random_state=0)
    model.fit(X[train], y[train])
    display = RoundsDisplay.from_estimator(model, X[test], y[test])
    folds, loss, mce = display.curves_.values()
    assert len(folds) == len(model.validation_scores_)
    before = ((y[test] - y[train].mean()) ** 2).mean()
    after = ((y[test] - model.predict(X[test])) ** 2).mean()
    assert loss[-1] == pytest.approx(after / before)
    assert mce[-1] < 0.5
    best, middle, low, high = display.kept_
    assert best == np.argmin(folds)
    assert low < middle < high < 1
    kept = f"{100 * model.gain_.share:.0f} % is kept"
    assert kept in display.ax_.get_legend_handles_labels()[1][-1]


def test_rounds_that_were_not_judged_by_the_loss_cannot_be_plotted():
    X = np.arange(40.0)[:, None]
    model = MulticalibrationBoostingRegressor(
        n_rounds=1, early_stopping=False, feedback="in_sample"
    )
    with pytest.raises(ValueError, match="no held-out losses"):
        RoundsDisplay.from_estimator(model.fit(X, X[:, 0]))


def test_display_of_confident_predictions_has_no_negative_bars():
    random = np.random.default_rng(0)
    p = np.where(random.random(300) < 0.5, 1e-9, 1 - 1e-9)
    y = (p > 0.5).astype(int)  # every bin's outcome is 0 or 1
    display = MulticalibrationDisplay.from_predictions(random.normal(size=(300, 2)), y, p)
    for curve in display.curves_.values():
        assert (curve["low"] <= curve["bias"]).all()
        assert (curve["bias"] <= curve["high"]).all()
    display.plot_segments()


def test_display_refuses_many_classes_before_it_audits(three_classes):
    X, y, proba = three_classes
    with pytest.raises(ValueError, match="has 3 columns; pass y == label"):
        MulticalibrationDisplay.from_predictions(X, y, proba)


def test_logits_instead_of_probabilities_are_warned_of(three_classes):
    X, y, _ = three_classes
    with pytest.warns(UserWarning, match="probabilities are expected"):
        audit_predictions(X, y == "a", np.full(len(y), 3.0), n_segments=1)
