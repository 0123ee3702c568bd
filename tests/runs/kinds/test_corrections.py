"""Runs of kind corrections: the model that is corrected, who sees what, keys and failures."""

import numpy as np
import pandas as pd
import pytest

from pipeline.boosting.peers import METHODS
from pipeline.boosting.peers.base import Corrected
from pipeline.config.compose import load
from pipeline.datasets.design import split_rows
from pipeline.errors import ConfigError, DataError
from pipeline.runs.grid import run_plan
from pipeline.runs.kinds.corrections import KIND
from pipeline.runs.kinds.corrections.cases import make_case
from pipeline.runs.kinds.corrections.methods import candidates, correct
from pipeline.runs.kinds.corrections.run import Ground
from pipeline.runs.kinds.corrections.run import run as run_correction
from pipeline.runs.plan import make_plan


def config_of(*overrides):
    return load(["experiment=correction", *overrides])


@pytest.fixture(scope="module")
def case(library):
    """``case(*overrides)``: the case of a config."""
    made = {}

    def of(*overrides):
        if overrides not in made:
            config = config_of(*overrides)
            made[overrides] = make_case(config, library.design(config.dataset))
        return made[overrides]

    return of


def plan_of(folder, *overrides):
    lines = ["experiment=correction", *overrides, f"output_dir={folder}"]
    if any(line.startswith("experiment=") for line in overrides):
        lines.pop(0)
    return make_plan(load(lines), lines)


SITUATIONS = ["forest", "linear", "boosted", "blind", "moved", "unsampled", "planted"]
SMALL = ["experiment=practice_smoke", "experiment.datasets=[diabetes]", "experiment.seeds=[0,1]",
         "experiment.situations=[linear,planted]", "experiment.methods=[nothing,isotonic,ours]",
         "experiment.name=mini"]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "situation"),
    [
        *(("diabetes", situation) for situation in (*SITUATIONS, "forest_oof", "forest_oob")),
        ("german_class", "boosted"),
        *(
            pytest.param("german_class", situation, marks=pytest.mark.exhaustive)
            for situation in (*SITUATIONS, "forest_oof", "forest_oob")
            if situation != "boosted"
        ),
    ],
)
def test_rows_are_shared_out_once_and_test_rows_are_those_of_every_run(
    case, design, name, situation
):
    made = case(f"dataset={name}", f"situation={situation}", "seed=3")
    table, config = design(name), config_of(f"dataset={name}").dataset
    train, test = split_rows(len(table.y), config, 3)
    assert len(made.test) == len(test)
    if situation != "planted":
        np.testing.assert_array_equal(made.test.y, table.y[test])
    n = len(made.correct) + len(made.validation)
    assert n == len(train) if situation.startswith("forest") else n == len(train) - len(train) // 2
    for part in (made.correct, made.validation, made.test):
        assert np.isfinite(part.X).all()
        assert np.isfinite(part.f).all()
        assert part.binary == (name == "german_class")
    if name == "german_class":
        assert 0 < made.test.f.min() < made.test.f.max() < 1


def test_a_forest_of_the_same_rows_flatters_itself_and_the_others_do_not(case):
    losses = {
        name: [part.loss(part.f) for part in (made.correct, made.validation)]
        for name in ("forest", "forest_oof", "forest_oob")
        for made in [case("dataset=german", f"situation={name}")]
    }
    assert losses["forest"][0] < 0.8 * losses["forest"][1]
    for honest in ("forest_oof", "forest_oob"):
        assert losses[honest][0] > 0.8 * losses["forest"][1]
        assert losses[honest][1] == losses["forest"][1]  # others' rows are predicted as ever


def test_a_blind_model_does_not_see_what_it_is_refused(library):
    config = config_of("dataset=california", "situation=blind")
    design = library.design(config.dataset)
    moved = design.X.copy()
    hidden = [j for name in config.dataset.sensitive for j in design.features_of(name)]
    assert [design.feature_names[j] for j in hidden] == ["Latitude", "Longitude"]
    moved[:, hidden] += 100.0
    from dataclasses import replace

    one, other = (make_case(config, d) for d in (design, replace(design, X=moved)))
    np.testing.assert_array_equal(one.test.f, other.test.f)
    assert not np.array_equal(one.test.X, other.test.X)


