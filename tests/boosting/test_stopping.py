"""How many rounds are kept, and how much of what they do."""

import warnings

import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import get_scorer, hinge_loss, make_scorer, mean_squared_error
from sklearn.model_selection import KFold, TimeSeriesSplit

from pipeline.boosting import (
    PAPER,
    Auditor,
    MulticalibrationBoostingClassifier,
    MulticalibrationBoostingRegressor,
)
from pipeline.boosting.logloss import sigmoid
from pipeline.boosting.losses import LogLoss, SquaredLoss
from pipeline.boosting.rows import Rows
from pipeline.boosting.stopping import Gain, choose, gain, stack

QUICK = {"n_rounds": 12, "random_state": 0}


def regressor(**parameters):
    return MulticalibrationBoostingRegressor(**(QUICK | parameters))


def classifier(**parameters):
    return MulticalibrationBoostingClassifier(**(QUICK | parameters))


@pytest.fixture(scope="module")
def table():
    """Four tenths of the variance can be learned; an unbiased guess to start from."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 4))
    return X, X[:, 0] + np.abs(X[:, 1]) + rng.normal(size=900), 0.5 * X[:, 0]


def follow(scores, patience=3):
    return choose(iter([np.array([s]) for s in scores]), lambda f: float(f[0]), patience)


def test_best_round_is_the_best_one_before_patience_ends():
    choice = follow([0.0, 1.0, 3.0, 2.0, 2.5, 2.9, 9.0])
    assert choice.best_round == 2
    assert (choice.first, choice.f) == (0.0, 3.0)
    np.testing.assert_array_equal(choice.scores, [0, 1, 3, 2, 2.5, 2.9])


def test_round_0_is_a_candidate_and_equal_rounds_do_not_replace_it():
    assert follow([5.0, 4.0, 4.9, 5.0]).best_round == 0


@pytest.mark.parametrize(("mean", "error", "share"), [(1, 1, 0.51), (2, 1, 0.8775), (1, 0, 1)])
def test_share_that_is_kept_grows_with_the_certainty_of_a_gain(mean, error, share):
    assert Gain(mean, error).share == pytest.approx(share)


def test_gain_within_chance_is_not_kept():
    assert Gain(0.69, 1.0).share == Gain(-1.0, 0.1).share == Gain(0.0, 0.0).share == 0.0


def test_gain_is_the_weighted_mean_of_what_rows_gain():
    rng = np.random.default_rng(0)
    y, before, after = rng.normal(size=(3, 50))
    w = rng.integers(1, 4, 50).astype(float)
    found = gain(SquaredLoss(), Rows(y=y, weights=w), before, after)
    repeated = np.repeat(np.square(y - before) - np.square(y - after), w.astype(int))
    assert found.mean == pytest.approx(repeated.mean())
    even = gain(SquaredLoss(), Rows(y=y), before, after)
    rows = np.square(y - before) - np.square(y - after)
    assert even.error == pytest.approx(rows.std() / np.sqrt(50))


def test_stack_of_squared_errors_is_scipys_nonnegative_least_squares():
    rng = np.random.default_rng(1)
    f0, y = rng.normal(size=(2, 300))
    candidates = [f0 + rng.normal(size=300) + share * (y - f0) for share in (0.5, 0.2, -0.3)]
    w = rng.lognormal(size=300)
    moves = np.column_stack([f - f0 for f in candidates]) * np.sqrt(w)[:, None]
    expected, _ = nnls(moves, np.sqrt(w) * (y - f0))
    found = stack(SquaredLoss(), Rows(y=y, weights=w), f0, candidates)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert found[2] == 0


def test_stack_of_log_losses_is_no_worse_than_a_grid_of_shares():
    rng = np.random.default_rng(2)
    f0, good, bad = rng.normal(size=(3, 400))
    y = (rng.random(400) < sigmoid(f0 + good)).astype(float)
    loss = LogLoss()
    a = stack(loss, Rows(y=y), f0, [f0 + good, f0 + bad])
    of = lambda a, b: loss.cautious(y, f0 + a * good + b * bad).mean()  # noqa: E731
    grid = [of(i, j) for i in np.linspace(0, 2, 21) for j in np.linspace(0, 2, 21)]
    assert of(*a) <= min(grid) + 1e-6


@pytest.mark.parametrize("kind", [SquaredLoss(), LogLoss()])
def test_slope_of_a_cautious_loss_is_its_difference_quotient(kind):
    rng = np.random.default_rng(3)
    y, f = (rng.random(20) < 0.5).astype(float), rng.normal(size=20)
    quotient = (kind.cautious(y, f + 1e-6) - kind.cautious(y, f - 1e-6)) / 2e-6
    np.testing.assert_allclose(kind.cautious_slope(y, f), quotient, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("stack", [True, False])
def test_corrections_that_help_are_found_and_useless_ones_are_not(stack, table):
    X, y, f0 = table
    truth = X[:, 0] + np.abs(X[:, 1])
    helped = regressor(stack=stack).fit(X[:600], y[:600], initial_prediction=f0[:600])
    distance = [np.square(f - truth[600:]).mean() for f in helped.staged_predict(X[600:], f0[600:])]
    assert distance[-1] < 0.25 * distance[0]
    assert helped.gain_.share > 0.95
    with pytest.warns(UserWarning, match="no correction is kept.* on 900 rows.*standard error"):
        done = regressor(stack=stack, n_rounds=4).fit(X, y, initial_prediction=truth)
    assert done.best_round_ == 0
    np.testing.assert_array_equal(done.predict(X, truth), truth)


@pytest.mark.parametrize("seed", range(5))
def test_a_pure_interaction_is_found_though_no_first_split_shows_it(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20_000, 5))
    p = sigmoid(X[:, 0] * X[:, 1])
    y = (rng.random(20_000) < p).astype(int)
    half = np.full(20_000, 0.5)
    model = MulticalibrationBoostingClassifier(30, stack=False, random_state=seed)
    found = model.fit(X, y, initial_prediction=half).predict_proba(X, half)[:, 1]
    assert np.square(found - p).mean() < 0.2 * np.square(half - p).mean()


def test_rows_that_init_has_not_seen_decide_alone(table):
    X, y, _ = table
    memory = y.copy()  # a model that knows its own rows by heart, and nothing of others
    honest = {"X_val": X[600:], "y_val": y[600:], "initial_prediction_val": np.zeros(300)}
    model = regressor().fit(X[:600], y[:600], initial_prediction=memory[:600], **honest)
    assert model.best_round_ > 0
    alone = regressor().fit(X[:600], y[:600], initial_prediction=memory[:600])
    assert alone.best_round_ == 0
    np.testing.assert_allclose(-model.validation_scores_[0], np.square(y[600:]).mean())


def test_scores_are_those_of_the_rounds_on_rows_held_out(table):
    X, y, f0 = table
    auditor = Auditor(X, seed=0)
    judges = {
        "loss": lambda f: -mean_squared_error(y, f),
        "mce": lambda f: -auditor.error(y=y, prediction=f),
        "neg_mean_absolute_error": lambda f: -np.abs(y - f).mean(),
    }
    for scoring, judge in judges.items():
        model = regressor(scoring=scoring, cv=KFold(3), n_rounds=3, n_iter_no_change=9, stack=False)
        model.fit(X, y, initial_prediction=f0)
        f = f0.copy()
        for trajectory, (_, test) in zip(model.trajectories_, KFold(3).split(X), strict=True):
            *_, f[test] = trajectory.stages(X[test], f0[test])
        assert judge(f) == pytest.approx(model.validation_scores_[model.best_round_])


def test_scorers_see_labels_and_probabilities():
    X, labels = make_classification(400, 5, random_state=0)
    words = np.array(["no", "yes"])[labels]
    model = classifier(scoring="roc_auc", init=DummyClassifier()).fit(X, words)
    assert model.best_round_ > 0
    own = get_scorer("roc_auc")(model, X, words)
    assert own > 0.9
    assert ((model.validation_scores_ >= 0) & (model.validation_scores_ <= 1)).all()


@pytest.mark.parametrize(
    "scoring",
    [
        "neg_max_error",  # takes no weights
        lambda model, X, y: -np.abs(y - model.predict(X)).mean(),
        make_scorer(mean_squared_error, greater_is_better=False),
    ],
)
def test_scorers_of_all_kinds_judge_weighted_rows(scoring, table):
    X, y, f0 = table
    w = np.random.default_rng(0).lognormal(size=900)
    model = regressor(scoring=scoring, n_rounds=3).fit(X, y, w, initial_prediction=f0)
    assert model.best_round_ > 0


def test_scorers_may_ask_for_logits_but_not_for_other_rows():
    X, y = make_classification(300, 5, random_state=0)
    hinge = make_scorer(hinge_loss, response_method="decision_function", greater_is_better=False)
    assert classifier(scoring=hinge).fit(X, y).best_round_ >= 0
    with pytest.raises(ValueError, match="must look at all"):
        classifier(scoring=lambda m, X, y: m.predict(X[:5]).mean()).fit(X, y)


def test_a_score_that_is_none_is_refused():
    X, y = make_classification(300, 5, random_state=0)
    with pytest.raises(ValueError, match="no score"), pytest.warns(UserWarning, match="ROC AUC"):
        classifier(scoring="roc_auc").fit(X, y, X_val=X[y == 1], y_val=y[y == 1])


def test_splitter_must_hold_out_every_row_once(table):
    X, y, _ = table
    with pytest.raises(ValueError, match="every row must be held out once, as by KFold"):
        regressor(cv=TimeSeriesSplit(3), init=DummyRegressor()).fit(X, y)


def test_any_prefix_of_the_rounds_predicts(table):
    X, y, f0 = table
    model = regressor(early_stopping=False, n_rounds=5).fit(X, y, initial_prediction=f0)
    stages = list(model.staged_predict(X, f0))
    assert len(stages) == 6
    for t in (0, 2, 5):
        np.testing.assert_array_equal(model.predict(X, f0, n_rounds=t), stages[t])
    with pytest.raises(ValueError, match="n_rounds=6: must be from 0 to 5"):
        model.predict(X, f0, n_rounds=6)


def test_too_few_rows_keep_the_initial_predictor_and_say_so():
    X, y = np.arange(3.0)[:, None], np.arange(3.0)
    with pytest.warns(UserWarning, match="3 rows are too few"):
        model = regressor(init=LinearRegression(), init_cv=None).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-12)
    with pytest.warns(UserWarning, match="too few"):
        classifier(init=LogisticRegression()).fit(np.arange(9.0)[:, None], np.arange(9) == 0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"feedback": "loud"}, "feedback='loud': must be one of honest, in_sample, initial, none"),
        ({"max_leaf_nodes": None}, "max_depth, max_leaf_nodes: one of the two"),
        ({"max_leaf_nodes": 1}, "max_leaf_nodes"),
        ({"l2_regularization": -1.0}, "l2_regularization"),
        ({"engine": "exact"}, "engine='exact': needs max_leaf_nodes=None"),
        ({"n_iter_no_change": 0}, "n_iter_no_change"),
        ({"cv": 1}, "cv"),
        ({"init_cv": 1}, "init_cv"),
        (PAPER | {"max_depth": 13}, "max_depth=13"),
        ({"scoring": "wisdom"}, "wisdom"),
        ({"min_samples_leaf": 0}, "min_samples_leaf"),
        ({"subsample": 0.0}, "subsample"),
        ({"max_features": 1.1}, "max_features"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(parameters, message, table):
    X, y, _ = table
    with pytest.raises(ValueError, match=message):
        regressor(**parameters).fit(X, y)


def test_weight_in_one_fold_alone_leaves_nothing_to_fit_to(table):
    X, y, f0 = table
    with pytest.warns(UserWarning, match="too few"):
        model = regressor().fit(X, y, (np.arange(900) == 7).astype(float), initial_prediction=f0)
    np.testing.assert_array_equal(model.predict(X, f0), f0)


def test_gain_is_that_of_the_last_fit(table):
    X, y, f0 = table
    model = regressor(n_rounds=2).fit(X, y, initial_prediction=f0)
    assert model.gain_.mean > 0
    assert model.set_params(scoring="r2").fit(X, y, initial_prediction=f0).gain_ is None


def test_folds_fitted_at_once_give_no_warnings_of_lightgbms(table, recwarn):
    X, y, f0 = table
    regressor(n_rounds=6, n_jobs=2).fit(X, y, initial_prediction=f0)
    assert [str(w.message) for w in recwarn] == []


def test_validation_rows_come_whole(table):
    X, y, f0 = table
    with pytest.raises(ValueError, match="need X_val"):
        regressor().fit(X, y, y_val=y)
    with pytest.raises(ValueError, match="for X and X_val, or for neither"):
        regressor().fit(X, y, initial_prediction=f0, X_val=X, y_val=y)
    with pytest.raises(ValueError, match="goes with early_stopping=True and without groups"):
        regressor(early_stopping=False).fit(X, y, X_val=X, y_val=y)


def test_rows_that_a_model_separates_do_not_call_for_certainty():
    # Nothing wrong among them, so that the log-loss alone falls for ever.
    X = np.linspace(-1, 1, 70)[:, None]
    y = (X[:, 0] > 0).astype(int)
    p0 = 1 / (1 + np.exp(-12 * X[:, 0]))
    model = classifier(n_rounds=100).fit(X, y, initial_prediction=p0)
    assert np.abs(model.decision_function(X, p0)).max() < 18


def test_verbose_2_prints_a_line_for_each_round_that_was_looked_at(table, capsys):
    X, y, f = table
    model = regressor(n_rounds=4, stack=False, verbose=2).fit(X, y, initial_prediction=f)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(model.validation_scores_)
    assert lines[0].startswith(f"fitting, round 0: score {model.validation_scores_[0]:.6g}")
    assert lines[-1].endswith(f"best round {int(np.argmax(model.validation_scores_))}")


def test_nothing_is_kept_of_a_change_that_only_makes_right_predictions_less_certain():
    y = np.repeat([0.0, 1.0], 20)
    before = np.where(y == 1, 5.0, -5.0)
    after = before / 2  # a caution of two in forty rows asks for this, the rows themselves do not
    rows, loss = Rows(y=y), LogLoss()
    assert (loss.cautious(y, before) - loss.cautious(y, after)).mean() > 0
    assert gain(loss, rows, before, after).share == 0
    assert gain(loss, rows, before, after).mean < 0


def test_few_rows_rarely_change_probabilities_that_are_the_truth():
    changed = 0
    for seed in range(6):
        random = np.random.default_rng(seed)
        X = random.normal(size=(60, 3))
        p = sigmoid(8 * X[:, 0])
        y = (random.random(60) < p).astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = classifier(random_state=seed).fit(X, y, initial_prediction=p)
        changed += model.best_round_ > 0
    assert changed <= 2  # by caution alone all six would be made less certain
