"""Each rule gives each of its verdicts on runs made up for it."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from pipeline.analysis.bounds import relaxed_bound
from pipeline.analysis.curves import (
    best_round,
    bootstrap_best_rounds,
    bootstrap_interval,
    fit_tail,
    tail_start,
)
from pipeline.analysis.evidence import Evidence
from pipeline.analysis.samples import N_SAMPLES, mean_curve, mean_curves, single_runs
from pipeline.chapters.claims import RULES, claim
from pipeline.chapters.claims.rules import AGREEING, Limit, grades

TITLES = {
    "california": "California Housing",
    "diabetes": "Diabetes",
    "adult": "Adult",
    "german": "German Credit",
    "crime": "Communities and Crime",
}
T, SEEDS = 20, 6
ROUNDS = np.arange(T + 1)


def bowl(best, depth=20.0):
    """A curve with its minimum at round ``best``."""
    return 1 + depth * ((ROUNDS - best) / T) ** 2


def good_run(dataset, strategy):
    """Columns of a run for which every claim of the paper holds."""
    slow = strategy == "relaxed"
    gap = np.concatenate([[np.nan], np.exp(-0.3 * np.arange(T))])
    if dataset in ("california", "adult"):  # a bent tail: a lower R²
        gap[1:] = np.exp(-0.35 * np.arange(T) ** 0.6) + (0.05 if dataset == "adult" else 0.04)
    mse = np.exp(-0.3 * ROUNDS) * (1 + (0.2 * (ROUNDS > 0) if slow else 0))
    best = {"california": 12, "german": 5, "adult": 20}.get(dataset, 9) if slow else 2
    mce_test = bowl(best)
    weight = np.concatenate([[np.nan], np.full(T, {"unit": 1, "relaxed": 0.9}.get(strategy, 1.1))])
    return {
        "mse_train": mse, "mse_test": mse, "mce_train": np.exp(-0.4 * ROUNDS), "mce_test": mce_test,
        "gap": gap, "weight": weight,
    }  # fmt: skip


def evidence(change=lambda dataset, strategy, seed, run: None, datasets=tuple(TITLES), table1=None):
    """Good runs, each passed through ``change`` first."""
    frames, sizes = [], []
    for dataset in datasets:
        for strategy in ("unit", "relaxed", "adaptive"):
            for seed in range(SEEDS):
                run = good_run(dataset, strategy)
                size = {"norm_y": 10.0, "norm_residual0": 5.0}
                change(dataset, strategy, seed, run)
                frames.append(pd.DataFrame(
                    {"dataset": dataset, "strategy": strategy, "seed": seed, "round": ROUNDS, **run}
                ))  # fmt: skip
                sizes.append({"dataset": dataset, "strategy": strategy, "seed": seed, **size})
    if table1 is None:
        table1 = table([(8, 8)] * 15)
    return Evidence(pd.concat(frames), TITLES, pd.DataFrame(sizes), 0.5, table1)


def table(pairs):
    rows = []
    for k, title in enumerate(TITLES.values()):
        row = {"dataset": title}
        for name, (paper, ours) in zip(("raw", "features", "rows"), pairs[3 * k :], strict=False):
            row |= {f"{name}_paper": paper, f"{name}_ours": ours}
        rows.append(row)
    return pd.DataFrame(rows)


def test_every_statement_is_replicated_on_runs_that_fit_the_paper():
    statements = claim.judge_all(evidence())
    assert {s.id: s.verdict for s in statements if s.verdict != "replicated"} == {}
    assert len(statements) == len(claim.judges) == len({s.id for s in statements})
    assert all(s.explanation == "" for s in statements)


def on(datasets, strategies, column, function):
    """A change of one column on some datasets and strategies."""

    def change(dataset, strategy, seed, run):
        if dataset in datasets and strategy in strategies:
            run[column] = function(run[column], seed)

    return change


ALL = tuple(TITLES)
EVERY = ("unit", "relaxed", "adaptive")
FAST = ("unit", "adaptive")


def late_rise(gap, _seed):
    gap = gap.copy()
    gap[7] = gap[6] * 1.2
    return gap


def bumpy(gap, seed):
    """Rises of 20 % at changing rounds that the mean over seeds evens out."""
    gap = gap.copy()
    for t in (4 + seed, 12 + seed // 2):
        gap[t] = gap[t - 1] * 1.2
    return gap


def noisy(gap, _seed):
    return np.where(ROUNDS >= 1, 1.0 + 0.5 * (-1.0) ** ROUNDS, np.nan) * np.exp(-0.02 * ROUNDS)


def rise_once(mse, seed):
    mse = mse.copy()
    if seed == 0:
        mse[3] = mse[2] * 1.01
    return mse


def rise_always(mse, _seed):
    mse = mse.copy()
    mse[1] = mse[0] * 2
    return mse


def in_every_other(change):
    """The change in every other seed."""
    return lambda column, seed: change(column, seed) if seed % 2 else column


def const(best):
    return lambda *_: bowl(best)


def scattered(*best):
    """Seeds that disagree: the mean curve's minimum is at the mean of ``best``."""
    return lambda _, seed: bowl(best[seed])


