"""What people write is read as they mean it, or refused with the quoting that works."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.config.compose import check_overrides, choices, load, varied
from pipeline.config.overrides import parsed, readable, search_path, with_search_path
from pipeline.errors import ConfigError
from pipeline.paths import CONF


@pytest.mark.parametrize(
    "name", ["âge", "price (EUR)", "b [x]", "my column", "it's", "a=b", "50%", "naïve-1", "2020"]
)
def test_target_may_be_called_whatever_a_column_is_called(name, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    lines = ["dataset=file", f"dataset.path={tmp_path / 't.csv'}", f"dataset.target={name}"]
    assert load(lines).dataset.target == name


def test_names_in_a_list_may_need_quotes_too():
    config = load(["dataset.drop=[âge,b (x),plain]"])
    assert config.dataset.drop == ("âge", "b (x)", "plain")


# A comma separates the values of a sweep, a backslash escapes, and what is in quotes, or a
# number, a list or a function by Hydra's grammar, is that.
LETTERS = st.characters(codec="utf-8", exclude_characters=",\\'\"[]{}$", categories=("L", "P", "S"))


@settings(max_examples=150, deadline=None)
@given(st.text(LETTERS, min_size=1, max_size=12))
def test_any_word_reaches_the_config_as_it_is_or_is_refused_with_quotes(word):
    said = ""
    try:
        (override,) = parsed([f"dataset.title={word}"])
        value = override.value()
    except ConfigError as error:
        said, value = str(error), word
    assert "write such a value in quotes" in said or not said
    assert str(value).strip() == word.strip() or not isinstance(value, str)


def test_seeds_may_be_a_range_also_beside_a_sweep():
    assert load(["experiment=paper", "experiment.seeds=range(0,20)"]).experiment.seeds == tuple(
        range(20)
    )
    assert readable(["experiment.seeds=range(1,9,3)"]) == ["experiment.seeds=[1,4,7]"]
    with pytest.raises(ConfigError, match="more than 10000"):
        readable(["experiment.seeds=range(0,200000)"])
    assert readable(["seed=range(0,3)"]) == ["seed=range(0,3)"]  # a sweep


def test_arguments_of_a_strategy_need_no_plus():
    own = ["strategy=custom", "strategy.target=m.Mine"]
    assert load([*own, "strategy.arguments.scale=2"]).strategy.arguments == {"scale": 2}
    assert load([*own, "strategy.arguments={scale:2,b:x}"]).strategy.arguments == {
        "scale": 2, "b": "x",
    }  # fmt: skip


def test_interval_is_no_sweep():
    with pytest.raises(ConfigError, match="write the values of a sweep as"):
        check_overrides(["boosting.eta=interval(0.1,0.5)"], multirun=True)


@pytest.mark.parametrize("key", ["boosting.eta.x", "boosting.foo.x", "strategy.arguments.x"])
def test_variation_of_what_is_not_there_is_refused(key):
    config = load(["experiment=smoke", f"experiment.vary={{{key}:[1]}}"])
    if key.startswith("strategy"):
        assert len(varied(config)) == 1  # unit has no arguments, and stays as it is
    else:
        with pytest.raises(ConfigError, match=f"experiment.vary: {key}: there is no such key"):
            varied(config)


def test_folder_of_ones_own_adds_to_every_menu_and_does_not_replace_it(tmp_path):
    for group, choice in (("dataset", "mine"), ("strategy", "halfway"), ("experiment", "both")):
        (tmp_path / group).mkdir()
        (tmp_path / group / f"{choice}.yaml").write_text("name: x\n")
    overrides = with_search_path([], str(tmp_path))
    assert search_path(overrides) == [f"file://{tmp_path}"]
    for group, choice in (("dataset", "mine"), ("strategy", "halfway"), ("experiment", "both")):
        ours = {p.stem for p in (CONF / group).glob("*.yaml")}
        assert set(choices(group, overrides)) == ours | {choice}
        assert set(choices(group)) == ours
    assert "mine" in choices("dataset", [f"hydra.searchpath=[{tmp_path}]"])


def test_folder_that_is_not_there_is_named():
    with pytest.raises(ConfigError, match="--config-dir=nowhere: there is no such folder"):
        with_search_path([], "nowhere")


def test_search_path_and_config_dir_go_together(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name / "dataset").mkdir(parents=True)
        (tmp_path / name / "dataset" / f"{name}.yaml").write_text("name: x\n")
    overrides = with_search_path([f"hydra.searchpath=[{tmp_path / 'a'}]"], str(tmp_path / "b"))
    assert len(overrides) == 1
    assert {"a", "b"} <= set(choices("dataset", overrides))


def test_own_file_that_is_no_yaml_is_named_in_one_line(tmp_path):
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / "broken.yaml").write_text("name: [unclosed\n")
    with pytest.raises(ConfigError, match=r"is no YAML: .*broken.yaml") as caught:
        load([f"hydra.searchpath=[{tmp_path}]", "dataset=broken"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("line", ["method.tuning=[null]", "method.tuning=[]", "method.options=[1]"])
def test_a_list_where_names_and_values_belong_is_refused_with_what_is_allowed(line):
    with pytest.raises(ConfigError, match=r"method\.\w+: must be options"):
        load(["experiment=correction", "method=unit", line])
