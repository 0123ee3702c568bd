"""What held-out rows can certify."""

from __future__ import annotations

import numpy as np

from pipeline.boosting.audit import Auditor
from pipeline.boosting.certificate import certified_error
from pipeline.theory.checks import Check, labelled
from pipeline.theory.findings.registry import Tried, finding
from pipeline.theory.trials import Trials

N_ROWS, N_PREDICTORS = 400, 21
NOISE = 1.0  # outcomes are uniform in ± this around their means


@finding(
    "C1",
    level="ours",
    where="ours",
    text="Hold-out certificate: if |y − f_t| ≤ M, then with probability 1 − δ, for all rounds at "
    "once and any number of trees, the expected error is at most MCE + σ√(2x/n) + 4Mx/(3n), with "
    "x = log(4(T + 1)/δ) and σ the root of the MSE but for a term of order M/√n.",
    remark="Simulated outcomes, whose means are known, so that the expected error given the rows "
    "is too; the certificate must be above it for all predictors of a sample.",
)
def _(trials: Trials) -> Tried:
    samples = range(2 * trials.bank.n)
    return Tried(
        stated=[
            *labelled("calibrated", (_coverage(seed, 0.0) for seed in samples)),
            *labelled("planted bias", (_coverage(seed, 0.5) for seed in samples)),
        ]
    )


def _coverage(seed: int, bias: float) -> Check:
    """The largest share of its certificate that an expected error is, over predictors."""
    rng = np.random.default_rng([9, seed])
    X = rng.normal(size=(N_ROWS, 3))
    mean = X[:, 0]
    y = mean + NOISE * rng.uniform(-1, 1, N_ROWS)
    auditor = Auditor(X, n_trees=30, seed=seed)
    checks = []
    for k in range(N_PREDICTORS):
        f = mean + bias * k / N_PREDICTORS * (X[:, 1] > 0)
        certified = certified_error(
            auditor.error(y=y, prediction=f),
            float(np.square(y - f).mean()),
            N_ROWS,
            NOISE + bias,
            n_predictors=N_PREDICTORS,
        )
        checks.append(Check(auditor.error(y=mean, prediction=f), float(certified)))
    return max(checks, key=lambda check: check.ratio)
