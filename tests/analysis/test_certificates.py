"""The certificate holds where the truth is known, and is what its formula says."""

import numpy as np
import pytest

from pipeline.analysis.certificates import certified_error
from pipeline.boosting.audit import Auditor


def test_formula_on_a_hand_computed_case():
    # δ = 2/e: x = log(4/δ) = 1 + log 2 and x' = log(2/δ) = 1. With n = 2, M = 1 and MSE = 0,
    # σ = 2√(x'/4) = 1, so the certificate is MCE + √x + 2x/3.
    x = 1 + np.log(2)
    expected = 0.25 + np.sqrt(x) + 2 / 3 * x
    assert certified_error(0.25, 0.0, 2, 1.0, delta=2 / np.e) == pytest.approx(expected)


def test_more_rows_and_fewer_looks_certify_more():
    base = certified_error(0.1, 1.0, 1000, 5.0, n_predictors=21)
    assert certified_error(0.1, 1.0, 4000, 5.0, n_predictors=21) < base
    assert certified_error(0.1, 1.0, 1000, 5.0) < base
    assert certified_error(0.1, 1.0, 10**8, 5.0) == pytest.approx(0.1, abs=2e-3)


@pytest.mark.parametrize("bias", [0.0, 0.4])
def test_expected_error_is_below_the_certificate_far_more_often_than_promised(bias):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    mean, auditor = X[:, 0], Auditor(X, n_trees=20, seed=1)
    f = mean + bias * (X[:, 1] > 0)
    truth = auditor.error(y=mean, prediction=f)
    errors = []
    for _ in range(200):
        y = mean + rng.choice([-1.0, 1.0], size=300)
        mce, mse = auditor.error(y=y, prediction=f), float(np.square(y - f).mean())
        errors.append(certified_error(mce, mse, 300, 1 + bias, delta=0.5) >= truth)
    assert np.mean(errors) >= 0.5


@pytest.mark.parametrize(
    ("wrong", "words"), [({"delta": 0.0}, "delta=0.0"), ({"n_predictors": 0}, "n_predictors=0")]
)
def test_impossible_settings_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        certified_error(0.1, 1.0, 10, 1.0, **wrong)
