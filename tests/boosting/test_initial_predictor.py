"""Where rounds start from: fitted here, out of fold, out of bag, fitted before, or given."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVR

from pipeline.boosting import (
    PAPER,
    ExactRandomForestRegressor,
    MulticalibrationBoostingClassifier,
    MulticalibrationBoostingRegressor,
)
from pipeline.boosting.folds import fold_numbers
from pipeline.boosting.rows import TrainingRows

QUICK = PAPER | {"n_rounds": 3, "n_trees": 5, "random_state": 0}


def regressor(**parameters):
    return MulticalibrationBoostingRegressor(**(QUICK | parameters))


def classifier(**parameters):
    return MulticalibrationBoostingClassifier(**(QUICK | parameters))


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    return X, X[:, 0] + X[:, 1] ** 2 + rng.normal(size=200)


@pytest.fixture(scope="module")
def labels(rows):
    return np.array(["bad", "good"])[(rows[1] > 1).astype(int)]


def test_a_fitted_model_is_used_as_it_is(rows, labels):
    X, y = rows
    model = LinearRegression().fit(X[:50], y[:50])
    ours = regressor(init=model, init_cv="prefit").fit(X[50:], y[50:])
    assert ours.init_ is model
    np.testing.assert_array_equal(next(ours.staged_predict(X)), model.predict(X))
    given = regressor().fit(X[50:], y[50:], initial_prediction=model.predict(X[50:]))
    np.testing.assert_array_equal(ours.predict(X), given.predict(X, model.predict(X)))
    clf = LogisticRegression().fit(X[:50], labels[:50])
    ours = classifier(init=clf, init_cv="prefit").fit(X[50:], labels[50:])
    np.testing.assert_allclose(next(ours.staged_predict_proba(X)), clf.predict_proba(X), atol=1e-9)


def test_a_fitted_model_is_not_fitted_again_without_a_word(rows):
    X, y = rows
    with pytest.warns(UserWarning, match="fitted again.*init_cv='prefit'"):
        regressor(init=LinearRegression().fit(X, y)).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        regressor(init=LinearRegression()).fit(X, y)
    with pytest.raises(ValueError, match="is not fitted, but init_cv='prefit'"):
        regressor(init=LinearRegression(), init_cv="prefit").fit(X, y)
    with pytest.raises(ValueError, match="needs a fitted init"):
        regressor(init_cv="prefit").fit(X, y)
    with pytest.raises(ValueError, match="init_cv='some'"):
        regressor(init_cv="some").fit(X, y)


def test_out_of_fold_predictions_are_sklearns(rows, labels):
    X, y = rows
    folds = KFold(4)
    ours = regressor(init=KNeighborsRegressor(), init_cv=folds).fit(X, y)
    f0 = cross_val_predict(KNeighborsRegressor(), X, y, cv=folds)
    np.testing.assert_allclose(ours.losses_[0], np.mean((y - f0) ** 2))
    given = regressor().fit(X, y, initial_prediction=f0)
    np.testing.assert_array_equal(ours.losses_, given.losses_)
    whole = KNeighborsRegressor().fit(X, y).predict(X)
    np.testing.assert_array_equal(next(ours.staged_predict(X)), whole)
    ours = classifier(init=LogisticRegression(), init_cv=3).fit(X, labels)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    p = cross_val_predict(LogisticRegression(), X, labels, cv=folds, method="predict_proba")
    given = classifier().fit(X, labels, initial_prediction=p)
    np.testing.assert_allclose(ours.losses_, given.losses_)


@pytest.mark.parametrize("init", [None, RandomForestRegressor(60, max_depth=4, random_state=0)])
def test_out_of_bag_predictions_of_forests(init, rows):
    X, y = rows
    ours = regressor(init=init, init_cv="oob", n_rounds=1).fit(X, y)
    forest = ExactRandomForestRegressor(100, random_state=0) if init is None else init
    forest = sklearn.clone(forest).set_params(oob_score=True).fit(X, y)
    assert ours.losses_[0] == pytest.approx(np.mean((y - forest.oob_prediction_) ** 2))
    assert not hasattr(ours.init_, "oob_prediction_")  # as long as the rows


def test_rows_without_an_out_of_fold_or_out_of_bag_prediction_are_refused(rows):
    for cv in (TimeSeriesSplit(3), ShuffleSplit(2, test_size=0.2, random_state=0)):
        with pytest.raises(ValueError, match="every row must be held out once"):
            regressor(init=LinearRegression(), init_cv=cv).fit(*rows)
    for forest in (RandomForestRegressor(3), ExactRandomForestRegressor(3)):
        with pytest.raises(ValueError, match="more trees would give them one"):
            regressor(init=forest, init_cv="oob").fit(*rows)


def test_a_model_that_knows_nothing_of_sklearn_may_be_corrected(rows, labels):
    class Plain:
        def predict(self, X):
            return X[:, 0]

        def predict_proba(self, X):
            p = 1 / (1 + np.exp(-X[:, 0]))
            return np.column_stack([1 - p, p])

    X, y = rows
    ours = regressor(init=Plain(), init_cv="prefit").fit(X, y)
    np.testing.assert_array_equal(next(ours.staged_predict(X)), X[:, 0])
    assert classifier(init=Plain(), init_cv="prefit").fit(X, labels).score(X, labels) > 0.6


def test_a_frozen_model_survives_cross_validation(rows):
    X, y = rows
    frozen = FrozenEstimator(LinearRegression().fit(X[:40], y[:40]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = regressor(init=frozen, init_cv="prefit")
        assert cross_val_score(model, X, y, cv=3).shape == (3,)
    with pytest.raises(ValueError, match="FrozenEstimator"):
        regressor(init=LinearRegression(), init_cv="prefit").fit(X, y)


@pytest.mark.parametrize("bad", ["nan", "flat"])
def test_predictors_that_say_nothing_are_named(bad, rows, labels):
    class Broken(LogisticRegression):
        def predict_proba(self, X):
            p = super().predict_proba(X)
            return p[:, 1] if bad == "flat" else np.full_like(p, np.nan)

    with pytest.raises(ValueError, match="init: "):
        classifier(init=Broken(), n_rounds=0).fit(rows[0], labels)


def test_groups_are_not_parted(rows):
    X, y = rows
    groups = np.repeat(np.arange(20), 10)
    shared = []

    class Watching(LinearRegression):
        def fit(self, X, y):
            self.groups_ = set(X[:, 3])
            return super().fit(X, y)

        def predict(self, X):
            shared.append(len(self.groups_ & set(X[:, 3])))
            return super().predict(X)

    table = np.column_stack([X, groups])
    regressor(init=Watching(), init_cv=4).fit(table, y, groups=groups)
    assert shared == [0, 0, 0, 0]
    model = regressor(n_rounds=1, cv=3, feedback="honest").fit(table, y, groups=groups)
    assert len(model.trajectories_) == 3
    fold = fold_numbers(
        TrainingRows(table=table, X=table, labels=y, y=y, groups=groups), 3, False, 0, "cv"
    )
    assert all(len(set(fold[groups == g])) == 1 for g in range(20))


def test_later_changes_of_parameters_do_not_change_a_fitted_model(rows):
    X = pd.DataFrame(rows[0], columns=list("abc")).assign(word="w")
    model = regressor(init_cv="oob").fit(X, rows[1])
    before = model.predict(X)
    model.set_params(eta=0.01, init=LinearRegression())
    np.testing.assert_array_equal(model.predict(X), before)


def test_out_of_bag_probabilities(rows, labels):
    forest = RandomForestClassifier(60, max_depth=4, oob_score=True, random_state=0)
    ours = classifier(init=forest, init_cv="oob").fit(rows[0], labels)
    p = forest.fit(rows[0], labels).oob_decision_function_
    given = classifier().fit(rows[0], labels, initial_prediction=p[:, 1])
    np.testing.assert_allclose(ours.losses_, given.losses_)
    with pytest.raises(ValueError, match="no out-of-bag"):
        regressor(init=LinearRegression(), init_cv="oob").fit(*rows)


def test_honest_starts_are_not_fitted_again_for_every_fold(rows):
    X, y = rows
    count = []

    class Counting(LinearRegression):
        def fit(self, X, y):
            count.append(len(y))
            return super().fit(X, y)

    regressor(init=Counting(), init_cv=4, early_stopping=True).fit(X, y)
    assert sorted(count) == [150] * 4 + [200]
    count.clear()
    regressor(init=Counting(), early_stopping=True, cv=4).fit(X, y)
    assert sorted(count) == [150] * 4 + [200]


def test_init_sees_the_table_as_it_came(rows, labels):
    X = pd.DataFrame(rows[0], columns=list("abc")).assign(
        kind=np.where(rows[0][:, 0] > 0, "p", "q")
    )
    X.loc[::7, "b"] = np.nan
    words = make_column_transformer((OneHotEncoder(), ["kind"]), ("passthrough", ["a", "c"]))
    ours = classifier(init=make_pipeline(words, LogisticRegression())).fit(X, labels)
    assert list(ours.feature_names_in_) == ["a", "b", "c", "kind"]
    np.testing.assert_allclose(
        next(ours.staged_predict_proba(X)), ours.init_.predict_proba(X), atol=1e-9
    )
    assert list(ours.get_feature_names_out()) == ["a", "b", "c", "kind=p", "kind=q"]
    new = pd.DataFrame({"a": [0.0], "b": [np.nan], "c": [1.0], "kind": ["p"]})
    assert ours.predict_proba(new).shape == (1, 2)


def test_given_probabilities_go_through_every_method(rows, labels):
    X, _ = rows
    p = np.random.default_rng(1).random(200)
    model = classifier().fit(X, labels, initial_prediction=p)
    both = model.predict_proba(X, np.column_stack([1 - p, p]))
    np.testing.assert_array_equal(both, model.predict_proba(X, p))
    np.testing.assert_array_equal(model.predict(X, p) == "good", both[:, 1] > 0.5)
    np.testing.assert_array_equal(list(model.staged_predict_proba(X, p))[-1], both)
    np.testing.assert_array_equal(list(model.staged_predict(X, p))[-1], model.predict(X, p))
    np.testing.assert_array_equal(
        list(model.staged_decision_function(X, p))[-1], model.decision_function(X, p)
    )
    assert model.score(X, labels, initial_prediction=p) == np.mean(model.predict(X, p) == labels)
    for bad, message in ((2 * p, "probabilities, from 0 to 1"), (p[:9], "shape")):
        with pytest.raises(ValueError, match=message):
            classifier().fit(X, labels, initial_prediction=bad)


def test_classes_of_a_fitted_model_must_be_those_of_y(rows, labels):
    other = LogisticRegression().fit(rows[0], labels == "good")
    with pytest.raises(ValueError, match="knows the classes"):
        classifier(init=other, init_cv="prefit").fit(rows[0], labels)


def test_given_predictions_are_routed_through_searches_and_pipelines(rows):
    X, y = rows
    f0 = X[:, 0]
    with sklearn.config_context(enable_metadata_routing=True):
        model = (
            regressor()
            .set_fit_request(initial_prediction=True, sample_weight=True)
            .set_score_request(initial_prediction=True, sample_weight=False)
            .set_predict_request(initial_prediction=True)
        )
        search = GridSearchCV(model, {"eta": [0.1, 0.5]}, cv=3)
        search.fit(X, y, initial_prediction=f0, sample_weight=np.ones(200))
        scores = cross_val_score(model, X, y, cv=3, params={"initial_prediction": f0})
        piped = make_pipeline(StandardScaler(), model).fit(X, y, initial_prediction=f0)
        assert piped.predict(X, initial_prediction=f0).shape == (200,)
    best = search.cv_results_["mean_test_score"]
    assert scores.mean() == pytest.approx(best[1])
    direct = [
        regressor().fit(X[a], y[a], initial_prediction=f0[a]).score(
            X[b], y[b], initial_prediction=f0[b]
        )
        for a, b in KFold(3).split(X)
    ]  # fmt: skip
    np.testing.assert_allclose(scores, direct)


def test_one_against_the_rest_works_as_for_other_classifiers(rows):
    X, y = rows
    three = np.digitize(y, [0.5, 1.5])
    model = OneVsRestClassifier(classifier()).fit(X, three)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert (model.predict(X) == three).mean() > 0.6


def test_weights_reach_the_initial_predictor_or_that_is_said(rows):
    X, y = rows
    w = np.random.default_rng(0).lognormal(size=200)
    ours = regressor(init=LinearRegression()).fit(X, y, sample_weight=w)
    theirs = LinearRegression().fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(next(ours.staged_predict(X)), theirs.predict(X))
    with pytest.warns(UserWarning, match="KNeighborsRegressor.fit takes no sample_weight"):
        regressor(init=KNeighborsRegressor()).fit(X, y, sample_weight=w)


@pytest.mark.parametrize("init", [SVR(), ExtraTreesRegressor(5, random_state=0)])
def test_any_regressor_may_start(init, rows):
    model = regressor(init=init, init_cv=3).fit(*rows)
    assert model.score(*rows) > 0.3
