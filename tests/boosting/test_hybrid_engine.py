"""The hybrid algorithm as an engine, held against its formula."""

import numpy as np
import pytest
from lightgbm import LGBMRegressor
from sklearn.linear_model import LinearRegression

from pipeline.boosting.engines import TreeSettings, make_engine
from pipeline.boosting.engines.hybrid import HybridEngine


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 3))
    return X, X[:, 0] * X[:, 1] + random.normal(size=300), X[:, 0] / 2


def test_step_is_that_of_the_weak_learners_and_the_distance_to_the_strong_model(rows):
    X, y, f = rows
    weak = make_engine("exact", TreeSettings(5))
    ensemble, h = HybridEngine(weak, 0.4).bind(X).fit(f, y - f, 3)
    alone, h_alone = weak.bind(X).fit(f, y - f, 3)
    strong = LGBMRegressor(n_jobs=1, verbose=-1).fit(X, y)
    np.testing.assert_allclose(h, h_alone + 0.4 * (strong.predict(X) - f), atol=1e-12)
    new, f_new = X[:50] + 0.1, f[:50] - 1.0
    expected = alone.predict(new, f_new) + 0.4 * (strong.predict(new) - f_new)
    np.testing.assert_allclose(ensemble.predict(new, f_new), expected, atol=1e-12)
    np.testing.assert_array_equal(ensemble.gains(), alone.gains())


def test_rounds_with_linear_learners_tend_to_their_fixed_point(rows):
    X, y, _ = rows
    f = np.zeros(len(y))
    gamma, eta = 0.5, 0.5
    settings = TreeSettings(1, 1, l2=0.0)
    fitter = HybridEngine(make_engine("linear", settings), gamma).bind(X)
    for t in range(200):
        f = f + eta * fitter.fit(f, y - f, t)[1]
    _, strong = fitter.strong(y)
    # In the limit A(f*)(y − f*) + γ (ŷ − f*) = 0, A projecting onto 1, x and f*.
    basis = np.column_stack([X, f])
    projected = LinearRegression().fit(basis, y - f).predict(basis)
    np.testing.assert_allclose(projected + gamma * (strong - f), 0, atol=1e-3)


def test_strong_model_is_fitted_once_and_rows_have_no_weights(rows):
    X, y, f = rows
    fitter = HybridEngine(make_engine("exact", TreeSettings(1)), 1.0).bind(X)
    fitter.fit(f, y - f, 0)
    assert fitter.strong(y)[0] is fitter.strong(y + 1)[0]
    with pytest.raises(ValueError, match="takes no weights"):
        HybridEngine(make_engine("exact", TreeSettings(1)), 1.0).bind(X, np.ones(len(X)))
