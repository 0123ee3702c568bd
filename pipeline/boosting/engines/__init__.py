"""Engines: who fits the trees of a round."""

from collections.abc import Callable

from pipeline.boosting.engines.base import Engine, Ensemble, Fitter, TreeSettings
from pipeline.boosting.engines.exact import ExactEngine
from pipeline.boosting.engines.sklearn import SklearnEngine

ENGINES: dict[str, Callable[[TreeSettings], Engine]] = {
    "exact": ExactEngine,
    "sklearn": SklearnEngine,
}


def make_engine(name: str, settings: TreeSettings) -> Engine:
    """The engine called ``name``."""
    if name not in ENGINES:
        raise ValueError(f"engine={name!r}: must be one of {', '.join(ENGINES)}")
    return ENGINES[name](settings)


__all__ = [
    "ENGINES",
    "Engine",
    "Ensemble",
    "Fitter",
    "TreeSettings",
    "make_engine",
]
