"""The rescaling that a config describes: one of the paper's, or an object of the user's own."""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from pipeline.boosting.rescaling import Adaptive, Relaxed, Rescaling, Unit
from pipeline.config import schema
from pipeline.errors import ConfigError


def rescaling_of(strategy: schema.Strategy) -> Rescaling:
    """The rescaling a config describes; raises `ConfigError` if there is no such object."""
    if isinstance(strategy, schema.Relaxed):
        return Relaxed(strategy.offset, strategy.exponent)
    if isinstance(strategy, schema.Custom):
        return _own(strategy)
    return Unit() if isinstance(strategy, schema.Unit) else Adaptive()


def strategy_key(strategy: schema.Strategy) -> dict[str, Any]:
    """What a strategy's weights depend on; of one's own, the code of its module as well."""
    key = json.loads(strategy.model_dump_json())
    if isinstance(strategy, schema.Custom):
        source = source_of(strategy)
        key |= {"name": strategy.label, "code": None if source is None else _sha256(source)}
    return key


def source_of(strategy: schema.Custom) -> Path | None:
    """The file of a strategy's module, if it is Python."""
    file = getattr(_module_of(strategy), "__file__", None)
    return Path(file) if file and file.endswith(".py") else None


def sources_of(strategies: Iterable[schema.Strategy]) -> dict[str, bytes]:
    """The modules of strategies of one's own, for workers that lack them: source by name."""
    found = {}
    for strategy in strategies:
        if isinstance(strategy, schema.Custom):
            source = source_of(strategy)
            if source is not None:
                found[_module_of(strategy).__name__] = source.read_bytes()
    return found


def provide(sources: Mapping[str, bytes]) -> None:
    """Make modules importable here from the source that was sent along; packages must be here."""
    for name, source in sources.items():
        if name in sys.modules or "." in name:
            held = getattr(sys.modules.get(name), "__file__", None)
            if "." in name or (held and Path(held).read_bytes() == source):
                continue
        folder = Path(tempfile.mkdtemp(prefix="mcboost-strategy-"))
        (folder / f"{name}.py").write_bytes(source)
        sys.path.insert(0, str(folder))
        importlib.invalidate_caches()
        sys.modules.pop(name, None)


def labels_of(strategies: Iterable[schema.Strategy]) -> dict[str, str]:
    """A name for each different strategy, by `identity`: its label, and where several share it also
    the settings by which they differ, such as ``relaxed offset=3``."""
    different = {identity(s): s for s in strategies}
    labels = {}
    for mine, strategy in different.items():
        alike = [s.model_dump() for s in different.values() if s.label == strategy.label]
        settings = _flat(strategy.model_dump())
        differing = [
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in settings.items()
            if any(_flat(other).get(name) != value for other in alike)
        ]
        labels[mine] = " ".join([strategy.label, *differing])
    return labels


def identity(strategy: schema.Strategy) -> str:
    """A strategy's settings as text."""
    return str(strategy.model_dump_json())


def _own(strategy: schema.Custom) -> Rescaling:
    said = f"strategy.target={strategy.target}"
    module = _module_of(strategy)
    name = strategy.target.rpartition(".")[2]
    try:
        make = getattr(module, name)
    except AttributeError:
        raise ConfigError(f"{said}: {module.__name__} has no {name}") from None
    try:
        made = make(**strategy.arguments)
    except Exception as error:  # whatever the user's own code raises
        given = ", ".join(f"{k}={v!r}" for k, v in strategy.arguments.items())
        raise ConfigError(
            f"{said}: {name}({given}) failed ({type(error).__name__}: {error})"
        ) from None
    if not callable(getattr(made, "weight", None)):
        raise ConfigError(f"{said}: what {name} gives has no weight(t, y, phi) method")
    return made


def _module_of(strategy: schema.Custom) -> ModuleType:
    module = strategy.target.rpartition(".")[0]
    try:
        return importlib.import_module(module)
    except Exception as error:  # whatever the user's own code raises
        raise ConfigError(
            f"strategy.target={strategy.target}: the module {module} cannot be imported "
            f"({type(error).__name__}: {error})"
        ) from None


def _flat(settings: dict[str, Any]) -> dict[str, Any]:
    arguments = settings.get("arguments", {})
    return {k: v for k, v in settings.items() if k not in {"name", "arguments"}} | arguments


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
