"""Every statement on random instances, identities to 1e-12, counterexamples as they are."""

import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.tree import DecisionTreeRegressor

from pipeline.boosting import PAPER, MulticalibrationBoostingRegressor
from pipeline.boosting.algorithm import advance
from pipeline.boosting.rescaling import Adaptive, Relaxed
from pipeline.config.compose import load, load_all
from pipeline.report import scorecards
from pipeline.report.chapter import make_chapter
from pipeline.runs.plan import make_plan
from pipeline.runs.run import CommonGround
from pipeline.runs.run import run as run_strategy
from pipeline.stages import report
from pipeline.theory import checks as s
from pipeline.theory import counterexamples as counter
from pipeline.theory import income
from pipeline.theory import study as study_module
from pipeline.theory.dynamics import best_log_loss_step, log_loss, run, run_hybrid
from pipeline.theory.figures import error_parts
from pipeline.theory.findings import REGISTRY, Finding
from pipeline.theory.instances import KINDS, SMOOTH, instance
from pipeline.theory.learners import bins, linear, project, rbf, sigmoid, soft_tree
from pipeline.theory.rows import equal_values, leading_directions, oracle_error, real_instances
from pipeline.theory.study import Study, conduct
from pipeline.theory.trials import unit_run

SEEDS = st.integers(0, 10**6)
ANY = st.sampled_from(KINDS)
ANY_SMOOTH = st.sampled_from(SMOOTH)
MANY = settings(max_examples=40, deadline=None)


# --- learners and dynamics ---


@MANY
@given(SEEDS, ANY)
def test_projector_is_that_of_the_pseudo_inverse(seed, kind):
    i = instance(kind, seed)
    B = i.learners(i.f0)
    A = project(B)
    np.testing.assert_allclose(A.matrix(), B @ np.linalg.pinv(B, rcond=1e-10), atol=1e-8)
    assert A.rank == np.linalg.matrix_rank(B, rtol=1e-10)


def test_class_rows_are_kronecker_products():
    i = instance("rbf", 0)
    B, G = i.learners(i.f0), i.learners.g(i.f0)
    np.testing.assert_allclose(B[4], np.kron(i.learners.H[4], G[4]))


def test_projector_of_nothing_is_zero():
    assert not project(np.zeros((3, 2)))(np.ones(3)).any()


@pytest.mark.parametrize("make", [
    lambda H: rbf(H, np.array([-1.0, 0.5]), 0.8), lambda H: sigmoid(H, np.array([0.0, 1.0]), 0.4),
    linear,
])  # fmt: skip
def test_slopes_bound_finite_differences(make):
    learners = make(np.ones((4001, 1)))
    u = np.linspace(-5, 5, 4001)
    rate = np.linalg.norm(np.diff(learners.g(u), axis=0), axis=1) / np.diff(u)
    assert rate.max() <= learners.slope
    single = np.abs(np.diff(learners.g(u), axis=0)).max() / (u[1] - u[0])
    assert single <= learners.lipschitz * (1 + 1e-9)


def test_soft_tree_leaves_are_a_partition_of_one():
    X = np.random.default_rng(0).normal(size=(30, 3))
    H = soft_tree(X, np.array([0.0, 0.5, -1.0]), 0.3)
    assert H.shape == (30, 8)
    np.testing.assert_allclose(H.sum(axis=1), 1)


def test_hard_bins_have_one_cell_per_prediction():
    learners = bins(np.ones((5, 1)), np.array([0.0, 1.0]))
    np.testing.assert_array_equal(
        learners(np.array([-3.0, 0.0, 0.5, 1.0, 9.0])).argmax(axis=1), [0, 0, 1, 1, 2]
    )


@MANY
@given(SEEDS, ANY, st.floats(1e-6, 1.0))
def test_oracle_misses_the_optimum_by_exactly_its_error(seed, kind, epsilon):
    i = instance(kind, seed)
    t = run(i.y, i.f0, i.learners, i.eta, 3, error=lambda _: epsilon)
    for k in range(3):
        best = 0.5 * np.square(t.r[k] - t.A[k](t.r[k])).sum()
        assert 0.5 * np.square(t.r[k] - t.h[k]).sum() - best == pytest.approx(epsilon, rel=1e-6)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 200))
