"""The columns of tables: numbers, flags, words, missing cells; and outcomes and predictions.

A numpy matrix is a table of numbers named x0, x1, …; frames of polars and tables of Arrow are taken
as pandas' frames.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .arrays import Floats, Ints

MISSING = "(missing)"
SMALLEST, LARGEST = 1e-100, 1e100  # of the largest outcome, prediction or weight

_TIMES = {"date", "datetime", "datetime64", "time", "timedelta", "timedelta64", "period"}
_NUMBERS = {"boolean", "integer", "floating", "mixed-integer-float", "empty"}  # pandas' names


@dataclass(frozen=True)
class Numbers:
    """A column of numbers (n,), or of flags, which are 0 and 1; a missing cell is NaN."""

    name: str
    cells: Floats
    flags: bool = False


@dataclass(frozen=True)
class Levels:
    """A column of categories: codes (n,) into ``levels``; missing cells are a level, too."""

    name: str
    codes: Ints
    levels: tuple[str, ...]


Column = Numbers | Levels


def columns_of(X: Any) -> list[Column]:
    """Return the columns of a table (n, d); raise ValueError with all of its problems."""
    X = as_table(X)
    if isinstance(X, pd.DataFrame):
        if X.shape[1] == 0 or len(X) == 0:
            raise ValueError(f"X: must have rows and columns; its shape is {X.shape}")
        found, problems = [], []
        for j, name in enumerate(X.columns):
            try:
                found.append(_column(str(name), X.iloc[:, j]))
            except ValueError as error:
                problems.append(str(error))
        if problems:
            raise ValueError("X: " + "; ".join(problems))
        return found
    matrix = np.asarray(X, dtype=np.float64)
    if matrix.ndim != 2 or matrix.size == 0:
        raise ValueError(f"X: must have rows and columns; its shape is {matrix.shape}")
    return [Numbers(f"x{j}", matrix[:, j]) for j in range(matrix.shape[1])]


def numbers_or_columns(X: pd.DataFrame) -> Floats | list[Column]:
    """Return a frame of nothing but finite or missing numbers as a matrix, or its columns."""
    if len(X) and all(getattr(dtype, "kind", "O") in "fiu" for dtype in set(X.dtypes)):
        matrix = X.to_numpy(np.float64, na_value=np.nan)
        if not np.isinf(matrix).any():
            return matrix
    return columns_of(X)


def as_table(X: Any) -> Any:
    """Return frames of other libraries as pandas' frames, and everything else as it is."""
    if isinstance(X, np.ma.MaskedArray):
        raise ValueError("X: is a masked array, whose mask would be lost; fill it with NaN")
    if not isinstance(X, pd.DataFrame):
        if hasattr(X, "collect_schema") and not hasattr(X, "to_pandas"):
            raise ValueError("X: is a lazy frame; collect it first")
        if hasattr(X, "to_pandas"):  # polars, pyarrow, cuDF and others
            X = X.to_pandas()
    return X


def outcomes_of(y: Any) -> Floats:
    """Return outcomes (n,) as numbers; of labels of two classes, the second in order is 1."""
    array = _one_dimension(y, "y")
    if array.dtype.kind in "OUS":
        if pd.isna(array).any():
            raise ValueError("y: holds missing cells")
        if pd.api.types.infer_dtype(array, skipna=False) not in _NUMBERS:
            classes, codes = np.unique(array.astype(str), return_inverse=True)
            if len(classes) != 2:
                raise ValueError(
                    f"y: has {len(classes)} classes instead of two; of more, the probabilities of "
                    "all are needed, (n, classes)"
                )
            return codes.astype(np.float64)
    return numbers_of(array, "y")


def predictions_of(prediction: Any) -> Floats:
    """Return predictions (n,); of the probabilities of two classes (n, 2), those of the second."""
    array = np.asarray(prediction)
    if array.ndim == 2 and array.shape[1] in (1, 2):
        array = array[:, -1]
    return numbers_of(array if array.ndim == 1 else prediction, "prediction")


def numbers_of(values: Any, name: str) -> Floats:
    """Return values (n,) as floats that sums of squares can be made of."""
    try:
        array = _one_dimension(values, name).astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: must hold numbers, in one dimension") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: holds NaN or infinity")
    largest = np.abs(array).max(initial=0.0)
    if largest and not SMALLEST < largest < LARGEST:
        raise ValueError(
            f"{name}: its largest value, {largest:.3g}, is beyond {LARGEST:g} or below "
            f"{SMALLEST:g}; use another unit"
        )
    return array


def _one_dimension(values: Any, name: str) -> Any:
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(f"{name}: is a masked array, whose mask would be lost; leave rows out")
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind == "c":
        raise ValueError(f"{name}: must hold numbers, in one dimension; its shape is {array.shape}")
    return array


def word(level: object) -> str:
    """Return a level as text; a whole number has the same text whatever its type."""
    if isinstance(level, float | np.floating) and float(level).is_integer():
        return str(int(level))
    return str(level)


def levels_of(values: Any, name: str = "y") -> Levels:
    """Return a column (n,) of labels as levels; those of numbers are their text."""
    (column,) = columns_of(pd.DataFrame({name: values}))
    if isinstance(column, Levels):
        return column
    numbers, codes = np.unique(column.cells, return_inverse=True)
    return Levels(name, codes, tuple(MISSING if np.isnan(v) else word(v) for v in numbers))


def _column(name: str, series: pd.Series[Any]) -> Column:
    flags = pd.api.types.is_bool_dtype(series)
    if series.dtype == object:
        kind = pd.api.types.infer_dtype(series, skipna=True)
        flags = kind == "boolean"
        if kind in _NUMBERS:
            # Missing cells, or selecting a single row, turn numbers and flags into objects.
            series = pd.Series([np.nan if pd.isna(v) else float(v) for v in series])
        elif kind == "complex":
            raise ValueError(f"column {name!r} holds complex numbers")
    if flags or pd.api.types.is_numeric_dtype(series):
        if pd.api.types.is_complex_dtype(series):
            raise ValueError(f"column {name!r} holds complex numbers")
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        if np.isinf(values).any():
            raise ValueError(f"column {name!r} holds infinity")
        return Numbers(name, values, flags)
    cells = series.astype(object)
    if getattr(series.dtype, "kind", "O") in "mM" or pd.api.types.infer_dtype(cells) in _TIMES:
        raise ValueError(f"column {name!r} holds dates or times; turn it into numbers")
    if {bool, np.bool_} & {type(cell) for cell in cells}:
        # True and 1 are equal, and are not the same level.
        cells = cells.map(lambda cell: cell if pd.isna(cell) else word(cell))
    try:
        codes, levels = pd.factorize(cells, sort=False)
    except TypeError:
        raise ValueError(f"column {name!r} holds lists or other objects") from None
    # Two levels may be one word: 1 and "1".
    words, rank = np.unique([word(level) for level in levels], return_inverse=True)
    missing = [MISSING] if (codes < 0).any() else []
    rank = np.append(rank, len(words)).astype(np.int64)  # a missing cell has code −1
    return Levels(name, rank[codes], (*map(str, words), *missing))
