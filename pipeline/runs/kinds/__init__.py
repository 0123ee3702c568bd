"""The kinds of runs, one module or package each; its ``KIND`` says what such runs are.

A new kind is a new module here and an experiment whose ``kind`` is its name.
"""

import pkgutil
from collections.abc import Sequence
from importlib import import_module

from pipeline.config.schema import Config
from pipeline.errors import ConfigError
from pipeline.runs.kinds.base import Kind


def kinds() -> list[str]:
    """The names of all kinds."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name != "base")


def kind_named(name: str) -> Kind:
    """A kind by its name."""
    if name not in kinds():
        raise ConfigError(f"experiment.kind={name}: must be one of {', '.join(kinds())}")
    return import_module(f"{__name__}.{name}").KIND


def kind_of(configs: Sequence[Config]) -> Kind:
    """The kind of some runs: that of their experiment, or its alternative for such configs."""
    wanted = kind_named(configs[0].experiment.kind)
    for name in wanted.alternatives:
        other = kind_named(name)
        applies = [other.applies(config) for config in configs]
        if all(applies):
            return other
        if any(applies):
            raise ConfigError(
                f"experiment.datasets: some are {other.title} and some are not; make two grids"
            )
    return wanted
