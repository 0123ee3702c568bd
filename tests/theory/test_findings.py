"""Every statement on random instances, identities to 1e-12, counterexamples as they are."""

import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline.report.chapter import FRAGMENTS
from pipeline.report.errata import as_html, as_markdown, make_errata
from scipy.optimize import minimize
from sklearn.tree import DecisionTreeRegressor

from pipeline.boosting import PAPER, MulticalibrationBoostingRegressor
from pipeline.boosting.algorithm import advance
from pipeline.boosting.rescaling import Adaptive, Relaxed
from pipeline.config.compose import load, load_all
from pipeline.report import scorecards
from pipeline.runs.kinds.rounds import CommonGround
from pipeline.runs.kinds.rounds import run as run_strategy
from pipeline.runs.plan import make_plan
from pipeline.stages import report
from pipeline.theory import counterexamples as counter
from pipeline.theory import income, products
from pipeline.theory import study as study_module
from pipeline.theory.checks import Check, adaptive, error, hybrid, linear, relaxed, unit
from pipeline.theory.dynamics import best_log_loss_step, log_loss, run, run_hybrid, run_log_loss
from pipeline.theory.errata import ERRATA
from pipeline.theory.figures import error_parts
from pipeline.theory.findings import REGISTRY, Finding
from pipeline.theory.instances import KINDS, SMOOTH, instance
from pipeline.theory.learners import bins, project, rbf, sigmoid, soft_tree
from pipeline.theory.learners import linear as linear_class
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
    linear_class,
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
    h = best_log_loss_step(y, i.f0, B)
    theirs = minimize(lambda z: log_loss(y, i.f0 + B @ z), np.zeros(3), method="BFGS")
    assert log_loss(y, i.f0 + h) <= theirs.fun + 1e-8
    gradient = np.abs(B.T @ (y - 1 / (1 + np.exp(-(i.f0 + h))))).max()
    assert gradient < 1e-8 or np.abs(h).max() > 20  # unless the classes can be separated


# --- statements that hold ---


@MANY
@given(SEEDS, ANY, st.sampled_from([0.0, 0.01, 0.2]))
def test_no_rescaling_obeys_its_bounds(seed, kind, noise):
    t = unit_run(instance(kind, seed), noise=noise)
    for check in (
        unit.loss_is_almost_monotone,
        unit.average_gap,
        unit.smallest_gap,
        error.error_by_gap,
    ):
        assert check(t).holds


@MANY
@given(SEEDS, ANY)
def test_sum_of_squared_gaps_is_known_exactly_for_every_step_size(seed, kind):
    t = unit_run(instance(kind, seed), half=False)
    assert unit.sum_of_gaps_is_known(t).measured < 1e-12
    assert unit.smallest_gap_sharp(t).holds


@MANY
@given(SEEDS, ANY_SMOOTH)
def test_linear_rate_holds_with_the_measured_constant(seed, kind):
    assert linear.linear_rate(unit_run(instance(kind, seed))).holds


@MANY
@given(SEEDS, ANY_SMOOTH, st.floats(1e-6, 0.1))
def test_lipschitz_lemmas_hold_and_the_sharper_forms_too(seed, kind, distance):
    i = instance(kind, seed)
    other = i.f0 + distance * i.generator().normal(size=len(i.y))
    u, v = i.learners(i.f0), i.learners(other)
    if project(u).rank == project(v).rank:
        paper, sharp = linear.projector_difference(u, v)
        assert paper.holds
        assert sharp.holds
        assert sharp.bound < paper.bound
    assert all(check.holds for check in linear.class_difference(i.learners, i.f0, other))


@MANY
@given(SEEDS, ANY)
def test_relaxed_weights_obey_identity_lyapunov_function_and_bounds(seed, kind):
    i = instance(kind, seed)
    t = run(i.y, i.f0, i.learners, i.eta, 20, Relaxed())
    assert relaxed.residual_identity(t).measured < 1e-12
    falls, positive = relaxed.lyapunov(t)
    assert falls.measured < 1e-12
    assert positive.holds
    assert relaxed.residual_stays_between(t).holds
    assert relaxed.smallest_gap_relaxed(t).holds


