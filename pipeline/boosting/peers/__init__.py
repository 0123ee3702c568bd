"""Other ways to correct a model's predictions, each from its paper, behind one door.

A method is a frozen dataclass of its options with ``fit(sample, validation, seed)``; see `base`.
"""

from pipeline.boosting.peers.algorithm import Algorithm, Estimator
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
from pipeline.boosting.peers.trees import Histogram, Lightgbm

METHODS: dict[str, type[Method]] = {
    "nothing": Nothing,
    "linear": LinearRecalibration,
    "isotonic": IsotonicRecalibration,
    "group_shift": GroupShift,
    "lightgbm": Lightgbm,
    "histogram": Histogram,
    "algorithm": Algorithm,
    "estimator": Estimator,
    "mcgrad": Mcgrad,
    "level_sets": LevelSetBoosting,
    "patching": IterativePatching,
    "auditors": AuditorBoosting,
    "one_shot": OneShotTrees,
}

__all__ = ["METHODS", "Corrected", "Method", "Sample"]
