"""What held-out rows can certify."""

import numpy as np

from pipeline.analysis.certificates import certified_error
from pipeline.boosting.audit import Auditor
from pipeline.theory.checks import Check
from pipeline.theory.trials import Trials
from pipeline.theory.verdicts import Tried, tries

N_ROWS, N_PREDICTORS = 400, 21
NOISE = 1.0  # outcomes are uniform in ± this around their means


def coverage(seed: int, bias: float, regime: str) -> Check:
    """The largest share of its certificate that an expected error is, over predictors."""
    rng = np.random.default_rng([9, seed])
    X = rng.normal(size=(N_ROWS, 3))
    mean = X[:, 0]
    y = mean + NOISE * rng.uniform(-1, 1, N_ROWS)
    auditor = Auditor(X, n_trees=30, seed=seed)
    checks = []
    for k in range(N_PREDICTORS):
        f = mean + bias * k / N_PREDICTORS * (X[:, 1] > 0)
        error, mse = auditor.error(y=y, prediction=f), float(np.square(y - f).mean())
        certified = certified_error(error, mse, N_ROWS, NOISE + bias, n_predictors=N_PREDICTORS)
        checks.append(Check(auditor.error(y=mean, prediction=f), float(certified), regime))
    return max(checks, key=lambda check: check.ratio)


@tries("C1")
def _(trials: Trials) -> Tried:
    regimes, seeds = (("calibrated", 0.0), ("planted bias", 0.5)), range(2 * trials.bank.n)
    return Tried(stated=[coverage(seed, bias, name) for name, bias in regimes for seed in seeds])
