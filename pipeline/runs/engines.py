"""The engine that a config describes."""

from __future__ import annotations

from dataclasses import replace

from pipeline.boosting.engines import Engine, TreeSettings, make_engine
from pipeline.boosting.engines.lightgbm import Bins, LightgbmEngine
from pipeline.config.schema import Config, Lightgbm
from pipeline.errors import ConfigError


def engine_of(config: Config) -> Engine:
    """The engine with the settings of a round; raises `ConfigError` if it is not installed."""
    boosting, engine = config.boosting, config.engine
    settings = TreeSettings(boosting.trees, boosting.max_depth, boosting.learning_rate)
    if not isinstance(engine, Lightgbm):
        return make_engine(engine.name, settings)
    settings = replace(settings, min_samples_leaf=engine.min_rows_in_leaf)
    try:
        return LightgbmEngine(settings, engine.threads, Bins(engine.bins, engine.min_rows_in_bin))
    except ImportError:
        raise ConfigError(
            "engine=lightgbm: needs the extra 'lightgbm': pip install -e '.[lightgbm]'"
        ) from None