THREE = ("german", "crime", "diabetes")
CASES = [
    ("1a", "partly", on(["adult"], ["unit"], "gap", lambda g, _: g ** 0.1)),
    ("1a", "not replicated", on(THREE, ["unit"], "gap", lambda g, _: 1 / g)),
    ("1b", "partly", on(["german"], ["unit"], "gap", bumpy)),
    ("1b", "not replicated", on(THREE, ["unit"], "gap", late_rise)),
    ("1b", "undecided", on(["german"], ["unit"], "gap", in_every_other(late_rise))),
    ("2a", "partly", on(["adult"], ["unit"], "gap", noisy)),
    ("2a", "not replicated", on(["adult", "german", "crime"], ["unit"], "gap", noisy)),
    ("2b", "partly", on(["german"], ["unit"], "gap", noisy)),
    ("2b", "not replicated", on(["german", "crime"], ["unit"], "gap", noisy)),
    ("3", "partly", on(["german"], ["unit"], "mse_train", rise_always)),
    ("3", "not replicated", on(ALL, FAST, "mse_train", rise_always)),
    ("3", "undecided", on(["german"], ["unit"], "mse_train", in_every_other(rise_always))),
    ("4", "partly", on(["german"], ["relaxed"], "mse_train", lambda m, _: m / 2)),
    ("4", "not replicated", on(ALL, ["relaxed"], "mse_train", lambda m, _: m / 2)),
    ("5", "partly", on(["german"], ["adaptive"], "mse_train", lambda m, _: m * 1.1)),
    ("5", "not replicated", on(ALL, ["adaptive"], "mse_train", lambda m, _: m * 1.1)),
    ("6a", "partly", on(["crime"], ["unit"], "mce_train", lambda m, _: m ** 0.05)),
    ("6a", "not replicated", on(ALL, FAST, "mce_train", lambda m, _: 1 / m)),
    ("6b", "partly", on(["german"], ["unit"], "mce_train", lambda m, _: m ** 0.1)),
    ("6b", "partly", on(ALL, EVERY, "mce_train", lambda m, _: m ** 0.4)),
    ("6b", "not replicated", on(ALL, EVERY, "mce_train", lambda m, _: m ** 0.1)),
    ("7", "partly", on(["german"], ["unit"], "mce_test", const(0))),
    ("7", "not replicated", on(["german", "california"], FAST, "mce_test", const(0))),
    ("8", "partly", on(["german"], FAST, "mce_test", const(9))),
    ("8", "not replicated", on(THREE, FAST, "mce_test", const(0))),
    ("9", "partly", on(["german"], ["unit"], "mce_test", const(4))),
    ("9", "not replicated", on(["german"], FAST, "mce_test", const(4))),
    ("9", "not replicated", on(["german"], FAST, "mce_test", lambda m, _: 1 / (1 + ROUNDS))),
    ("10a", "partly", on(["crime"], ["relaxed"], "mce_test", const(1))),
    ("10a", "not replicated", on(ALL, ["relaxed"], "mce_test", const(1))),
    ("10b", "undecided", on(["california"], ["relaxed"], "mce_test", scattered(0, 4, 8, 8, 9, 18))),
    ("10b", "not replicated", on(["california"], ["relaxed"], "mce_test", const(4))),
    ("10c", "undecided", on(["german"], ["relaxed"], "mce_test", scattered(0, 0, 0, 3, 6, 9))),
    ("10c", "not replicated", on(["german"], ["relaxed"], "mce_test", const(1))),
    ("10d", "undecided", on(["adult"], ["relaxed"], "mce_test", scattered(6, 10, 18, 22, 25, 27))),
    ("10d", "not replicated", on(["adult"], ["relaxed"], "mce_test", const(9))),
    ("12a", "not replicated", on(["german"], ["unit"], "gap", lambda g, _: 100 * g)),
    ("12b", "not replicated", on(["german"], ["unit"], "mse_train", rise_once)),
    ("12c", "not replicated", on(["german"], ["relaxed"], "gap", lambda g, _: 1e4 + g)),
    ("12d", "not replicated", on(["german"], ["adaptive"], "weight", lambda w, _: -w)),
]  # fmt: skip


