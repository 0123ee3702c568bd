"""Is there anything to calibrate? The test MCE against its noise floor, before and after."""

from __future__ import annotations

import numpy as np
import pandas as pd

from pipeline.analysis.curves import FLOOR, SQUARE, corrected_error
from pipeline.analysis.evidence import Evidence
from pipeline.boosting.audit import signed_root

P_VALUE = "mce_p_test"
COLUMNS = [
    "dataset", "moment", "round", "mce", "floor", "debiased", "low", "high", "significant_splits",
]  # fmt: skip


def noise_table(evidence: Evidence) -> pd.DataFrame:
    """Plug-in error, floor and debiased error (signed roots of means over splits) of `Runs.base`.

    At the start, at the round with the smallest debiased square, and at the end. ``low`` and
    ``high`` are mean ± 2 standard errors that respect overlapping splits, as signed roots;
    ``significant_splits`` is the share of splits whose own p-value is below 5 %, where recorded.
    """
    rows, strategy = [], evidence.base
    for dataset in evidence.datasets:
        squares = evidence.curves(dataset, strategy, SQUARE)
        mean, error = squares.mean(axis=0), corrected_error(squares, evidence.test_share(dataset))
        best = int(mean.argmin())
        for moment, t in (("start", 0), ("best", best), ("end", evidence.n_rounds)):
            rows.append(
                [
                    evidence.titles[dataset],
                    moment,
                    t,
                    _root_mean_square(evidence.curves(dataset, strategy, "mce_test")[:, t]),
                    _root_mean_square(evidence.curves(dataset, strategy, FLOOR)[:, t]),
                    signed_root(mean[t]),
                    signed_root(mean[t] - 2 * error[t]),
                    signed_root(mean[t] + 2 * error[t]),
                    _significant(evidence, dataset, strategy, t),
                ]
            )
    return pd.DataFrame(rows, columns=COLUMNS)


def _root_mean_square(values: np.ndarray) -> float:
    return float(np.sqrt(np.square(values).mean()))


def _significant(evidence: Evidence, dataset: str, strategy: str, t: int) -> float:
    if P_VALUE not in evidence.rounds:
        return np.nan
    p = evidence.curves(dataset, strategy, P_VALUE)[:, t]
    return float((p < 0.05).mean()) if np.isfinite(p).all() else np.nan
