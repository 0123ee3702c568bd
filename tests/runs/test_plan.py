"""What a command works on: the keys of all runs, axes that fit their kind, runs found elsewhere."""

import hashlib
import json
import shutil

import pytest

from pipeline.config.compose import load
from pipeline.errors import ConfigError
from pipeline.runs.grid import run_plan
from pipeline.runs.plan import MissingRunsError, make_plan

# A hash of the folders and keys of all runs of every experiment: stored runs are found as long as
# these stay. A change that gives other numbers raises a kind's numerics, and changes them.
KEYS = {
    "paper": (300, "5321dd5d7dc7e75f"),
    "readings": (1600, "f7f1af95b5903bbb"),
    "smoke": (54, "60668d28a8c99188"),
    "oracle": (180, "ac1786e0f3555b35"),
    "oracle_rows": (24, "8a7f2d4a194bf5b8"),
    "oracle_capacity": (324, "cd36e1935cc4292a"),
    "practice": (22540, "d32e5e252b032aef"),
    "practice_defaults": (1024, "0a5e4b7a4e415c0a"),
    "practice_external": (1500, "2f428ddd805b611f"),
    "practice_tuned": (756, "c438150543bf3acf"),
    "practice_smoke": (966, "46f91547827b102f"),
    "feedback": (448, "3c9b19ded0cbdd2f"),
    "feedback_paper": (112, "0a2f0412132414f3"),
    "feedback_external": (112, "4db821f214a02c73"),
    "smooth": (576, "1a2622b2340611b1"),
}


def plan_of(*overrides):
    return make_plan(load(overrides), overrides)


@pytest.mark.parametrize(
    "experiment",
    [
        pytest.param(name, marks=pytest.mark.exhaustive if name.startswith("practice_") else [])
        for name in KEYS
    ],
)
def test_keys_of_all_runs_are_those_of_stored_runs(experiment, monkeypatch):
    monkeypatch.setattr("pipeline.runs.kinds.corrections.methods.find_spec", lambda name: True)
    runs = plan_of(f"experiment={experiment}").run_ids()
    keys = sorted((str(run.folder), json.dumps(run.key, sort_keys=True)) for run in runs)
    digest = hashlib.sha256(json.dumps(keys).encode()).hexdigest()[:16]
    assert (len(keys), digest) == KEYS[experiment]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["experiment=paper", "experiment.seeds=[]"], "datasets, strategies and seeds must all"),
        (["experiment.datasets=[german]"], "or all be empty for one run"),
        (["experiment=paper", "experiment.situations=[forest]"], "kind rounds has datasets"),
        (["experiment=smoke", "experiment.strategies=[unit,relaxed]", "strategy=unit"],
         "a grid has its own strategies"),
    ],
)  # fmt: skip
def test_axes_that_do_not_fit_are_refused(overrides, message):
    with pytest.raises(ConfigError, match=message):
        plan_of(*overrides)


SMALL = [
    "experiment=smoke", "experiment.datasets=[german]", "experiment.strategies=[unit]",
    "experiment.seeds=[0]", "boosting.rounds=1", "boosting.trees=2", "initial.trees=2",
    "grid.workers=1",
]  # fmt: skip


def test_runs_of_another_experiment_of_the_same_output_folder_are_found(tmp_path):
    first = plan_of(*SMALL, "experiment.name=first", f"output_dir={tmp_path}")
    second = plan_of(*SMALL, "experiment.name=second", f"output_dir={tmp_path}")
    with pytest.raises(MissingRunsError, match="1 of 1 runs are not in"):
        second.stored()
    assert run_plan(first).computed == 1
    assert run_plan(second).found == 1
    ((_, _, stored),) = second.stored()
    assert len(stored.rounds) == 2
    shutil.rmtree(first.store.root)
    assert run_plan(second).found == 1  # it has a copy of its own
