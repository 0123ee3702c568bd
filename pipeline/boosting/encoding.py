"""Tables with words and missing cells as matrices of numbers, encoded the same way every time.

A number stays as it is, a level becomes an indicator. The encoding is learned from one table (its
levels, and the number that replaces missing ones) and used for all others: for a level that the
first table did not have, all indicators of the column are 0.

For trees that handle missing cells and categories themselves (``native``), a missing number stays
NaN and a column of categories stays one column of codes; `Encoding.expanded` turns such a matrix
into the other form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import Flags, Floats, Ints
from .frames import MISSING, Column, Levels, Numbers, columns_of, word

MAX_LEVELS = 1000


@dataclass(frozen=True)
class _Code:
    """How a column is encoded: as one column, unless a subclass says otherwise."""

    name: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the matrix's columns."""
        return (self.name,)


@dataclass(frozen=True)
class NumberCode(_Code):
    """A column of numbers; ``fill`` replaces missing cells, unless they are ``kept`` missing."""

    fill: float
    kept: bool = False

    def encode(self, column: Column) -> Floats:
        """Return the cells, (n, 1)."""
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
        """Return cells (n, 1) with missing ones replaced."""
        missing = np.isnan(cells)
        return np.where(missing, self.fill, cells) if missing.any() else cells


@dataclass(frozen=True)
class _Leveled(_Code):
    """A column of categories with known ``levels``."""

    levels: tuple[str, ...]

    def _codes(self, column: Column) -> Ints:
        """Return the number of each cell's level, (n,), −1 for one that is not known."""
        if isinstance(column, Numbers):
            column = self._as_levels(column)
        number = {level: k for k, level in enumerate(self.levels)}
        numbers = np.array([number.get(level, -1) for level in column.levels], np.int64)
        return numbers[column.codes]

    def _as_levels(self, column: Numbers) -> Levels:
        """Return numbers as categories: a column of them may be read as numbers the next time."""
        values, codes = np.unique(column.cells, return_inverse=True)
        cells = values if not column.flags else [v if np.isnan(v) else bool(v) for v in values]
        words = tuple(MISSING if np.isnan(cell) else word(cell) for cell in cells)
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
        """The names of the matrix's columns."""
        return tuple(f"{self.name}={level}" for level in self.levels)

    def encode(self, column: Column) -> Floats:
        """Return the indicators, (n, levels)."""
        return _indicators(self._codes(column), len(self.levels))

    def expanded(self, cells: Floats) -> Floats:
        """Return the cells, which are indicators already."""
        return cells


