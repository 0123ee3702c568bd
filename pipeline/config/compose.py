"""Hydra's composition as a function: overrides in, typed configs out, errors as `ConfigError`."""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hydra import compose, initialize_config_dir
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import create_config_search_path
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import ValidationError
from yaml import YAMLError

from pipeline.config import messages
from pipeline.config.overrides import parsed, readable, search_path, with_search_path
from pipeline.config.schema import AXES, GROUPS, Config
from pipeline.errors import ConfigError
from pipeline.paths import CONF

LISTS = {
    "experiment.datasets": "[german,adult]",
    "experiment.strategies": "[unit,relaxed]",
    "experiment.situations": "[forest,linear]",
    "experiment.methods": "[nothing,ours]",
    "experiment.seeds": "[0,1,2]",
    "dataset.drop": "[name,address]",
    "dataset.sensitive": "[sex,region]",
    "audit.compare": "[old,new]",
    "audit.groups": "[sex,region]",
    "figures.only": "[gap,training]",
    "compare.experiments": "[paper,eta03]",
}


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
    axes = {key: values for key, values in config.experiment.further.items() if _has(config, key)}
    variants = []
    for values in itertools.product(*axes.values()):
        raw = config.model_dump()
        for key, value in zip(axes, values, strict=True):
            _set(raw, key, value)
        try:
            variants.append(Config.model_validate(raw))
        except ValidationError as error:
            raise ConfigError(f"experiment.vary: {messages.of_validation(error, raw)}") from None
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


def _has(config: Config, key: str) -> bool:
    """Whether a key of ``experiment.vary`` is one of the config's strategy, or of no strategy."""
    section, _, leaf = key.partition(".")
    return section != "strategy" or hasattr(config.strategy, leaf.split(".")[0])


def check_overrides(overrides: Sequence[str], *, multirun: bool) -> None:
    """Raise `ConfigError` for a key, or in a multirun a value, that cannot be.

    Of a multirun every value of every sweep is tried once with the others' first values, which
    finds each bad value before the first job without composing the whole product. A single job's
    values are judged when it is composed.
    """
    found = parsed(overrides)
    for override in found:
        _check_key(override, overrides)
    values = [_values(override, multirun=multirun) for override in found]
    if multirun:
        first = [v[0] for v in values]
        tried = [first]
        for i, axis in enumerate(values):
            tried += [[*first[:i], value, *first[i + 1 :]] for value in axis[1:]]
        if any(config.experiment.is_grid for config in load_all(tried)):
            _refuse_axes(found, tuple(AXES))


def first_of_sweep(overrides: Sequence[str]) -> list[str]:
    """The overrides of a multirun's first job."""
    return [_values(override, multirun=True)[0] for override in parsed(overrides)]


def typed(raw: DictConfig) -> Config:
    """A composed config as the schema's models; raises `ConfigError` about the first fault."""
    with explained():
        container: Any = OmegaConf.to_container(raw, resolve=True)
    try:
        return Config.model_validate(container)
    except ValidationError as error:
        raise ConfigError(messages.of_validation(error, container)) from None


@contextmanager
def explained(overrides: Sequence[str] = ()) -> Iterator[None]:
    """Turns Hydra's failures to compose ``overrides`` into one sentence."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        menus = {group: choices(group, overrides) for group in GROUPS}
        raise ConfigError(messages.of_composition(error, menus)) from None
    except YAMLError as error:
        said = " ".join(str(error).split())
        raise ConfigError(f"a file of the configuration is no YAML: {said}") from None


@contextmanager
def _hydra() -> Iterator[None]:
    if not CONF.is_dir():
        raise ConfigError("conf/ is not next to the package: run from a checkout of the repository")
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
    messages.check_key(key)
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
    """An override for each value of a sweep."""
    line = str(override.input_line)
    if not override.is_sweep_override():
        return [line]
    if override.key_or_group in LISTS and "=[" not in line:
        raise ConfigError(f"{line}: write a list, such as {LISTS[override.key_or_group]}")
    if not multirun:
        raise ConfigError(f"{line}: several values need a multirun; add -m")
    prefix = line.split("=", 1)[0]
    try:
        return [f"{prefix}={value}" for value in override.sweep_string_iterator()]
    except HydraException:
        raise ConfigError(f"{line}: write the values of a sweep as a,b,c or range(…)") from None
