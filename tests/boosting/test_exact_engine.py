"""The exact engine grows scikit-learn's trees: same training values, held-out ones as close as
scikit-learn's to its own under another random_state."""

import multiprocessing
import pickle
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingRegressor

from pipeline.boosting import Auditor
from pipeline.boosting.algorithm import boost
from pipeline.boosting.engines import TreeSettings, make_engine
from pipeline.boosting.engines.exact import columns
from pipeline.boosting.rescaling import resolve

STRATEGIES = ["unit", "relaxed", "adaptive"]
TRAJECTORIES = [
    ("diabetes", 20, None), ("german", 20, None), ("crime", 3, 800), ("california", 2, 6000),
    ("adult", 2, 6000),
]  # fmt: skip


def exact(X, f, residual, seed=0, *, weights=None, **settings):
    return make_engine("exact", TreeSettings(**settings)).bind(X, weights).fit(f, residual, seed)


def sklearn(X, f, residual, seed=0, *, n_trees=100, weights=None, **settings):
    model = GradientBoostingRegressor(n_estimators=n_trees, random_state=seed, **settings)
    model.fit(np.column_stack([X, f]), residual, sample_weight=weights)
    return model, model.predict(np.column_stack([X, f]))


def runs_of_sklearn(X, f, residual, *, weights=None, **settings):
    """scikit-learn under other seeds, row orders and units: all equal unless splits tie.

    Ties between features are broken by its seed, those between thresholds of one feature by
    rounding, which row order and units change.
    """
    for variant in range(12):
        rng = np.random.default_rng(variant)
        rows, unit = rng.permutation(len(f)), 1 + rng.random() * (variant > 0)
        out = np.empty(len(f))
        w = None if weights is None else weights[rows]
        fit = sklearn(X[rows], f[rows], unit * residual[rows], variant, weights=w, **settings)
        out[rows] = fit[1] / unit
        yield out


# --- the paper's datasets ---------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n_rounds", "n", "strategy"),
    [
        pytest.param(*table, strategy, marks=[] if (k - s) % 3 == 0 else pytest.mark.exhaustive)
        for k, table in enumerate(TRAJECTORIES)
        for s, strategy in enumerate(STRATEGIES)
    ],
)
def test_training_trajectory_is_sklearns(name, n_rounds, n, strategy, paper_split):
    X, y, *_ = paper_split(name, n=n)
    f0 = np.full(len(y), y.mean()) + 0.1 * X[:, 0]
    trees = 100 if name in ("diabetes", "german") else 40
    runs = [
        boost(
            y,
            f0,
            n_rounds,
            0.5,
            resolve(strategy),
            lambda t, f, residual, fitter=fitter: fitter.fit(f, residual, t),
        )
        for fitter in (make_engine(e, TreeSettings(trees)).bind(X) for e in ("sklearn", "exact"))
    ]
    for reference, ours in zip(*runs, strict=True):
        assert np.abs(ours.f - reference.f).max() < 1e-9 * y.std()
        assert ours.weight == pytest.approx(reference.weight, rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["diabetes", pytest.param("german", marks=pytest.mark.exhaustive)])
def test_held_out_values_are_as_close_to_sklearn_as_sklearn_is_to_itself_reseeded(
    name, paper_split
):
    ours, theirs = [], []
    for seed in range(8):
        X, y, X_test, _ = paper_split(name, seed)
        f0, f0_test = X[:, 0], X_test[:, 0]
        first, second = (
            sklearn(X, f0, y, random_state)[0].predict(np.column_stack([X_test, f0_test]))
            for random_state in (0, 1)
        )
        ensemble, _ = exact(X, f0, y, seed=2)
        ours.append(np.abs(ensemble.predict(X_test, f0_test) - first).mean())
        theirs.append(np.abs(second - first).mean())
    assert np.mean(ours) <= 1.3 * np.mean(theirs)


def test_ties_between_features_are_broken_by_the_seed_and_not_by_column_order():
    rng = np.random.default_rng(0)
    column = rng.normal(size=60)
    X = np.column_stack([column, column**3, np.exp(column)])  # three features, one order of rows
    y = np.sign(column)
    used = [exact(X, np.zeros(60), y, seed, n_trees=1)[0].trees.feature[0, 0] for seed in range(90)]
    assert np.bincount(used, minlength=3).min() > 15


# --- random tables ----------------------------------------------------------------------------