@MANY
@given(SEEDS, ANY)
def test_adaptive_weights_obey_the_identity_and_the_new_rates(seed, kind):
    i = instance(kind, seed)
    t = run(i.y, i.f0, i.learners, i.eta, 30, Adaptive())
    assert adaptive.loss_is_monotone(t).holds
    assert adaptive.weights_are_not_negative(t).holds
    assert adaptive.adaptive_identity(t).measured < 1e-12
    assert adaptive.smallest_gap_adaptive(t).holds
    assert unit.smallest_projection(t).holds


@MANY
@given(SEEDS, ANY, st.floats(0.01, 1.0))
def test_eigenvalue_lemma_holds(seed, kind, eta):
    i = instance(kind, seed)
    v = i.generator().normal(size=len(i.y))
    A = project(i.learners(i.f0)).matrix()
    assert adaptive.eigenvalues(A, v / np.linalg.norm(v), eta).holds


@MANY
@given(SEEDS, ANY, st.floats(0.05, 2.0), st.floats(0.02, 0.98))
def test_hybrid_obeys_its_rate_and_the_corrected_identity_but_not_the_printed_one(
    seed, kind, gamma, share
):
    i = instance(kind, seed)
    eta = share * 2 * gamma / (1 + gamma) ** 2
    strong = i.y + 0.3 * i.generator().normal(size=len(i.y))
    f, B = run_hybrid(i.y, i.f0, i.learners, strong, eta, gamma, 6)
    assert hybrid.hybrid_rate(i.y, f, strong, eta, gamma).holds
    printed, corrected = hybrid.hybrid_error(i.y, f, B, strong, eta, gamma)
    assert corrected.measured < 1e-10
    assert printed.measured > 1e-3


@MANY
@given(SEEDS, st.floats(0.01, 0.99))
def test_preconditioned_gradient_lemma_holds_for_matrices_that_commute(seed, share):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    p, q = rng.uniform(0.5, 2, 8), rng.uniform(0.5, 2, 8)
    P, Q = basis * p @ basis.T, basis * q @ basis.T
    vectors = rng.normal(size=(3, 8))
    assert hybrid.preconditioned_step(vectors[0], vectors[1], P, Q, vectors[2], share).holds


# --- statements that do not ---


@pytest.mark.parametrize("eta", [0.05, 0.5, 1.0])
def test_all_gaps_of_the_spiral_are_equal_and_reach_the_sharp_bound_in_the_limit(eta):
    shares = []
    for n in (1, 10, 500):
        t = counter.spiral(n, eta)
        np.testing.assert_allclose(t.gaps, t.gaps[0], rtol=1e-9)
        assert np.linalg.norm(t.r[0]) == pytest.approx(1)
        shares.append(t.gaps[0] / np.sqrt(eta / ((2 - eta) * n)))
    assert np.all(np.diff(shares) >= -1e-12)
    assert shares[-1] == pytest.approx(1, abs=0.03)
    assert shares[-1] <= 1 + 1e-12


def test_learner_of_the_spiral_is_a_function_of_the_point_and_its_own_prediction():
    t = counter.spiral(40, 0.5)
    for k in range(2):
        assert len(np.unique(t.f[:-1, k])) == 40  # no prediction repeats, so none is asked for two


def test_slow_spiral_has_gaps_within_a_logarithm_of_the_bound_for_every_number_of_rounds():
    n = 400
    t = counter.slow_spiral(n, 0.5)
    rounds = np.arange(n) + 2
    scaled = t.gaps * np.sqrt(rounds) * np.log(rounds)
    np.testing.assert_allclose(scaled, scaled[0], rtol=1e-9)
    assert np.square(t.r[-1]).sum() > 0.5


def test_first_adaptive_weight_can_be_negative():
    # φ_0 = −3 + ½ · 4 = −1, so ω_0 = yφ_0/φ_0² = −1.
    assert counter.negative_weight_of_one_point() == pytest.approx(-1)
    assert counter.negative_first_weight(instance("rbf", 0)) < 0


