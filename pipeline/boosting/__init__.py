"""Audit and correct a model's predictions: multicalibration gradient boosting for scikit-learn.

Start with `audit_predictions`, `MulticalibrationBoostingClassifier` and
`MulticalibrationBoostingRegressor`.
"""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from . import caching  # must come before anything that imports numba

if TYPE_CHECKING:
    from .audit import Assessment, Auditor, multicalibration_error
    from .classifier import MulticalibrationBoostingClassifier
    from .display import MulticalibrationDisplay, RoundsDisplay
    from .distributed.estimator import (
        DaskMulticalibrationBoostingClassifier,
        DaskMulticalibrationBoostingRegressor,
    )
    from .estimator import PAPER
    from .export import to_onnx
    from .forest import ExactRandomForestRegressor
    from .inspection import AuditResult, audit_predictions
    from .loading import load
    from .regressor import MulticalibrationBoostingRegressor
    from .rescaling import Adaptive, Relaxed, Rescaling, Unit

__all__ = [
    "PAPER",
    "Adaptive",
    "Assessment",
    "AuditResult",
    "Auditor",
    "DaskMulticalibrationBoostingClassifier",
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

if find_spec("distributed") is None:  # `from mcgb import *` works without the extra 'dask'
    __all__[:] = [name for name in __all__ if not name.startswith("Dask")]
__version__ = "0.3.0"

# Where public names are; a module is imported when one of its names is used.
_MODULES = {
    "audit": "Assessment Auditor multicalibration_error",
    "classifier": "MulticalibrationBoostingClassifier",
    "display": "MulticalibrationDisplay RoundsDisplay",
    "distributed.estimator": (
        "DaskMulticalibrationBoostingClassifier DaskMulticalibrationBoostingRegressor"
    ),
    "estimator": "PAPER",
    "export": "to_onnx",
    "forest": "ExactRandomForestRegressor",
    "inspection": "AuditResult audit_predictions",
    "loading": "load",
    "regressor": "MulticalibrationBoostingRegressor",
    "rescaling": "Adaptive Relaxed Rescaling Unit",
}
_announce_compilation = cache(caching.announce_compilation)


def __getattr__(name: str) -> Any:
    """Import a public name's module when the name is used."""
    module = next((m for m, names in _MODULES.items() if name in names.split()), None)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _announce_compilation()
    try:
        return getattr(import_module(f"{__name__}.{module}"), name)
    except ModuleNotFoundError as error:
        if module.startswith("distributed"):
            raise ImportError(f"{name} needs Dask: pip install 'mcgb[dask]'") from error
        raise


def __dir__() -> list[str]:
    """List the public names, for completion."""
    return [*__all__, "__version__"]