COLUMNS = {
    "continuous": lambda rng, n: rng.normal(size=n),
    "ties": lambda rng, n: rng.integers(0, 4, n),
    "many ties": lambda rng, n: np.where(rng.random(n) < 0.7, 0.0, rng.normal(size=n)),
    "integers": lambda rng, n: rng.integers(-300, 300, n),
    "constant": lambda rng, n: np.full(n, rng.normal()),
    "binary": lambda rng, n: rng.random(n) < rng.random(),
    "rare": lambda rng, n: rng.random(n) < 0.03,
    "tiny": lambda rng, n: 1e-7 * rng.integers(0, 8, n),  # neighbours count as equal
    "huge": lambda rng, n: 1e30 * rng.normal(size=n),
    "crowded": lambda rng, n: 1 + 6e-8 * rng.integers(0, 2000, n),  # neighbouring float32 values
    "skewed": lambda rng, n: np.exp(4 * rng.normal(size=n)),
}

TARGETS = {
    "continuous": lambda rng, n: rng.normal(size=n),
    "integers": lambda rng, n: rng.integers(-2, 3, n).astype(float),
    "skewed": lambda rng, n: np.exp(3 * rng.normal(size=n)),
    "huge": lambda rng, n: 1e12 * rng.normal(size=n),
    "tiny": lambda rng, n: 1e-9 * rng.normal(size=n),
    "smallest": lambda rng, n: 1e-200 * rng.normal(size=n),
    "shifted": lambda rng, n: 1e6 + rng.normal(size=n),
    "constant": lambda rng, n: np.full(n, 3.7),
}


WEIGHTS = {
    "none": lambda rng, n: None,
    "whole": lambda rng, n: np.append(1.0, rng.integers(0, 4, n - 1)),
    "skewed": lambda rng, n: np.exp(rng.normal(size=n)),
    "wide": lambda rng, n: 1e-3 * np.exp(4 * rng.normal(size=n)),
}


def table(seed, n, kinds, one_hot, duplicated):
    rng = np.random.default_rng(seed)
    X = np.column_stack([COLUMNS[kind](rng, n) for kind in kinds]).astype(float)
    if one_hot:
        X = np.column_stack([X, np.eye(one_hot)[rng.integers(0, one_hot, n)]])
    if duplicated:
        X = np.column_stack([X, X[:, :1]])
    return rng, X


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 2**32),
    n=st.one_of(st.integers(2, 40), st.integers(300, 700)),
    kinds=st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=5),
    f_kind=st.sampled_from(list(COLUMNS)),
    target=st.sampled_from(list(TARGETS)),
    one_hot=st.sampled_from([0, 0, 3, 12]),
    duplicated=st.booleans(),
    depth=st.integers(1, 6),
    n_trees=st.integers(1, 30),
    learning_rate=st.sampled_from([0.1, 0.3, 1.0]),
    min_leaf=st.sampled_from([1, 1, 2, 5, 20]),
    weight=st.sampled_from(list(WEIGHTS)),
)
def test_training_values_are_sklearns_on_any_table(
    seed, n, kinds, f_kind, target, one_hot, duplicated, depth, n_trees, learning_rate, min_leaf,
    weight,
):  # fmt: skip
    rng, X = table(seed, n, kinds, one_hot, duplicated)
    f = COLUMNS[f_kind](rng, n).astype(float)
    y = TARGETS[target](rng, n)
    weights = WEIGHTS[weight](rng, n)
    settings = {"n_trees": n_trees, "max_depth": depth, "learning_rate": learning_rate}
    settings |= {"min_samples_leaf": min_leaf, "weights": weights}
    ensemble, ours = exact(X, f, y, seed, **settings)
    tolerance = 1e-9 * y.std() + 1e-13 * np.abs(y).max()
    np.testing.assert_allclose(ensemble.predict(X, f), ours, rtol=0, atol=tolerance)
    # (Where rows that do not count fall to is a matter of ties, too.)
    seen = slice(None) if weights is None else weights > 0
    distance = np.abs(ours - sklearn(X, f, y, **settings)[1])[seen].max()
    if distance > tolerance:
        # Only where scikit-learn itself is not determined may we differ from it, and then no
        # more than it does: the loss must be within what it gives.
        runs = list(runs_of_sklearn(X, f, y, **settings))
        assert max(np.abs(run - runs[0])[seen].max() for run in runs) > tolerance
        losses = [np.average((y - run) ** 2, weights=weights) for run in [*runs, ours]]
        own = losses.pop()
        # Below a variance of 2.2e-16 it stops splitting, so losses of that size are not determined.
        width = max(losses) - min(losses) + 1e-9 * max(losses) + 4 * np.finfo(float).eps
        assert min(losses) - width <= own <= max(losses) + width


