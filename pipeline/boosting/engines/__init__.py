"""Engines, which fit the trees of a round."""

from collections.abc import Callable

from .base import Engine, Ensemble, Fitter, TreeSettings
from .exact import ExactEngine
from .lightgbm import LOSSLESS, LightgbmEngine
from .sklearn import SklearnEngine
from .smooth import BASES, SmoothEngine

ENGINES: dict[str, Callable[[TreeSettings, int], Engine]] = {
    "exact": lambda settings, _: ExactEngine(settings),
    "sklearn": lambda settings, _: SklearnEngine(settings),
    "lightgbm": LightgbmEngine,
    "lightgbm_lossless": lambda settings, n: LightgbmEngine(settings, n, LOSSLESS),
}


NATIVE = ("lightgbm",)  # engines whose trees handle missing cells and categories themselves


def make_engine(
    name: str, settings: TreeSettings, n_threads: int = 1, categorical: tuple[int, ...] = ()
) -> Engine:
    """Return the engine called ``name``, which may use several threads.

    categorical : the columns that hold category codes, for an engine that is `NATIVE`.
    """
    if name in BASES:
        return SmoothEngine(name, settings)
    if name not in ENGINES:
        known = ", ".join([*ENGINES, *BASES])
        raise ValueError(f"engine={name!r}: must be one of {known}")
    if categorical:
        return LightgbmEngine(settings, n_threads, categorical=categorical)
    return ENGINES[name](settings, n_threads)


__all__ = [
    "ENGINES",
    "NATIVE",
    "Engine",
    "Ensemble",
    "Fitter",
    "TreeSettings",
    "make_engine",
]
