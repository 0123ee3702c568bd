"""Parquet files that are read in parts, or whole if they fit into memory."""

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from pipeline.boosting.distributed.parts import (
    Table,
    Unfit,
    base_name,
    opened,
    parquet_files,
    parquet_table,
    stream_of,
)
from pipeline.boosting.engines.exact.columns import MAX_ROWS
from pipeline.config.schema import Dataset
from pipeline.errors import DataError

# Of a cell in memory, measured on 500,000 rows of 104 columns: as a frame, in canonical form, in a
# matrix, in its split, and as the engine lays it out.
BYTES = 50.0
WAY_OUT = (
    "it can be fitted in parts: dataset=parquet with dataset.path of a Parquet file or folder, "
    "engine=lightgbm, and grid.scheduler=tcp://… for the workers of a Dask cluster"
)


def table_in_parts(dataset: Dataset) -> Table:
    """A dataset of ``source=parquet`` as a table in parts."""
    try:
        return parquet_table(
            str(dataset.path), dataset.target_columns, dataset.drop, dataset.prediction,
            dataset.weight, dataset.positive,
        )  # fmt: skip
    except (Unfit, OSError, pa.ArrowException) as error:
        raise DataError(f"dataset.path={dataset.path}: {error}") from None


def digest_of_files(dataset: Dataset) -> str:
    """A hash of the files' names and bytes."""
    try:
        files = parquet_files(str(dataset.path))
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            digests = list(threads.map(_digest, files))
    except (Unfit, OSError) as error:
        raise DataError(f"dataset.path={dataset.path}: {error}") from None
    whole = hashlib.sha256()
    for file, digest in zip(files, digests, strict=True):
        whole.update(f"{base_name(file)}/{digest}\n".encode())
    return whole.hexdigest()


def require_room(path: str) -> None:
    """Raise `DataError` for Parquet files that would not fit this machine's memory as numbers."""
    footers = []
    try:
        for name in parquet_files(path):
            with opened(name) as file:
                footers.append(file.metadata)
    except (ValueError, OSError, pa.ArrowException):
        return  # who reads them will say what is wrong
    rows = sum(footer.num_rows for footer in footers)
    columns = footers[0].num_columns
    needed, there = BYTES * rows * columns, _memory()
    if needed > there:
        raise DataError(
            f"{base_name(path)}: {rows:,} rows of {columns} columns need some "
            f"{needed / 2**30:.0f} GB to be fitted in memory, and this machine has "
            f"{there / 2**30:.0f} GB; {WAY_OUT}"
        )


def require_exact(label: str, rows: int) -> None:
    """Raise `DataError` for more rows than the exact engine takes."""
    if rows > MAX_ROWS:
        raise DataError(
            f"{label}: {rows:,} rows are more than engine=exact takes ({MAX_ROWS:,}); {WAY_OUT}"
        )


def _digest(file: str) -> str:
    with stream_of(file) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _memory() -> float:
    """Bytes of this machine's memory."""
    return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