@pytest.mark.parametrize("name", ["diabetes", "california"])
def test_whole_weights_are_repeated_rows(name, paper_split):
    X, y, *_ = paper_split(name, n=1500)
    rng = np.random.default_rng(0)
    times = rng.integers(0, 4, len(y))
    f = y + y.std() * rng.normal(size=len(y))
    rows = np.repeat(np.arange(len(y)), times)
    _, weighted = exact(X, f, y - f, weights=times.astype(float), n_trees=50)
    _, repeated = exact(X[rows], f[rows], (y - f)[rows], n_trees=50)
    np.testing.assert_allclose(weighted[rows], repeated, rtol=0, atol=1e-9 * y.std())


def test_weights_of_any_unit_give_the_same_trees(paper_split):
    X, y, *_ = paper_split("diabetes")
    w = np.random.default_rng(0).lognormal(size=len(y))
    one, other = (exact(X, y, y, weights=unit * w, n_trees=10)[0].trees for unit in (1.0, 2.0**600))
    np.testing.assert_array_equal(one.threshold, other.threshold)


@pytest.mark.parametrize("weights", [None, "skewed"])
@pytest.mark.parametrize("name", ["diabetes", "adult"])
def test_leaves_have_enough_rows(name, weights, paper_split):
    X, y, *_ = paper_split(name, n=2000)
    w = None if weights is None else np.random.default_rng(0).lognormal(size=len(y))
    ensemble, _ = exact(X, y, y, n_trees=20, min_samples_leaf=37, weights=w)
    rows = np.column_stack([X, y]).astype(np.float32)
    for feature, threshold in zip(ensemble.trees.feature, ensemble.trees.threshold, strict=True):
        node = np.zeros(len(y), int)
        for _ in range(3):
            value = rows[np.arange(len(y)), feature[node]]
            node = 2 * node + 1 + (value > threshold[node])
        assert np.unique(node, return_counts=True)[1].min() >= 37


@pytest.mark.parametrize("engine_name", ["exact", "sklearn"])
def test_subsampled_trees_are_grown_to_a_share_of_the_rows(engine_name):
    # One row sticks out: a tree of two leaves sees it or not.
    X, y = np.arange(40.0)[:, None], np.zeros(40)
    y[-1] = 1.0
    seen = [
        make_engine(engine_name, TreeSettings(1, 1, 1.0, subsample=0.25))
        .bind(X)
        .fit(np.zeros(40), y, seed)[1]
        .max()
        > 0.1
        for seed in range(200)
    ]
    assert 0.15 < np.mean(seen) < 0.35


def test_samples_differ_from_tree_to_tree_and_are_the_same_for_the_same_seed(paper_split):
    X, y, *_ = paper_split("diabetes")
    settings = {"n_trees": 30, "subsample": 0.5}
    one, same, other = (exact(X, y, y, seed, **settings)[1] for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 1e-3 * y.std()
    whole = exact(X, y, y, n_trees=30)[1]
    assert np.corrcoef(one, whole)[0, 1] > 0.95


def test_a_split_chooses_from_some_features_each_as_often_as_others():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(500, 3)), rng.integers(0, 9, 500), rng.random(500) < 0.5])
    y = X @ np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    used = [
        exact(X, np.zeros(500), y, seed, n_trees=1, max_depth=1, max_features=0.2)[0]
        for seed in range(300)
    ]
    # f is constant, so a node that draws it alone does not split.
    roots = [int(e.trees.feature[0, 0]) if e.trees.gain[0, 0] > 0 else 5 for e in used]
    assert np.bincount(roots, minlength=6).min() > 25


@pytest.mark.parametrize("engine_name", ["exact", "sklearn"])
def test_gains_of_a_full_round_are_what_the_trees_take_off_the_sum_of_squares(engine_name):
    rng = np.random.default_rng(0)
    X, f = rng.normal(size=(200, 3)), rng.normal(size=200)
    y = X[:, 0] + f**2
    w = rng.lognormal(size=200)
    for weights in (None, w):
        fitter = make_engine(engine_name, TreeSettings(1, 4, 1.0)).bind(X, weights)
        ensemble, h = fitter.fit(f, y, 0)
        mass = np.ones(200) if weights is None else w / (w.max() if engine_name == "exact" else 1)
        around = y - np.average(y, weights=mass)
        taken = (mass * around**2).sum() - (mass * (y - h) ** 2).sum()
        assert ensemble.gains().sum() == pytest.approx(taken)
        assert ensemble.gains().shape == (4,)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(20, 400), st.sampled_from(["continuous", "ties"]))
