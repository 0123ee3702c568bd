"""Hydra's composition as a function: overrides in, typed configs out, errors as `ConfigError`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import ConfigCompositionException, HydraException, MissingConfigException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pipeline.config import GROUPS, Config, check_key, parse
from pipeline.errors import ConfigError

LISTS = {
    "experiment.datasets": "[german,adult]",
    "experiment.strategies": "[unit,relaxed]",
    "experiment.seeds": "[0,1,2]",
}
LAUNCHER_EXTRAS = {
    "joblib": "joblib",
    "ray": "ray",
    "submitit_local": "slurm",
    "submitit_slurm": "slurm",
}
CONF_DIR = Path(__file__).resolve().parents[1] / "conf"


def choices(group: str) -> list[str]:
    """The menu of a config group, e.g. ``dataset``."""
    return sorted(p.stem for p in (CONF_DIR / group).glob("*.yaml") if p.stem != "defaults")


def load(overrides: Sequence[str] = ()) -> Config:
    """The typed config that ``python -m pipeline OVERRIDES`` would run."""
    with _hydra():
        return _load(list(overrides))


def load_all(variants: Sequence[Sequence[str]]) -> list[Config]:
    """`load` for many override lists, starting Hydra once."""
    with _hydra():
        return [_load(list(overrides)) for overrides in variants]


def load_grid(overrides: Sequence[str]) -> dict[tuple[str, str], Config]:
    """The configs of a grid's (dataset, strategy) pairs under the same further overrides.

    The two axes are composed apart and combined, which is quicker than composing every pair.
    """
    plural = {"dataset": "datasets", "strategy": "strategies", "seed": "seeds"}
    for override in _parse(overrides):
        axis = plural.get(override.key_or_group)
        if axis:
            raise ConfigError(
                f"{override.input_line}: a grid has its own {axis}; choose among them with "
                f"experiment.{axis}=[…]"
            )
    grid = load(overrides).experiment
    datasets = load_all(
        [[*overrides, f"dataset={d}", f"strategy={grid.strategies[0]}"] for d in grid.datasets]
    )
    strategies = load_all(
        [[*overrides, f"dataset={grid.datasets[0]}", f"strategy={s}"] for s in grid.strategies]
    )
    labels = [config.dataset.label for config in datasets]
    if len(set(labels)) < len(labels):
        raise ConfigError(
            f"experiment.datasets={list(grid.datasets)}: two of them are called the same "
            f"({', '.join(labels)}) and could not be told apart; change a dataset.name"
        )
    return {
        (dataset, strategy): by_dataset.model_copy(update={"strategy": by_strategy.strategy})
        for dataset, by_dataset in zip(grid.datasets, datasets, strict=True)
        for strategy, by_strategy in zip(grid.strategies, strategies, strict=True)
    }


def check_overrides(overrides: Sequence[str], multirun: bool) -> None:
    """Raise `ConfigError` for the first thing wrong with a command line.

    In a multirun every value of every sweep is tried once beside the others' first values, which
    finds each bad value without composing the whole product.
    """
    parsed = _parse(overrides)
    for override in parsed:
        _check_key(override)
    values = [_values(o, multirun) for o in parsed]
    first = [v[0] for v in values]
    variants = [first] + [
        [*first[:i], value, *first[i + 1 :]] for i, axis in enumerate(values) for value in axis[1:]
    ]
    load_all(variants)


@contextmanager
def _hydra() -> Iterator[None]:
    if not CONF_DIR.is_dir():
        raise ConfigError("conf/ is not beside the package: run from a checkout of the repository")
    state = GlobalHydra.instance()
    before = state.hydra  # inside a Hydra job its state must survive ours
    state.clear()
    try:
        with initialize_config_dir(str(CONF_DIR), version_base="1.3"):
            yield
    finally:
        state.hydra = before


def _load(overrides: list[str]) -> Config:
    try:
        raw = OmegaConf.to_container(compose("config", overrides), resolve=True)
    except MissingConfigException as error:
        raise ConfigError(_unknown_choice(error)) from None
    except ConfigCompositionException as error:
        raise ConfigError(_out_of_place(error)) from None
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(_first_sentence(error)) from None
    assert isinstance(raw, dict)
    return parse({str(key): value for key, value in raw.items()})


def _parse(overrides: Sequence[str]) -> list[Override]:
    parser = OverridesParser.create()
    parsed = []
    for line in overrides:
        try:
            parsed.append(parser.parse_override(line))
        except HydraException:
            raise ConfigError(f"{line}: cannot be read; write KEY=VALUE") from None
    return parsed


def _check_key(override: Override) -> None:
    key = override.key_or_group
    if key.split(".")[0].split("/")[0] == "hydra":
        return
    if override.is_delete():
        raise ConfigError(f"{override.input_line}: no key can be removed")
    check_key(key)


def _values(override: Override, multirun: bool) -> list[str]:
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


def _unknown_choice(error: MissingConfigException) -> str:
    group, _, choice = str(error.missing_cfg_file or "").rpartition("/")
    if group == "hydra/launcher" and choice in LAUNCHER_EXTRAS:
        extra = LAUNCHER_EXTRAS[choice]
        return f"{group}={choice}: needs the extra {extra!r}: pip install -e '.[{extra}]'"
    options = choices(group) if group in GROUPS else sorted(error.options or [])
    return f"{group}={choice}: must be one of {', '.join(options)}."


def _out_of_place(error: ConfigCompositionException) -> str:
    """A key of the schema that the chosen menu entry does not have, e.g. unit's exponent."""
    text = _first_sentence(error)
    quoted = text.split("'")
    if text.startswith("Could not override") and len(quoted) > 1:
        key = quoted[1]
        return f"{key}: this key does not belong to the chosen {key.split('.')[0]}"
    return text


def _first_sentence(error: Exception) -> str:
    return " ".join(str(error).split("\n")[0].split()) or type(error).__name__
