"""Hydra's composition as a function: overrides in, typed configs out, errors as `ConfigError`.

An error is one line: the key, the value and what is allowed. What is allowed comes from the schema;
what went wrong, from the type and the fields of an exception.
"""

import difflib
import itertools
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from hydra import compose, initialize_config_dir
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import create_config_search_path
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException, MissingConfigException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException
from pydantic import ValidationError
from yaml import YAMLError

from pipeline.config.overrides import (
    ARGUMENTS,
    OPEN,
    parsed,
    readable,
    search_path,
    with_search_path,
)
from pipeline.config.schema import AXES, GROUPS, Config, leaves
from pipeline.errors import ConfigError
from pipeline.paths import CONF

# The extras that bring choices of Hydra.
EXTRAS = {"joblib": "joblib", "submitit_local": "slurm", "submitit_slurm": "slurm"}


def choices(group: str, overrides: Sequence[str] = ()) -> list[str]:
    """The menu of a config group, e.g. ``dataset``, with what a search path adds to it."""
    places = create_config_search_path(str(CONF))
    for place in search_path(overrides):
        places.append("command-line", place)
    return sorted(set(ConfigLoaderImpl(places).get_group_options(group)))


def load(overrides: Sequence[str] = ()) -> Config:
    """The typed config that ``python -m pipeline OVERRIDES`` would run."""
    (config,) = load_all([overrides])
    return config


def load_all(variants: Sequence[Sequence[str]]) -> list[Config]:
    """`load` for many override lists, starting Hydra once."""
    found = []
    with _hydra():
        for overrides in variants:
            lines = with_search_path(readable(overrides), None)
            with explained(lines):
                raw = compose("config", lines)
            found.append(typed(raw))
    return found


def load_grid(
    config: Config, overrides: Sequence[str], groups: Sequence[str]
) -> dict[tuple[str, ...], Config]:
    """The configs of a grid under the same ``overrides``, by the choices that each combines.

    config : what ``overrides`` compose to, for the choices of the axes.  groups : the groups of the
    configuration that are axes, of which dataset is one. The axes are composed apart and combined,
    which is quicker than composing every combination.
    """
    _refuse_axes(parsed(overrides), groups)
    axes = {group: config.experiment.axis(group) for group in groups}
    first = {group: names[0] for group, names in axes.items()}
    # Each choice with the first ones of the other groups; all first ones are composed once.
    lines = {
        (group, name): (*overrides, *(f"{g}={n}" for g, n in (first | {group: name}).items()))
        for group, names in axes.items()
        for name in names
    }
    different = list(dict.fromkeys(lines.values()))
    composed = dict(zip(different, load_all(different), strict=True))
    loaded = {choice: composed[line] for choice, line in lines.items()}
    labels = [loaded["dataset", name].dataset.label for name in axes["dataset"]]
    if len(set(labels)) < len(labels):
        raise ConfigError(
            "experiment.datasets: two of them are called the same "
            f"({', '.join(labels)}) and could not be told apart; change a dataset.name"
        )
    grid = {}
    for names in itertools.product(*axes.values()):
        chosen = {g: loaded[g, n] for g, n in zip(groups, names, strict=True)}
        update = {g: getattr(c, g) for g, c in chosen.items()}
        grid[names] = chosen[groups[0]].model_copy(update=update)
    return grid


def varied(config: Config) -> list[Config]:
    """A config under each combination of ``experiment.vary``; a key that its strategy lacks stays.

    Each is validated anew, as if its values had been on the command line.
    """
    axes = {
        key: values
        for key, values in config.experiment.further.items()
        if not key.startswith("strategy.") or hasattr(config.strategy, key.split(".")[1])
    }
    variants = []
    for values in itertools.product(*axes.values()):
        raw = config.model_dump()
        for key, value in zip(axes, values, strict=True):
            _set(raw, key, value)
        try:
            variants.append(Config.model_validate(raw))
        except ValidationError as error:
            raise ConfigError(f"experiment.vary: {of_validation(error, raw)}") from None
    return variants


def _set(raw: dict[str, Any], key: str, value: object) -> None:
    *sections, leaf = key.split(".")
    section: Any = raw
    for name in sections:
        section = section.get(name) if isinstance(section, dict) else None
    is_open = sections[-1] in {"arguments", "options"}  # whose keys no schema knows
    if not isinstance(section, dict) or (leaf not in section and not is_open):
        raise ConfigError(f"experiment.vary: {key}: there is no such key")
    section[leaf] = value