def test_a_tree_is_never_worse_than_the_best_stump_found_by_brute_force(seed, n, kind):
    rng, X = table(seed, n, [kind, "integers", "many ties"], 3, False)
    y = rng.normal(size=n)
    _, ours = exact(X, np.zeros(n), y, n_trees=1, max_depth=1, learning_rate=1.0)
    best = np.inf
    for column in X.astype(np.float32).T:
        for value in np.unique(column)[:-1]:
            left = column <= value
            best = min(best, y[left].var() * left.sum() + y[~left].var() * (~left).sum())
    assert np.square(y - ours).sum() == pytest.approx(best, rel=1e-9)


def test_thresholds_lie_halfway_between_the_nodes_own_neighbours():
    # The second feature splits the root; in its left node 0 and 4 are neighbours, though 2 exists.
    X = np.array([[0.0, 0], [4, 0], [2, 1], [2, 1]])
    y = np.array([-12.0, -8, 10, 10.0])
    ensemble, _ = exact(X, np.zeros(4), y, n_trees=1, max_depth=2, learning_rate=1.0)
    assert ensemble.trees.threshold[0, 0] == 0.5
    assert ensemble.trees.threshold[0, 1] == 2.0


# --- safety -----------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e39])
def test_values_float32_cannot_hold_are_refused(bad):
    X = np.ones((5, 2))
    X[2, 1] = bad
    with pytest.raises(ValueError, match="X: holds NaN, infinity or a value too large for float32"):
        exact(X, np.zeros(5), np.ones(5))
    with pytest.raises(ValueError, match="f: holds NaN"):
        exact(np.ones((5, 2)), np.full(5, bad), np.ones(5))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e160])
def test_residuals_whose_squares_overflow_are_refused(bad):
    with pytest.raises(ValueError, match="residual: holds NaN, infinity or a value too large"):
        exact(np.ones((5, 2)), np.zeros(5), np.array([1, 2, 3, 4, bad]))


def test_too_many_rows_are_refused_before_anything_is_laid_out(monkeypatch):
    monkeypatch.setattr(columns, "MAX_ROWS", 9)
    with pytest.raises(ValueError, match="at most 9 rows, not 10; use engine='sklearn'"):
        exact(np.ones((10, 1)), np.zeros(10), np.ones(10))


@pytest.mark.parametrize("depth", [0, 13])
def test_depths_it_cannot_store_are_refused(depth):
    with pytest.raises(ValueError, match=f"max_depth={depth}: must be from 1 to 12"):
        exact(np.ones((5, 1)), np.zeros(5), np.ones(5), max_depth=depth)


def test_arrays_of_the_wrong_length_are_refused_by_name():
    X, f, r = np.random.default_rng(0).random((20, 3)), np.zeros(20), np.ones(20)
    fitter = make_engine("exact", TreeSettings(2)).bind(X)
    for wrong in (np.ones(1), np.ones(19), np.ones(21), np.ones((20, 1))):
        with pytest.raises(ValueError, match=r"residual: has shape .* instead of \(20,\)"):
            fitter.fit(f, wrong, 0)
        with pytest.raises(ValueError, match=r"f: has shape .* instead of \(20,\)"):
            fitter.fit(wrong, r, 0)
        with pytest.raises(ValueError, match="residual: has shape"):
            fitter.grower(f, 0).grow(wrong)
    ensemble, _ = fitter.fit(f, r, 0)
    for columns_ in (2, 4):
        with pytest.raises(ValueError, match=r"X: has shape \(20, .\) instead of \(n, 3\)"):
            ensemble.predict(np.ones((20, columns_)), f)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("depth", [1, 12])
def test_a_handful_of_rows_is_fitted_as_by_sklearn(n, depth):
    X, f, y = np.arange(n, dtype=float)[:, None], np.zeros(n), np.arange(n) ** 2.0
    size = {"n_trees": 5, "max_depth": depth}
    np.testing.assert_allclose(exact(X, f, y, **size)[1], sklearn(X, f, y, **size)[1], atol=1e-12)


@pytest.mark.parametrize(("rate", "depth"), [(0.9, 6), (0.6, 7)])
def test_residuals_that_shrink_to_nothing_are_still_followed(rate, depth):
    # Sums carried from tree to tree keep the rounding errors of the first, large residuals.
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(3000, 3)).astype(float)
    y = 1e8 * np.sin(X @ rng.normal(size=3))
    size = {"n_trees": 80, "max_depth": depth, "learning_rate": rate}
    ours, theirs = exact(X, np.zeros(3000), y, **size)[1], sklearn(X, np.zeros(3000), y, **size)[1]
    assert np.abs(y - ours).max() <= 10 * np.abs(y - theirs).max()


