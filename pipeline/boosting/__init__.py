"""Algorithm 1 of the paper as a library, independent of the rest of the package."""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import caching  # must come before anything that imports numba

if TYPE_CHECKING:
    from .audit import Assessment, Auditor, multicalibration_error
    from .classifier import MulticalibrationBoostingClassifier
    from .display import MulticalibrationDisplay, RoundsDisplay
    from .distributed.estimator import DaskMulticalibrationBoostingRegressor
    from .estimator import PAPER
    from .export import to_onnx
    from .forest import ExactRandomForestRegressor
    from .inspection import AuditResult, audit_predictions
    from .loading import load
    from .regressor import MulticalibrationBoostingRegressor
    from .rescaling import Adaptive, Relaxed, Rescaling, Unit

# Where each public name is; its module is imported when the name is used.
_MODULES = {
    "PAPER": "estimator",
    "Adaptive": "rescaling",
    "Assessment": "audit",
    "AuditResult": "inspection",
    "Auditor": "audit",
    "DaskMulticalibrationBoostingRegressor": "distributed.estimator",
    "ExactRandomForestRegressor": "forest",
    "MulticalibrationBoostingClassifier": "classifier",
    "MulticalibrationBoostingRegressor": "regressor",
    "MulticalibrationDisplay": "display",
    "Relaxed": "rescaling",
    "Rescaling": "rescaling",
    "RoundsDisplay": "display",
    "Unit": "rescaling",
    "audit_predictions": "inspection",
    "load": "loading",
    "multicalibration_error": "audit",
    "to_onnx": "export",
}

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
    "RoundsDisplay",
    "Unit",
    "audit_predictions",
    "load",
    "multicalibration_error",
    "to_onnx",
]


_announce_compilation = cache(caching.announce_compilation)


def __getattr__(name: str) -> Any:
    """Import a public name's module when the name is used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _announce_compilation()
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