def test_update_can_vanish_at_the_start_without_calibration():
    # φ_0 = −1 + ½ · (1 − (−1)) = 0 while r_0 = 2 lies in the span.
    assert counter.vanishing_update() == pytest.approx((0.0, 2.0))


def test_residual_of_the_counterexample_does_not_tend_to_zero():
    # f_t(2) : f_t(3) stays 1 : −ε, so the residual's limit is ε/√(1 + ε²).
    y, epsilon = np.array([1.0, 1.0, 0.0]), 0.1
    first = lambda f: np.array([[1.0], [0.0], [0.0]])  # noqa: E731
    t = run(y, y - [0, 0, epsilon], first, 1.0, 500, Adaptive())
    assert np.linalg.norm(t.r[-1]) == pytest.approx(epsilon / np.sqrt(1 + epsilon**2), rel=1e-9)


@pytest.mark.parametrize("kind", SMOOTH)
def test_rate_is_not_quadratic_for_classes_that_depend_on_predictions(kind):
    ratios = [counter.not_quadratic_smooth(instance(kind, 3), e) for e in (1e-2, 1e-4, 1e-6)]
    assert min(ratios) > 0.3


def test_rate_is_quadratic_where_the_learners_span_the_complement_of_the_target():
    constants = [counter.quadratic(e, seed=1) for e in (1e-2, 1e-3, 1e-4)]
    assert max(constants) < 2 * min(constants)


def test_error_can_grow_while_the_gap_vanishes_if_learners_are_unbounded():
    t = counter.unbounded_learner(25)
    assert t.gaps[-1] < 1e-6
    np.testing.assert_allclose(t.errors, 1 / t.r[:-1, 0])


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
    assert not error.step_in_its_proof(run(i.y, i.f0, i.learners, 0.5, 1)).holds
    noisy = run(i.y, i.f0, i.learners, 1.0, 1, error=lambda _: 0.01)
    assert error.step_in_its_proof(noisy).holds


@given(SEEDS)
@MANY
def test_relaxed_weights_raise_the_loss_of_targets_far_from_zero(seed):
    t = counter.relaxed_far_from_zero(seed)
    assert t.loss[1] > 1.2 * t.loss[0]


# --- statements of ours ---


@MANY
@given(SEEDS, ANY, st.sampled_from(["random", "along", "against"]), st.floats(0.0, 0.3))
def test_gaps_are_bounded_without_a_condition_on_the_step_size(seed, kind, direction, noise):
    i = instance(kind, seed)
    t = run(i.y, i.f0, i.learners, min(i.eta, 0.99), 10, error=lambda _: noise, direction=direction)
    assert unit.gaps_without_step_condition(t, 1.0, exact=False).holds
    assert unit.smallest_error(t, 1.0).holds
    assert unit.loss_is_almost_monotone(t).holds


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**4), st.booleans(), st.floats(0.1, 1.0))
def test_error_of_the_log_loss_obeys_its_bound_separable_or_not(seed, separable, share):
    i = instance("sigmoid", seed)
    score = i.learners.H @ i.generator().normal(size=3)
    score += 0.0 if separable else i.generator().normal(size=len(score))
    y = (score > np.median(score)).astype(float)
    t = run_log_loss(y, 0.3 * i.f0, i.learners, i.eta, 5, share)
    # A share s of the best step has ε_t ≤ (1 − s) D_t, by convexity.
    assert np.all(t.epsilon <= (1 - share) * t.loss[:-1] + 1e-9)
    assert unit.smallest_error(t, 0.25).holds
    assert unit.smallest_error_relative(t, 0.25, 1 - share + 1e-9).holds


@MANY
@given(SEEDS, st.integers(1, 3), st.floats(0.05, 1.0), st.sampled_from(["turn", "lazy", "random"]))
def test_products_of_few_projections_have_finite_length(seed, k, eta, order):
    rng = np.random.default_rng(seed)
    family = [project(rng.normal(size=(5, int(rng.integers(1, 4))))) for _ in range(k)]
    orders = {"turn": products.in_turn, "lazy": products.laziest,
              "random": products.at_random(seed)}  # fmt: skip
    assert products.length(family, eta, rng.normal(size=5), orders[order], 100).holds