def test_log_loss_step_is_the_minimiser_scipy_finds(seed):
    i = instance("sigmoid", seed)
    y = (np.random.default_rng(seed).random(len(i.y)) < 0.5).astype(float)
    B = i.learners(i.f0)[:, :3]
    h, gradient = best_log_loss_step(y, i.f0, B)
    theirs = minimize(lambda z: log_loss(y, i.f0 + B @ z), np.zeros(3), method="BFGS")
    assert log_loss(y, i.f0 + h) <= theirs.fun + 1e-8
    assert gradient < 1e-10 or np.abs(h).max() > 20  # unless the classes can be separated


# --- statements that hold ---


@MANY
@given(SEEDS, ANY, st.sampled_from([0.0, 0.01, 0.2]))
def test_no_rescaling_obeys_its_bounds(seed, kind, noise):
    t = unit_run(instance(kind, seed), noise=noise)
    for check in (s.loss_is_almost_monotone, s.average_gap, s.smallest_gap, s.error_by_gap):
        assert check(t).holds


@MANY
@given(SEEDS, ANY)
def test_sum_of_squared_gaps_is_known_exactly_for_every_step_size(seed, kind):
    t = unit_run(instance(kind, seed), half=False)
    assert s.sum_of_gaps_is_known(t).measured < 1e-12
    assert s.smallest_gap_sharp(t).holds


@MANY
@given(SEEDS, ANY_SMOOTH)
def test_linear_rate_holds_with_the_measured_constant(seed, kind):
    assert s.linear_rate(unit_run(instance(kind, seed))).holds


@MANY
@given(SEEDS, ANY_SMOOTH, st.floats(1e-6, 0.1))
def test_lipschitz_lemmas_hold_and_the_sharper_forms_too(seed, kind, distance):
    i = instance(kind, seed)
    other = i.f0 + distance * i.generator().normal(size=len(i.y))
    u, v = i.learners(i.f0), i.learners(other)
    if project(u).rank == project(v).rank:
        paper, sharp = s.projector_difference(u, v)
        assert paper.holds
        assert sharp.holds
        assert sharp.bound < paper.bound
    assert all(check.holds for check in s.class_difference(i.learners, i.f0, other))


@MANY
@given(SEEDS, ANY)
def test_relaxed_weights_obey_identity_lyapunov_function_and_bounds(seed, kind):
    i = instance(kind, seed)
    t = run(i.y, i.f0, i.learners, i.eta, 20, Relaxed())
    assert s.residual_identity(t).measured < 1e-12
    falls, positive = s.lyapunov(t)
    assert falls.measured < 1e-12
    assert positive.holds
    assert s.residual_stays_between(t).holds
    assert s.smallest_gap_relaxed(t).holds


@MANY
@given(SEEDS, ANY)
def test_adaptive_weights_obey_the_identity_and_the_new_rates(seed, kind):
    i = instance(kind, seed)
    t = run(i.y, i.f0, i.learners, i.eta, 30, Adaptive())
    assert s.loss_is_monotone(t).holds
    assert s.weights_are_not_negative(t).holds
    assert s.adaptive_identity(t).measured < 1e-12
    assert s.smallest_gap_adaptive(t).holds
    assert s.smallest_projection_adaptive(t).holds


@MANY
@given(SEEDS, ANY, st.floats(0.01, 1.0))
def test_eigenvalue_lemma_holds(seed, kind, eta):
    i = instance(kind, seed)
    v = i.generator().normal(size=len(i.y))
    A = project(i.learners(i.f0)).matrix()
    assert s.eigenvalues(A, v / np.linalg.norm(v), eta).holds


