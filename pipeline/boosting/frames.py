"""The columns of tables: numbers, flags, words, missing cells.

A numpy matrix is a table of numbers named x0, x1, …
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .arrays import Floats, Ints

MISSING = "(missing)"

_NUMBERS = {"boolean", "integer", "floating", "mixed-integer-float", "empty"}  # pandas' names


@dataclass(frozen=True)
class Numbers:
    """A column of numbers (n,); a missing cell is NaN."""

    name: str
    cells: Floats


@dataclass(frozen=True)
class Levels:
    """A column of categories: codes (n,) into ``levels``; missing cells are a level, too."""

    name: str
    codes: Ints
    levels: tuple[str, ...]


Column = Numbers | Levels


def columns_of(X: Any) -> list[Column]:
    """Return the columns of a DataFrame or of a numeric array (n, d)."""
    if isinstance(X, pd.DataFrame):
        if X.shape[1] == 0 or len(X) == 0:
            raise ValueError(f"X: must have rows and columns; its shape is {X.shape}")
        return [_column(str(name), X.iloc[:, j]) for j, name in enumerate(X.columns)]
    matrix = np.asarray(X, dtype=np.float64)
    if matrix.ndim != 2 or matrix.size == 0:
        raise ValueError(f"X: must have rows and columns; its shape is {matrix.shape}")
    return [Numbers(f"x{j}", matrix[:, j]) for j in range(matrix.shape[1])]


def word(level: object) -> str:
    """Return a level as text; a whole number has the same text whatever its type."""
    if isinstance(level, float | np.floating) and float(level).is_integer():
        return str(int(level))
    return str(level)


def _column(name: str, series: pd.Series[Any]) -> Column:
    if series.dtype == object and pd.api.types.infer_dtype(series, skipna=True) in _NUMBERS:
        # Missing cells, or selecting a single row, turn numbers and flags into objects.
        series = pd.Series([np.nan if pd.isna(v) else float(v) for v in series])
    if pd.api.types.is_bool_dtype(series) or pd.api.types.is_numeric_dtype(series):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        if np.isinf(values).any():
            raise ValueError(f"X: column {name!r} holds infinity")
        return Numbers(name, values)
    if pd.api.types.is_datetime64_any_dtype(series) or pd.api.types.is_timedelta64_dtype(series):
        raise ValueError(f"X: column {name!r} holds dates or times; turn it into numbers")
    codes, levels = pd.factorize(series.astype(object), sort=False)
    words = [word(level) for level in levels]
    order = np.argsort(words)
    rank = np.empty(len(words) + 1, np.int64)
    rank[order] = np.arange(len(words))
    rank[-1] = len(words)  # a missing cell has code −1
    named = [words[k] for k in order] + ([MISSING] if (codes < 0).any() else [])
    return Levels(name, rank[codes], tuple(named))
