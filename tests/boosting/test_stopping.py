"""How many rounds are kept, and that fewer are never worse on the rows that were looked at."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import get_scorer, hinge_loss, log_loss, make_scorer, mean_squared_error
from sklearn.model_selection import KFold, TimeSeriesSplit

from pipeline.boosting import (
    Auditor,
    MulticalibrationBoostingClassifier,
    MulticalibrationBoostingRegressor,
)
from pipeline.boosting.stopping import CAUTION, CAUTION_OF_ONE, choose

QUICK = {"n_rounds": 12, "n_trees": 5, "random_state": 0}


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


def follow(scores, of_rows=None, patience=3, tol=0.0):
    rows = iter(of_rows) if of_rows is not None else None
    judge = lambda parts: (parts[0], next(rows) if rows else None)  # noqa: E731
    return choose(iter([[s] for s in scores]), judge, patience, tol)


def test_best_round_is_the_best_one_before_patience_ends():
    choice = follow([0.0, 1.0, 3.0, 2.0, 2.5, 2.9, 9.0])
    assert choice.best_round == 2
    np.testing.assert_array_equal(choice.scores, [0, 1, 3, 2, 2.5, 2.9])


def test_round_0_is_a_candidate_and_equal_rounds_do_not_replace_it():
    assert follow([5.0, 4.0, 4.9, 5.0]).best_round == 0
    assert follow([5.0, 5.0 + 1e-6, 5.0], tol=1e-3).best_round == 0


def test_an_improvement_within_a_standard_error_is_chance():
    start = np.zeros(100)
    sure = np.full(100, 0.01)
    unsure = np.where(np.arange(100) < 53, 0.1, -0.1)
    for rows, expected in ((sure, 1), (unsure, 0)):
        choice = follow([0.0, rows.sum()], [start, rows])
        assert choice.best_round == expected


@pytest.mark.parametrize("fraction", ["cv", 0.3, "auto"])
def test_rounds_that_help_are_found_and_useless_ones_are_not(fraction, table):
    X, y, f0 = table
    helped = regressor(validation_fraction=fraction).fit(X, y, initial_prediction=f0)
    assert helped.best_round_ >= 3
    assert helped.predict(X, f0).shape == (900,)
    truth = X[:, 0] + np.abs(X[:, 1])
    done = regressor(validation_fraction=fraction, n_rounds=4).fit(X, y, initial_prediction=truth)
    assert done.best_round_ == 0
    np.testing.assert_array_equal(done.predict(X, truth), truth)


@pytest.mark.parametrize("seed", range(20))
def test_on_validation_rows_the_result_is_never_worse_than_the_start(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    f0 = rng.normal(size=60) * 0.3
    parts = {"X_val": X[40:], "y_val": y[40:], "initial_prediction_val": f0[40:]}
    model = regressor(min_samples_leaf=1, n_trees=20).fit(
        X[:40], y[:40], initial_prediction=f0[:40], **parts
    )
    after = mean_squared_error(y[40:], model.predict(X[40:], f0[40:]))
    assert after <= mean_squared_error(y[40:], f0[40:])
    labels, p0 = (y > 0).astype(int), 1 / (1 + np.exp(-f0))
    parts |= {"y_val": labels[40:], "initial_prediction_val": p0[40:]}
    model = classifier(min_samples_leaf=1, n_trees=20).fit(
        X[:40], labels[:40], initial_prediction=p0[:40], **parts
    )
    after = log_loss(labels[40:], model.predict_proba(X[40:], p0[40:]))
    assert after <= log_loss(labels[40:], p0[40:]) + 1e-12


def test_scores_are_those_of_the_rounds_on_the_validation_rows(table):
    X, y, f0 = table
    parts = {"X_val": X[600:], "y_val": y[600:], "initial_prediction_val": f0[600:]}
    fit = {"initial_prediction": f0[:600], **parts}
    auditor = Auditor(X[600:], seed=0)
    judges = {
        "loss": lambda f: -mean_squared_error(y[600:], f),
        "mce": lambda f: -auditor.error(y=y[600:], prediction=f),
        "neg_mean_absolute_error": lambda f: -np.abs(y[600:] - f).mean(),
    }
    for scoring, judge in judges.items():
        model = regressor(scoring=scoring).fit(X[:600], y[:600], **fit)
        last = len(model.validation_scores_) - 1
        stages = model.staged_predict(X[600:], f0[600:], n_rounds=last)
        np.testing.assert_allclose(model.validation_scores_, [judge(f) for f in stages])
        assert model.best_round_ <= last <= len(model.steps_)


def test_cross_validated_scores_are_those_of_separate_fits(table):
    X, y, _ = table
    folds = KFold(3)
    model = regressor(cv=folds, init=LinearRegression(), validation_fraction="cv").fit(X, y)
    n_tried = len(model.validation_scores_)
    losses = np.zeros(n_tried)
    for train, test in folds.split(X):
        part = regressor(n_rounds=n_tried - 1, init=LinearRegression(), early_stopping=False)
        part.fit(X[train], y[train])
        for t, f in enumerate(part.staged_predict(X[test])):
            losses[t] += np.square(y[test] - f).sum() / len(y)
    np.testing.assert_allclose(-model.validation_scores_, losses, rtol=1e-9)
    assert len(model.steps_) == model.best_round_ > 0
    whole = regressor(n_rounds=model.best_round_, init=LinearRegression(), early_stopping=False)
    np.testing.assert_array_equal(model.predict(X), whole.fit(X, y).predict(X))


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


def test_splits_of_the_users_own_are_of_the_rows_that_came(table):
    X, y, f0 = table
    w = np.ones(900)
    w[:300] = 0
    parts = [(np.arange(300, 600), np.arange(600, 900))]
    model = regressor(cv=parts, refit=False, validation_fraction="cv")
    model.fit(X, y, w, initial_prediction=f0)
    assert len(model.steps_) == model.best_round_  # folds are always refitted
    held = regressor().fit(
        X[300:600], y[300:600], initial_prediction=f0[300:600],
        X_val=X[600:], y_val=y[600:], initial_prediction_val=f0[600:],
    )  # fmt: skip
    np.testing.assert_allclose(model.validation_scores_, held.validation_scores_, rtol=1e-9)


def test_without_early_stopping_validation_rows_are_only_looked_at(table):
    X, y, _ = table
    truth = X[:, 0] + np.abs(X[:, 1])
    model = regressor(early_stopping=False).fit(
        X[:600], y[:600], initial_prediction=truth[:600],
        X_val=X[600:], y_val=y[600:], initial_prediction_val=truth[600:],
    )  # fmt: skip
    assert model.best_round_ == len(model.steps_) == 12
    assert len(model.validation_scores_) == 13


def test_without_refit_the_rounds_are_those_of_the_rows_that_were_not_held_out(table):
    X, y, f0 = table
    kept, refitted = (
        regressor(validation_fraction=0.25, refit=refit).fit(X, y, initial_prediction=f0)
        for refit in (False, True)
    )
    np.testing.assert_array_equal(kept.validation_scores_, refitted.validation_scores_)
    assert kept.best_round_ == refitted.best_round_ == len(refitted.steps_)
    assert len(kept.steps_) == len(kept.validation_scores_) - 1
    assert np.abs(kept.predict(X, f0) - refitted.predict(X, f0)).max() > 0


def test_time_series_are_cut_by_the_users_own_splitter(table):
    X, y, _ = table
    model = regressor(cv=TimeSeriesSplit(3), init=DummyRegressor()).fit(X, y)
    assert model.best_round_ > 0


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
        model = regressor(init=LinearRegression()).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-12)
    with pytest.warns(UserWarning, match="too few"):
        classifier(init=LogisticRegression()).fit(np.arange(9.0)[:, None], np.arange(9) == 0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"validation_fraction": "some"}, "a share, 'cv' or 'auto'"),
        ({"n_iter_no_change": 0}, "n_iter_no_change"),
        ({"tol": -1.0}, "tol"),
        ({"cv": 1}, "cv"),
        ({"init_cv": 1}, "init_cv"),
        ({"max_depth": 13, "n_rounds": 0}, "max_depth=13"),
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


def test_validation_rows_come_whole(table):
    X, y, f0 = table
    with pytest.raises(ValueError, match="need X_val"):
        regressor().fit(X, y, y_val=y)
    with pytest.raises(ValueError, match="for X and X_val, or for neither"):
        regressor().fit(X, y, initial_prediction=f0, X_val=X, y_val=y)


def test_rows_that_a_model_separates_do_not_call_for_certainty():
    # Nothing wrong among them, so that the log-loss alone falls for ever.
    X = np.linspace(-1, 1, 70)[:, None]
    y = (X[:, 0] > 0).astype(int)
    p0 = 1 / (1 + np.exp(-12 * X[:, 0]))
    model = classifier(n_rounds=100, n_trees=20).fit(X, y, initial_prediction=p0)
    assert np.abs(model.decision_function(X, p0)).max() < 18


def test_one_part_of_the_rows_must_be_surer_than_folds():
    # Gains of 100 rows with mean 1.3 and standard deviation 10: 1.3 standard errors.
    gains = np.tile([11.3, -8.7], 50)

    def judge(parts):
        return float(parts[0].sum()), parts[0]

    stages = [[np.zeros(100)], [gains]]
    assert choose(iter(stages), judge, 3, 0.0, CAUTION).best_round == 1
    assert choose(iter(stages), judge, 3, 0.0, CAUTION_OF_ONE).best_round == 0


def test_estimators_are_more_cautious_with_one_part_than_with_folds(monkeypatch):
    asked = []

    def watching(stages, judge, patience, tol, caution):
        asked.append(caution)
        return choose(stages, judge, patience, tol, caution)

    monkeypatch.setattr("pipeline.boosting.estimator.choose", watching)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    f = X[:, 0]
    for fraction in ("cv", 0.3):
        model = MulticalibrationBoostingRegressor(3, validation_fraction=fraction, random_state=0)
        model.fit(X, f + rng.normal(size=200), initial_prediction=f)
    assert asked == [CAUTION, CAUTION_OF_ONE]
