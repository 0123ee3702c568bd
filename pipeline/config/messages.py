"""One line for every mistake in a configuration: the key, the value and what is allowed.

What is allowed comes from the schema; what went wrong, from the type and the fields of an
exception.
"""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from hydra.errors import HydraException, MissingConfigException
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException
from pydantic import ValidationError

from pipeline.config.overrides import ARGUMENTS, OPEN
from pipeline.config.schema import GROUPS, leaves
from pipeline.errors import ConfigError

# The extras that bring choices of Hydra.
EXTRAS = {"joblib": "joblib", "submitit_local": "slurm", "submitit_slurm": "slurm"}


def check_key(key: str) -> None:
    """Raise `ConfigError` unless a dotted ``key`` (of an override) is in the schema."""
    known = [leaf for leaf, _ in leaves()]
    if key in known or key in GROUPS or key.startswith(OPEN):
        return
    near = difflib.get_close_matches(key, [*known, *GROUPS], n=1)
    hint = f"; did you mean {near[0]}?" if near else "."
    section = key.rpartition(".")[0]
    siblings = [leaf for leaf in known if leaf.rpartition(".")[0] == section]
    allowed = ", ".join([*siblings, *(GROUPS if not section else ())]) or ", ".join(GROUPS)
    raise ConfigError(f"{key}: there is no such key{hint} Allowed here: {allowed}.")


def of_composition(
    error: HydraException | OmegaConfBaseException, menus: Mapping[str, Sequence[str]]
) -> str:
    """What is wrong with overrides that Hydra could not put together.

    menus : the choices of each group.
    """
    if isinstance(error, MissingConfigException):
        return _unknown_choice(error, menus)
    cause = error.__cause__
    if isinstance(cause, ConfigAttributeError | ConfigKeyError) and cause.full_key:
        return _foreign_key(str(cause.full_key))
    said = " ".join(str(error).split())
    key = said.partition("Error merging override ++")[2].partition("=")[0]
    if any(key == leaf for leaf, _ in leaves()):
        return f"{key}: must be {_allowed(key)}."
    return f"the configuration cannot be composed: {said}"


def of_validation(error: ValidationError, raw: Mapping[str, Any]) -> str:
    """The first thing wrong with a composed configuration."""
    first = error.errors(include_url=False)[0]
    key, value = _locate(first["loc"], raw)
    if first["type"] == "value_error":  # our own validators write whole sentences
        return str(first["ctx"]["error"])
    if first["type"] == "extra_forbidden":
        try:
            check_key(key)
        except ConfigError as unknown:
            return str(unknown)
        return _foreign_key(key)
    if first["type"] == "missing":
        return f"{key}: is missing; it must be {_allowed(key)}."
    return f"{key}={'null' if value is None else value}: must be {_allowed(key)}."


def _unknown_choice(error: MissingConfigException, menus: Mapping[str, Sequence[str]]) -> str:
    group, _, choice = str(error.missing_cfg_file or "").rpartition("/")
    if group.startswith("hydra/") and choice in EXTRAS:
        extra = EXTRAS[choice]
        return f"{group}={choice}: needs the extra {extra!r}: pip install -e '.[{extra}]'"
    options = menus.get(group) or sorted(error.options or [])
    return f"{group}={choice}: must be one of {', '.join(options)}."


def _foreign_key(key: str) -> str:
    """A key of the schema that the chosen menu entry does not have, e.g. unit's exponent."""
    group = key.split(".")[0]
    grid = ""
    if key in {"strategy.target", "strategy.name"} or key.startswith(ARGUMENTS[:-1]):
        grid = "; it is strategy=custom's, and for a grid of a YAML of your own (--config-dir)"
    elif group == "strategy":
        grid = f"; in a grid write 'experiment.vary={{{key}:[…]}}'"
    return f"{key}: this key does not belong to the chosen {group}{grid}."


def _allowed(key: str) -> str:
    known = dict(leaves())
    keys = [leaf for leaf in known if leaf.startswith(f"{key}.")]
    return known.get(key) or (f"a section with {', '.join(keys)}" if keys else "a known value")


def _locate(loc: tuple[int | str, ...], raw: Mapping[str, Any]) -> tuple[str, Any]:
    """The dotted key and the value at fault.

    Of pydantic's path only what is in ``raw`` counts: not its list positions, nor the name of the
    member of a union, which stands behind the union's key and before one of the member's own.
    """
    value: Any = raw
    key: list[str] = []
    for position, part in enumerate(loc):
        if not isinstance(value, Mapping):
            break
        if part in value:
            value = value[part]
            key.append(str(part))
        elif position + 1 == len(loc):
            return ".".join([*key, str(part)]), None
    return ".".join(key), value
