"""Algorithm 1 of the paper as a library; knows nothing of Hydra or reports."""

from typing import Any

from pipeline.boosting import caching  # noqa: F401  # before anything that loads numba
from pipeline.boosting.audit import Assessment, Auditor, multicalibration_error
from pipeline.boosting.classifier import MulticalibrationBoostingClassifier
from pipeline.boosting.display import MulticalibrationDisplay
from pipeline.boosting.estimator import PAPER, MulticalibrationBoostingRegressor
from pipeline.boosting.forest import ExactRandomForestRegressor
from pipeline.boosting.inspection import AuditResult, audit_predictions
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
    """What needs an extra is loaded when it is asked for."""
    if name == "DaskMulticalibrationBoostingRegressor":
        from pipeline.boosting.distributed.estimator import DaskMulticalibrationBoostingRegressor

        return DaskMulticalibrationBoostingRegressor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
