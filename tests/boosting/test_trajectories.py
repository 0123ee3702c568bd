"""Trajectories that are fitted together, against loops that fit them one by one."""

import numpy as np
import pytest

from pipeline.boosting import PAPER, MulticalibrationBoostingRegressor
from pipeline.boosting.algorithm import round_seed
from pipeline.boosting.engines import TreeSettings, make_engine
from pipeline.boosting.losses import LogLoss, SquaredLoss
from pipeline.boosting.rescaling import Relaxed, Unit
from pipeline.boosting.rows import Rows
from pipeline.boosting.trajectories import FEEDBACK, BoostingSettings, CrossFit, corrected_stages

TREES = TreeSettings(10, 2)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    return X, X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=90), 0.5 * X[:, 0]


def fit_together(X, y, f0, fold, feedback, n_rounds=3, **more):
    settings = BoostingSettings(
        SquaredLoss(), make_engine("sklearn", TREES), 0.5, more.pop("rescaling", Unit()), 7,
        feedback, **more,
    )  # fmt: skip
    starts = [f0] * (int(fold.max()) + 1)
    return CrossFit(settings, Rows(y=y), X, starts, fold, n_rounds)


def by_hand(X, y, f0, fold, feedback, n_rounds=3, strategy=None):
    """The out-of-fold scores of every round, trajectory after trajectory in each."""
    strategy, n_folds = strategy or Unit(), int(fold.max()) + 1
    engine = make_engine("sklearn", TREES)
    f = [f0.copy() for _ in range(n_folds)]  # of all rows, in each trajectory
    honest = [f0]
    for t in range(n_rounds):
        following = []
        for k in range(n_folds):
            own = fold != k
            seen = {"honest": honest[-1], "in_sample": f[k], "initial": f0, "none": 0 * f0}
            feature = seen[feedback]
            ensemble, h = engine.bind(X[own]).fit(feature[own], (y - f[k])[own], round_seed(7, t))
            all_h = np.empty(len(y))
            all_h[own] = h
            all_h[~own] = ensemble.predict(X[~own], feature[~own])
            phi = f[k] + 0.5 * all_h
            following.append(strategy.weight(t, y[own], phi[own]) * phi)
        f = following
        honest.append(np.choose(fold, f))
    return honest


@pytest.mark.parametrize("strategy", [Unit(), Relaxed()])
@pytest.mark.parametrize("feedback", FEEDBACK)
def test_rows_follow_the_trajectory_that_has_not_seen_them(feedback, strategy, table):
    X, y, f0 = table
    fold = np.arange(90) % 3
    fit = fit_together(X, y, f0, fold, feedback, rescaling=strategy)
    expected = by_hand(X, y, f0, fold, feedback, strategy=strategy)
    for found, f in zip(fit.stages(), expected, strict=True):
        np.testing.assert_allclose(found, f, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("feedback", FEEDBACK)
def test_threads_do_not_change_a_bit(feedback, table):
    X, y, f0 = table
    fold, found = np.arange(90) % 3, []
    for n_jobs in (1, 2):
        fit = fit_together(X, y, f0, fold, feedback)
        fit.n_jobs = n_jobs
        found.append(list(fit.stages())[-1])
    np.testing.assert_array_equal(*found)


def test_honest_feature_does_not_know_the_rows_y(table):
    X, y, f0 = table
    fold = np.arange(90) % 3
    other = y.copy()
    other[0] += 10.0
    first, second = (fit_together(X, target, f0, fold, "honest") for target in (y, other))
    # A row's own scores come from a trajectory that was fitted without it, whatever its y is; what
    # other rows tell of it has passed through two fits by then.
    for t, (a, b) in enumerate(zip(first.stages(), second.stages(), strict=True)):
        assert (a[0] == b[0]) == (t < 2)


def test_one_trajectory_in_sample_is_the_papers_algorithm(table):
    X, y, f0 = table
    model = MulticalibrationBoostingRegressor(
        **(PAPER | {"n_rounds": 3, "n_trees": 10, "max_depth": 2, "engine": "sklearn"}),
        random_state=7,
    ).fit(X, y, initial_prediction=f0)
    f = f0
    for t, stage in enumerate(list(model.staged_predict(X, f0))[1:]):
        engine = make_engine("sklearn", TREES).bind(X)
        f = f + 0.5 * engine.fit(f, y - f, round_seed(7, t))[1]
        np.testing.assert_allclose(stage, f, rtol=1e-12)


def test_a_model_is_the_mean_of_its_trajectories(table):
    X, y, f0 = table
    fold = np.arange(90) % 3
    fit = fit_together(X, y, f0, fold, "honest")
    list(fit.stages())
    trajectories = fit.trajectories(3, 0.6)
    *_, last = corrected_stages(trajectories, X, f0)
    each = [list(t.stages(X, f0))[-1] for t in trajectories]
    np.testing.assert_allclose(last, f0 + 0.6 * (np.mean(each, axis=0) - f0))


def test_shorter_trajectories_stay_where_they_ended(table):
    X, y, f0 = table
    fit = fit_together(X, y, f0, np.arange(90) % 2, "initial")
    list(fit.stages())
    long, short = fit.trajectories(3, 1.0)[0], fit.trajectories(1, 1.0)[1]
    stages = list(corrected_stages([long, short], X, f0))
    ends = list(long.stages(X, f0)), list(short.stages(X, f0))
    assert len(stages) == 4
    np.testing.assert_allclose(stages[3], (ends[0][3] + ends[1][1]) / 2)


@pytest.mark.parametrize(("loss", "constant"), [(SquaredLoss(), 0.25), (LogLoss(), np.log(1 / 3))])
def test_trees_from_a_constant_start_at_the_best_one(loss, constant):
    X, y = np.zeros((8, 1)), np.tile([1.0, 0.0, 0.0, 0.0], 2)
    settings = BoostingSettings(
        loss, make_engine("sklearn", TREES), 0.5, Unit(), 0, "none", from_constant=True
    )
    fit = CrossFit(settings, Rows(y=y), X, [np.full(8, 9.0)] * 2, np.repeat([0, 1], 4), 0)
    (first,) = fit.stages()
    np.testing.assert_allclose(first, constant)


def test_nothing_that_changes_f0_means_no_trajectories(table):
    X, y, f0 = table
    fit = fit_together(X, y, f0, np.arange(90) % 2, "honest")
    assert fit.trajectories(0, 1.0) == fit.trajectories(3, 0.0) == []
    (only,) = corrected_stages([], X, f0)
    assert only is f0


def test_feedback_of_ones_own_y_harms_on_pure_noise():
    # Nothing can be learned. In sample, f_t tells the trees the y of the rows that they were fitted
    # to, and later rounds trust it; out of fold it tells nothing.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), rng.normal(size=400)
    f0, fold = np.zeros(400), np.arange(400) % 5
    error = {}
    for feedback in ("in_sample", "honest"):
        fit = fit_together(X, y, f0, fold, feedback, n_rounds=15)
        *_, last = fit.stages()
        error[feedback] = np.square(y - last).mean()
    assert error["in_sample"] > error["honest"]