@MANY
@given(SEEDS, ANY, st.floats(0.05, 2.0), st.floats(0.02, 0.98))
def test_hybrid_obeys_its_rate_and_the_corrected_identity_but_not_the_printed_one(
    seed, kind, gamma, share
):
    i = instance(kind, seed)
    eta = share * 2 * gamma / (1 + gamma) ** 2
    strong = i.y + 0.3 * i.generator().normal(size=len(i.y))
    f, B = run_hybrid(i.y, i.f0, i.learners, strong, eta, gamma, 6)
    assert s.hybrid_rate(i.y, f, strong, eta, gamma).holds
    printed, corrected = s.hybrid_error(i.y, f, B, strong, eta, gamma)
    assert corrected.measured < 1e-10
    assert printed.measured > 1e-3


@MANY
@given(SEEDS, st.floats(0.01, 0.99))
def test_preconditioned_gradient_lemma_holds_for_matrices_that_commute(seed, share):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    p, q = rng.uniform(0.5, 2, 8), rng.uniform(0.5, 2, 8)
    eta = share * 2 * p.min() * q.min() / (q.max() ** 2 * p.max() ** 2)
    P, Q = basis * p @ basis.T, basis * q @ basis.T
    vectors = rng.normal(size=(3, 8))
    assert s.preconditioned_step(vectors[0], vectors[1], P, Q, vectors[2], eta).holds


# --- statements that do not ---


def test_domino_attains_the_rate():
    for n, eta in ((5, 0.5), (20, 0.3), (40, 1.0)):
        t = counter.domino(n, eta)
        assert t.gaps.min() == pytest.approx(eta * np.linalg.norm(t.r[0]) / np.sqrt(n), rel=1e-5)
        assert s.smallest_gap_sharp(t).holds


def test_first_adaptive_weight_can_be_negative():
    # φ_0 = f_0 = −3y, so ω_0 = yᵀφ_0/‖φ_0‖² = −3‖y‖²/(9‖y‖²).
    assert counter.negative_first_weight() == pytest.approx(-1 / 3)


@pytest.mark.parametrize("epsilon", [1e-2, 1e-4, 1e-6])
def test_quadratic_rate_fails_on_a_diagonal_example(epsilon):
    actual, stated = counter.not_quadratic(epsilon)
    assert actual == pytest.approx(1, abs=epsilon)
    assert stated == 0


def test_projector_jumps_where_the_class_loses_rank():
    distance, difference = counter.discontinuous_projector(1e-9)
    assert distance < 2e-9
    assert difference == pytest.approx(1)


@MANY
@given(SEEDS, ANY)
def test_step_in_the_proof_of_the_error_bound_needs_a_full_step(seed, kind):
    i = instance(kind, seed)
    assert not s.step_in_its_proof(run(i.y, i.f0, i.learners, 0.5, 1)).holds
    noisy = run(i.y, i.f0, i.learners, 1.0, 1, error=lambda _: 0.01)
    assert s.step_in_its_proof(noisy).holds


@MANY
@given(SEEDS, ANY)
def test_relaxed_weights_raise_the_loss_from_a_perfect_start(seed, kind):
    i = instance(kind, seed)
    t = run(i.y, i.y, i.learners, i.eta, 1, Relaxed())
    assert t.loss[1] > t.loss[0]


def test_hard_classes_contract_by_exactly_one_minus_eta_while_no_point_changes_cell():
    X = np.random.default_rng(0).normal(size=(30, 2))
    learners = bins(np.column_stack([np.ones(30), X]), np.array([0.0]))
    f0 = np.where(X[:, 0] > 0, 50.0, -50.0)
    t = run(f0 + X[:, 1], f0, learners, 0.3, 12)
    np.testing.assert_allclose(t.gaps[1:] / t.gaps[:-1], 0.7, rtol=1e-9)


# --- verdicts, chapter, and the bound on real runs ---


def check(measured, bound=1.0):
    return s.Check(measured, bound)


def finding(**checks):
    return Finding(id="x", where="", text="", **checks)


def test_verdicts_are_computed_from_checks():
    good, bad = [check(0.5)], [check(2.0)]
    assert finding(stated=good).verdict == "holds"
    assert finding(stated=bad).verdict == "fails as stated"
    assert finding(stated=bad, narrower=good).verdict == "holds in a narrower regime"
    assert finding(stated=bad, narrower=bad).verdict == "fails as stated"
    assert finding(stated=bad, corrected=good).verdict == "fails as stated"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    lines = ["experiment=paper", "experiment.datasets=[german,diabetes]", "boosting.rounds=4",
             f"output_dir={tmp_path_factory.mktemp('theory')}"]  # fmt: skip
    return conduct(make_plan(load(lines), lines), n=3)


