"""Tables with words and missing cells as matrices of numbers, the same way for every table.

A number stays as it is, a level becomes an indicator. What is learned from the first table (its
levels, and what stands for a missing number) answers for all later ones: a level that it did not
have has no indicator, so that all of its column's are 0.

For trees that know missing cells and categories themselves (``native``), a missing number stays NaN
and a column of categories stays one column, of its levels' places; `Encoding.expanded` gives such a
matrix the other form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.boosting.arrays import Flags, Floats, Ints
from pipeline.boosting.frames import MISSING, Column, Levels, Numbers, columns_of, word

MAX_LEVELS = 1000


@dataclass(frozen=True)
class NumberCode:
    """A column of numbers; ``fill`` stands for a missing cell, unless it is ``kept`` missing."""

    name: str
    fill: float
    kept: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns in the matrix."""
        return (self.name,)

    def encode(self, column: Column) -> Floats:
        """The cells, (n, 1)."""
        if isinstance(column, Levels):
            if column.levels not in ((), (MISSING,)):
                raise ValueError(
                    f"X: column {self.name!r} held numbers when the model was fitted; now it has "
                    f"{column.levels[0]!r}"
                )
            return np.full((len(column.codes), 1), np.nan if self.kept else self.fill)
        cells = column.cells[:, None]
        return cells if self.kept else self.expanded(cells)

    def expanded(self, cells: Floats) -> Floats:
        """Cells (n, 1) with what stands for missing ones."""
        absent = np.isnan(cells)
        return np.where(absent, self.fill, cells) if absent.any() else cells


@dataclass(frozen=True)
class _Leveled:
    """A column of categories that are known by their ``levels``."""

    name: str
    levels: tuple[str, ...]

    def _places(self, column: Column) -> Ints:
        """The place of each cell's level, (n,), −1 for one that is not known."""
        if isinstance(column, Numbers):
            column = self._as_levels(column)
        place = {level: k for k, level in enumerate(self.levels)}
        places = np.array([place.get(level, -1) for level in column.levels], np.int64)
        return places[column.codes]

    def _as_levels(self, column: Numbers) -> Levels:
        """Categories that were numbers come back as numbers, missing cells without a type."""
        values, codes = np.unique(column.cells, return_inverse=True)
        words = tuple(MISSING if np.isnan(value) else word(value) for value in values)
        if not {*self.levels, MISSING}.intersection(words):
            raise ValueError(
                f"X: column {self.name!r} held categories when the model was fitted; now it has "
                "numbers"
            )
        return Levels(self.name, codes, words)


@dataclass(frozen=True)
class LevelCode(_Leveled):
    """A column of categories with an indicator for each of its ``levels``."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns in the matrix."""
        return tuple(f"{self.name}={level}" for level in self.levels)

    def encode(self, column: Column) -> Floats:
        """The indicators, (n, levels)."""
        return _indicators(self._places(column), len(self.levels))

    def expanded(self, cells: Floats) -> Floats:
        """They are indicators already."""
        return cells


@dataclass(frozen=True)
class CategoryCode(_Leveled):
    """A column of categories that stays one: the places of its ``levels``, NaN for a new one."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns in the matrix."""
        return (self.name,)

    def encode(self, column: Column) -> Floats:
        """The places, (n, 1)."""
        places = self._places(column)
        return np.where(places < 0, np.nan, places)[:, None]

    def expanded(self, cells: Floats) -> Floats:
        """Indicators (n, levels) of places (n, 1)."""
        return _indicators(cells[:, 0], len(self.levels))


