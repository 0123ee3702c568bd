"""LightGBM as an engine: the exact trees where bins suffice, and the same bits with any threads."""

import pickle

import lightgbm
import numpy as np
import pandas as pd
import pytest

from pipeline.boosting import PAPER, MulticalibrationBoostingClassifier
from pipeline.boosting import MulticalibrationBoostingRegressor as Regressor
from pipeline.boosting.encoding import Encoding
from pipeline.boosting.engines import TreeSettings, make_engine
from pipeline.boosting.engines.nodes import IS_SET
from pipeline.config.compose import load
from pipeline.datasets.library import Library
from pipeline.runs.keys import run_key
from pipeline.runs.kinds.rounds import CommonGround, run

pytest.importorskip("lightgbm")

SETTINGS = TreeSettings(30)


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, 3)), rng.integers(0, 4, n)])
    f = rng.normal(size=n)
    return X, f, X[:, 0] * X[:, 1] + np.sin(3 * f) + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("name", ["diabetes", "german", "crime"])
def test_lossless_rounds_have_the_exact_engines_training_predictions(name):
    overrides = [f"dataset={name}", "boosting.rounds=4", "strategy=adaptive"]
    frames = {}
    for engine in ("exact", "lightgbm_lossless"):
        config = load([*overrides, f"engine={engine}"])
        frames[engine] = run(config, CommonGround(config, Library().design(config.dataset))).rounds
    for column in ("mse_train", "gap", "weight"):
        exact, ours = (frames[e][column].dropna() for e in ("exact", "lightgbm_lossless"))
        np.testing.assert_allclose(ours, exact, rtol=1e-6)


def test_missing_cells_and_categories_are_lightgbms_own():
    rng = np.random.default_rng(0)
    n = 2000
    table = pd.DataFrame({"w": rng.choice(list("abcdef"), n), "x": rng.normal(size=n)})
    y = 2.0 * table["w"].isin(["b", "e"]) + 0.1 * rng.normal(size=n)
    table.loc[rng.random(n) < 0.3, "x"] = np.nan
    y += table["x"].isna()
    settings = {"n_rounds": 5, "early_stopping": False, "random_state": 0}
    model = Regressor(**settings).fit(table[:1500], y[:1500])
    assert list(model.get_feature_names_out()) == ["w", "x"]
    assert model.encoding_.categorical == (0,)
    assert model.score(table[1500:], y[1500:]) > 0.97
    # One split parts any levels from the others: a tree of depth 2 tells the four kinds of rows.
    trees = model.trajectories_[0].rounds[0].ensemble.nodes()
    assert (trees.nodes["flags"] & IS_SET).any()
    new = pd.DataFrame({"w": ["never seen"], "x": [0.0]})
    assert np.isfinite(model.predict(new)).all()


def test_error_chooses_rounds_where_cells_are_missing():
    X, _, y = table()
    X[::5, 0] = np.nan
    model = Regressor(3, engine="lightgbm", scoring="mce", n_trees=5, random_state=0)
    assert len(model.fit(X, y).validation_scores_) > 1


def test_indicators_become_a_column_of_numbers_again():
    frame = pd.DataFrame({"one": ["a"] * 4, "x": [1.0, np.nan, 3, 4], "w": ["p", "q", "r", "q"]})
    for drop_first in (True, False):
        encoding = Encoding.learn(frame, fill=False, drop_first=drop_first)
        X, levels = encoding.compacted(encoding.encode(frame))
        assert levels == (0, 2)
        assert len(np.unique(X[:, 0])) == 1
        np.testing.assert_array_equal(X[:, 1], frame["x"])
        assert X[:, 2].tolist() == [
            0 if drop_first else 1,
            *(np.array([1, 2, 1]) + (not drop_first)),
        ]


def test_bound_engine_is_not_changed_by_its_rounds():
    X, f, y = table()
    fitter = make_engine("lightgbm", SETTINGS).bind(X)
    first = fitter.fit(f, y - f, 0)[1]
    fitter.fit(y, f, 1)
    np.testing.assert_array_equal(fitter.fit(f, y - f, 0)[1], first)


def test_any_number_of_threads_gives_the_same_bits():
    X, f, y = table(5000)
    values = [make_engine("lightgbm", SETTINGS, k).bind(X).fit(f, y - f, 0)[1] for k in (1, 2)]
    np.testing.assert_array_equal(*values)


def test_gains_are_the_exact_engines_with_f_last():
    X, f, y = table()
    exact, ours = (
        make_engine(name, SETTINGS).bind(X).fit(f, y, 0)[0].gains()
        for name in ("exact", "lightgbm_lossless")
    )
    np.testing.assert_allclose(ours, exact, rtol=0.02, atol=0.02 * exact.max())
    assert ours.argmax() == exact.argmax()


def test_weights_of_zero_leave_rows_out():
    X, f, y = table()
    weights = np.repeat([1.0, 0.0], 200)
    some = make_engine("lightgbm_lossless", SETTINGS)
    ensemble, _ = some.bind(X, weights).fit(f, np.where(weights > 0, y, 1e6), 0)
    alone, _ = some.bind(X[:200]).fit(f[:200], y[:200], 0)
    np.testing.assert_array_equal(ensemble.predict(X, f), alone.predict(X, f))


def test_log_loss_is_lightgbms_own_from_given_logits():
    X, f, y = table()
    labels = (y > 0).astype(float)
    settings = TreeSettings(20, 5, 0.2, 5, max_leaves=7, l2=3.0)
    ensemble, h = make_engine("lightgbm", settings).bind(X).fit_log_loss(f, labels, f, 0)
    theirs = lightgbm.train(
        {"objective": "binary", "num_leaves": 7, "max_depth": 5, "learning_rate": 0.2,
         "min_data_in_leaf": 5, "lambda_l2": 3.0, "boost_from_average": False, "verbosity": -1,
         "deterministic": True, "force_col_wise": True, "num_threads": 1},
        lightgbm.Dataset(np.column_stack([f, X]), labels, init_score=f),
        20,
    )  # fmt: skip
    np.testing.assert_allclose(h, theirs.predict(np.column_stack([f, X]), raw_score=True))
    np.testing.assert_array_equal(ensemble.predict(X, f), h)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_unit_of_weights_does_not_matter(scale):
    X, f, y = table()
    w = np.random.default_rng(0).lognormal(size=len(y))
    engine = make_engine("lightgbm", TreeSettings(20, 5, max_leaves=7, l2=10.0))
    values = [engine.bind(X, s * w).fit(f, y, 0)[1] for s in (1.0, scale)]
    np.testing.assert_allclose(*values, rtol=1e-6, atol=1e-9)


def test_estimators_take_it_and_predict_after_pickling():
    X, _, y = table()
    settings = PAPER | {"n_rounds": 2, "n_trees": 10, "engine": "lightgbm"}
    model = Regressor(**settings, random_state=0).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    labels = (y > 0).astype(int)
    classifier = MulticalibrationBoostingClassifier(**settings, random_state=0).fit(X, labels)
    assert (np.diff(classifier.losses_) < 0).all()
    again = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(again.predict_proba(X), classifier.predict_proba(X))


def test_threads_are_no_part_of_a_runs_key_and_bins_are():
    one, two, fine = (
        run_key(load(["engine=lightgbm", *more]), "")
        for more in ([], ["engine.threads=2"], ["engine.bins=63"])
    )
    assert one == two
    assert one != fine
    assert run_key(load([]), "")["engine"] == {"name": "exact"}  # as in the first edition