def test_length_of_one_projection_is_that_of_a_geometric_series():
    # r = (3, 4), A on the first axis, η = ½: the length of n steps is 3 (1 − 2⁻ⁿ).
    A = project(np.array([[1.0], [0.0]]))
    check = products.length([A], 0.5, np.array([3.0, 4.0]), products.in_turn, 10)
    assert check.measured == pytest.approx(3 * (1 - 2.0**-10))


@MANY
@given(SEEDS, ANY, st.floats(0.05, 3.0), st.floats(0.02, 0.98))
def test_hybrid_obeys_the_sharper_rate_for_all_steps_below_its_limit(seed, kind, gamma, share):
    i = instance(kind, seed)
    eta = share * 2 / (1 + gamma)
    strong = i.y + 0.3 * i.generator().normal(size=len(i.y))
    f, _ = run_hybrid(i.y, i.f0, i.learners, strong, eta, gamma, 6)
    kappa = hybrid.hybrid_kappa_sharp
    assert hybrid.hybrid_rate(i.y, f, strong, eta, gamma, kappa).holds
    assert kappa(eta, gamma) < 1


@MANY
@given(SEEDS, ANY, st.floats(0.05, 1.0))
def test_next_residual_of_adaptive_is_a_product_of_two_projections(seed, kind, eta):
    i = instance(kind, seed)
    step = adaptive.next_residual(i.y, i.f0, project(i.learners(i.f0)).matrix(), eta)
    np.testing.assert_allclose(step.actual, step.true, atol=1e-10 * np.linalg.norm(i.y))


def test_squared_loss_decreases_by_the_square_of_the_mean():
    # r = (1, 3, 5), the first two in the group: best step 2, decrease (1 + 9 − 1 − 1)/6 = 8/6;
    # ½ · (4/3)² / (2/3) = 8/6, while ½ · (10/3)/(2/3) = 15/6.
    printed, right = error.squared_loss_decrease(np.array([1.0, 3, 5]), np.array([1.0, 1, 0]))
    assert right.holds
    assert printed.measured == pytest.approx((15 / 6 - 8 / 6) / (35 / 3))


def test_hard_classes_contract_by_exactly_one_minus_eta_while_no_point_changes_cell():
    X = np.random.default_rng(0).normal(size=(30, 2))
    learners = bins(np.column_stack([np.ones(30), X]), np.array([0.0]))
    f0 = np.where(X[:, 0] > 0, 50.0, -50.0)
    t = run(f0 + X[:, 1], f0, learners, 0.3, 12)
    np.testing.assert_allclose(t.gaps[1:] / t.gaps[:-1], 0.7, rtol=1e-9)


# --- verdicts, chapter, and the bound on real runs ---


def check(measured, bound=1.0):
    return Check(measured, bound)


def finding(**checks):
    return Finding(id="x", level="result", where="", text="", **checks)


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
    findings = (tmp_path / Study.FINDINGS).read_text()
    for other in (findings[:-20], findings.replace('"level"', '"grade"')):
        (tmp_path / Study.FINDINGS).write_text(other)
        assert Study.read(tmp_path) is None  # cut, or of an earlier edition
    (tmp_path / Study.FINDINGS).write_text(findings)
    (tmp_path / Study.TABLES["curves"]).unlink()
    assert Study.read(tmp_path) is None


def test_regimes_are_counted_and_tell_how_much_of_a_bound_is_used():
    checks = [
        Check(0.2, 1.0, "a"),
        Check(0.4, 1.0, "a"),
        Check(0.9, 1.0, "b"),
        Check(2.0, 1.0, "b"),
    ]
    a, b = finding(stated=checks).regimes
    assert (a.regime, a.checks, a.hold, a.most) == ("a", 2, 2, 0.4)
    assert a.median == pytest.approx(0.3)
    assert (b.checks, b.hold, b.most) == (2, 1, 2.0)
    limit = finding(stated=checks, limit=True).record()["regimes"]
    assert [r["most"] for r in limit] == [None, None]  # tolerances are not used up