@dataclass(frozen=True)
class CategoryCode(_Leveled):
    """A column of categories that stays one column of codes, NaN for a level that is not known."""

    def encode(self, column: Column) -> Floats:
        """Return the codes, (n, 1)."""
        codes = self._codes(column)
        return np.where(codes < 0, np.nan, codes)[:, None]

    def expanded(self, cells: Floats) -> Floats:
        """Return the indicators (n, levels) of codes (n, 1)."""
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
        """Learn the encoding of a DataFrame, a matrix of floats (n, d), or the columns of either.

        fill : missing numbers are replaced by one below all others, so that a threshold can
            separate them.
        drop_first : the first level has no indicator.
        native : missing cells stay missing and a column of categories stays one column.
        """
        if isinstance(X, np.ndarray):
            fills = _below(np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0))
            return cls(tuple(NumberCode(f"x{j}", v, native) for j, v in enumerate(fills)))
        columns = X if isinstance(X, list) else columns_of(X)
        return cls(tuple(_learn(column, fill, drop_first, native) for column in columns))

    def with_fills_of(self, X: Floats) -> Encoding:
        """Return the same encoding with fills learned from rows that it encoded."""
        fills = _below(np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0))
        firsts = np.flatnonzero(np.diff(self.origin, prepend=-1))  # a number is one column
        codes = [
            replace(code, fill=float(fills[j])) if isinstance(code, NumberCode) else code
            for code, j in zip(self.codes, firsts, strict=True)
        ]
        return Encoding(tuple(codes))

    @property
    def is_native(self) -> bool:
        """Whether missing cells and categories are left to the trees."""
        return any(isinstance(c, CategoryCode) or getattr(c, "kept", False) for c in self.codes)

    @property
    def categorical(self) -> tuple[int, ...]:
        """The columns of the matrix that hold codes of categories."""
        of_codes = [isinstance(code, CategoryCode) for code in self.codes]
        return tuple(int(j) for j in np.flatnonzero(np.array(of_codes)[self.origin]))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the matrix's columns."""
        return tuple(name for code in self.codes for name in code.names)

    @property
    def origin(self) -> Ints:
        """The table's column that each of the matrix's columns comes from."""
        return np.repeat(np.arange(len(self.codes)), [len(code.names) for code in self.codes])

    def encode(self, X: Any) -> Floats:
        """Return the matrix of a DataFrame, of a matrix of floats, or of a list of columns."""
        if isinstance(X, np.ndarray) and all(isinstance(code, NumberCode) for code in self.codes):
            return X if self.is_native or not np.isnan(X).any() else self._expanded(X)
        columns = X if isinstance(X, list) else columns_of(X)
        pairs = zip(self.codes, columns, strict=True)
        return np.hstack([code.encode(column) for code, column in pairs])

    def expanded(self, X: Floats) -> Floats:
        """Return a matrix that `encode` returned with indicators and without missing cells."""
        return self._expanded(X) if self.is_native else X

    def _expanded(self, X: Floats) -> Floats:
        return np.hstack([code.expanded(cells) for code, cells in self._of_codes(X)])

    def compacted(self, X: Floats) -> tuple[Floats, tuple[int, ...]]:
        """Return a matrix of indicators with one column for each of the table's, (n, codes).

        A column of levels holds 1, 2, … for those with an indicator, else 0. Also returns which
        columns these are.
        """
        # (A column of a single level whose indicator was dropped has no indicators at all.)
        cells = [
            (part * np.arange(1.0, part.shape[1] + 1)).sum(axis=1)[:, None]
            if isinstance(code, LevelCode)
            else part
            for code, part in self._of_codes(X)
        ]
        levels = [j for j, code in enumerate(self.codes) if isinstance(code, LevelCode)]
        return np.hstack(cells), tuple(levels)

    def _of_codes(self, X: Floats) -> Iterator[tuple[Code, Floats]]:
        """Yield the columns of a matrix that each of the table's columns became."""
        start = 0
        for code in self.codes:
            stop = start + len(code.names)
            yield code, X[:, start:stop]
            start = stop


def design_of(columns: list[Column]) -> Floats:
    """Return the columns as a finite matrix (n, m): numbers as they are, an indicator per level."""
    return Encoding.learn(columns).encode(columns)


def _indicators(codes: NDArray[Any], n_levels: int) -> Floats:
    return (codes[:, None] == np.arange(n_levels)).astype(np.float64)


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
    """Return a value that is below a range in single precision, too; −1 without a range."""
    empty: Flags = np.isnan(low)
    least = np.finfo(np.float32).min
    with np.errstate(over="ignore"):
        neighbour = np.nextafter(np.asarray(low, np.float32), least)
    below = np.minimum(low - (high - low) - 1.0, neighbour.astype(np.float64))
    return np.where(empty, -1.0, np.maximum(below, least))


def check_levels(columns: Sequence[Column], most: int = MAX_LEVELS) -> None:
    """Raise ValueError for a column with more levels than there should be indicators."""
    for column in columns:
        if isinstance(column, Levels) and len(column.levels) > most:
            raise ValueError(
                f"X: column {column.name!r} has {len(column.levels)} levels, more than {most}; "
                "leave it out, or group them"
            )
