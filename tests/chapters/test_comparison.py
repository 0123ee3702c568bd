"""Experiments side by side: what is compared with what, and how sure a difference is."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pipeline.chapters.comparison.differences import compare, differences
from pipeline.errors import ConfigError

T = 3


def frame(effects, *, settings=None, seeds=range(8), datasets=("german",), noise=0.1):
    """Runs whose test MSE is 10 + the effect of their strategy and setting, with paired noise."""
    rows = []
    for (strategy, eta), effect in effects.items():
        for dataset in datasets:
            for seed in seeds:
                rng = np.random.default_rng(seed)
                base = 10 + rng.normal()
                own = np.random.default_rng([seed, int(eta * 100)]).normal(0, noise)
                for t in range(T + 1):
                    rows.append(
                        {
                            "experiment": f"e{eta}", "dataset": dataset, "strategy": strategy,
                            "seed": seed, **({"boosting.eta": eta} if settings else {}),
                            "round": t, "mse_test": base + (effect + own) * t / T,
                            "mse_train": 1.0, "mce_train": 1.0, "mce_test": 1.0, "gap": 1.0,
                            "n_train": 80, "n_test": 20, "key": f"{strategy}{eta}",
                        }
                    )  # fmt: skip
    return pd.DataFrame(rows)


def test_settings_are_compared_inside_each_strategy_at_the_last_round():
    effects = {("unit", 0.5): 0, ("unit", 0.3): 2, ("relaxed", 0.5): 0, ("relaxed", 0.3): -1}
    compared = compare(frame(effects, settings=True))
    assert compared.variants == ("eta=0.5", "eta=0.3")
    assert compared.withins == ["unit", "relaxed"]
    table = differences(compared)
    found = table[table["measure"] == "mse_test"].set_index("strategy")["difference"]
    assert found["unit"] == pytest.approx(2, abs=0.2)
    assert found["relaxed"] == pytest.approx(-1, abs=0.2)


def test_strategies_are_compared_where_no_setting_differs():
    compared = compare(frame({("adaptive", 1): 1, ("unit", 1): 0, ("mine", 1): 3}))
    assert compared.baseline == "unit"
    assert compared.withins == [""]
    assert list(differences(compared)["variant"].drop_duplicates()) == ["adaptive", "mine"]
    assert compare(frame({("mine", 1): 1, ("unit", 1): 0}), "mine").baseline == "mine"


def test_interval_is_the_corrected_resampled_t():
    runs = frame({("unit", 1): 0, ("mine", 2): 1}, noise=0.5)
    table = differences(compare(runs)).set_index("measure").loc["mse_test"]
    last = runs[runs["round"] == T].pivot_table(index="seed", columns="strategy", values="mse_test")
    d = (last["mine"] - last["unit"]).to_numpy()
    half = stats.t.ppf(0.975, 7) * np.sqrt(d.var(ddof=1) * (1 / 8 + 20 / 80))
    assert (table["low"], table["high"]) == pytest.approx((d.mean() - half, d.mean() + half))


def test_run_that_two_experiments_share_counts_once():
    runs = frame({("unit", 1): 0, ("mine", 2): 1})
    twice = pd.concat([runs, runs.assign(experiment="other")], ignore_index=True)
    assert (differences(compare(twice))["seeds"] == 8).all()


def test_curves_end_where_the_shortest_setting_ends():
    runs = frame({("unit", 0.5): 0, ("unit", 0.3): 2}, settings=True)
    short = runs[(runs["boosting.eta"] == 0.5) | (runs["round"] < 2)]
    curves = compare(short).runs("unit")
    assert curves.n_rounds == 1
    assert curves.strategies == ["eta=0.5", "eta=0.3"]


def test_curves_are_of_the_datasets_that_all_settings_have():
    runs = frame({("unit", 0.5): 0, ("unit", 0.3): 2}, settings=True, datasets=("german", "adult"))
    some = runs[(runs["boosting.eta"] == 0.5) | (runs["dataset"] == "adult")]
    compared = compare(some)
    assert compared.runs("unit").datasets == ["adult"]
    assert set(differences(compared)["dataset"]) == {"adult"}


def test_intervals_on_curves_know_how_many_rows_were_held_out():
    runs = frame({("unit", 0.5): 0, ("unit", 0.3): 2}, settings=True)
    assert compare(runs.assign(n_train=50, n_test=50)).runs("unit").test_share("german") == 1.0


def test_runs_of_other_rows_or_another_error_are_pointed_out(caplog):
    runs = frame({("unit", 0.5): 0, ("unit", 0.3): 2}, settings=True)
    compare(runs.rename(columns={"boosting.eta": "dataset.test_size"}))
    assert "differ in dataset.test_size: their errors are not of the same rows" in caplog.text


def test_nothing_to_compare_is_said():
    with pytest.raises(ConfigError, match="nothing differs"):
        compare(frame({("unit", 1): 0}))
    with pytest.raises(ConfigError, match=r"compare.baseline=x: must be one of unit; mine"):
        compare(frame({("unit", 1): 0, ("mine", 2): 1}), "x")
    lonely = pd.concat([frame({("unit", 1): 0}, seeds=[0]), frame({("mine", 1): 0}, seeds=[1])])
    with pytest.raises(ConfigError, match="two seeds"):
        differences(compare(lonely))
