"""Algorithm 1 of the paper as a library; knows nothing of files, Hydra or reports."""

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
