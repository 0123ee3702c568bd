"""Every claim under every reading of the paper."""

import pandas as pd
import pytest

from pipeline.chapters.readings import CHAPTER
from pipeline.chapters.readings import verdicts as readings
from pipeline.config.compose import load
from pipeline.errors import ConfigError
from pipeline.runs.plan import make_plan
from pipeline.stages import reproduce

AXES = readings.AXES


def table(verdict):
    """All 32 readings of two claims, judged by ``verdict(claim, reading)``."""
    rows = [
        (*reading, claim, verdict(claim, reading))
        for claim in ("7", "8")
        for target in ("raw", "standardised")
        for t in ("from 0", "from 1")
        for error in readings.ERRORS.values()
        for round_0 in ("counted", "not counted")
        for reading in [(target, t, error, round_0)]
    ]
    return pd.DataFrame(rows, columns=[*AXES, "claim", "verdict"])


def test_choice_matters_to_a_claim_if_it_alone_changes_the_verdict():
    found = readings.matters(
        table(lambda c, r: "replicated" if c == "8" and r[3] == "not counted" else "partly")
    ).set_index("claim")
    assert list(found["depends_on"]) == [[], ["round_0"]]
    assert list(found["replicated"]) == [0, 16]
    assert list(found["partly"]) == [32, 16]


def test_best_reading_comes_first():
    best = ("raw", "from 1", "debiased (test)", "counted")
    scores = readings.scores(table(lambda c, r: "replicated" if r == best else "not replicated"))
    assert len(scores) == 32
    assert tuple(scores.loc[0, AXES]) == best
    assert tuple(scores.loc[0, ["replicated", "partly", "not replicated"]]) == (2, 0, 0)


def test_runs_of_all_readings_are_each_computed_once():
    some = ["experiment.seeds=[0]", "experiment.datasets=[german]"]
    plan, everything = (
        make_plan(load([f"experiment={name}", *some]), [f"experiment={name}", *some])
        for name in ("paper", "readings")
    )
    assert everything.n_runs == 2 * 4  # scalings x (unit, relaxed twice, adaptive)
    assert len({r.folder for r in everything.run_ids()}) == 8
    variants = readings.variants(plan)
    assert (variants[0].target, variants[0].t) == ("raw", "from 0")
    assert {r.folder for v in variants for r in v.plan.run_ids()} == {
        r.folder for r in everything.run_ids()
    }
    assert [r.folder for r in variants[0].plan.run_ids()] == [r.folder for r in plan.run_ids()]


def test_plans_own_evidence_speaks_for_its_own_reading_alone(monkeypatch):
    lines = ["experiment=paper", "experiment.seeds=[0]", "dataset.target_scaling=standardise"]
    plan = make_plan(load(lines), lines)
    judged = []
    monkeypatch.setattr(readings, "collect", lambda plan: "collected")
    monkeypatch.setattr(
        readings, "_judged", lambda v, runs: judged.append((v.target, v.t, runs)) or []
    )
    readings.verdicts(plan, "own")
    assert judged == [
        ("raw", "from 0", "collected"), ("raw", "from 1", "collected"),
        ("standardised", "from 0", "own"), ("standardised", "from 1", "collected"),
    ]  # fmt: skip


def test_grid_that_is_no_replication_is_refused_before_anything_runs(tmp_path):
    small = ["experiment=readings", "experiment.datasets=[german]", f"output_dir={tmp_path}"]
    with pytest.raises(ConfigError, match="readings needs the paper's datasets"):
        reproduce.main(make_plan(load(small), small))
    assert not list(tmp_path.iterdir())


def test_the_default_reading_is_among_those_of_the_experiment():
    lines = ["experiment=readings"]
    CHAPTER.check(make_plan(load(lines), lines))
