"""``experiment=logloss`` and ``experiment=hybrid``: from runs to tables, verdicts and figures."""

import numpy as np
import pandas as pd
import pytest

from pipeline.chapters import chapter_named
from pipeline.chapters.hybrid import effects as hybrid
from pipeline.chapters.logloss import effects as logloss
from pipeline.config.compose import load
from pipeline.errors import ConfigError
from pipeline.runs.plan import make_plan
from pipeline.stages import reproduce

SMALL = ["experiment.seeds=[0,1]", "boosting.rounds=3", "boosting.trees=5", "initial.trees=5",
         "audit.trees=10", "grid.workers=1", "experiment.name=mini"]  # fmt: skip


def reproduced(folder, *overrides):
    lines = [*overrides, *SMALL, f"output_dir={folder}"]
    reproduce.main(make_plan(load(lines), lines))


def test_logloss_is_judged_by_what_its_runs_recorded(tmp_path, capsys):
    reproduced(tmp_path, "experiment=logloss", "experiment.datasets=[german_class]")
    out, runs = capsys.readouterr().out, pd.read_csv(tmp_path / "mini" / "logloss.csv")
    assert len(runs) == 3 * 2 * 2
    assert [f"LL{k}" in out for k in range(1, 7)] == [True] * 6
    np.testing.assert_allclose(runs["step"], 2 * runs["m"], rtol=1e-5)  # L is a quarter
    assert set(runs["title"]) == {"German Credit, class"}
    curves = pd.read_csv(tmp_path / "mini" / "logloss_curves.csv")
    assert len(curves) == 3 * 2 * 4
    assert (tmp_path / "mini" / "figures" / "logloss.png").exists()


def test_hybrid_is_judged_by_what_its_runs_recorded(tmp_path, capsys):
    reproduced(
        tmp_path, "experiment=hybrid", "experiment.datasets=[diabetes]",
        "experiment.vary={boosting.gamma:[0.0,1.0],boosting.eta:[0.25,0.5]}",
    )  # fmt: skip
    out, runs = capsys.readouterr().out, pd.read_csv(tmp_path / "mini" / "hybrid.csv")
    assert len(runs) == 2 * 2 * 2
    assert [f"Y{k}" in out for k in range(1, 6)] == [True] * 5
    plain, mixed = (runs[runs["gamma"] == g] for g in (0, 1))
    assert plain["strong"].isna().all()
    assert (mixed["strong_train"] < 1).all()
    assert (mixed["sharp"] <= 1).all()
    assert mixed[mixed["eta"] == 0.5]["printed"].isna().all()  # η < 2γ/(1 + γ)² does not hold
    assert (tmp_path / "mini" / "figures" / "hybrid.png").exists()


def step(**values):
    names = {"gap": 1.0, "loss_train": 0.5, "loss_test": 0.5, "mce_train": 0.1, "m": 0.1,
             "epsilon": 0.0, "alpha": 0.1, "bound_lemma": 0.2,
             "largest_logit": 3.0, "mce2_debiased_test": 0.0, "mce_floor_test": 0.1}  # fmt: skip
    return names | values


def test_theorems_bound_is_computed_from_the_smallest_curvature_and_all_errors():
    rounds = pd.DataFrame([step(gap=np.nan), step(gap=2.0, m=0.2, epsilon=0.1), step(gap=1.0)])
    found = logloss.of_run(rounds, n=10, eta=0.5)
    # mean gap² = 5/2; bound 4·0.5/0.1 (10·0.5 + 0.5·10·0.1)/2
    assert found["bound"] == pytest.approx(2.5 / (20 * 5.5 / 2))
    assert found["step"] == pytest.approx(0.2)


def test_proposition_is_judged_only_within_its_range():
    rounds = pd.DataFrame(
        {"mse_train": [4.0, 1.0], "mse_test": [1.0, 1.0], "mce2_debiased_test": 0.0,
         "mce_floor_test": 1.0, "to_fixed_point": [np.nan, 1.0], "display_printed": 0.5,
         "display_corrected": 0.1}
    )  # fmt: skip
    sizes = {"mse_strong_train": 1.0, "mse_strong_test": 1.0}
    within = hybrid.of_run(rounds, sizes, eta=0.25, gamma=1.0)
    kappa = np.sqrt(1 - 2 * 0.25 * (1 - 4 / 2 * 0.25))
    assert within["printed"] == pytest.approx(1 / (kappa * 2 + 0.25))
    assert within["sharp"] == pytest.approx(1 / (0.75 * 2 + 0.25))
    assert np.isnan(hybrid.of_run(rounds, sizes, eta=0.5, gamma=1.0)["printed"])


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["dataset=german", "boosting.loss=log"], "needs a dataset with dataset.positive"),
        (["dataset=german_class", "boosting.loss=log", "boosting.gamma=0.5"], "is for boosting"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(overrides, message):
    with pytest.raises(ConfigError, match=message):
        make_plan(load(overrides), overrides)


def test_an_experiment_without_its_axes_has_no_such_chapter():
    lines = ["experiment=smoke", "experiment.vary={boosting.eta:[0.5]}"]
    with pytest.raises(ConfigError, match=r"hybrid needs boosting.eta and boosting.gamma"):
        chapter_named("hybrid").check(make_plan(load(lines), lines))
