"""Checks of the parameters of estimators, and of what initial predictors return."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import cpu_count, effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.metrics import get_scorer
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.validation import _check_sample_weight, check_array

from .arrays import Floats
from .engines import TreeSettings, make_engine
from .trajectories import FEEDBACK


def check_parameters(estimator: Any) -> None:
    """Raise ValueError or TypeError, with its name, for a parameter outside of its range."""
    check_scalar(estimator.n_rounds, "n_rounds", Integral, min_val=0)
    for name in ("eta", "learning_rate", "subsample", "max_features"):
        value = getattr(estimator, name)
        check_scalar(value, name, Real, min_val=0, max_val=1, include_boundaries="right")
    for name in ("n_trees", "min_samples_leaf", "n_iter_no_change"):
        check_scalar(getattr(estimator, name), name, Integral, min_val=1)
    check_scalar(estimator.l2_regularization, "l2_regularization", Real, min_val=0)
    for name, least in (("max_depth", 1), ("max_leaf_nodes", 2)):
        if getattr(estimator, name) is not None:
            check_scalar(getattr(estimator, name), name, Integral, min_val=least)
    if estimator.max_depth is None and estimator.max_leaf_nodes is None:
        raise ValueError("max_depth, max_leaf_nodes: one of the two must be given")
    make_engine(estimator.engine, tree_settings(estimator))
    if estimator.feedback not in FEEDBACK:
        raise ValueError(f"feedback={estimator.feedback!r}: must be one of {', '.join(FEEDBACK)}")
    if isinstance(estimator.cv, Integral):
        check_scalar(estimator.cv, "cv", Integral, min_val=2)
    if isinstance(estimator.scoring, str) and estimator.scoring not in ("loss", "mce"):
        get_scorer(estimator.scoring)


def tree_settings(estimator: Any) -> TreeSettings:
    """Return the settings of an estimator's trees; the leaves bound the depth if nothing else."""
    depth = estimator.max_depth
    if depth is None:
        depth = int(estimator.max_leaf_nodes) - 1
    return TreeSettings(
        estimator.n_trees,
        depth,
        estimator.learning_rate,
        estimator.min_samples_leaf,
        estimator.subsample,
        float(estimator.max_features),  # 1 means all features, not one
        estimator.max_leaf_nodes,
        estimator.l2_regularization,
    )


def check_weights(sample_weight: ArrayLike | None, X: Floats) -> Floats | None:
    """Return sample weights as an array (n,), or None if all are 1."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if (weights == 1.0).all():
        return None
    if not 1e-100 < weights.max() < 1e100:
        raise ValueError("sample_weight: the largest must lie between 1e-100 and 1e100")
    return weights


def check_initial_prediction(values: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Return initial predictions as finite floats; raise ValueError if the shape is another."""
    f0 = check_array(values, ensure_2d=False, dtype=np.float64, input_name="initial_prediction")
    f0 = f0[:, 0] if f0.ndim == 2 and f0.shape[1] == 1 else f0
    if f0.shape != shape:
        raise ValueError(f"initial_prediction: has shape {f0.shape} instead of {shape}")
    return f0


def check_predicted(values: Any) -> Floats:
    """Return what an initial predictor predicts as floats; raise ValueError if not finite."""
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError("init: predicts NaN or infinity for some rows")
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def n_threads_of(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` means, at most one per core."""
    return min(effective_n_jobs(n_jobs), cpu_count())


def seed_of(random_state: int | np.random.RandomState | None) -> int:
    """Return a seed; an int is used as it is, so that it names the same run everywhere."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
