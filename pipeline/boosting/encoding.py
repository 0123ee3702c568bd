"""Tables with words and missing cells as matrices of numbers, the same way for every table.

A number stays as it is, a level becomes an indicator. What is learned from the first table (its
levels, and what stands for a missing number) answers for all later ones: a level that it did not
have has no indicator, so that all of its column's are 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.boosting.arrays import Flags, Floats, Ints
from pipeline.boosting.frames import MISSING, Column, Levels, Numbers, columns_of, word

MAX_LEVELS = 1000


@dataclass(frozen=True)
class NumberCode:
    """A column of numbers; ``fill`` stands for a missing cell (NaN: it stays missing)."""

    name: str
    fill: float

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
            return np.full((len(column.codes), 1), self.fill)
        cells = column.cells
        absent = np.isnan(cells)
        return (np.where(absent, self.fill, cells) if absent.any() else cells)[:, None]


@dataclass(frozen=True)
class LevelCode:
    """A column of categories with an indicator for each of its ``levels``."""

    name: str
    levels: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns in the matrix."""
        return tuple(f"{self.name}={level}" for level in self.levels)

    def encode(self, column: Column) -> Floats:
        """The indicators, (n, levels)."""
        if isinstance(column, Numbers):
            column = self._as_levels(column)
        place = {level: k for k, level in enumerate(self.levels)}
        places = np.array([place.get(level, -1) for level in column.levels], np.int64)
        codes = places[column.codes]
        return (codes[:, None] == np.arange(len(self.levels))).astype(np.float64)

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
class Encoding:
    """How the columns of a table become those of a matrix."""

    codes: tuple[NumberCode | LevelCode, ...]

    @classmethod
    def learn(cls, X: Any, *, fill: bool = True, drop_first: bool = False) -> Encoding:
        """From a DataFrame, a matrix of floats (n, d), or the columns of either.

        fill : a missing number is put below all others, so that a threshold can set it apart.
        drop_first : the first level has no indicator.
        """
        if isinstance(X, np.ndarray):
            fills = _below(np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0))
            return cls(tuple(NumberCode(f"x{j}", value) for j, value in enumerate(fills)))
        columns = X if isinstance(X, list) else columns_of(X)
        return cls(tuple(_learn(column, fill, drop_first) for column in columns))

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
            absent = np.isnan(X)
            return np.where(absent, self._fills(), X) if absent.any() else X
        columns = X if isinstance(X, list) else columns_of(X)
        pairs = zip(self.codes, columns, strict=True)
        return np.hstack([code.encode(column) for code, column in pairs])

    def _fills(self) -> Floats:
        return np.array([code.fill for code in self.codes if isinstance(code, NumberCode)])


def design_of(columns: list[Column]) -> Floats:
    """The columns as a finite matrix (n, m): numbers as they are, an indicator per level."""
    return Encoding.learn(columns).encode(columns)


def _learn(column: Column, fill: bool, drop_first: bool) -> NumberCode | LevelCode:
    if isinstance(column, Levels):
        return LevelCode(column.name, column.levels[1:] if drop_first else column.levels)
    if not fill:
        return NumberCode(column.name, np.nan)
    present = column.cells[~np.isnan(column.cells)]
    low, high = (present.min(), present.max()) if len(present) else (np.nan, np.nan)
    return NumberCode(column.name, float(_below(low, high)))


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
