"""An upper bound on a multicalibration error that held-out rows guarantee with high probability.

Stack the leaves of N audit trees into one vector per row, v_i = r_i 1[row i in leaf k] / √N with
r_i = y_i − f(x_i). A row is in one leaf of every tree, so ‖v_i‖ = |r_i|, and the plug-in error
(leaf indicators) is the norm of the mean of the v_i, whatever the number of trees. If residuals
are at most M, Bernstein's inequality in a Hilbert space (Pinelis and Sakhanenko, 1986) bounds the
distance of that mean from its expectation by σ√(2x/n) + 4Mx/(3n), and Chernoff's lower tail bounds
σ² = E[r²] by the mean squared error. A union over K predictors makes it hold for all of them at
once, so that the best of them may be chosen by the same rows.
"""

import numpy as np

from .arrays import Floats


def certified_error(
    mce: Floats | float,
    mse: Floats | float,
    n: int,
    largest: float,
    *,
    n_predictors: int = 1,
    delta: float = 0.05,
) -> Floats:
    """Return an upper bound on the expected error that holds with probability 1 − δ.

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
