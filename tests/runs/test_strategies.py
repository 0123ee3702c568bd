"""Strategies of one's own: found, checked before anything runs, part of the run's key."""

import sys

import pytest

from pipeline.boosting.rescaling import Relaxed, Unit
from pipeline.config.compose import load
from pipeline.errors import ConfigError
from pipeline.runs import strategies
from pipeline.runs.keys import differing, run_key
from pipeline.runs.plan import make_plan
from pipeline.runs.strategies import labels_of, provided, rescaling_of, sources_of

MODULE = """
class Halfway:
    def __init__(self, scale=0.5):
        self.scale = scale
    def weight(self, t, y, phi):
        return 1.0 if t else self.scale

class Weightless:
    pass

def maker(**arguments):
    return Halfway(**arguments)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "own_strategy.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "own_strategy.py"
    forget()


def forget():
    """As a new process would be."""
    for name in ("own_strategy", "own_helper"):
        sys.modules.pop(name, None)
    strategies._code.cache_clear()


def config(target, *overrides):
    return load(["strategy=custom", f"strategy.target={target}", *overrides])


def test_class_or_function_of_a_module_gives_the_weights(module):
    for target in ("own_strategy.Halfway", "own_strategy.maker"):
        made = rescaling_of(config(target, "strategy.arguments.scale=0.25").strategy)
        assert [made.weight(t, None, None) for t in (0, 1)] == [0.25, 1.0]


@pytest.mark.parametrize(
    ("target", "arguments", "message"),
    [
        ("nowhere.Halfway", (), "the module nowhere cannot be imported"),
        ("own_strategy.Nobody", (), "own_strategy has no Nobody"),
        ("own_strategy.Weightless", (), r"has no weight\(t, y, phi\) method"),
        ("own_strategy.Halfway", ("strategy.arguments.x=1",), r"Halfway\(x=1\) failed"),
    ],
)
def test_what_is_no_strategy_is_said_before_anything_runs(module, target, arguments, message):
    with pytest.raises(ConfigError, match=message):
        make_plan(config(target, *arguments))


def test_changed_code_is_another_run_from_the_next_process_on(module):
    before = run_key(config("own_strategy.Halfway"), "")
    module.write_text(MODULE.replace("0.5", "0.6"))
    assert run_key(config("own_strategy.Halfway"), "") == before  # what this process computes with
    forget()
    after = run_key(config("own_strategy.Halfway"), "")
    (line,) = differing(after, before)
    assert line.startswith("strategy.code: ")


def test_code_that_a_strategy_uses_beside_its_own_counts_and_other_files_do_not(module):
    helper = module.with_name("own_helper.py")
    helper.write_text("SCALE = 0.5\n\ndef scale():\n    return SCALE\n")
    module.write_text("from own_helper import scale\n" + MODULE)
    keys = []
    for text in (helper.read_text(), helper.read_text().replace("0.5", "0.6")):
        helper.write_text(text)
        forget()
        keys.append(run_key(config("own_strategy.Halfway"), ""))
    assert keys[0] != keys[1]
    module.with_name("unrelated.py").write_text("x = 1\n")
    forget()
    assert run_key(config("own_strategy.Halfway"), "") == keys[1]


@pytest.mark.parametrize("value", ["inf", "nan", "[1,inf]"])
def test_argument_that_json_cannot_hold_is_refused(value):
    with pytest.raises(ConfigError, match="must be finite"):
        config("own_strategy.Halfway", f"strategy.arguments.scale={value}")


def test_keys_of_the_papers_strategies_are_those_of_the_first_edition():
    assert run_key(load(["strategy=relaxed"]), "")["strategy"] == {
        "name": "relaxed", "offset": 2.0, "exponent": 3.0,
    }  # fmt: skip
    assert run_key(load(["strategy=unit"]), "")["strategy"] == {"name": "unit"}


def test_strategies_of_one_name_are_told_apart_by_what_differs():
    several = [
        load(["strategy=unit"]).strategy,
        *(load(["strategy=relaxed", f"strategy.offset={k}"]).strategy for k in (2, 3)),
    ]
    assert list(labels_of(several).values()) == ["unit", "relaxed offset=2", "relaxed offset=3"]
    assert list(labels_of(several[:2]).values()) == ["unit", "relaxed"]


def test_worker_without_the_module_gets_it_from_its_source_for_one_task(module, monkeypatch):
    strategy = config("own_strategy.Halfway", "strategy.arguments.scale=0.1").strategy
    sources = sources_of([strategy, load([]).strategy])
    assert list(sources) == ["own_strategy"]
    forget()
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != str(module.parent)])
    with provided(sources):
        assert rescaling_of(strategy).weight(0, None, None) == 0.1
    with pytest.raises(ConfigError, match="cannot be imported"):
        rescaling_of(strategy)


def test_two_choices_that_describe_the_same_runs_are_refused(tmp_path):
    (tmp_path / "strategy").mkdir()
    (tmp_path / "strategy" / "again.yaml").write_text("name: unit\n")
    lines = [f"hydra.searchpath=[{tmp_path}]", "experiment=smoke",
             "experiment.strategies=[unit,again]"]  # fmt: skip
    with pytest.raises(ConfigError, match="unit and again describe the same runs"):
        make_plan(load(lines), lines)


def test_the_papers_strategies_are_the_librarys():
    assert rescaling_of(load(["strategy=unit"]).strategy) == Unit()
    assert rescaling_of(load(["strategy=relaxed", "strategy.offset=3"]).strategy) == Relaxed(3, 3)
