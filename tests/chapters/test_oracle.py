"""Factors, the rule, and the figures of the experiment on trees per round."""

import numpy as np
import pandas as pd
import pytest

from pipeline.chapters.oracle import factors as oracle

TITLES = {"a": "A", "b": "B"}


def runs(factors, rows=100):
    """A table of runs with given factors by (dataset, η, trees), two seeds each."""
    return pd.DataFrame(
        [
            {
                "dataset": d, "rows": rows, "eta": eta, "trees": k, "depth": 3,
                "learning_rate": 0.1, **oracle.CLASS, "seed": s, "factor": f, "error": 0.4,
                "distinct_start": 0.5, "distinct_end": 1.0, "mse_train_start": 1.0,
                "mse_train_end": 0.1, "mse_test_start": 2.0, "mse_test_end": 3.0,
                "mce_test_start": 0.5, "mce_test_end": 0.25, "mce_floor_start": 0.1,
                "mce_floor_end": 0.1, "mce2_debiased_start": 0.04, "mce2_debiased_end": -0.01,
            }
            for (d, eta, k), f in factors.items()
            for s in (0, 1)
        ]
    )  # fmt: skip


@pytest.mark.parametrize("kappa", [0.9, 0.5, 0.05])
def test_factor_of_a_geometric_sequence_is_its_ratio(kappa):
    assert oracle.factor(3 * kappa ** np.arange(20)) == pytest.approx(kappa)


def test_factor_ignores_rounding_and_an_early_end():
    gaps = np.concatenate([0.01 ** np.arange(4), np.full(16, 1e-17)])
    assert oracle.factor(gaps) == pytest.approx(0.01)
    assert np.isnan(oracle.factor(np.array([1.0, 0.0, 0.0, 0.0])))


def test_factor_is_that_of_the_second_half():
    gaps = np.concatenate([np.full(10, 1.0), 0.5 ** np.arange(1, 11)])
    assert oracle.factor(gaps) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ((0.9, 0.52), (0.8, 0.47), "holds"),
        ((0.9, 0.52), (0.8, 0.7), "partly"),
        ((0.9, 0.7), (0.8, 0.7), "does not hold"),
        ((0.9, 0.52), (0.6, 0.7), "does not hold"),
    ],
)
def test_verdict_follows_from_the_factors(a, b, verdict):
    factors = {("a", 0.5, 10): a[0], ("a", 0.5, 1000): a[1],
               ("b", 0.5, 10): b[0], ("b", 0.5, 1000): b[1]}  # fmt: skip
    (judged,) = oracle.judge.judge_all(runs(factors))
    assert judged.verdict == verdict
    assert ("B at η = 0.5" in judged.measured) == (abs(b[1] - 0.5) > oracle.TOLERANCE)


def test_summary_compares_with_the_initial_forest():
    means = oracle.summary(runs({("a", 0.5, 10): 0.9}))
    row = means.iloc[0]
    assert (row["mse_ratio"], row["mce_ratio"]) == (1.5, 0.5)
    assert row["debiased_ratio"] == pytest.approx(-0.1 / 0.5)


def test_error_of_the_first_round_is_that_of_its_vectors():
    rng = np.random.default_rng(0)
    r, eta = rng.normal(size=50), 0.3
    h = 0.7 * r + 0.2 * rng.normal(size=50)
    losses, gap = [np.square(v).mean() for v in (r, r - eta * h)], eta * np.linalg.norm(h)
    rounds = pd.DataFrame({"mse_train": losses, "gap": [np.nan, gap]})
    expected = np.linalg.norm(r - h) / np.linalg.norm(r)
    assert oracle.oracle_error(rounds, 50, eta) == pytest.approx(expected)


@pytest.mark.parametrize(("of_error", "verdict"), [(True, "holds"), (False, "does not hold")])
def test_factors_follow_the_error_or_trees_per_row(of_error, verdict):
    rng = np.random.default_rng(0)
    trees, error = 10 * (1 + np.arange(20)), rng.permutation(np.linspace(0, 1, 20))
    some = runs({("a", 0.5, int(k)): 0.5 for k in trees})
    some["depth"] = np.where(some["seed"].index % 4 < 2, 3, 1)
    some["learning_rate"] = np.where(some["depth"] == 1, 0.1, 1.0)
    some["error"] = np.repeat(error, 2)
    some["factor"] = 0.5 + 0.5 * (some["error"] if of_error else 1 - some["trees"] / 200)
    (judged,) = oracle.judge.judge_all(some)
    assert judged.id == "O2"
    assert judged.verdict == verdict


def test_figures_have_a_panel_per_dataset_and_one_for_errors():
    factors = {(d, eta, k): 0.9 for d in TITLES for eta in (0.25, 0.5) for k in (10, 100)}
    both = pd.concat([runs(factors), runs(factors, rows=20)])
    assert len(oracle.draw(runs(factors), TITLES).axes) == 6
    by_trees, by_error = oracle.draw_errors(both, TITLES).axes
    assert [c.get_label() for c in by_trees.collections] == ["A", "B"]
    assert len(by_error.collections) == 2


def smooth_runs(cosines, linear=0.5, rich=0.5):
    """Runs of smooth classes; ``cosines`` are the factors of a narrow and a wide kernel."""
    settings = {
        ("cosines", 0.02, 0.9): cosines[0],
        ("cosines", 2.0, 0.9): cosines[1],
        ("linear", 0.02, 0.9): linear,
        ("linear", 2.0, 0.9): linear,
        ("soft_trees", 0.02, 0.0): rich,
        ("soft_trees", 2.0, 0.0): rich,
    }
    tables = [
        runs({("a", 0.5, 30): f, ("a", 0.5, 100): f}).assign(
            engine=engine, width=width, error=error, bound=1.5
        )
        for (engine, width, error), f in settings.items()
    ]
    return pd.concat(tables)


@pytest.mark.parametrize(
    ("factors", "expected"),
    [
        ({"cosines": (0.9, 0.6)}, ["holds", "holds"]),
        ({"cosines": (0.6, 0.9)}, ["holds", "does not hold"]),
        ({"cosines": (0.9, 0.5)}, ["partly", "holds"]),
        ({"cosines": (0.9, 0.6), "linear": 0.8}, ["partly", "holds"]),
        ({"cosines": (0.9, 0.6), "rich": 0.8}, ["partly", "holds"]),
    ],
)
def test_verdicts_about_smooth_classes_follow_from_the_factors(factors, expected):
    judged = oracle.judge.judge_all(smooth_runs(**factors))
    assert [j.id for j in judged] == ["O3", "O4"]
    assert [j.verdict for j in judged] == expected


def test_bound_of_the_theorem_from_the_movement_of_the_projector():
    rounds = pd.DataFrame({"gap": [np.nan, 2.0, 1.0], "movement": [np.nan, 0.2, 0.3]})
    assert oracle.lipschitz_bound(rounds, 10.0, 0.5) == pytest.approx(0.5 + 0.5 * 10 * 0.3)
    assert np.isnan(oracle.lipschitz_bound(rounds[["gap"]], 10.0, 0.5))


def test_figure_of_smooth_classes_has_a_panel_for_each():
    figure = oracle.draw_smooth(smooth_runs((0.9, 0.6)), TITLES)
    assert [axes.get_title() for axes in figure.axes] == ["Linear", "Cosines", "Soft trees"]