def check_overrides(overrides: Sequence[str], *, multirun: bool) -> Config | None:
    """Raise `ConfigError` for a key, or in a multirun a value, that cannot be.

    Of a multirun every value of every sweep is tried once with the others' first values, which
    finds each bad value before the first job without composing the whole product; returns the first
    job's config. A single job's values are judged when it is composed.
    """
    found = parsed(overrides)
    for override in found:
        _check_key(override, overrides)
    values = [_values(override, multirun=multirun) for override in found]
    if not multirun:
        return None
    first = [v[0] for v in values]
    tried = [first]
    for i, axis in enumerate(values):
        tried += [[*first[:i], value, *first[i + 1 :]] for value in axis[1:]]
    configs = load_all(tried)
    if any(config.experiment.is_grid for config in configs):
        _refuse_axes(found, tuple(AXES))
    return configs[0]


def typed(raw: DictConfig) -> Config:
    """A composed config as the schema's models; raises `ConfigError` about the first fault."""
    with explained():
        container: Any = OmegaConf.to_container(raw, resolve=True)
    try:
        return Config.model_validate(container)
    except ValidationError as error:
        raise ConfigError(of_validation(error, container)) from None


@contextmanager
def explained(overrides: Sequence[str] = ()) -> Iterator[None]:
    """Turns Hydra's failures to compose ``overrides`` into one sentence."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        menus = {group: choices(group, overrides) for group in GROUPS}
        raise ConfigError(of_composition(error, menus)) from None
    except YAMLError as error:
        said = " ".join(str(error).split())
        raise ConfigError(f"a file of the configuration is no YAML: {said}") from None


_ONE_AT_A_TIME = threading.RLock()  # Hydra's state is that of the process


@contextmanager
def _hydra() -> Iterator[None]:
    if not CONF.is_dir():
        raise ConfigError("conf/ is not next to the package: run from a checkout of the repository")
    with _ONE_AT_A_TIME:
        state = GlobalHydra.instance()
        before = state.hydra  # inside a Hydra job its state must survive ours
        state.clear()
        try:
            with initialize_config_dir(str(CONF), version_base="1.3"):
                yield
        finally:
            state.hydra = before


def _check_key(override: Override, overrides: Sequence[str]) -> None:
    key = override.key_or_group
    if key.split(".")[0].split("/")[0] == "hydra":
        return
    if override.is_delete():
        raise ConfigError(f"{override.input_line}: no key can be removed")
    check_key(key)
    if key in GROUPS and not override.is_sweep_override() and not isinstance(override.value(), str):
        menu = ", ".join(choices(key, overrides))
        raise ConfigError(f"{override.input_line}: must be one of {menu}.")


def _refuse_axes(overrides: Sequence[Override], groups: Sequence[str]) -> None:
    """A grid has its own datasets, seeds and so on."""
    axes = {group: AXES[group] for group in groups} | {"seed": "seeds"}
    for override in overrides:
        if axis := axes.get(override.key_or_group):
            raise ConfigError(
                f"{override.input_line}: a grid has its own {axis}; choose among them with "
                f"experiment.{axis}=[…]"
            )


def _values(override: Override, *, multirun: bool) -> list[str]:
    line = str(override.input_line)
    if not override.is_sweep_override():
        return [line]
    if _allowed(override.key_or_group).startswith("a list of ") and "=[" not in line:
        given = line.partition("=")[2]
        listed = "…" if "(" in given else given
        raise ConfigError(f"{line}: write a list, {override.key_or_group}=[{listed}]")
    if not multirun:
        raise ConfigError(f"{line}: several values need a multirun; add -m")
    prefix = line.split("=", 1)[0]
    try:
        return [f"{prefix}={value}" for value in override.sweep_string_iterator()]
    except HydraException:
        raise ConfigError(f"{line}: write the values of a sweep as a,b,c or range(…)") from None


# --- error messages ------------------------------------------------------------------------------


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
        group, _, choice = str(error.missing_cfg_file or "").rpartition("/")
        if group.startswith("hydra/") and choice in EXTRAS:
            extra = EXTRAS[choice]
            return f"{group}={choice}: needs the extra {extra!r}: pip install -e '.[{extra}]'"
        options = menus.get(group) or sorted(error.options or [])
        return f"{group}={choice}: must be one of {', '.join(options)}."
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
