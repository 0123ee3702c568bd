"""Calibration error in bins of the prediction, without the noise of the bins' means.

In a bin of n_k rows with residuals r, the square of the mean residual is, as an estimate, too large
by its variance; (S_k² − Q_k) / (n_k (n_k − 1)), S_k = Σ r, Q_k = Σ r², is not (a special case of
`pipeline.boosting.audit`; see also Kumar, Liang, Ma, NeurIPS 2019).
"""

import numpy as np

from .arrays import Floats

BINS = 10


def debiased_binned_square(y: Floats, prediction: Floats, n_bins: int = BINS) -> float:
    """Return an estimate of Σ_k (n_k / n) E[r | bin k]², unbiased for given bins; may be negative.

    Bins have equally many rows, as far as rows with equal predictions can stay together.
    """
    cuts = np.quantile(prediction, np.linspace(0, 1, n_bins + 1)[1:-1])
    bins = np.searchsorted(np.unique(cuts), prediction, side="left")
    r = y - prediction
    n, S, Q = (np.bincount(bins, w) for w in (np.ones(len(r)), r, np.square(r)))
    several = n > 1
    n, S, Q = n[several], S[several], Q[several]
    return float(((S * S - Q) / (n - 1)).sum() / n.sum()) if len(n) else np.nan
