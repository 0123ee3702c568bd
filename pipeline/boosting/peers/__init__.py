"""Other methods that correct a model's predictions, each from its paper, with one interface.

A method is a frozen dataclass of its options with ``fit(sample, validation, seed)``; see `Method`.
"""

from .algorithm import Algorithm, Estimator, Feedback, HybridRounds
from .auditors import AuditorBoosting
from .base import Corrected, Method, Sample
from .level_sets import LevelSetBoosting
from .mcgrad import Mcgrad
from .one_shot import OneShotTrees
from .patching import IterativePatching
from .recalibration import GroupShift, IsotonicRecalibration, LinearRecalibration, Nothing
from .trees import CrossFittedTrees, Histogram, Lightgbm

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
    HybridRounds,
    Mcgrad,
    LevelSetBoosting,
    IterativePatching,
    AuditorBoosting,
    OneShotTrees,
)
METHODS: dict[str, type[Method]] = {method.name: method for method in _ALL}

__all__ = ["METHODS", "Corrected", "Method", "Sample"]
