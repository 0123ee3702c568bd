"""What a user does beside the paper's path: menus, tables, sweeps and an install of one's own."""

import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest

import pipeline
from pipeline.cli import help_text
from pipeline.config.compose import load
from pipeline.errors import ConfigError
from pipeline.paths import ROOT
from pipeline.runs.plan import make_plan
from pipeline.stages import report

pytestmark = pytest.mark.slow

QUICK = ["boosting.rounds=6", "boosting.trees=5", "initial.trees=5"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder of a user's own: a module, a table, and YAMLs for three menus."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "my_module.py").write_text(
        textwrap.dedent(
            """
            class Halfway:
                def __init__(self, scale=0.5):
                    self.scale = scale

                def weight(self, t, y, phi):
                    return 1.0 if t else self.scale
            """
        )
    )
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    table = pd.DataFrame({"âge": X[:, 0], "b [x]": X[:, 1], "price (EUR)": X.sum(axis=1)})
    table["name"] = [f"row {k % 150}" for k in range(200)]
    table.to_csv(folder / "prices.csv", index=False)
    table.rename(columns={"price (EUR)": "cost"}).to_parquet(folder / "costs.parquet")
    for path, text in {
        "strategy/halfway.yaml": "name: halfway\ntarget: my_module.Halfway\n"
        "arguments: {scale: 0.9}\n",
        "strategy/later.yaml": "name: relaxed\noffset: 3\nexponent: 3\n",
        "dataset/prices.yaml": "name: prices\nsource: file\npath: prices.csv\n"
        "target: price (EUR)\ndrop: [name]\n",
        "dataset/costs.yaml": "name: costs\nsource: file\npath: costs.parquet\ntarget: cost\n"
        "drop: [name]\n",
        "experiment/mine.yaml": "name: mine\ndatasets: [german, prices, costs]\n"
        "strategies: [unit, relaxed, later, halfway]\nseeds: [0, 1]\nvary: null\n",
    }.items():
        (folder / "menus" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "menus" / path).write_text(text)
    return folder


def process(folder, *command):
    """A process in a folder that is not the checkout's."""
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )


def test_strategy_from_the_command_line_with_arguments(home, command):
    own = ["strategy=custom", "strategy.target=my_module.Halfway", "strategy.arguments.scale=0.7"]
    done = command(*QUICK, *own, folder=home)
    assert done.returncode == 0, done.stderr
    assert "outputs/paper/runs/german/Halfway/seed=000-" in done.stdout
    rounds = pipeline.load_runs(home / "outputs" / "paper").query("strategy == 'Halfway'")
    assert list(rounds["weight"].dropna())[:2] == [0.7, 1.0]


@pytest.mark.exhaustive
def test_grid_of_ones_own_menus_beside_the_projects_gets_a_report_of_its_own(
    home, command, monkeypatch, few_figures
):
    arguments = ["experiment=mine", *QUICK, "experiment.name=mine"]
    done = command("--config-dir", "menus", *arguments, folder=home)
    assert "24 runs computed" in done.stderr, done.stderr
    menu = help_text([f"hydra.searchpath=[{home / 'menus'}]"])
    assert "adaptive, custom, halfway, later, relaxed, unit" in menu
    # The report, in this process.
    monkeypatch.chdir(home)
    monkeypatch.syspath_prepend(home)
    lines = [f"hydra.searchpath=[{home / 'menus'}]", *arguments]
    report.main(make_plan(load(lines), lines))
    page = (home / "outputs" / "mine" / "report.html").read_text()
    assert "on German Credit, prices and costs" in page
    assert "strategy halfway" in page
    rounds = pd.read_parquet(home / "outputs" / "mine" / "rounds.parquet")
    names = {"unit", "relaxed offset=2", "relaxed offset=3", "halfway"}
    assert set(rounds["strategy"]) == names
    assert set(rounds["dataset"]) == {"german", "prices", "costs"}


def test_ones_own_table_has_a_folder_of_its_own_and_names_are_written_as_they_are(home, command):
    own = ["dataset=file", "dataset.path=prices.csv", "dataset.target=price (EUR)"]
    done = command(*QUICK, *own, folder=home)
    assert done.returncode == 0, done.stderr
    assert "outputs/own/runs/prices/unit/seed=000-" in done.stdout
    assert "column 'name' becomes 149 columns" in done.stderr
    assert "dataset.drop=[name]" in done.stderr


@pytest.mark.parametrize("name", ["reference", "figures", "audit"])
def test_folders_that_are_no_experiments_are_not_written_by_one(name):
    lines = [f"output_dir={ROOT / 'outputs'}", f"experiment.name={name}"]
    with pytest.raises(ConfigError, match=f"experiment.name={name}: "):
        make_plan(load(lines), lines)


def test_experiments_are_set_side_by_side(home, command):
    grid = ["experiment=smoke", "experiment.datasets=[german]", "experiment.seeds=[0,1,2]",
            "experiment.strategies=[unit]", "experiment.vary={boosting.eta:[0.5,0.2]}"]  # fmt: skip
    command(*QUICK, *grid, "experiment.name=both", folder=home)
    beside = ["compare.experiments=[both]", "compare.baseline=eta=0.5"]
    done = command("stage=compare", *beside, folder=home)
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(home / "outputs" / "compare" / "both" / "differences.csv")
    assert set(table["variant"]) == {"eta=0.2"}
    assert set(table["strategy"]) == {"unit"}
    assert (table["low"] <= table["difference"]).all()
    page = (home / "outputs" / "compare" / "both" / "compare.html").read_text()
    assert "Baseline: <b>eta=0.5</b>" in page
    assert set(pipeline.load_runs(home / "outputs" / "both")["boosting.eta"]) == {0.5, 0.2}


@pytest.mark.exhaustive
@pytest.mark.parametrize("launcher", ["cores", "basic"])
def test_multirun_prints_a_line_per_job_and_ends_with_a_table_of_means(home, launcher):
    sweep = ["-m", f"hydra/launcher={launcher}", "seed=3,4", "boosting.eta=0.5,0.2"]
    done = process(home, sys.executable, "-m", "pipeline", *QUICK, *sweep)
    assert done.returncode == 0, done.stderr
    *jobs, _, _, first, second = done.stdout.splitlines()
    assert sorted({line.partition(":")[0] for line in jobs}) == [
        "german/unit/seed=3", "german/unit/seed=4",
    ]  # fmt: skip
    runs = pipeline.load_runs(home / "outputs" / "*")
    last = runs[(runs["round"] == runs["round"].max()) & runs["seed"].isin([3, 4])]
    means = last.groupby("boosting.eta")["mse_train"].mean()
    for line, (eta, mean) in zip((first, second), means.items(), strict=True):
        assert line.split()[0] == str(eta)
        assert float(line.split()[1]) == pytest.approx(mean, rel=1e-3)
    assert not list((home / "outputs" / ".multirun").glob("*/"))  # notes are gone
