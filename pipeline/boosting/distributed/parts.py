"""Tables in parts. The process that is to hold a part reads it, again if need be, in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ..arrays import Floats, Ints
from ..frames import MISSING, levels_of
from ..rows import Rows

BLOCK_CELLS = 1_000_000  # that are in memory at a time, as they come


class Unfit(ValueError):  # noqa: N818
    """A table, a folder or a setting that cannot be used as it is; the message says why."""


@dataclass(frozen=True, kw_only=True)
class TableRows(Rows):
    """Some rows of a table: X (n, d), and initial predictions f0 (n,) if given.

    X is a data frame or a matrix as it is read, and a matrix of numbers once it is encoded.
    half : (n,) the trajectory that is not fitted to a row, if there are two.
    """

    X: Any
    f0: Floats | None = None
    half: Ints | None = None

    @classmethod
    def joined(cls, pieces: Sequence[Self]) -> Self:
        """Several pieces as one; their X are matrices."""
        names = [name for name, _ in pieces[0]._columns()]
        return cls(**{name: np.concatenate([getattr(p, name) for p in pieces]) for name in names})


@dataclass(frozen=True)
class MemoryPart:
    """Rows that are in memory; ``number`` is the place among the table's parts.

    positive : the label that counts as 1, as it is written, all others as 0; None: y is a number.
    """

    number: int
    X: Any
    y: Any
    f0: Any = None
    weights: Any = None
    positive: str | None = None
    start: int = 0

    def with_positive(self, label: str) -> MemoryPart:
        """The part with another ``positive``."""
        return replace(self, positive=label)

    def labels(self) -> Any:
        """The values of y, each once."""
        return pd.unique(np.asarray(self.y).ravel())

    def blocks(self) -> Iterator[TableRows]:
        """The rows in order, about `BLOCK_CELLS` cells at a time."""
        y = _flags(self.y, self.positive) if self.positive else _vector(self.y, "y")
        f0, weights = (
            None if values is None else _vector(values, name)
            for name, values in (("initial_prediction", self.f0), ("sample_weight", self.weights))
        )
        sizes = [len(values) for values in (self.X, y, f0, weights) if values is not None]
        if len(set(sizes)) > 1:
            raise Unfit(
                f"X, y, sample_weight, initial_prediction: chunk {self.number} has {sizes[0]} rows "
                f"of X and {sizes[1]} of y; all must be in the same chunks"
            )
        rows = TableRows(X=self.X, y=y, weights=weights, f0=f0)
        step = max(1, BLOCK_CELLS // max(1, self.X.shape[1]))
        for start in range(0, len(y), step):
            some = rows.take(slice(start, start + step))
            frame = isinstance(self.X, pd.DataFrame)
            yield some if frame else replace(some, X=np.asarray(some.X, np.float64))


@dataclass(frozen=True)
class Columns:
    """What is read of a table of Parquet files.

    features : the covariates.  target : columns whose sum is y.  initial, weight : the columns of
    initial predictions and of weights, or None.  positive : see `MemoryPart`.
    """

    features: tuple[str, ...]
    target: tuple[str, ...]
    initial: str | None = None
    weight: str | None = None
    positive: str | None = None

    @property
    def beside(self) -> list[str]:
        """Those that are no covariates."""
        return [name for name in (*self.target, self.initial, self.weight) if name is not None]


@dataclass(frozen=True)
class ParquetPart:
    """Rows of a row group of a Parquet file, from ``start`` to before ``stop``.

    All processes must reach the file under the same path, or URL.  number : the place of the row
    group among the table's parts.
    """

    number: int
    path: str
    row_group: int
    columns: Columns
    stop: int
    start: int = 0

    def with_positive(self, label: str) -> ParquetPart:
        """See `MemoryPart`."""
        return replace(self, columns=replace(self.columns, positive=label))

    def labels(self) -> Any:
        """See `MemoryPart`."""
        with opened(self.path) as file:
            table = file.read_row_group(self.row_group, self.columns.target)
        return pd.unique(table[0].to_pandas())

    def blocks(self) -> Iterator[TableRows]:
        """See `MemoryPart`."""
        try:
            yield from self._blocks()
        except (OSError, pa.ArrowException) as error:
            reason = str(error).splitlines()[0]
            raise Unfit(
                f"{self.path} cannot be read where its rows are to be held ({reason}); all workers "
                "must reach it by this name"
            ) from None

    def _blocks(self) -> Iterator[TableRows]:
        columns = list(dict.fromkeys([*self.columns.features, *self.columns.beside]))
        step = max(1, BLOCK_CELLS // len(columns))
        with opened(self.path) as file:
            at = 0
            for batch in file.iter_batches(step, [self.row_group], columns, use_threads=False):
                first, last = max(self.start - at, 0), min(self.stop - at, batch.num_rows)
                at += batch.num_rows
                if first < last:
                    yield self._rows(batch.slice(first, last - first))
                if at >= self.stop:
                    break

    def _rows(self, batch: pa.RecordBatch) -> TableRows:
        c = self.columns
        if c.positive is None:
            y = np.asarray(sum(_numbers(batch, name) for name in c.target))
        else:
            y = _flags(batch.column(c.target[0]).to_pandas(), c.positive)
        f0, weights = (
            None if name is None else _numbers(batch, name) for name in (c.initial, c.weight)
        )
        if all(_is_number(batch.schema.field(name).type, name) for name in c.features):
            X = np.column_stack([_numbers(batch, name) for name in c.features])
        else:
            X = batch.select(list(c.features)).to_pandas(ignore_metadata=True)
        return TableRows(X=X, y=y, weights=weights, f0=f0)


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

    def with_positive(self, label: str) -> Table:
        """The table with y of 0 and 1, where 1 is a label as it is written."""
        return replace(self, parts=tuple(part.with_positive(label) for part in self.parts))

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
    path: str | Path,
    target: Sequence[str],
    drop: Sequence[str] = (),
    initial: str | None = None,
    weight: str | None = None,
    positive: str | None = None,
) -> Table:
    """A Parquet file, or all of a folder, as a table whose parts are row groups.

    The other arguments are those of `Columns`, and columns to leave out. ``positive="?"`` allows a
    target of words, whose labels are not known yet.
    """
    columns = Columns((), tuple(target), initial, weight, positive)
    parts: list[ParquetPart] = []
    schema, first = None, ""
    for name in parquet_files(path):
        with opened(name) as file:
            if schema is None:
                schema, first = file.schema_arrow, name
                columns = _with_features(schema, columns, drop)
            elif file.schema_arrow.remove_metadata() != schema.remove_metadata():
                raise Unfit(
                    f"{base_name(name)} has other columns, or other types, than {base_name(first)}"
                )
            sizes = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
        for group, n in enumerate(sizes):
            if n:
                parts.append(ParquetPart(len(parts), name, group, columns, n))
    if schema is None or not parts:
        raise Unfit("has no rows")
    features = columns.features
    words = tuple(name for name in features if not _is_number(schema.field(name).type, name))
    return Table(tuple(parts), tuple(part.stop for part in parts), features, words)


def _with_features(schema: pa.Schema, columns: Columns, drop: Sequence[str]) -> Columns:
    """The columns with the covariates of a schema; raises `Unfit` if some are not in it."""
    left_out = {*columns.beside, *drop}
    for name in left_out:
        if name not in schema.names:
            raise Unfit(f"has no column {name!r}; it has {', '.join(schema.names)}")
    for name in columns.beside:
        words = columns.positive is not None and name in columns.target
        if not _is_number(schema.field(name).type, name) and not words:
            raise Unfit(f"column {name!r} must hold numbers; it holds words")
    # What a data frame had as its index are names of rows.
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    left_out |= {name for name in index if isinstance(name, str)}
    features = tuple(name for name in schema.names if name not in left_out)
    if not features:
        raise Unfit("no covariate is left beside the target")
    return replace(columns, features=features)


def is_url(path: object) -> bool:
    """Whether a path is one for fsspec, such as s3://bucket/folder."""
    return "://" in str(path)


