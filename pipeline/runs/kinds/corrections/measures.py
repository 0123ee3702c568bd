"""What is measured of corrected predictions, on test rows alone."""

from dataclasses import replace
from typing import Any

import numpy as np

from pipeline.boosting.arrays import Floats
from pipeline.boosting.frames import columns_of
from pipeline.boosting.segments import bin_columns, find_segments
from pipeline.config.schema import Config
from pipeline.runs.keys import audit_seed
from pipeline.runs.kinds.corrections.cases import Case
from pipeline.runs.kinds.rounds import auditor_of

SEGMENTS = 2  # that are searched for: the first of each half
FEWEST_ROWS, FEWEST_SHARE = 30, 0.01  # of a group
BINS = 10  # of predictions

NUMBERS = (
    "loss", "mse", "excess", "mce", "mce_floor", "mce2_debiased", "mce_p", "calibration2",
    "group_bias", "group_z", "segment_bias", "segment_p",
)  # fmt: skip


class Measures:
    """The measures of a case; biases are in standard deviations of the outcome.

    loss : mean squared error or log-loss.  mse : mean squared error (Brier score).  excess : mean
    squared distance to the truth, where it is known.  mce, mce_floor, mce2_debiased, mce_p : see
    `pipeline.boosting.audit`.  calibration2 : debiased square of the error in bins of predictions.
    group_bias, group_z : the worst named group's mean residual, and the largest z-value.
    segment_bias, segment_p : of the worst segment found on one half of the rows, on the other.
    """

    def __init__(self, case: Case, config: Config) -> None:
        self.case, self.seed = case, audit_seed(config.dataset.label, config.seed)
        self.auditor = auditor_of(config, case.test.X)
        self.columns = columns_of(case.test.X)
        enough = case.named.sum(axis=0) >= max(FEWEST_ROWS, FEWEST_SHARE * len(case.test))
        self.groups = case.named[:, enough].T

    def of(self, f: Floats, *, segments: bool = True) -> dict[str, Any]:
        """All of them, of the test rows' predictions f (n,); segments take a while to find."""
        test, case = self.case.test, self.case
        error = self.auditor.assess(y=test.y, prediction=f, symmetric=True)
        bias, z = self._worst_group(test.y - f)
        segment, p = self._worst_segment(f) if segments else (np.nan, np.nan)
        values = (
            test.loss(f),
            float(np.square(test.y - f).mean()),
            np.nan if case.truth is None else float(np.square(case.truth - f).mean()),
            error.mce, error.floor, error.debiased_square, error.p_value,
            debiased_binned_square(test.y, f),
            bias / case.scale, z, segment / case.scale, p,
        )  # fmt: skip
        return dict(zip(NUMBERS, values, strict=True))

    def _worst_group(self, residual: Floats) -> tuple[float, float]:
        found = [(r.mean(), r.std() / np.sqrt(len(r))) for g in self.groups for r in [residual[g]]]
        if not found:
            return np.nan, np.nan
        means, errors = np.abs(np.array(found)).T
        return float(means.max()), float((means / np.maximum(errors, 1e-300)).max())

    def _worst_segment(self, f: Floats) -> tuple[float, float]:
        test = self.case.test
        least = max(len(test) // 100, FEWEST_ROWS) // 2
        columns = bin_columns(self.columns, f)
        table = find_segments(columns, replace(test, f=f), SEGMENTS, least, self.seed, cuts=1)
        if table.empty:
            return np.nan, np.nan
        worst = table.iloc[0]
        return abs(float(worst["bias"])), float(worst["p_value"])


def debiased_binned_square(y: Floats, prediction: Floats, n_bins: int = BINS) -> float:
    """Return an estimate of Σ_k (n_k / n) E[r | bin k]², unbiased for given bins; may be negative.

    Bins have equally many rows, as far as rows with equal predictions can stay together. In a bin
    of n_k rows with residuals r, the square of the mean residual is, as an estimate, too large by
    its variance; (S_k² − Q_k) / (n_k (n_k − 1)), S_k = Σ r, Q_k = Σ r², is not (a special case of
    `pipeline.boosting.audit`; see also Kumar, Liang, Ma, NeurIPS 2019).
    """
    cuts = np.quantile(prediction, np.linspace(0, 1, n_bins + 1)[1:-1])
    bins = np.searchsorted(np.unique(cuts), prediction, side="left")
    r = y - prediction
    n, S, Q = (np.bincount(bins, w) for w in (np.ones(len(r)), r, np.square(r)))
    several = n > 1
    n, S, Q = n[several], S[several], Q[several]
    return float(((S * S - Q) / (n - 1)).sum() / n.sum()) if len(n) else np.nan
