"""The validation error is that of folds of the training rows, and knows nothing of test rows."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import KFold, train_test_split

from pipeline.boosting import PAPER, MulticalibrationBoostingRegressor
from pipeline.config.compose import load
from pipeline.datasets.library import Library
from pipeline.errors import ConfigError, DataError, UserError
from pipeline.runs import validation
from pipeline.runs.plan import make_plan
from pipeline.runs.validation import validate
from pipeline.stages import validate as stage

OVERRIDES = [
    "dataset=diabetes", "seed=4", "boosting.rounds=3", "boosting.trees=10", "validation.folds=3",
]  # fmt: skip


def test_error_equals_the_estimators_on_the_same_folds():
    config = load([*OVERRIDES, "strategy=relaxed"])
    design = Library().design(config.dataset)
    found = validate(config, design, lambda: None)
    rows, _ = train_test_split(np.arange(len(design.y)), test_size=0.2, random_state=4)
    model = MulticalibrationBoostingRegressor(
        **(PAPER | {"n_rounds": 3, "n_trees": 10}), rescaling="relaxed", random_state=4
    )
    squares = {0: [], 3: []}
    for fitted, held_out in KFold(3, shuffle=True, random_state=4).split(rows):
        model.fit(design.X[rows[fitted]], design.y[rows[fitted]])
        for n, losses in squares.items():
            f = model.predict(design.X[rows[held_out]], n_rounds=n)
            losses.extend((design.y[rows[held_out]] - f) ** 2)
    assert found.initial == pytest.approx(np.mean(squares[0]), rel=1e-9)
    assert found.boosted == pytest.approx(np.mean(squares[3]), rel=1e-9)


def test_rows_of_the_test_side_change_nothing():
    config = load(OVERRIDES)
    design = Library().design(config.dataset)
    _, test = train_test_split(np.arange(len(design.y)), test_size=0.2, random_state=4)
    y = design.y.copy()
    y[test] = 1e6
    changed = replace(design, y=y)
    assert validate(config, changed, lambda: None) == validate(config, design, lambda: None)


def test_stage_gives_the_error_to_who_asks_and_computes_it_once(capsys, tmp_path, monkeypatch):
    lines = [*OVERRIDES, f"output_dir={tmp_path}"]
    error = stage.main(make_plan(load(lines), lines))
    assert f"validation MSE {error:.6g}" in capsys.readouterr().out
    (kept,) = tmp_path.glob("paper/validation/diabetes/unit/seed=004-*.json")
    monkeypatch.setattr(validation, "validate", lambda *_: pytest.fail("it is kept"))
    assert stage.main(make_plan(load(lines), lines)) == error
    kept.write_text("{}")
    monkeypatch.setattr(validation, "validate", lambda *_: validation.Validated(1.0, 2.0))
    assert stage.main(make_plan(load(lines), lines)) == 2.0


def test_strategy_that_fails_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "failing.py").write_text(
        "class Failing:\n    def weight(self, t, y, phi):\n        raise ValueError('no weight')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    own = ["strategy=custom", "strategy.target=failing.Failing", f"output_dir={tmp_path}"]
    with pytest.raises(UserError, match="ValueError: no weight"):
        stage.main(make_plan(load([*OVERRIDES, *own])))


def test_grids_and_too_many_folds_are_refused():
    lines = ["experiment=smoke"]
    with pytest.raises(ConfigError, match="not of a grid"):
        stage.main(make_plan(load(lines), lines))
    config = load(["dataset=diabetes", "dataset.test_size=0.9", "validation.folds=30"])
    with pytest.raises(DataError, match=r"validation.folds=30 are too many for 44 training rows"):
        validate(config, Library().design(config.dataset), lambda: None)
