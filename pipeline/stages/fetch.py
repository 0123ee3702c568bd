"""Fetch: a raw table from the bundled snapshot, scikit-learn, OpenML or a user's file.

A dataset of the paper must come out as the same canonical table from every source; anything else
is an error that names the columns that differ.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipeline.config import Dataset
from pipeline.errors import DataError
from pipeline.stages.tables import (
    DATA_DIR,
    TableSpec,
    canonicalise,
    content_hash,
    describe_differences,
    manifest,
)

CACHE_DIR = DATA_DIR / "cache"
OPENML_SERVER = "https://www.openml.org/api/v1/xml"


@dataclass(frozen=True)
class RawTable:
    """A canonical table, its content hash and where it came from."""

    frame: pd.DataFrame
    sha256: str
    origin: str
    target: tuple[str, ...]


def fetch(dataset: Dataset, cache_dir: Path = CACHE_DIR) -> RawTable:
    """The canonical table of a dataset; nothing is written unless it came from OpenML."""
    spec = manifest().get(dataset.label)
    target = dataset.target_columns
    if dataset.source == "openml":
        frame, default_target, origin = _from_openml(dataset, spec, cache_dir)
        target = target or default_target
    elif dataset.source == "file":
        frame, origin = _from_file(Path(str(dataset.path))), f"file {Path(str(dataset.path)).name}"
    elif dataset.source == "sklearn":
        frame, origin = _from_sklearn(dataset.label), "scikit-learn"
    else:
        frame, origin = read_bundled(dataset.label), "bundled snapshot"
    table = canonicalise(frame, spec)
    digest = content_hash(table)
    if spec is not None and digest != spec.content_sha256:
        reference = canonicalise(_reference(spec), spec)
        raise DataError(
            f"{spec.name} from {origin} is not the paper's table: "
            f"{describe_differences(table, reference)}"
        )
    return RawTable(frame=table, sha256=digest, origin=origin, target=target)


def expected_hash(dataset: Dataset) -> str | None:
    """The content hash that `fetch` would insist on, without fetching; None if it has to look."""
    spec = manifest().get(dataset.label)
    return spec.content_sha256 if spec else None


def read_bundled(name: str) -> pd.DataFrame:
    """A table of the snapshot in ``data/``, after checking that its bytes are the origin's."""
    spec = manifest().get(name)
    if spec is None or spec.file is None:
        have = ", ".join(n for n, s in manifest().items() if s.file)
        raise DataError(f"{name} is not in the bundled snapshot, which has {have}")
    try:
        raw = lzma.decompress((DATA_DIR / spec.file).read_bytes())
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
    )


def _reference(spec: TableSpec) -> pd.DataFrame:
    return _from_sklearn(spec.name) if spec.file is None else read_bundled(spec.name)


def _from_sklearn(name: str) -> pd.DataFrame:
    from sklearn import datasets

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


def _from_file(path: Path) -> pd.DataFrame:
    try:
        if path.suffix == ".parquet":
            return pd.read_parquet(path)
        return pd.read_csv(path, low_memory=False)
    except Exception as error:  # readers raise many kinds; the user needs the file's name
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{path.name} cannot be read as {path.suffix[1:]}: {reason}") from None


def _from_openml(
    dataset: Dataset, spec: TableSpec | None, cache_dir: Path
) -> tuple[pd.DataFrame, tuple[str, ...], str]:
    """A downloaded or cached OpenML table, OpenML's own target and a phrase on its origin."""
    number = dataset.id or (spec.openml.id if spec and spec.openml else None)
    if number is None:
        raise DataError(f"{dataset.label} has no known OpenML table; give its number: dataset.id=…")
    server = dataset.server or OPENML_SERVER
    tag = "" if dataset.server is None else "-" + hashlib.sha256(server.encode()).hexdigest()[:8]
    cached = cache_dir / f"openml-{number}{tag}.parquet"
    if not cached.exists():
        _download(number, server, dataset.timeout, cached)
    try:
        frame = pd.read_parquet(cached)
    except Exception as error:
        raise DataError(f"{cached} cannot be read ({error}); delete it and start again") from None
    target = frame.attrs.get("target")
    return frame, (target,) if target else (), f"OpenML dataset {number}"


def _download(number: int, server: str, timeout: float, destination: Path) -> None:
    """Let a child process with a deadline download a table, then move it into place whole.

    The openml client sets no time limit on requests, writes log and config files where it likes
    and keeps half-downloaded files in its cache; in a child with a folder of its own, none of that
    reaches the user.
    """
    what = f"OpenML dataset {number}"
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(prefix=".partial-", dir=destination.parent)
    except OSError as error:
        raise DataError(
            f"{what}: cannot write to {destination.parent} ({error.strerror})"
        ) from None
    with scratch as folder:
        partial = Path(folder) / "table.parquet"
        environment = os.environ | {
            "OPENML_CACHE_DIR": folder,
            "XDG_CONFIG_HOME": folder,
            "XDG_CACHE_HOME": folder,
        }
        command = [sys.executable, "-m", "pipeline.stages.openml_download", str(number), server]
        try:
            child = subprocess.run(
                [*command, str(partial)],
                env=environment,
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise DataError(
                f"{what}: {server} did not deliver it within dataset.timeout={timeout:g} s"
            ) from None
        problem = _problem_of(child)
        if problem:
            raise DataError(f"{what}: {problem}")
        partial.replace(destination)


def _problem_of(child: subprocess.CompletedProcess[str]) -> str | None:
    if child.returncode == 0:
        return None
    try:
        answer: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
        return str(answer["problem"])
    except (IndexError, KeyError, ValueError):
        last = (child.stderr.strip().splitlines() or ["no message"])[-1]
        return f"the openml client failed: {last}"
