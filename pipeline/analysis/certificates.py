"""What held-out rows certify: an upper bound on a multicalibration error that holds with high
probability, and what it is for the stored runs (C1 in use).

Stack the leaves of N audit trees into one vector per row, v_i = r_i 1[row i in leaf k] / √N with
r_i = y_i − f(x_i). A row is in one leaf of every tree, so ‖v_i‖ = |r_i|, and the plug-in error
(leaf indicators) is the norm of the mean of the v_i, whatever the number of trees. If residuals
are at most M, Bernstein's inequality in a Hilbert space (Pinelis and Sakhanenko, 1986) bounds the
distance of that mean from its expectation by σ√(2x/n) + 4Mx/(3n), and Chernoff's lower tail bounds
σ² = E[r²] by the mean squared error. A union over K predictors makes it hold for all of them at
once, so that the best of them may be chosen by the same rows.

For the stored runs the bound on residuals, M, is taken to be the width of the target's range; it is
an assumption, and the largest residual seen on test rows is reported with it.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from pipeline.analysis.curves import SQUARE
from pipeline.analysis.evidence import Evidence
from pipeline.boosting.arrays import Floats
from pipeline.boosting.audit import signed_root

DELTA = 0.05


def certified_error(
    mce: Floats | float,
    mse: Floats | float,
    n: int,
    largest: float,
    *,
    n_predictors: int = 1,
    delta: float = DELTA,
) -> Floats:
    """An upper bound on the expected error that holds with probability 1 − δ.

    mce, mse : the plug-in error (leaf indicators) and mean squared error of predictors on ``n``
    rows that none of them was fitted to.  largest : M, a bound on |y − f| known beforehand.
    n_predictors : how many predictors were evaluated on these rows.
    """
    if not 0 < delta < 1:
        raise ValueError(f"delta={delta}: must be inside (0, 1)")
    if largest <= 0 or n < 1 or n_predictors < 1:
        raise ValueError(
            f"largest={largest}, n={n}, n_predictors={n_predictors}: must be above 0, at least 1 "
            "and at least 1"
        )
    lower_tail = np.log(2 * n_predictors / delta) / (2 * n)
    sigma = np.sqrt(np.asarray(mse) + largest**2 * lower_tail) + largest * np.sqrt(lower_tail)
    x = np.log(4 * n_predictors / delta)
    return np.asarray(mce) + sigma * np.sqrt(2 * x / n) + 4 * largest * x / (3 * n)


def certified(evidence: Evidence, dataset: str, width: float) -> Floats:
    """Unit's certified error of every round, (n_seeds, T + 1); a split's rows certify all rounds.

    width : M, the largest residual there can be.
    """
    sizes = evidence.sizes
    n = int(sizes.loc[sizes["dataset"] == dataset, "n_test"].iloc[0])
    mce, mse = (evidence.curves(dataset, "unit", c) for c in ("mce_test", "mse_test"))
    return certified_error(mce, mse, n, width, n_predictors=mce.shape[1])


def certificate_table(
    evidence: Evidence, widths: Mapping[str, float], largest: Mapping[str, float]
) -> pd.DataFrame:
    """At the start and at the round with the smallest certified error: what is known of Unit.

    widths, largest : M and the largest residual seen, by dataset.
    """
    rows = []
    for dataset in evidence.datasets:
        bounds = certified(evidence, dataset, widths[dataset])
        best = int(bounds.mean(axis=0).argmin())
        mce, square, mse = (
            evidence.curves(dataset, "unit", c) for c in ("mce_test", SQUARE, "mse_test")
        )
        for moment, t in (("start", 0), ("best", best)):
            rows.append(
                {
                    "dataset": evidence.titles[dataset],
                    "moment": moment,
                    "round": t,
                    "plug_in": float(mce[:, t].mean()),
                    "debiased": signed_root(float(square[:, t].mean())),
                    "certified": float(bounds[:, t].mean()),
                    "rmse": float(np.sqrt(mse[:, t]).mean()),
                    "bound_on_residuals": widths[dataset],
                    "largest_residual": largest[dataset],
                }
            )
    return pd.DataFrame(rows)
