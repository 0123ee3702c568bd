"""``experiment=oracle``, and grids with further axes."""

import pandas as pd
import pytest

from pipeline.config.compose import load, varied
from pipeline.errors import ConfigError
from pipeline.runs.plan import make_plan
from pipeline.stages import report, reproduce

SMALL = [
    "experiment=oracle", "experiment.datasets=[diabetes]", "experiment.seeds=[0,1]",
    "experiment.vary={boosting.trees:[3,9],boosting.eta:[0.5]}", "boosting.rounds=6",
    "initial.trees=5", "grid.workers=1", "experiment.name=mini",
]  # fmt: skip


def plan_of(folder, *overrides):
    lines = [*overrides, f"output_dir={folder}"]
    return make_plan(load(lines), lines)


def test_table_verdict_and_figure_come_from_stored_runs_of_every_variation(tmp_path, capsys):
    plan = plan_of(tmp_path, *SMALL)
    reproduce.main(plan)
    out = capsys.readouterr().out
    table = pd.read_csv(tmp_path / "mini" / "oracle.csv")
    assert table.groupby(["eta", "trees"]).size().to_dict() == {(0.5, 3): 2, (0.5, 9): 2}
    assert (table["factor"] > 0).all()
    assert (table["mse_train_end"] < table["mse_train_start"]).all()
    assert "O1" in out
    for name in ("oracle.json", "figures/oracle.png"):
        assert (tmp_path / "mini" / name).exists()
    runs = len(list((tmp_path / "mini" / "runs").glob("*/*/seed=*")))
    assert runs == plan.n_runs == 4
    reproduce.main(plan)  # nothing is computed again
    assert len(list((tmp_path / "mini" / "runs").glob("*/*/seed=*"))) == 4


def test_variations_share_what_they_have_in_common_and_a_strategy_keeps_what_it_has():
    lines = ["experiment=smoke", "experiment.datasets=[german]", "experiment.seeds=[0]",
             "experiment.vary={strategy.offset:[2,3],boosting.eta:[0.3,0.5]}"]  # fmt: skip
    plan = make_plan(load(lines), lines)
    (task,) = plan.tasks()  # step sizes and strategies leave the first round's trees alone
    names = [c.strategy.name for c in task.configs]
    assert names == ["unit"] * 2 + ["relaxed"] * 4 + ["adaptive"] * 2
    assert {c.strategy.offset for c in task.configs if c.strategy.name == "relaxed"} == {2, 3}
    assert len({task.run_id(c).folder for c in task.configs}) == plan.n_runs == 8


def test_values_of_a_variation_are_validated_like_any_other():
    config = load(["experiment=smoke", "experiment.vary={boosting.eta:[0.5,2.0]}"])
    with pytest.raises(ConfigError, match=r"experiment.vary: boosting.eta=2.0: must be the step"):
        varied(config)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["experiment=smoke", "experiment.vary={seed:[1,2]}"], "seed: must be a key of boosting"),
        (["experiment=smoke", "experiment.vary={boosting.eta:[1.0,1.0]}"], "not repeat a value"),
        (["experiment.vary={boosting.eta:[0.5]}"], "sweep with -m"),
    ],
)
def test_axes_that_cannot_be_are_refused(overrides, message):
    with pytest.raises(ConfigError, match=message):
        load(overrides)


def test_stages_that_need_one_setting_or_two_axes_say_so(tmp_path):
    with pytest.raises(ConfigError, match="oracle needs a grid of strategy unit"):
        report.main(plan_of(tmp_path, "experiment=smoke", "experiment.chapters=[oracle]"))
    with pytest.raises(ConfigError, match="nothing: must be one of claims"):
        report.main(plan_of(tmp_path, "experiment=smoke", "experiment.chapters=[nothing]"))
    several = ["experiment=smoke", "experiment.vary={boosting.eta:[0.3,0.5]}", "stage=report"]
    with pytest.raises(ConfigError, match=r"one setting but for strategies, and this grid varies"):
        report.main(plan_of(tmp_path, *several))
