"""What held-out rows certify of the stored runs: C1 in use.

The bound on residuals, M, is taken to be the width of the target's range; it is an assumption, and
the largest residual seen on test rows is reported with it.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from pipeline.analysis.curves import SQUARE
from pipeline.analysis.evidence import Evidence
from pipeline.boosting.arrays import Floats
from pipeline.boosting.audit import signed_root
from pipeline.boosting.certificate import certified_error

DELTA = 0.05


def certified(evidence: Evidence, dataset: str, width: float) -> Floats:
    """Unit's certified error of every round, (n_seeds, T + 1); a split's rows certify all rounds.

    width : M, the largest residual there can be.
    """
    sizes = evidence.sizes
    n = int(sizes.loc[sizes["dataset"] == dataset, "n_test"].iloc[0])
    mce, mse = (evidence.curves(dataset, "unit", c) for c in ("mce_test", "mse_test"))
    return certified_error(mce, mse, n, width, n_predictors=mce.shape[1], delta=DELTA)


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
