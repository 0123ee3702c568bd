"""The engine that a config describes."""

from dataclasses import replace

from pipeline.boosting.arrays import Floats
from pipeline.boosting.engines import Engine, Fitter, TreeSettings, make_engine
from pipeline.boosting.engines.hybrid import HybridEngine
from pipeline.boosting.engines.lightgbm import Bins, LightgbmEngine
from pipeline.boosting.engines.smooth import SmoothEngine
from pipeline.config.schema import Config, Lightgbm, Smooth
from pipeline.datasets.design import Split


def engine_of(config: Config, categorical: tuple[int, ...] = ()) -> Engine:
    """The engine with the settings of a round."""
    weak = _weak_engine(config, categorical)
    return HybridEngine(weak, config.boosting.gamma) if config.boosting.gamma else weak


def _weak_engine(config: Config, categorical: tuple[int, ...]) -> Engine:
    boosting, engine = config.boosting, config.engine
    settings = TreeSettings(boosting.trees, boosting.max_depth, boosting.learning_rate)
    if isinstance(engine, Smooth):
        return SmoothEngine(engine.name, replace(settings, l2=engine.l2), engine.width)
    if not isinstance(engine, Lightgbm):
        return make_engine(engine.name, settings)
    settings = replace(settings, min_samples_leaf=engine.min_rows_in_leaf)
    bins = Bins(engine.bins, engine.min_rows_in_bin)
    return LightgbmEngine(settings, engine.threads, bins, categorical)


def is_native(config: Config) -> bool:
    """Whether the engine sees missing cells and categories as they are."""
    return isinstance(config.engine, Lightgbm) and config.engine.native


def bound(config: Config, data: Split) -> tuple[Fitter, Floats]:
    """The engine, bound to a split's training rows, and the test rows as its ensembles see them."""
    if data.native is None:
        return engine_of(config).bind(data.X_train, data.w_train), data.X_test
    engine = engine_of(config, data.native.categorical)
    return engine.bind(data.native.train, data.w_train), data.native.test