Code = NumberCode | LevelCode | CategoryCode


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become those of a matrix."""

    codes: tuple[Code, ...]

    @classmethod
    def learn(
        cls, X: Any, *, fill: bool = True, drop_first: bool = False, native: bool = False
    ) -> Encoding:
        """From a DataFrame, a matrix of floats (n, d), or the columns of either.

        fill : a missing number is put below all others, so that a threshold can set it apart.
        drop_first : the first level has no indicator.
        native : missing cells stay missing and categories stay whole.
        """
        if isinstance(X, np.ndarray):
            fills = _below(np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0))
            return cls(tuple(NumberCode(f"x{j}", v, native) for j, v in enumerate(fills)))
        columns = X if isinstance(X, list) else columns_of(X)
        return cls(tuple(_learn(column, fill, drop_first, native) for column in columns))

    def with_fills_of(self, X: Floats) -> Encoding:
        """The same with what stands for missing numbers learned from rows that it encoded."""
        fills = _below(np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0))
        firsts = np.flatnonzero(np.diff(self.origin, prepend=-1))  # a number is one column
        codes = [
            replace(code, fill=float(fills[j])) if isinstance(code, NumberCode) else code
            for code, j in zip(self.codes, firsts, strict=True)
        ]
        return Encoding(tuple(codes))

    @property
    def is_native(self) -> bool:
        """Whether missing cells or categories are left to the trees."""
        return any(isinstance(c, CategoryCode) or getattr(c, "kept", False) for c in self.codes)

    @property
    def categorical(self) -> tuple[int, ...]:
        """The matrix's columns that hold places of levels."""
        of_codes = [isinstance(code, CategoryCode) for code in self.codes]
        return tuple(int(j) for j in np.flatnonzero(np.array(of_codes)[self.origin]))

    @property
    def names(self) -> tuple[str, ...]:
        """Of the matrix's columns."""
        return tuple(name for code in self.codes for name in code.names)

    @property
    def origin(self) -> Ints:
        """The table's column behind each of the matrix's."""
        return np.repeat(np.arange(len(self.codes)), [len(code.names) for code in self.codes])

    def encode(self, X: Any) -> Floats:
        """The matrix of a DataFrame, of a matrix of floats, or of a list of columns."""
        if isinstance(X, np.ndarray) and all(isinstance(code, NumberCode) for code in self.codes):
            return X if self.is_native or not np.isnan(X).any() else self._expanded(X)
        columns = X if isinstance(X, list) else columns_of(X)
        pairs = zip(self.codes, columns, strict=True)
        return np.hstack([code.encode(column) for code, column in pairs])

    def expanded(self, X: Floats) -> Floats:
        """A matrix that `encode` gave, with an indicator for each level and no cell missing."""
        return self._expanded(X) if self.is_native else X

    def _expanded(self, X: Floats) -> Floats:
        return np.hstack([code.expanded(cells) for code, cells in self._of_codes(X)])

    def compacted(self, X: Floats) -> tuple[Floats, tuple[int, ...]]:
        """A matrix of indicators with one column for each of the table's, (n, codes).

        A column of levels holds 1, 2, … for those with an indicator, else 0; which columns these
        are is given, too.
        """
        # A column of one level, whose indicator was left out, has none.
        cells = [
            (part * np.arange(1.0, part.shape[1] + 1)).sum(axis=1)[:, None]
            if isinstance(code, LevelCode)
            else part
            for code, part in self._of_codes(X)
        ]
        levels = [j for j, code in enumerate(self.codes) if isinstance(code, LevelCode)]
        return np.hstack(cells), tuple(levels)

    def _of_codes(self, X: Floats) -> Iterator[tuple[Code, Floats]]:
        """The columns of a matrix that each of the table's became."""
        start = 0
        for code in self.codes:
            stop = start + len(code.names)
            yield code, X[:, start:stop]
            start = stop


def design_of(columns: list[Column]) -> Floats:
    """The columns as a finite matrix (n, m): numbers as they are, an indicator per level."""
    return Encoding.learn(columns).encode(columns)


def _indicators(places: NDArray[Any], n_levels: int) -> Floats:
    return (places[:, None] == np.arange(n_levels)).astype(np.float64)


def _learn(column: Column, fill: bool, drop_first: bool, native: bool) -> Code:
    if isinstance(column, Levels):
        if native:
            return CategoryCode(column.name, column.levels)
        return LevelCode(column.name, column.levels[1:] if drop_first else column.levels)
    if not fill:
        return NumberCode(column.name, np.nan)
    present = column.cells[~np.isnan(column.cells)]
    low, high = (present.min(), present.max()) if len(present) else (np.nan, np.nan)
    return NumberCode(column.name, float(_below(low, high)), native)


def _below(low: Any, high: Any) -> Any:
    """A value below a range, in single precision, too; without a range, −1."""
    empty: Flags = np.isnan(low)
    least = np.finfo(np.float32).min
    with np.errstate(over="ignore"):
        neighbour = np.nextafter(np.asarray(low, np.float32), least)
    below = np.minimum(low - (high - low) - 1.0, neighbour.astype(np.float64))
    return np.where(empty, -1.0, np.maximum(below, least))


def check_levels(columns: Sequence[Column], most: int = MAX_LEVELS) -> None:
    """Refuse columns with more levels than there should be indicators."""
    for column in columns:
        if isinstance(column, Levels) and len(column.levels) > most:
            raise ValueError(
                f"X: column {column.name!r} has {len(column.levels)} levels, more than {most}; "
                "leave it out, or group them"
            )
