"""Canonical tables: one form, one content hash, whatever the source.

A canonical table is a pandas frame whose columns are either float64 (missing cells are NaN) or
strings (a missing cell is the level ``"?"``). The columns of the paper's datasets are described in
``data/manifest.yaml``; any other table is brought to the same form by its own dtypes.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Container
from typing import Any

import numpy as np
import pandas as pd

from pipeline.datasets.manifest import OpenmlSpec, TableSpec
from pipeline.errors import DataError

log = logging.getLogger("pipeline")

MISSING_LEVEL = "?"
# Kinds of values by pandas' names: numbers in a column of objects, and what is neither number nor
# level.
NUMBERS = {"decimal", "integer", "floating", "mixed-integer-float", "boolean"}
DATES = dict.fromkeys(("date", "datetime", "datetime64", "time", "period"), "dates or times")
OTHERS = DATES | {
    "timedelta": "durations", "timedelta64": "durations", "interval": "intervals",
    "bytes": "bytes", "complex": "complex numbers",
}  # fmt: skip
FEW_LEVELS, MOSTLY = 20, 0.9  # from so many levels on, this share of numbers is no coincidence


def canonicalise(
    frame: pd.DataFrame, spec: TableSpec | None = None, leave: Container[str] = ()
) -> pd.DataFrame:
    """A copy of ``frame`` in canonical form; with a ``spec``, with its columns in its order.

    leave : columns that will be left out, and may hold what is neither number nor level.
    """
    if spec is None or not spec.columns:
        kinds = {c: _is_category(frame[c], refuse=str(c) not in leave) for c in frame.columns}
    else:
        frame = _select(frame, spec)
        kinds = {c: c in spec.categories for c in spec.columns}
    columns = {c: (_as_levels if words else _as_numbers)(frame[c]) for c, words in kinds.items()}
    return pd.DataFrame({str(c): column for c, column in columns.items()})


def content_hash(table: pd.DataFrame) -> str:
    """The sha256 of a canonical table's names, kinds, values and row order."""
    digest = hashlib.sha256()
    for name in table.columns:
        column = table[name]
        if is_number(column):
            values = column.to_numpy(np.float64) + 0.0  # -0.0 and 0.0 are one value
            values[np.isnan(values)] = np.nan  # and so are all NaNs
            digest.update(json.dumps([name, "number", len(values)]).encode())
            digest.update(values.astype("<f8").tobytes())
        else:
            codes, levels = pd.factorize(column.to_numpy(object))
            digest.update(json.dumps([name, "category", len(codes), list(levels)]).encode())
            digest.update(codes.astype("<i8").tobytes())
    return digest.hexdigest()


def describe_differences(table: pd.DataFrame, reference: pd.DataFrame) -> str:
    """Which columns differ from ``reference`` and in how many cells, as one clause."""
    if len(table) != len(reference):
        return f"it has {len(table)} rows instead of {len(reference)}"
    parts = []
    for name in reference.columns:
        ours, theirs = table[name].to_numpy(), reference[name].to_numpy()
        same = (ours == theirs) | (pd.isna(ours) & pd.isna(theirs))
        if not same.all():
            parts.append(f"{name} in {int((~same).sum())} of {len(table)} cells")
    return "these columns differ: " + ", ".join(parts) if parts else "its content hash is outdated"


def is_number(column: pd.Series[Any]) -> bool:
    """Whether a canonical column holds numbers rather than levels."""
    return column.dtype == np.float64


def _is_category(column: pd.Series[Any], *, refuse: bool = True) -> bool:
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return False
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind in NUMBERS:
        return False
    other = OTHERS.get(kind) or _odd(column, kind)
    if other and refuse:
        raise DataError(
            f"column {column.name!r} holds {other}; turn it into numbers or leave it out with "
            f"dataset.drop=[{column.name}]"
        )
    return True


def _odd(column: pd.Series[Any], kind: str) -> str | None:
    """What a column holds that pandas has no word for, if it is neither numbers nor levels."""
    if kind == "mixed" and any(isinstance(v, list | dict | np.ndarray) for v in column):
        return "lists or records"
    levels = pd.Series(column.dropna().unique() if kind == "string" else [], dtype=object)
    numeric = pd.to_numeric(levels, errors="coerce").notna()
    if len(levels) >= FEW_LEVELS and MOSTLY <= numeric.mean() < 1:  # codes, or slips in some cells
        log.warning(
            "column %r holds numbers but for some cells (such as %r) and is taken for words",
            column.name, str(levels[~numeric].iloc[0])[:20],
        )  # fmt: skip
    return None


def _as_numbers(column: pd.Series[Any]) -> pd.Series[Any]:
    if pd.api.types.is_numeric_dtype(column):
        return column.astype(np.float64)
    text = column.astype(object).where(column.notna(), np.nan)
    text = text.map(lambda v: np.nan if isinstance(v, str) and v.strip() in {"?", ""} else v)
    try:
        return text.map(float).astype(np.float64)  # Decimals and integers of any size, too
    except (ValueError, TypeError):
        raise DataError(f"column {column.name!r} should hold numbers but does not") from None


def _as_levels(column: pd.Series[Any]) -> pd.Series[Any]:
    values = column.to_numpy(object)
    try:
        codes, levels = pd.factorize(values)  # a missing cell has code -1
    except TypeError:  # lists and records, of a column that will be left out
        codes, levels = pd.factorize(np.array([str(v) for v in values], dtype=object))
    words = np.array([*(str(level).strip() for level in levels), MISSING_LEVEL], dtype=object)
    return pd.Series(words[codes], index=column.index, name=column.name, dtype="str")


def _select(frame: pd.DataFrame, spec: TableSpec) -> pd.DataFrame:
    """The spec's columns from a frame that may spell, order or encode them as OpenML does."""
    by_key = {_key(c): c for c in frame.columns}
    openml = spec.openml or OpenmlSpec(id=0)

    def find(name: str) -> pd.Series[Any] | None:
        return frame[by_key[_key(name)]] if _key(name) in by_key else None

    columns: dict[str, pd.Series[Any]] = {}
    for name in spec.columns:
        column = find(name)
        if column is None and name in openml.names:
            column = find(openml.names[name])
        if column is None and name in openml.ratios:
            above, below = openml.ratios[name]
            numerator = find(above)
            denominator = find(below) if isinstance(below, str) else below
            if numerator is not None and denominator is not None:
                column = numerator.astype(np.float64) / denominator
        if column is None:
            raise DataError(f"{spec.name}: the table has no column {name!r}")
        levels = openml.levels.get(name, {})
        columns[name] = _as_levels(column).replace(dict(levels)) if levels else column
    return pd.DataFrame(columns)


def _key(name: str) -> str:
    """Column names are compared by their letters and digits alone."""
    return "".join(c for c in str(name).lower() if c.isalnum())
