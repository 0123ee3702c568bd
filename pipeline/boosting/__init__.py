"""Algorithm 1 of the paper as a library, independent of the rest of the package."""

from typing import Any

from pipeline.boosting import caching  # noqa: F401  # must come before anything that imports numba
from pipeline.boosting.audit import Assessment, Auditor, multicalibration_error
from pipeline.boosting.classifier import MulticalibrationBoostingClassifier
from pipeline.boosting.display import MulticalibrationDisplay
from pipeline.boosting.estimator import PAPER
from pipeline.boosting.forest import ExactRandomForestRegressor
from pipeline.boosting.inspection import AuditResult, audit_predictions
from pipeline.boosting.regressor import MulticalibrationBoostingRegressor
from pipeline.boosting.rescaling import Adaptive, Relaxed, Rescaling, Unit

__all__ = [
    "PAPER",
    "Adaptive",
    "Assessment",
    "AuditResult",
    "Auditor",
    "DaskMulticalibrationBoostingRegressor",
    "ExactRandomForestRegressor",
    "MulticalibrationBoostingClassifier",
    "MulticalibrationBoostingRegressor",
    "MulticalibrationDisplay",
    "Relaxed",
    "Rescaling",
    "Unit",
    "audit_predictions",
    "multicalibration_error",
]


def __getattr__(name: str) -> Any:
    """Import what needs optional packages when it is used."""
    if name == "DaskMulticalibrationBoostingRegressor":
        from pipeline.boosting.distributed.estimator import DaskMulticalibrationBoostingRegressor

        return DaskMulticalibrationBoostingRegressor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
