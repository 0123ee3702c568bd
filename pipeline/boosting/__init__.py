"""Algorithm 1 of the paper as a library; knows nothing of files, Hydra or plots."""

from pipeline.boosting.audit import Auditor, multicalibration_error
from pipeline.boosting.classifier import MulticalibrationBoostingClassifier
from pipeline.boosting.estimator import MulticalibrationBoostingRegressor
from pipeline.boosting.rescaling import Adaptive, Relaxed, Rescaling, Unit

__all__ = [
    "Adaptive",
    "Auditor",
    "MulticalibrationBoostingClassifier",
    "MulticalibrationBoostingRegressor",
    "Relaxed",
    "Rescaling",
    "Unit",
    "multicalibration_error",
]
