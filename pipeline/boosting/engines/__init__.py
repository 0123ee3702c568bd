"""Engines, which fit the trees of a round."""

from collections.abc import Callable
from importlib.util import find_spec

from pipeline.boosting.engines.base import Engine, Ensemble, Fitter, TreeSettings
from pipeline.boosting.engines.exact import ExactEngine
from pipeline.boosting.engines.lightgbm import LightgbmEngine, lossless
from pipeline.boosting.engines.sklearn import SklearnEngine

ENGINES: dict[str, Callable[[TreeSettings, int], Engine]] = {
    "exact": lambda settings, _: ExactEngine(settings),
    "sklearn": lambda settings, _: SklearnEngine(settings),
    "lightgbm": LightgbmEngine,
    "lightgbm_lossless": lossless,
}


AUTO, EXACT_UP_TO = "auto", 100_000  # rows; beyond, LightGBM is the faster one
NATIVE = ("lightgbm",)  # engines whose trees handle missing cells and categories themselves


def engine_for(name: str, n_rows: int) -> str:
    """Return the engine that ``name`` stands for on a table of ``n_rows``.

    "auto" is the exact engine, which is made for the paper's sizes; beyond 100,000 rows it is
    LightGBM, if that is installed.
    """
    if name != AUTO:
        return name
    return "lightgbm" if n_rows > EXACT_UP_TO and find_spec("lightgbm") else "exact"


def make_engine(
    name: str, settings: TreeSettings, n_threads: int = 1, categorical: tuple[int, ...] = ()
) -> Engine:
    """Return the engine called ``name``, which may use several threads.

    categorical : the columns that hold category codes, for an engine that is `NATIVE`.
    """
    if name not in ENGINES:
        raise ValueError(f"engine={name!r}: must be one of {', '.join((AUTO, *ENGINES))}")
    if categorical:
        return LightgbmEngine(settings, n_threads, categorical=categorical)
    return ENGINES[name](settings, n_threads)


__all__ = [
    "AUTO",
    "ENGINES",
    "NATIVE",
    "Engine",
    "Ensemble",
    "Fitter",
    "TreeSettings",
    "engine_for",
    "make_engine",
]
