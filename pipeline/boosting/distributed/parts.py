"""Tables in parts. The process that is to hold a part reads it, again if need be, in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ..arrays import Flags, Floats

BLOCK_CELLS = 1_000_000  # that are in memory at a time, as they come


class Unfit(ValueError):  # noqa: N818
    """A table, a folder or a setting that cannot be used as it is; the message says why."""


@dataclass(frozen=True)
class Rows:
    """Some rows: X (n, d), y (n,), and initial predictions (n,) if given.

    X is a data frame or a matrix as it is read, and a matrix of numbers once it is encoded.
    """

    X: Any
    y: Floats
    f0: Floats | None = None

    def take(self, which: Flags | slice) -> Rows:
        """Some of them."""
        X = self.X.iloc[which] if isinstance(self.X, pd.DataFrame) else self.X[which]
        return Rows(X, self.y[which], None if self.f0 is None else self.f0[which])

    @classmethod
    def joined(cls, pieces: Sequence[Rows]) -> Rows:
        """Several pieces as one; their X are matrices."""
        X, y = (np.concatenate([getattr(piece, name) for piece in pieces]) for name in "Xy")
        f0 = [piece.f0 for piece in pieces if piece.f0 is not None]
        return cls(X, y, np.concatenate(f0) if len(f0) == len(pieces) else None)


@dataclass(frozen=True)
class MemoryPart:
    """Rows that are in memory; ``number`` is the place among the table's parts."""

    number: int
    X: Any
    y: Any
    f0: Any = None
    start: int = 0

    def blocks(self) -> Iterator[Rows]:
        """The rows in order, about `BLOCK_CELLS` cells at a time."""
        y = _vector(self.y, "y")
        f0 = None if self.f0 is None else _vector(self.f0, "initial_prediction")
        if len(y) != len(self.X) or (f0 is not None and len(f0) != len(y)):
            raise Unfit(
                f"X, y, initial_prediction: chunk {self.number} has {len(self.X)} rows of X "
                f"and {len(y)} of y; all must be in the same chunks"
            )
        step = max(1, BLOCK_CELLS // max(1, self.X.shape[1]))
        for start in range(0, len(y), step):
            rows = Rows(self.X, y, f0).take(slice(start, start + step))
            X = rows.X if isinstance(self.X, pd.DataFrame) else np.asarray(rows.X, np.float64)
            yield replace(rows, X=X)


@dataclass(frozen=True)
class ParquetPart:
    """Rows of a row group of a Parquet file, from ``start`` to before ``stop``.

    All processes must reach the file under the same path.  number : the place of the row group
    among the table's parts.  target : columns whose sum is y.  initial : the column of initial
    predictions, or None.
    """

    number: int
    path: str
    row_group: int
    features: tuple[str, ...]
    target: tuple[str, ...]
    initial: str | None
    stop: int
    start: int = 0

    def blocks(self) -> Iterator[Rows]:
        """See `MemoryPart`."""
        try:
            yield from self._blocks()
        except (OSError, pa.ArrowException) as error:
            reason = str(error).splitlines()[0]
            raise Unfit(
                f"{self.path} cannot be read where its rows are to be held ({reason}); all workers "
                "must reach it by this name"
            ) from None

    def _blocks(self) -> Iterator[Rows]:
        further = [*self.target, *([] if self.initial is None else [self.initial])]
        columns = list(dict.fromkeys([*self.features, *further]))
        step = max(1, BLOCK_CELLS // len(columns))
        # Without the buffers that make remote files quick and hold a whole row group.
        with pq.ParquetFile(self.path, pre_buffer=False, buffer_size=2**20) as file:
            at = 0
            for batch in file.iter_batches(step, [self.row_group], columns, use_threads=False):
                first, last = max(self.start - at, 0), min(self.stop - at, batch.num_rows)
                at += batch.num_rows
                if first < last:
                    yield self._rows(batch.slice(first, last - first))
                if at >= self.stop:
                    break

    def _rows(self, batch: pa.RecordBatch) -> Rows:
        y = np.asarray(sum(_numbers(batch, name) for name in self.target))
        f0 = None if self.initial is None else _numbers(batch, self.initial)
        names = list(self.features)
        if all(_is_number(batch.schema.field(name).type, name) for name in names):
            return Rows(np.column_stack([_numbers(batch, name) for name in names]), y, f0)
        return Rows(batch.select(names).to_pandas(ignore_metadata=True), y, f0)


Part = MemoryPart | ParquetPart


@dataclass(frozen=True)
class Table:
    """All parts of a table.

    rows : the number of rows of each part.  columns : the covariates' names.
    words : the columns that do not hold numbers.  named : whether the names are the table's own.
    """

    parts: tuple[Part, ...]
    rows: tuple[int, ...]
    columns: tuple[str, ...]
    words: tuple[str, ...] = ()
    named: bool = True

    @property
    def n_rows(self) -> int:
        """The number of rows of all parts."""
        return sum(self.rows)

    def shared_out(self, n: int) -> list[tuple[Part, ...]]:
        """The parts as n sequences of neighbours, with about the same number of rows in each.

        Parts of Parquet files are cut for this; chunks of Dask collections stay whole.
        """
        starts = [0, *accumulate(self.rows)]
        files = [part for part in self.parts if isinstance(part, ParquetPart)]
        if n > (self.n_rows if files else len(self.parts)):
            raise Unfit(
                f"a table of {len(self.parts)} parts cannot be shared out among {n} workers; use "
                "more chunks, or fewer workers"
            )
        goals = [self.n_rows * k // n for k in range(n + 1)]  # where the shares begin and end
        if files:
            return [
                tuple(
                    replace(part, start=max(first - at, 0), stop=min(last - at, part.stop))
                    for part, at in zip(files, starts, strict=False)
                    if at < last and first < at + part.stop
                )
                for first, last in pairwise(goals)
            ]
        cuts = [0]
        for k, goal in enumerate(goals[1:-1], 1):
            nearest = min(range(len(starts)), key=lambda i: abs(starts[i] - goal))
            cuts.append(max(cuts[-1] + 1, min(nearest, len(self.parts) - (n - k))))
        return [self.parts[i:j] for i, j in pairwise([*cuts, len(self.parts)])]


def parquet_table(
    path: str | Path, target: Sequence[str], drop: Sequence[str] = (), initial: str | None = None
) -> Table:
    """A Parquet file, or all of a folder, as a table whose parts are row groups."""
    files = parquet_files(path)
    schema = pq.read_schema(files[0])
    left_out = {*target, *drop, *([] if initial is None else [initial])}
    for name in left_out:
        if name not in schema.names:
            raise Unfit(f"has no column {name!r}; it has {', '.join(schema.names)}")
    for name in [*target, *([] if initial is None else [initial])]:
        if not _is_number(schema.field(name).type, name):
            raise Unfit(f"column {name!r} must hold numbers; it holds words")
    # What a data frame had as its index are names of rows.
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    left_out |= {name for name in index if isinstance(name, str)}
    features = tuple(name for name in schema.names if name not in left_out)
    if not features:
        raise Unfit("no covariate is left beside the target")
    parts: list[ParquetPart] = []
    for file in files:
        if pq.read_schema(file).remove_metadata() != schema.remove_metadata():
            raise Unfit(f"{file.name} has other columns, or other types, than {files[0].name}")
        groups = pq.read_metadata(file)
        for group in range(groups.num_row_groups):
            if n := groups.row_group(group).num_rows:
                number, name = len(parts), str(file)
                parts.append(ParquetPart(number, name, group, features, tuple(target), initial, n))
    if not parts:
        raise Unfit("has no rows")
    words = tuple(name for name in features if not _is_number(schema.field(name).type, name))
    return Table(tuple(parts), tuple(part.stop for part in parts), features, words)


def parquet_files(path: str | Path) -> list[Path]:
    """The Parquet files of a folder, at any depth, by name; or the one that was named."""
    place = Path(path).expanduser().resolve()
    if place.is_file():
        return [place]
    found = sorted(file.relative_to(place) for file in place.rglob("*.parquet"))
    # Folders of tables also contain other programs' notes, such as _delta_log.
    seen = [f for f in found if not any(part.startswith((".", "_")) for part in f.parts)]
    if not seen:
        raise Unfit("there is no Parquet file")
    for file in seen:
        if any("=" in part for part in file.parent.parts):
            raise Unfit(
                f"{file.parent} has a column in its name, which would not be read; write the table "
                "without such folders"
            )
    return [place / file for file in seen]


def _is_number(kind: pa.DataType, name: str) -> bool:
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return True
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_string(inner) or pa.types.is_large_string(inner) or inner == pa.string_view():
        return False
    raise Unfit(f"column {name!r} holds {kind}; only numbers, flags and words can be used")


def _vector(values: Any, name: str) -> Floats:
    array = np.asarray(values, np.float64)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise Unfit(f"{name}: must be a column; a chunk of it has shape {array.shape}")
    return array


def _numbers(batch: pa.RecordBatch, name: str) -> Floats:
    column = batch.column(name)
    return column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