@contextmanager
def opened(path: str) -> Iterator[pq.ParquetFile]:
    """A Parquet file on a disk, or where fsspec finds it."""
    # Without the buffers that make remote files quick and hold a whole row group.
    if not is_url(path):
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=2**20) as file:
            yield file
        return
    with stream_of(path) as stream, pq.ParquetFile(stream, pre_buffer=False) as file:
        yield file


def stream_of(path: str) -> Any:
    """A context that is a file's bytes, on a disk or where fsspec finds them."""
    if not is_url(path):
        return Path(path).open("rb")
    import fsspec

    return fsspec.open(path)


def parquet_files(path: str | Path) -> list[str]:
    """The Parquet files of a folder, at any depth, by name; or the one that was named."""
    if is_url(path):
        import fsspec

        place = str(path).rstrip("/")
        system, root = fsspec.core.url_to_fs(place)
        if system.isfile(root):
            return [place]
        names = system.find(root)
        within = [n[n.index(root.strip("/")) + len(root.strip("/")) :].strip("/") for n in names]
        found = sorted(Path(name) for name in within if name.endswith(".parquet"))
    else:
        folder = Path(path).expanduser().resolve()
        place = str(folder)
        if folder.is_file():
            return [place]
        found = sorted(file.relative_to(folder) for file in folder.rglob("*.parquet"))
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
    return [f"{place}/{file}" for file in seen]


def base_name(path: str) -> str:
    """The name of a file without its folders."""
    return path.rpartition("/")[2]


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


def _flags(labels: Any, positive: str) -> Floats:
    """1 where a label (n,) is the positive one, as it is written, and 0 elsewhere."""
    found = levels_of(np.ravel(labels))
    if MISSING in found.levels:
        raise Unfit("y: some rows have no label")
    of_levels = np.array([level == positive for level in found.levels], np.float64)
    return of_levels[found.codes]


def _numbers(batch: pa.RecordBatch, name: str) -> Floats:
    column = batch.column(name)
    return column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
