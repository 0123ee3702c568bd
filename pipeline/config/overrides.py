"""Overrides as people write them, put such that Hydra reads them as they are meant."""

import re
from collections.abc import Sequence
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from pipeline.config.schema import leaves
from pipeline.errors import ConfigError

SEARCH_PATH = "hydra.searchpath"
MOST_SEEDS = 10_000  # in a range
ARGUMENTS = "strategy.arguments."
OPEN = (ARGUMENTS, "method.options.", "method.tuning.")  # whose keys no schema knows


def readable(overrides: Sequence[str]) -> list[str]:
    """The same overrides, quoted where Hydra needs quotes; what cannot be mended is left."""
    return [_readable(line) for line in overrides]


def parsed(overrides: Sequence[str]) -> list[Override]:
    """Hydra's view of overrides; raises `ConfigError` about the first that it cannot read."""
    found = []
    for line in overrides:
        override = _parse(_readable(line))
        if override is None:
            key, _, value = line.partition("=")
            hint = f'; write such a value in quotes: {key}="{_quoted(value)}"' if value else ""
            raise ConfigError(f"{line}: cannot be read; write KEY=VALUE{hint}")
        found.append(override)
    return found


def with_search_path(overrides: Sequence[str], folder: str | None) -> list[str]:
    """The overrides with one ``hydra.searchpath`` of absolute places, ``--config-dir`` included."""
    others = [line for line in overrides if key_of(line) != SEARCH_PATH]
    places = search_path(overrides)
    if folder is not None:
        places.insert(0, _place(folder, f"--config-dir={folder}"))
    return [f"{SEARCH_PATH}=[{','.join(map(_quoted, places))}]", *others] if places else others


def search_path(overrides: Sequence[str]) -> list[str]:
    """Where else than in the project's ``conf/`` configs are looked for, as Hydra names places."""
    places: list[str] = []
    for override in parsed([line for line in overrides if key_of(line) == SEARCH_PATH]):
        value = override.value()
        for place in value if isinstance(value, list) else [value]:
            places.append(_place(str(place), f"{SEARCH_PATH}={place}"))
    return places


def folders(overrides: Sequence[str]) -> list[Path]:
    """The places of the search path that are folders."""
    places = search_path(overrides)
    return [Path(p.removeprefix("file://")) for p in places if p.startswith("file://")]


def key_of(line: str) -> str:
    """The key of an override."""
    return line.partition("=")[0].lstrip("+")


def _place(place: str, said: str) -> str:
    if re.match(r"^(pkg|structured)://", place):
        return place
    path = Path(place.removeprefix("file://")).expanduser().absolute()
    if not path.is_dir():
        raise ConfigError(f"{said}: there is no such folder")
    return f"file://{path}"


def _readable(line: str) -> str:
    key, equals, value = line.partition("=")
    name = key_of(line)
    if not equals:
        return line
    if f"{name}.".startswith(OPEN):
        key = f"++{name}"  # whether the strategy's file has it or not
    if name == "experiment.seeds" and value.startswith("range("):
        value = _as_list(value)
    spelled = f"{key}={value}"
    if _parse(spelled) is not None or not value:
        return spelled
    if not name.startswith(OPEN) and name not in {leaf for leaf, _ in leaves()}:
        return spelled
    if value.startswith("[") and value.endswith("]"):
        words = [word.strip() for word in value[1:-1].split(",")]
        quoted = f"{key}=[{','.join(map(_quoted, words))}]"
    else:
        quoted = f"{key}={_quoted(value)}"
    return spelled if _parse(quoted) is None else quoted


def _as_list(value: str) -> str:
    """``range(0,3)`` as ``[0,1,2]``; anything else as it is."""
    numbers = re.fullmatch(r"range\(\s*(\d+(?:\s*,\s*\d+){0,2})\s*\)", value)
    if numbers is None:
        return value
    try:
        seeds = range(*(int(n) for n in numbers[1].split(",")))
    except ValueError:  # a step of 0
        return value
    if len(seeds) > MOST_SEEDS:
        raise ConfigError(f"experiment.seeds={value}: are more than {MOST_SEEDS}")
    return f"[{','.join(map(str, seeds))}]"


def _quoted(word: str) -> str:
    if word[:1] == word[-1:] and word[:1] in {"'", '"'} and len(word) > 1:
        return word
    return "'" + re.sub(r"(\\*)'", r"\1\1\\'", word) + "'"


def _parse(line: str) -> Override | None:
    try:
        return OverridesParser.create().parse_override(line)
    except HydraException:
        return None
