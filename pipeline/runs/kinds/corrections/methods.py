"""The method that a config describes, with the options it is tuned over."""

import itertools
from collections.abc import Iterator, Mapping
from importlib.util import find_spec

from pipeline.boosting.peers import METHODS, Corrected, Method
from pipeline.config import schema
from pipeline.errors import ConfigError
from pipeline.runs.kinds.corrections.cases import Case

EXTRAS = {"lightgbm": "lightgbm", "mcgrad": "peers"}


def candidates(config: schema.Method, *, in_sample: bool = False) -> list[Method]:
    """Every combination of options to try; raises `ConfigError` about one that cannot be.

    in_sample : the model was fitted to the rows that it is corrected on.
    """
    if config.kind not in METHODS:
        raise ConfigError(f"method.kind={config.kind}: must be one of {', '.join(METHODS)}")
    needed = METHODS[config.kind].needs
    if needed is not None:
        require_package(needed, f"method={config.name}")
    return [_made(config, options, in_sample) for options in _combinations(config)]


def require_package(package: str, what: str) -> None:
    """Raise `ConfigError` if an optional package is not installed."""
    if find_spec(package) is None:
        raise ConfigError(
            f"{what}: needs the extra {EXTRAS[package]!r}: "
            f"pip install -c requirements.lock -e '.[{EXTRAS[package]}]'"
        )


def _combinations(config: schema.Method) -> Iterator[Mapping[str, object]]:
    for values in itertools.product(*config.tuning.values()):
        yield {**config.options, **dict(zip(config.tuning, values, strict=True))}


def _made(config: schema.Method, options: Mapping[str, object], in_sample: bool) -> Method:
    kind = METHODS[config.kind]
    known = list(getattr(kind, "__dataclass_fields__", {}))
    unknown = [name for name in options if name not in known]
    if unknown:
        allowed = f"it has {', '.join(known)}" if known else "it has none"
        raise ConfigError(f"method.options: {config.name} has no option {unknown[0]}; {allowed}")
    extra = {"in_sample": True} if in_sample and "in_sample" in known else {}
    try:
        return kind(**options, **extra)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"method.options: {config.name}: {error}") from None


def correct(config: schema.Config, case: Case) -> tuple[Corrected, Mapping[str, object]]:
    """Correct a case by a config's method; also the options that it was given, or were chosen."""
    methods = candidates(config.method, in_sample=config.situation.is_in_sample)
    losses = [0.0]
    if len(methods) > 1:
        tried = (method.fit(case.correct, case.validation, config.seed) for method in methods)
        losses = [case.validation.loss(fitted.predict(case.validation)) for fitted in tried]
    chosen = losses.index(min(losses))
    method, options = methods[chosen], list(_combinations(config.method))[chosen]
    sample = case.correct if method.validates else case.correct + case.validation
    return method.fit(sample, case.validation, config.seed), options