@pytest.mark.parametrize(("id_", "verdict", "change"), CASES, ids=[f"{c[0]} {c[1]}" for c in CASES])
def test_statement_gets_the_verdict_its_runs_deserve_and_says_why(id_, verdict, change):
    statement = claim.judge(id_, evidence(change))
    assert statement.verdict == verdict
    assert statement.explanation


@pytest.mark.parametrize(
    ("wrong", "verdict"), [(0, "replicated"), (3, "partly"), (8, "not replicated")]
)
def test_table_1_is_judged_by_the_share_of_equal_numbers(wrong, verdict):
    e = evidence(table1=table([(8, 9)] * wrong + [(8, 8)] * (15 - wrong)))
    statement = claim.judge("11", e)
    assert statement.verdict == verdict
    assert statement.measured == f"{15 - wrong} of 15 agree"


def test_statements_about_datasets_that_were_not_run_are_left_out():
    ids = {s.id for s in claim.judge_all(evidence(datasets=("diabetes", "german")))}
    assert {"2b", "7", "10b", "10d"}.isdisjoint(ids)
    assert {"1a", "6b", "9", "10c"} <= ids


def test_rule_counts_the_cases_at_hand():
    three = evidence(datasets=("diabetes", "german", "crime"))
    assert "(partly: in 2 of 3)" in RULES["5"].judge(three).rule
    assert "(partly: in 3 of 5)" in RULES["5"].judge(evidence()).rule
    assert "every case" not in RULES["10b"].judge(evidence()).rule


def test_share_of_single_runs_is_that_of_the_seeds():
    rule = RULES["3"].judge(evidence(on(["german"], ["unit"], "mse_train", rise_once)))
    (line,) = [row for row in rule.measured.rows if row[0] == "German Credit/unit"]
    assert line[-1] == "83 %"  # five of six
    assert rule.measured.rows[-1][-1] == "replicated 83.3 %, partly 16.7 %"
    assert rule.verdict == "replicated"


def test_mean_over_seeds_stands_beside_single_runs():
    judged = RULES["1b"].judge(evidence(on(ALL, ["unit"], "gap", bumpy)))
    assert judged.verdict == "not replicated"
    assert judged.measured.rows[-1][1] == "replicated"  # the mean evens the rises out


# --- rules as functions of curves ---------------------------------------------------------------