def test_outcomes_that_moved_make_the_model_wrong_for_a_group(case):
    before, after = (case("dataset=adult", f"situation={s}") for s in ("boosted", "moved"))
    scale = before.scale
    biases = {}
    for name, made in (("before", before), ("after", after)):
        r = made.test.y - made.test.f
        biases[name] = [abs(r[g].mean()) / scale for g in made.named.T if g.sum() > 500]
    assert max(biases["before"]) < 0.15
    assert max(biases["after"]) == pytest.approx(0.5, abs=0.1)  # situation.size


def test_of_a_group_that_was_hardly_sampled_the_model_knows_little(case):
    before, after = (case("dataset=adult", f"situation={s}") for s in ("boosted", "unsampled"))
    group = (
        before.named[:, 1]
        if before.named[:, 1].sum() < before.named[:, 0].sum()
        else (before.named[:, 0])
    )  # the smaller of the two sexes
    losses = [np.square(m.test.y - m.test.f)[group].mean() for m in (before, after)]
    assert losses[1] > 1.01 * losses[0]


@pytest.mark.parametrize("dataset", ["german", "adult_income"])
def test_the_planted_truth_is_right_and_the_model_is_it_but_for_a_group(case, dataset):
    made = case(f"dataset={dataset}", "situation=planted")
    wrong = ~np.isclose(made.test.f, made.truth)
    assert 0.1 < wrong.mean() < 0.6
    residual = made.test.y - made.truth
    assert abs(residual.mean()) < 4 * residual.std() / np.sqrt(len(residual))
    shift = (made.test.f - made.truth)[wrong]
    assert (shift > 0).all()
    if dataset == "german":
        np.testing.assert_allclose(shift, shift[0])


@pytest.mark.parametrize("situation", ["moved", "blind"])
def test_situations_without_a_group_say_what_is_missing(library, situation):
    for value, message in (("[]", "must name a column"), ("[nope]", "has no such covariate")):
        config = config_of("dataset=german", f"situation={situation}", f"dataset.sensitive={value}")
        with pytest.raises(DataError, match=message):
            make_case(config, library.design(config.dataset))


def test_a_grid_that_varies_more_than_options_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"not dataset.test_size"):
        plan_of(tmp_path, *SMALL, "experiment.vary={dataset.test_size:[0.2,0.5]}")


@pytest.mark.parametrize("missing", ["lightgbm", "mcgrad"])
def test_an_extra_that_is_not_installed_is_named_before_anything_runs(
    tmp_path, monkeypatch, missing
):
    monkeypatch.setattr("pipeline.runs.kinds.corrections.methods.find_spec", lambda name: None)
    wanted = {"lightgbm": ["situation=moved"], "mcgrad": ["method=mcgrad"]}[missing]
    with pytest.raises(
        ConfigError,
        match=f"needs the extra '{'peers' if wanted[0].endswith('mcgrad') else missing}'",
    ):
        plan_of(tmp_path, "dataset=german", *wanted)


def test_too_few_rows_are_refused(library):
    config = config_of("dataset=diabetes", "dataset.test_size=0.95")
    with pytest.raises(DataError, match="too few for a correction"):
        make_case(config, library.design(config.dataset))


# --- methods -------------------------------------------------------------------------------------


def test_tuning_takes_what_is_best_on_the_validation_rows(case):
    made = case("dataset=german", "situation=moved")
    config = config_of("method=unit_tuned")
    _, options = correct(config, made)
    losses = {
        (m.eta, m.trees): made.validation.loss(
            m.fit(made.correct, made.validation, 0).predict(made.validation)
        )
        for m in candidates(config.method)
    }
    best = min(losses, key=losses.get)
    assert (options["eta"], options["trees"]) == best
    assert len(losses) == 4


