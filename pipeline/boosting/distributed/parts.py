"""Tables in parts, which whoever is to hold their rows can read, again and a block at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.boosting.arrays import Floats

BLOCK_CELLS = 1_000_000  # that are in memory at a time, as they come


@dataclass(frozen=True)
class Block:
    """Some rows: a DataFrame or a matrix (n, d), y (n,), and initial predictions (n,) if given."""

    table: Any
    y: Floats
    f0: Floats | None = None

    def __post_init__(self) -> None:
        """What no row may have."""
        if not np.isfinite(self.y).all():
            raise ValueError("y: some rows have a missing or infinite target")
        if self.f0 is not None and not np.isfinite(self.f0).all():
            raise ValueError("initial_prediction: is missing or infinite for some rows")


class Part(Protocol):
    """Some rows of a table; ``number`` is its place among the parts."""

    @property
    def number(self) -> int:
        """See the class."""
        ...

    def blocks(self) -> Iterator[Block]:
        """Its rows, in order."""
        ...


@dataclass(frozen=True)
class MemoryPart:
    """Rows that are in memory."""

    number: int
    table: Any
    y: Any
    f0: Any = None

    def blocks(self) -> Iterator[Block]:
        """See `Part`."""
        n = len(self.y)
        step = max(1, BLOCK_CELLS // max(1, self.table.shape[1]))
        for start in range(0, n, step):
            rows = slice(start, start + step)
            table = self.table[rows]
            if not isinstance(table, pd.DataFrame):
                table = np.asarray(table, np.float64)
            f0 = None if self.f0 is None else np.asarray(self.f0[rows], np.float64)
            yield Block(table, np.asarray(self.y[rows], np.float64), f0)


@dataclass(frozen=True)
class ParquetPart:
    """Row groups of a Parquet file, which whoever reads them must reach under the same path.

    target : columns whose sum is y.  initial : the column of initial predictions, or None.
    """

    number: int
    path: str
    row_groups: tuple[int, ...]
    features: tuple[str, ...]
    target: tuple[str, ...]
    initial: str | None = None

    def blocks(self) -> Iterator[Block]:
        """See `Part`."""
        further = [*self.target, *([] if self.initial is None else [self.initial])]
        columns = list(dict.fromkeys([*self.features, *further]))
        step = max(1, BLOCK_CELLS // len(columns))
        # Without the buffers that make remote files quick and hold a whole row group.
        with pq.ParquetFile(self.path, pre_buffer=False, buffer_size=2**20) as file:
            for batch in file.iter_batches(step, list(self.row_groups), columns, use_threads=False):
                y = sum(_numbers(batch, name) for name in self.target)
                f0 = None if self.initial is None else _numbers(batch, self.initial)
                yield Block(_features(batch, self.features), np.asarray(y), f0)


@dataclass(frozen=True)
class Table:
    """All parts of a table.

    rows : of each part.  columns : the covariates' names.  words : those that are not numbers.
    """

    parts: tuple[Part, ...]
    rows: tuple[int, ...]
    columns: tuple[str, ...]
    words: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """Of all parts."""
        return sum(self.rows)

    def shared_out(self, n: int) -> list[tuple[Part, ...]]:
        """The parts in n runs of neighbours with about as many rows each."""
        if not 1 <= n <= len(self.parts):
            raise ValueError(
                f"a table of {len(self.parts)} parts cannot be shared out among {n} workers; write "
                "it in more parts, or use fewer workers"
            )
        ends = np.cumsum(self.rows)
        goals = ends[-1] * np.arange(1, n) / n
        cuts = np.searchsorted(ends, goals) + 1
        for k in range(n - 1):  # every one gets a part at least
            cuts[k] = min(max(cuts[k], (cuts[k - 1] if k else 0) + 1), len(self.parts) - n + k + 1)
        return [tuple(chunk) for chunk in _cut(self.parts, cuts)]


def parquet_table(
    path: str | Path,
    target: Sequence[str],
    drop: Sequence[str] = (),
    initial: str | None = None,
) -> Table:
    """A Parquet file, or all of a folder, as a table whose parts are row groups."""
    files = parquet_files(path)
    schema = pq.read_schema(files[0])
    left_out = {*target, *drop, *([] if initial is None else [initial])}
    for name in left_out:
        if name not in schema.names:
            raise ValueError(f"{path}: has no column {name!r}; it has {', '.join(schema.names)}")
    left_out |= _index_of(schema)
    features = tuple(name for name in schema.names if name not in left_out)
    if not features:
        raise ValueError(f"{path}: no covariate is left beside the target")
    parts: list[Part] = []
    rows: list[int] = []
    for file in files:
        if pq.read_schema(file).remove_metadata() != schema.remove_metadata():
            raise ValueError(f"{file}: has other columns, or other types, than {files[0].name}")
        of_file = pq.read_metadata(file)
        for group in range(of_file.num_row_groups):
            n = of_file.row_group(group).num_rows
            if n:
                parts.append(
                    ParquetPart(len(parts), str(file), (group,), features, tuple(target), initial)
                )
                rows.append(n)
    if not parts:
        raise ValueError(f"{path}: has no rows")
    words = tuple(name for name in features if not _is_number(schema.field(name).type, name))
    return Table(tuple(parts), tuple(rows), features, words)


def parquet_files(path: str | Path) -> list[Path]:
    """The Parquet files of a folder, at any depth, by name; or the one that was named."""
    place = Path(path).expanduser().resolve()
    if place.is_file():
        return [place]
    files = sorted(
        file for file in place.rglob("*.parquet") if not file.name.startswith((".", "_"))
    )
    if not files:
        raise ValueError(f"{path}: there is no Parquet file")
    return files


def _is_number(kind: pa.DataType, name: str) -> bool:
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return True
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_string(inner) or pa.types.is_large_string(inner) or inner == pa.string_view():
        return False
    raise ValueError(f"column {name!r} holds {kind}; only numbers, flags and words can be used")


def _index_of(schema: pa.Schema) -> set[str]:
    """Columns that a data frame had as its index; they are names of rows."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    return {name for name in index if isinstance(name, str)}


def _numbers(batch: pa.RecordBatch, name: str) -> Floats:
    column = batch.column(name)
    return column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)


def _features(batch: pa.RecordBatch, names: Sequence[str]) -> Any:
    """A matrix, or a DataFrame where there are words."""
    if all(_is_number(batch.schema.field(name).type, name) for name in names):
        return np.column_stack([_numbers(batch, name) for name in names])
    return batch.select(list(names)).to_pandas(ignore_metadata=True)


def _cut(parts: Sequence[Part], cuts: Sequence[int]) -> Iterator[Sequence[Part]]:
    start = 0
    for cut in (*cuts, len(parts)):
        yield parts[start:cut]
        start = int(cut)
