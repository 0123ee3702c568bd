"""Engines: who fits the trees of a round."""

from collections.abc import Callable

from pipeline.boosting.engines.base import Engine, Ensemble, Fitter, TreeSettings
from pipeline.boosting.engines.exact import ExactEngine
from pipeline.boosting.engines.lightgbm import LightgbmEngine, lossless
from pipeline.boosting.engines.sklearn import SklearnEngine

ENGINES: dict[str, Callable[[TreeSettings, int], Engine]] = {
    "exact": ExactEngine,
    "sklearn": SklearnEngine,
    "lightgbm": LightgbmEngine,
    "lightgbm_lossless": lossless,
}


def make_engine(name: str, settings: TreeSettings, n_threads: int = 1) -> Engine:
    """The engine called ``name``, which may use some threads for a large table."""
    if name not in ENGINES:
        raise ValueError(f"engine={name!r}: must be one of {', '.join(ENGINES)}")
    return ENGINES[name](settings, n_threads)


__all__ = [
    "ENGINES",
    "Engine",
    "Ensemble",
    "Fitter",
    "TreeSettings",
    "make_engine",
]