def test_study_comes_back_from_its_folder(study, tmp_path):
    assert Study.read(tmp_path) is None
    study.write(tmp_path)
    back = Study.read(tmp_path)
    assert back.findings == study.findings
    for name in ("curves", "exact", "gbdt"):
        pd.testing.assert_frame_equal(getattr(back, name), getattr(study, name))
    assert back.income is None  # Adult is not among the datasets
    (tmp_path / Study.TABLES["curves"]).unlink()
    assert Study.read(tmp_path) is None


def test_scorecard_has_every_finding_and_a_command_for_each_erratum(study):
    records = study.findings
    text = scorecards.of_findings(records)
    assert [r["id"] for r in records] == list(REGISTRY)
    assert len(records) > 30
    assert all(f"{r['id']:<4}" in text for r in records)
    errata = {r["id"] for r in records if r["correction"]}
    verdicts = {r["id"]: r["verdict"] for r in records}
    failing = {"R5", "R7", "W7", "W8", "H3"}
    assert {i for i, v in verdicts.items() if v == "fails as stated"} == failing
    assert {i for i, v in verdicts.items() if v.startswith("holds in")} == errata - failing
    assert text.splitlines()[-1] == scorecards.tally_of_findings(records)
    assert "of the paper: 25 hold, 4 hold in a narrower regime, 5 fail as stated" in text
    chapter = make_chapter(study, [])
    assert {r["id"]: r["command"] for r in chapter.errata} == {
        i: f"python -m pipeline.theory {i}" for i in errata
    }


def test_chapter_is_drawn_and_rendered_from_what_was_written(study, smoke, report_plan, tmp_path):
    shutil.copytree(smoke, tmp_path / "smoke")
    study.write(tmp_path / "smoke" / "theory")
    report.main(report_plan(tmp_path))
    page = (tmp_path / "smoke" / "report.html").read_text()
    assert page.count("data:image/png") == 8 + 7  # the figures of runs, and those of theory
    for record in study.findings:
        assert f'id="finding-{record["id"]}"' in page
    assert "python -m pipeline.theory W8" in page


def test_income_study_obeys_the_settings_and_its_numbers_are_the_classifiers(library):
    lines = ["dataset=adult", "boosting.rounds=2", "boosting.trees=3", "dataset.test_size=0.5"]
    configs = load_all([[*lines, f"strategy={s}"] for s in ("unit", "adaptive")])
    rounds = income.measure(configs, library.table(configs[0].dataset))
    assert rounds.groupby("strategy").size().to_dict() == {"adaptive": 3, "unit": 3}
    assert rounds["gap"].isna().sum() == 2
    first = rounds.groupby("strategy").first()
    assert first["loss_test"]["unit"] == first["loss_test"]["adaptive"]  # the same forest
    assert (rounds.groupby("strategy")["loss_train"].diff().dropna() < 0).all()


def test_exact_rounds_on_real_rows_stay_below_both_bounds(study):
    exact = study.exact
    assert exact.groupby(["dataset", "strategy"]).size().to_dict() == {
        (d, s): study_module.EXACT_ROUNDS
        for d in ("german", "diabetes")
        for s in ("unit", "relaxed", "adaptive")
    }
    unit = exact[exact["strategy"] == "unit"]
    smallest = unit.groupby("dataset")["gap"].cummin()
    assert (smallest <= unit["sharp"]).all()
    assert (unit["sharp"] < unit["paper"]).all()


def test_gbdt_rounds_are_those_of_the_estimator(study, design):
    gbdt = study.gbdt.query("dataset == 'german'")
    config = load(["dataset=german", "boosting.rounds=4"])
    ground = CommonGround(config, design("german"))
    rounds = run_strategy(config, ground).rounds
    n = len(ground.split.y_train)
    np.testing.assert_allclose(gbdt["gap"], rounds["gap"][1:] / 0.5 / np.sqrt(n), rtol=1e-12)
    np.testing.assert_allclose(gbdt["mce"], rounds["mce_train"][:-1], rtol=1e-12)