def test_worst_prefix_is_found():
    check = unit.worst_prefix(np.array([3.0, 2.9, 1.0]), np.array([4.0, 3.0, 2.0]))
    assert (check.measured, check.bound) == (2.9, 3.0)


FAILING = {"M6", "M7", "R5", "R7", "W7", "W8", "H3"}
NARROWER = {"M2", "M5", "L6", "W2", "W10"}


def test_scorecard_has_every_finding_and_counts_levels_apart(study):
    records = study.findings
    text = scorecards.of_findings(records)
    assert [r["id"] for r in records] == list(REGISTRY)
    assert all(f"{r['id']:<4}" in text for r in records)
    verdicts = {r["id"]: r["verdict"] for r in records}
    assert {i for i, v in verdicts.items() if v == "fails as stated"} == FAILING
    assert {i for i, v in verdicts.items() if v.startswith("holds in")} == NARROWER
    tallies = {t.level: t for t in scorecards.tally_of_findings(records)}
    results = tallies["theorems, lemmas, propositions"]
    assert (results.narrower, results.fails, results.broken) == (0, 2, ("W7", "W8"))
    assert tallies["ours"].broken == ()
    assert sum(t.holds + t.narrower + t.fails for t in tallies.values()) == len(records)


def test_errata_are_exactly_the_statements_that_do_not_hold(study):
    assert {e.id for e in ERRATA} == FAILING | NARROWER
    page = make_errata(study.findings)
    assert sum(n for _, n in page.tally) == len(ERRATA)
    levels = {r["id"]: r["level"] for r in study.findings}
    assert not [e.id for e in ERRATA if levels[e.id] == "ours"]


def test_errata_page_shows_formulas_and_its_markdown_keeps_them(study):
    page = make_errata(study.findings)
    html, markdown = as_html(page), as_markdown(page)
    assert html.count("<math") > 60
    assert "$" not in html.partition("<main>")[2]
    for erratum in ERRATA:
        assert f'id="erratum-{erratum.id}"' in html
        assert erratum.stated in markdown
        assert f"`python -m pipeline.theory {erratum.id}`" in markdown


def test_chapter_is_drawn_and_rendered_from_what_was_written(study, smoke, report_plan, tmp_path):
    shutil.copytree(smoke, tmp_path / "mini")
    study.write(tmp_path / "mini" / "theory")
    report.main(report_plan(tmp_path))
    page = (tmp_path / "mini" / "report.html").read_text()
    assert page.count('src="data:image/png') == 7 + 8  # the figures of runs, and those of theory
    for record in study.findings:
        assert f'id="finding-{record["id"]}"' in page
    assert "python -m pipeline.theory W8" in page
    assert page.count('class="theorem"') == len(FRAGMENTS) - 1
    folder = tmp_path / "mini" / "theory"
    assert (folder / "errata.md").read_text().startswith("# Errata")
    certificates = pd.read_csv(folder / "certificates.csv")
    assert (certificates["certified"] > certificates["plug_in"]).all()
    assert (certificates["largest_residual"] < certificates["bound_on_residuals"]).all()


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
        assert unit.sum_of_gaps_is_known(run(i.y, i.f0, i.learners, i.eta, 5)).holds


def test_stumps_on_distinct_predictions_alone_leave_no_error():
    f, residual = np.linspace(0, 1, 20), np.random.default_rng(0).normal(size=20)
    error = oracle_error(np.zeros((20, 1)), f, residual, np.zeros(20))
    assert error.least_low == error.least_high == pytest.approx(0)


def test_predictions_closer_than_a_tree_can_cut_share_a_cell():
    f = np.array([0.0, 5e-8, 1e-7, 1.0])
    assert equal_values(f).tolist() == [0, 0, 0, 1]


BROKEN = {id_: s for id_, s in REGISTRY.items() if s.correction}


@pytest.mark.slow
def test_command_of_an_erratum_prints_its_verdict_correction_and_numbers():
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.theory", "-n", "2", *BROKEN],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    parts = done.stdout.strip().split("\n\n")
    assert len(parts) == len(BROKEN)
    for part, (id_, statement) in zip(parts, BROKEN.items(), strict=True):
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
