"""The paper's datasets as ``data/manifest.yaml`` describes them."""

from __future__ import annotations

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
    """One entry of the manifest.

    encoded_width : the columns of the whole table after one-hot encoding without first levels.
    """

    name: str
    title: str
    file: str | None
    sha256: str | None
    content_sha256: str
    rows: int
    encoded_width: int
    columns: tuple[str, ...]
    categories: frozenset[str]
    separator: str
    header: bool
    origin: str
    licence: str
    citation: str
    openml: OpenmlSpec | None


@cache
def manifest() -> Mapping[str, TableSpec]:
    """The paper's datasets by name, from ``data/manifest.yaml``."""
    raw = yaml.safe_load((DATA / "manifest.yaml").read_text(encoding="utf-8"))
    for entry in raw.values():
        entry["columns"] = tuple(entry["columns"])
        entry["categories"] = frozenset(entry["categories"])
        entry["openml"] = OpenmlSpec(**entry["openml"]) if entry["openml"] else None
    return {name: TableSpec(name=name, **entry) for name, entry in raw.items()}
