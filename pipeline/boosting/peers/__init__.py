"""Other methods that correct a model's predictions, each from its paper, with one interface.

A method is a frozen dataclass of its options with ``fit(sample, validation, seed)``; see `Method`.
"""

from pipeline.boosting.peers.algorithm import Algorithm, Estimator, Feedback
from pipeline.boosting.peers.auditors import AuditorBoosting
from pipeline.boosting.peers.base import Corrected, Method, Sample
from pipeline.boosting.peers.level_sets import LevelSetBoosting
from pipeline.boosting.peers.mcgrad import Mcgrad
from pipeline.boosting.peers.one_shot import OneShotTrees
from pipeline.boosting.peers.patching import IterativePatching
from pipeline.boosting.peers.recalibration import (
    GroupShift,
    IsotonicRecalibration,
    LinearRecalibration,
    Nothing,
)
from pipeline.boosting.peers.trees import CrossFittedTrees, Histogram, Lightgbm

_ALL: tuple[type[Method], ...] = (
    Nothing,
    LinearRecalibration,
    IsotonicRecalibration,
    GroupShift,
    Lightgbm,
    CrossFittedTrees,
    Histogram,
    Algorithm,
    Estimator,
    Feedback,
    Mcgrad,
    LevelSetBoosting,
    IterativePatching,
    AuditorBoosting,
    OneShotTrees,
)
METHODS: dict[str, type[Method]] = {method.name: method for method in _ALL}

__all__ = ["METHODS", "Corrected", "Method", "Sample"]
