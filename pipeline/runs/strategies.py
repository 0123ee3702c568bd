"""The rescaling that a config describes: one of the paper's, or an object of the user's own."""

import hashlib
import importlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from pipeline.boosting.rescaling import BY_NAME, Rescaling
from pipeline.config import schema
from pipeline.errors import ConfigError


def rescaling_of(strategy: schema.Strategy) -> Rescaling:
    """The rescaling a config describes; raises `ConfigError` if there is no such object."""
    if isinstance(strategy, schema.Custom):
        return _own(strategy)
    return BY_NAME[strategy.name](**strategy.model_dump(exclude={"name"}))


def strategy_key(strategy: schema.Strategy) -> dict[str, Any]:
    """What a strategy's weights depend on; of one's own, the code as it was loaded as well."""
    key = strategy.model_dump(mode="json")
    if isinstance(strategy, schema.Custom):
        key |= {"name": strategy.label, "code": _code(_module_of(strategy).__name__)[0]}
    return key


def sources_of(strategies: Iterable[schema.Strategy]) -> dict[str, bytes]:
    """The modules of strategies of one's own for workers that lack them: source by name.

    Only of modules that are one file; others have to be installed where the workers are.
    """
    found = {}
    for strategy in strategies:
        if isinstance(strategy, schema.Custom):
            name = _module_of(strategy).__name__
            _, source = _code(name)
            if source is not None and "." not in name:
                found[name] = source
    return found


@contextmanager
def provided(sources: Mapping[str, bytes]) -> Iterator[None]:
    """Modules from their source, in this thread alone, in addition to what is installed."""
    token = _PROVIDED.set({name: _made(name, source) for name, source in sources.items()})
    try:
        yield
    finally:
        _PROVIDED.reset(token)


_PROVIDED: ContextVar[Mapping[str, ModuleType]] = ContextVar("provided")


@cache
def _made(name: str, source: bytes) -> ModuleType:
    module = ModuleType(name)
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)  # the driver's own code
    return module


@cache
def _code(name: str) -> tuple[str | None, bytes | None]:
    """A hash of a module's code, and its file if it is but one, as this process loaded them.

    (Files may change while runs are computed.) What it uses of its own package, or of other files
    in its folder, counts as well.
    """
    top = sys.modules[name.partition(".")[0]]
    home = Path(getattr(top, "__file__", None) or "").parent
    package = hasattr(top, "__path__")
    parts: dict[Path, bytes] = {}
    waiting: list[object] = [sys.modules[name]]
    while waiting:
        module = waiting.pop()
        file = Path(getattr(module, "__file__", None) or "")
        ours = file.is_relative_to(home) if package else file.parent == home
        if file.suffix != ".py" or not ours or file in parts:
            continue
        parts[file] = file.read_bytes()
        for value in vars(module).values():
            home_of = sys.modules.get(str(getattr(value, "__module__", None)))
            waiting.append(value if isinstance(value, ModuleType) else home_of)
    if not parts:
        return None, None  # compiled, or built in
    digest = hashlib.sha256()
    for path in sorted(parts):
        digest.update(f"{path.relative_to(home)}/{len(parts[path])}/".encode() + parts[path])
    (first, *_), alone = parts.values(), len(parts) == 1 and not package
    return digest.hexdigest(), first if alone else None


def labels_of(strategies: Iterable[schema.Strategy]) -> dict[str, str]:
    """A name for each different strategy, by `identity`: its label, and where several share it also
    the settings by which they differ, such as ``relaxed offset=3``."""
    different = {identity(s): s for s in strategies}
    labels = {}
    for mine, strategy in different.items():
        alike = [_flat(s.model_dump()) for s in different.values() if s.label == strategy.label]
        differing = [
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in _flat(strategy.model_dump()).items()
            if any(other.get(name) != value for other in alike)
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
    name = strategy.target.rpartition(".")[0]
    sent = _PROVIDED.get({})
    if name in sent:
        return sent[name]
    try:
        module = importlib.import_module(name)
    except Exception as error:  # whatever the user's own code raises
        raise ConfigError(
            f"strategy.target={strategy.target}: the module {name} cannot be imported "
            f"({type(error).__name__}: {error})"
        ) from None
    _code(name)  # as it is now
    return module


def _flat(settings: dict[str, Any]) -> dict[str, Any]:
    arguments = settings.get("arguments", {})
    return {k: v for k, v in settings.items() if k not in {"name", "arguments"}} | arguments