def test_every_tuned_method_has_the_same_budget(monkeypatch):
    lines = ["experiment=practice_tuned"]
    monkeypatch.setattr("pipeline.runs.kinds.corrections.methods.find_spec", lambda name: True)
    plan = make_plan(load(lines), lines)
    budgets = {c.method.name: c.method.n_candidates for c in plan.configs}
    assert budgets.pop("nothing") == 1
    assert set(budgets.values()) == {4}


def test_methods_see_nothing_of_the_test_rows(case, monkeypatch):
    made = case("dataset=diabetes", "situation=linear")
    seen = []

    class Watching:
        validates, needs = False, None

        def fit(self, sample, validation, seed):
            seen.extend([sample, validation])
            return Corrected(lambda rows: rows.f, 0)

    monkeypatch.setitem(METHODS, "nothing", Watching)
    correct(config_of("method=nothing"), made)
    rows = {tuple(row) for part in seen for row in part.X}
    assert not rows & {tuple(row) for row in made.test.X}
    assert len(seen[0]) == len(made.correct) + len(made.validation)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["method=isotonic", "method.options.levels=3"], "isotonic has no option levels"),
        (["method=level_sets", "method.options.learner=forest"], "must be one of linear, tree"),
        (["method=unit", "method.options.eta=wrong"], "eta=wrong: must be of type float"),
        (["method=unit", "method.options.etta=0.1"], "it has rounds, eta"),
        (["dataset.target_scaling=standardise"], "targets as they are"),
    ],
)
def test_options_that_a_method_has_not_are_refused_before_anything_runs(
    tmp_path, overrides, message
):
    with pytest.raises(ConfigError, match=message):
        plan_of(tmp_path, "dataset=diabetes", *overrides)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["situation.rows=same", "situation=moved"], "situation.rows=same"),
        (["situation=planted", "situation.change=none"], "situation.model=truth"),
        (["situation=linear", "situation.predictions=out_of_bag"], "situation.predictions"),
        (["method.tuning={eta:[1,2,3,4,5,6,7,8,9],trees:[1,2,3,4,5,6,7,8]}"], "72 combinations"),
        (["dataset=german_class", "dataset.target=[class,job]"], "dataset.positive"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(overrides, message):
    with pytest.raises(ConfigError, match=message):
        config_of(*overrides)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ["experiment.methods=[ours]"],
            "datasets, situations, methods and seeds must all be given",
        ),
        (["experiment=paper", "experiment.methods=[ours]"], "kind rounds has datasets, strategies"),
        ([*SMALL, "stage=figures"], "stage=figures: is not for corrections"),
        (["experiment.kind=guesses"], "must be one of corrections, parts, rounds"),
        (["method.kind=magic"], "method.kind=magic: must be one of algorithm, feedback"),
    ],
)
def test_grids_that_do_not_fit_their_kind_are_refused(overrides, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        plan_of(tmp_path, *overrides)


def test_a_class_is_a_target_of_zeros_and_ones(design, dataset):
    y = design("german_class").y
    assert set(y) == {0.0, 1.0}
    assert y.sum() == 300  # of 1000 loans, as the table's origin says
    assert design("adult_income").y.mean() == pytest.approx(0.2408, abs=1e-4)
    with pytest.raises(DataError, match="must be one of several values of class, which has 1, 2"):
        design("german_class", "dataset.positive=3")
    from pipeline.runs.keys import dataset_key

    assert "positive" not in dataset_key(dataset("german"))  # stored runs keep their keys
    assert dataset_key(dataset("german_class"))["positive"] == "2"


# --- runs ----------------------------------------------------------------------------------------


def test_keys_hold_what_numbers_depend_on_and_no_names():
    base = KIND.key(config_of("dataset=german", "method=unit"), "x")
    named = KIND.key(config_of("dataset=german", "method=unit", "method.name=other"), "x")
    assert named == base
    for override in ("method.options.eta=0.3", "situation=linear", "seed=1", "audit.depth=2"):
        assert KIND.key(config_of("dataset=german", "method=unit", override), "x") != base
    ours = KIND.key(config_of("method=ours"), "x")["method"]["options"]
    assert ours["n_trees"] == 10  # defaults are part of the key
    assert KIND.key(config_of("method=ours", "method.options.n_trees=10"), "x") == KIND.key(
        config_of("method=ours"), "x"
    )


@pytest.mark.slow
def test_a_grid_resumes_and_gives_the_same_numbers_with_any_number_of_workers(tmp_path):
    alone = plan_of(tmp_path / "a", *SMALL, "grid.workers=1")
    assert run_plan(alone).computed == 12
    assert run_plan(alone).computed == 0
    together = plan_of(tmp_path / "b", *SMALL, "grid.workers=2")
    some = plan_of(
        tmp_path / "b", *SMALL, "experiment.methods=[ours]", "experiment.seeds=[1]",
        "grid.workers=1",
    )  # fmt: skip
    assert run_plan(some).computed == 2
    assert run_plan(together).found == 2
    costs = ["cpu_seconds", "peak_mb"]
    for task in alone.tasks():
        for config in task.configs:
            one, other = (
                plan.store.load(task.run_id(config)).rounds.drop(columns=costs)
                for plan in (alone, together)
            )
            pd.testing.assert_frame_equal(one, other)


def test_a_method_that_fails_is_a_result(library, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("by nought")

    config = config_of("dataset=diabetes", "situation=linear", "method=isotonic")
    ground = Ground(config, library.design(config.dataset))
    monkeypatch.setattr(METHODS["isotonic"], "fit", fail)
    run = run_correction(config, ground)
    (row,) = run.rounds.to_dict("records")
    assert row["failed"] == "ZeroDivisionError: by nought"
    assert np.isnan(row["loss"])
    assert "by nought" in run.headline


def test_what_is_amiss_with_the_machine_is_no_result_of_the_method(library, monkeypatch):
    def fail(*_):
        raise ImportError("no such package here")

    config = config_of("dataset=diabetes", "situation=linear", "method=isotonic")
    ground = Ground(config, library.design(config.dataset))
    monkeypatch.setattr(METHODS["isotonic"], "fit", fail)
    with pytest.raises(ImportError):
        run_correction(config, ground)


def test_a_best_round_of_0_has_all_measures_of_the_model_as_it_is(library):
    config = config_of("dataset=german_class", "situation=forest", "method=unit", "seed=1",
                       "method.options.rounds=2", "method.options.eta=1.0")  # fmt: skip
    ground = Ground(config, library.design(config.dataset))
    rows = run_correction(config, ground).rounds.set_index("rule")
    assert rows.loc["oracle", "rounds"] == 0
    expected = ground.measures.of(ground.case.test.f)
    for name in ("loss", "segment_bias", "segment_p"):
        assert rows.loc["oracle", name] == pytest.approx(expected[name])


def test_rounds_have_a_start_and_a_best_one(library):
    config = config_of("dataset=diabetes", "situation=moved", "method=unit_stopped")
    ground = Ground(config, library.design(config.dataset))
    rows = run_correction(config, ground).rounds.set_index("rule")
    assert set(rows.index) == {"own", "start", "oracle"}
    test = ground.case.test
    assert rows.loc["start", "loss"] == pytest.approx(test.loss(test.f))
    assert rows.loc["oracle", "loss"] == rows["loss"].min()


def test_measures_of_the_truth_are_those_of_a_perfect_model(library):
    config = config_of("dataset=adult_income", "situation=planted")
    ground = Ground(config, library.design(config.dataset))
    right = ground.measures.of(ground.case.truth)
    wrong = ground.measures.of(ground.case.test.f)
    assert right["excess"] == 0.0
    assert right["mce_p"] > 0.01
    assert right["segment_p"] > 0.01
    assert abs(right["mce2_debiased"]) < 3 * right["mce_floor"] ** 2
    assert abs(right["calibration2"]) < 1e-3
    assert wrong["loss"] > right["loss"]
    assert wrong["group_z"] > 4 > right["group_z"]
    assert wrong["mce_p"] < 0.05
