"""Models that were stored in files."""

from pathlib import Path
from typing import Any

from .classifier import MulticalibrationBoostingClassifier
from .regressor import MulticalibrationBoostingRegressor
from .storage import restore


def load(
    path: str | Path, init: Any = None
) -> MulticalibrationBoostingRegressor | MulticalibrationBoostingClassifier:
    """Return the estimator in a file that its `save` wrote.

    Parameters
    ----------
    path : str or Path
        The file. It is read without pickle, and refused if it is damaged.
    init : fitted model or None, default=None
        The model that was corrected, if it was passed to the estimator as ``init``: such a model
        is not in the file.

    Returns
    -------
    MulticalibrationBoostingRegressor or MulticalibrationBoostingClassifier
        A fitted estimator with the same predictions.
    """
    kinds = (MulticalibrationBoostingRegressor, MulticalibrationBoostingClassifier)
    return restore(path, kinds, init)