@st.composite
def noisy_evidence(draw):
    """Runs whose columns are good ones times noise."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = draw(st.sampled_from([0.01, 0.1, 0.5]))
    columns = ("gap", "mse_train", "mce_train", "mce_test")

    def change(dataset, strategy, seed, run):
        run |= {c: run[c] * np.exp(size * rng.normal(size=T + 1)) for c in columns}

    return evidence(change)


def by_hand(id_, curve, dataset, strategy, runs):
    """What a rule measures of one sample, number by number."""

    def steps(values):
        return max(b / a - 1 for a, b in itertools.pairwise(values))

    def best(strategy):
        values = list(curve(dataset, strategy, "mce_test"))
        return values.index(min(values))

    def r2(dataset):
        y = np.log(curve(dataset, "unit", "gap")[11:])
        t = np.arange(len(y))[:, None]
        return LinearRegression().fit(t, y).score(t, y)

    mse = {s: curve(dataset, s, "mse_train") for s in EVERY}
    gap, mce, test = (curve(dataset, strategy, c) for c in ("gap", "mce_train", "mce_test"))
    return {
        "1a": lambda: gap[20] / gap[1],
        "1b": lambda: steps(gap[1:]),
        "2a": lambda: r2(dataset),
        "2b": lambda: 1 + sorted(r2(d) for d in runs.datasets).index(r2(dataset)),
        "3": lambda: steps(mse[strategy]),
        "4": lambda: min(mse["relaxed"][t] / max(mse[s][t] for s in FAST) for t in (1, 2, 3)),
        "5": lambda: np.prod([mse["adaptive"][t] / mse["unit"][t] for t in ROUNDS[1:]]) ** (1 / T),
        "6a": lambda: mce[20] / mce[0],
        "6b": lambda: mce[20] / mce[0],
        "7": lambda: min(test[0], test[20]) / min(test) - 1,
        "8": lambda: best(strategy),
        "9": lambda: best(strategy) if test[20] >= 1.05 * min(test) else np.inf,
        "10a": lambda: best("relaxed") - max(best("unit"), best("adaptive")),
        "10b": lambda: best("relaxed"),
        "10c": lambda: best("relaxed"),
        "10d": lambda: 20 - best("relaxed"),
    }[id_]()


@settings(max_examples=5, deadline=None)
@given(e=noisy_evidence(), k=st.integers(0, N_SAMPLES - 1))
def test_rules_measure_of_each_sample_what_they_say(e, k):
    for samples in (single_runs(e), mean_curves(e), mean_curve(e)):
        row = k % len(samples.weights["adult"])

        def curve(dataset, strategy, column, samples=samples, row=row):
            return np.average(e.curves(dataset, strategy, column), 0, samples.weights[dataset][row])

        for id_, rule in RULES.items():
            expected = [by_hand(id_, curve, *case, e) for case in rule.cases(e)]
            found = rule.values(samples)[row]
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9, err_msg=id_)


@settings(max_examples=5, deadline=None)
@given(e=noisy_evidence())
def test_limit_that_a_rule_names_is_where_the_verdict_changes(e):
    for rule in (RULES[id_] for id_ in ("1a", "5", "6b", "10b")):
        values = rule.values(rule.shown(e))
        wider = rule.turning(values)
        narrow, wide = (
            replace(rule.limit, low=rule.limit.low - by, high=rule.limit.high + by)
            for by in (wider - 1e-9, wider + 1e-9)
        )
        assert wide.keeps(values).all(axis=1).mean() >= AGREEING
        assert narrow.keeps(values).all(axis=1).mean() < AGREEING


def test_a_value_that_no_limit_holds_is_infinitely_far_outside():
    assert Limit(high=2).excess(np.array([np.inf, np.nan, 1.0])).tolist() == [np.inf, np.inf, -1.0]


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1))
def test_grade_is_all_half_or_less(kept):
    expected = [2 if all(row) else 1 if sum(row) >= 2 else 0 for row in kept]
    assert list(grades(np.array(kept))) == expected


def test_samples_are_of_whole_seeds_and_repeatable():
    e = evidence()
    for drawn in (single_runs, mean_curves, mean_curve):
        first, second = drawn(e), drawn(e)
        for d in TITLES:
            np.testing.assert_array_equal(first.weights[d], second.weights[d])
            np.testing.assert_allclose(first.weights[d].sum(axis=1), 1)
    single = single_runs(e).weights
    assert set(np.unique(single["german"])) == {0.0, 1.0}
    assert (single["german"] != single["adult"]).any()


def test_relaxed_bound_follows_the_appendix():
    # By hand for ‖y‖ = 2, ‖y − f_0‖ = 1, η = 1/2, T = 4, with the sums over 10⁶ rounds.
    t = np.arange(10**6)
    c1, c2 = ((t + 2.0) ** -3).sum(), ((t + 2.0) ** -6).sum()
    rho, rho_tilde = max(2 * 4, 3 * 1), 2 + 2
    gamma2 = rho * c1 + 2 * np.sqrt((0.5 + rho * c1) * rho_tilde**2 * c2) + rho_tilde**2 * c2
    expected = (np.sqrt(0.5) + np.sqrt(gamma2)) / 2
    assert relaxed_bound(2.0, 1.0, 0.5, 4) == pytest.approx(expected, rel=1e-9)


# --- curves -------------------------------------------------------------------------------------


def test_tail_fit_is_ordinary_least_squares_on_the_log():
    rng = np.random.default_rng(0)
    gaps = np.exp(rng.normal(size=21))
    fit = fit_tail(gaps, 11)
    t = np.arange(11, 21)[:, None]
    reference = LinearRegression().fit(t, np.log(gaps[11:]))
    assert fit.slope == pytest.approx(reference.coef_[0])
    assert fit.r2 == pytest.approx(reference.score(t, np.log(gaps[11:])))
    np.testing.assert_allclose(np.log(fit.gap(t[:, 0])), reference.predict(t))


def test_geometric_decay_has_r2_one_and_its_own_factor():
    fit = fit_tail(0.8 ** np.arange(21), tail_start(20))
    assert tail_start(20) == 11
    assert fit.r2 == pytest.approx(1)
    assert fit.kappa == pytest.approx(0.8)


@pytest.mark.parametrize("gaps", [np.zeros(21), np.ones(21), np.array([1.0, 0.5])])
def test_tail_without_a_slope_to_fit_is_nan(gaps):
    assert np.isnan(fit_tail(gaps, 1).r2)


def test_best_round_is_that_of_the_mean_and_its_bootstrap_is_repeatable():
    curves = np.array([[3.0, 1, 2], [3, 2, 1], [3, 1, 2]])
    assert best_round(curves) == 1
    samples = bootstrap_best_rounds(curves)
    np.testing.assert_array_equal(samples, bootstrap_best_rounds(curves))
    # Round 2 wins where the second seed is drawn at least twice of three times: 7 of 27 cases.
    assert (samples == 2).mean() == pytest.approx(7 / 27, abs=0.03)


def test_bootstrap_interval_covers_the_mean_of_a_normal_sample_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        low, high = bootstrap_interval(rng.normal(size=40), n=400)
        hits += low <= 0 <= high
    assert 0.88 <= hits / 200 <= 0.99