@MANY
@given(SEEDS, st.integers(1, 4), st.integers(1, 12))
def test_oracle_error_brackets_what_a_fully_grown_tree_can_reach(seed, n_x, n_f):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, n_x, size=(30, 2)).astype(float)
    f, residual = rng.integers(0, n_f, size=30) / 3, rng.normal(size=30)
    # Trees of any depth reach each cell's mean; sums of shallow ones are in between.
    fits = [
        DecisionTreeRegressor().fit(Z, residual).predict(Z)
        for Z in (np.column_stack([X, f]), f[:, None])
    ]
    by_rows, by_values = (0.5 * np.square(residual - fit).sum() for fit in fits)
    error = oracle_error(X, f, residual, 0.5 * fits[0])
    assert error.least_low == pytest.approx(by_rows)
    assert error.least_high == pytest.approx(by_values)
    assert error.loss == pytest.approx(0.5 * np.square(residual - 0.5 * fits[0]).sum())
    assert error.low <= error.high + 1e-12


@pytest.mark.parametrize("n_columns", [0, 1, 2, 5])
def test_any_number_of_features_makes_instances(n_columns):
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(80), rng.normal(size=(80, n_columns))])
    X = np.column_stack([X, X[:, -1]])  # a constant one and a copy tell nothing new
    directions = leading_directions(X)
    assert directions.shape == (80, 3)
    if n_columns:
        np.testing.assert_allclose(directions.std(axis=0), 1)
    for i in real_instances(X, rng.normal(size=80) + 1):
        assert s.sum_of_gaps_is_known(run(i.y, i.f0, i.learners, i.eta, 5)).holds


def test_stumps_on_distinct_predictions_alone_leave_no_error():
    f, residual = np.linspace(0, 1, 20), np.random.default_rng(0).normal(size=20)
    error = oracle_error(np.zeros((20, 1)), f, residual, np.zeros(20))
    assert error.least_low == error.least_high == pytest.approx(0)


def test_predictions_closer_than_a_tree_can_cut_share_a_cell():
    f = np.array([0.0, 5e-8, 1e-7, 1.0])
    assert equal_values(f).tolist() == [0, 0, 0, 1]


ERRATA = {id_: s for id_, s in REGISTRY.items() if s.correction}


@pytest.mark.slow
def test_command_of_an_erratum_prints_its_verdict_correction_and_numbers():
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.theory", "-n", "2", *ERRATA],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    parts = done.stdout.strip().split("\n\n")
    assert len(parts) == len(ERRATA)
    for part, (id_, statement) in zip(parts, ERRATA.items(), strict=True):
        first, verdict, *rest = part.strip().splitlines()
        assert first == f"{id_} ({statement.where}): {statement.text}"
        assert verdict.startswith(("fails as stated; ", "holds in a narrower regime; "))
        assert f"  {statement.correction}" in rest
        first_check = next(line for line in rest if line.startswith("  measured "))
        measured, bound = (float(word) for word in first_check.split()[1::2])
        assert measured > bound  # what fails is shown first


@pytest.mark.slow
def test_command_refuses_what_is_no_statement():
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.theory", "Q9"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "invalid choice: 'Q9'" in done.stderr


def test_parts_of_the_error_bound_follow_from_stored_curves():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] ** 2 + rng.normal(size=60)
    model = MulticalibrationBoostingRegressor(
        **(PAPER | {"n_rounds": 4, "n_trees": 15}), random_state=0
    ).fit(X, y)
    gap = np.concatenate([[np.nan], model.gaps_])
    move, oracle = error_parts(model.losses_, gap, 60, 0.5)
    f = model.init_.predict(X)
    for t, step in enumerate(model.steps_):
        h = step.ensemble.predict(X, f)
        assert move[t] == pytest.approx(np.linalg.norm(h) / np.sqrt(60))
        assert oracle[t] == pytest.approx(np.linalg.norm(y - f - h) / np.sqrt(60), rel=1e-6)
        f = advance(f, X, step, 0.5)