@pytest.mark.slow
@pytest.mark.exhaustive
def test_more_bins_than_two_bytes_count_take_the_wider_path():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 250, size=(400, 220)).astype(float)
    X[:, 0] = rng.normal(size=400)  # one fine column among the coarse ones
    y = rng.normal(size=400)
    assert columns.prepare(X).codes.dtype == np.uint32
    _, ours = exact(X, np.zeros(400), y, n_trees=5)
    np.testing.assert_allclose(ours, sklearn(X, np.zeros(400), y, n_trees=5)[1], atol=1e-12)


def test_deep_trees_of_many_rows_are_sklearns(paper_split):
    X, y, *_ = paper_split("california", n=4000)
    _, ours = exact(X, y, X[:, 0], n_trees=5, max_depth=10)
    assert np.abs(ours - sklearn(X, y, X[:, 0], n_trees=5, max_depth=10)[1]).max() < 1e-9


def interrupted():
    """Ends the process with the number of times that work in compiled code was interrupted."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4000, 10)), rng.normal(size=4000)
    fitter, auditor = make_engine("exact", TreeSettings()).bind(X), Auditor(X, n_trees=2000)
    ensemble, _ = fitter.fit(y, y, 0)
    jobs = [
        lambda: fitter.fit(y, y, 0),
        lambda: auditor.leaves(prediction=y, residual=y),
        lambda: ensemble.predict(X, y),
    ]
    for work in jobs:
        work()  # all are compiled: interrupting numba itself is not the question
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    count = 0
    for work in jobs:
        for delay in (0.001, 0.003, 0.005):
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                for _ in range(1000):
                    work()
            except KeyboardInterrupt:
                count += 1
    raise SystemExit(count)


def test_interrupt_while_fitting_or_auditing_is_a_plain_keyboard_interrupt():
    process = multiprocessing.get_context("fork").Process(target=interrupted)
    process.start()
    process.join()
    assert process.exitcode == 9


def test_threads_share_a_prepared_matrix_without_disturbing_each_other(paper_split):
    X, y, *_ = paper_split("german")
    fitter = make_engine("exact", TreeSettings()).bind(X)
    rng = np.random.default_rng(0)
    jobs = [(rng.normal(size=len(y)), y, seed) for seed in range(8)]
    alone = [fitter.fit(*job)[1] for job in jobs]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda job: fitter.fit(*job)[1], jobs))
    np.testing.assert_array_equal(alone, together)


def test_same_seed_gives_the_same_bits_and_inputs_stay_untouched(paper_split):
    X, y, X_test, _ = paper_split("german")
    f = X[:, 3].copy()
    before = X.copy(), y.copy(), f.copy()
    results = [exact(X, f, y, seed=4) for _ in range(2)]
    np.testing.assert_array_equal(*(e.predict(X_test, X_test[:, 3]) for e, _ in results))
    for now, then in zip((X, y, f), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_fitted_ensemble_survives_pickling(paper_split):
    X, y, X_test, _ = paper_split("diabetes")
    ensemble, _ = exact(X, X[:, 0], y)
    copy = pickle.loads(pickle.dumps(ensemble))
    args = (X_test, X_test[:, 0])
    np.testing.assert_array_equal(ensemble.predict(*args), copy.predict(*args))


# --- layout -----------------------------------------------------------------------------------


def test_adults_indicator_columns_are_bundled(paper_split):
    X, *_ = paper_split("adult")
    layout = columns.prepare(X)
    assert X.shape[1] == 84
    assert layout.codes.shape[1] <= 14


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=300),
    st.sampled_from([1.0, 6e-8, 1e-3]),
    st.integers(1, 40),
)
def test_blocks_cover_all_rows_in_order_and_end_only_at_legal_splits(values, step, n_blocks):
    column = (step * np.array(values)).astype(np.float32)
    blocks = columns.cut(column, n_blocks)
    assert sorted(blocks.order) == list(range(len(column)))
    assert (np.diff(blocks.values) >= 0).all()
    assert blocks.starts[0] == 0
    assert blocks.starts[-1] == len(column)
    assert len(blocks.starts) - 1 <= columns.most_blocks(len(column), n_blocks)
    for border in blocks.starts[1:-1]:
        assert blocks.values[border] > blocks.values[border - 1] + np.float32(1e-7)
