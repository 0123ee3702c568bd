"""Tables of OpenML: downloaded once, by a child process, into ``data/cache/``."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd

from pipeline import files
from pipeline.config.schema import Dataset
from pipeline.datasets.manifest import TableSpec
from pipeline.errors import DataError
from pipeline.paths import CACHE

SERVER = "https://www.openml.org/api/v1/xml"


def read(
    dataset: Dataset, spec: TableSpec | None, cache: Path = CACHE
) -> tuple[pd.DataFrame, tuple[str, ...], str]:
    """A downloaded or cached OpenML table, OpenML's own target and a phrase on its origin."""
    number = dataset.id or (spec.openml.id if spec and spec.openml else None)
    if number is None:
        raise DataError(f"{dataset.label} has no known OpenML table; give its number: dataset.id=…")
    server = dataset.server or SERVER
    tag = "" if dataset.server is None else "-" + hashlib.sha256(server.encode()).hexdigest()[:8]
    cached = cache / f"openml-{number}{tag}.parquet"
    if not _intact(cached):
        _download(number, server, dataset.timeout, cached)
    try:
        frame = pd.read_parquet(cached)
    except Exception as error:
        raise DataError(f"{cached} cannot be read ({error}); delete it and start again") from None
    target = frame.attrs.get("target")
    return frame, (target,) if target else (), f"OpenML dataset {number}"


def _intact(cached: Path) -> bool:
    """Whether a table is in the cache as it was downloaded; see `_digest_file`."""
    try:
        return _digest_file(cached).read_text() == hashlib.sha256(cached.read_bytes()).hexdigest()
    except (OSError, ValueError):
        return False


def _digest_file(cached: Path) -> Path:
    """Where the checksum of a cached table is kept; Parquet has none for all of its bytes."""
    return cached.with_suffix(".sha256")


def _download(number: int, server: str, timeout: float, destination: Path) -> None:
    """Let a child process with a deadline download a table, then move it into place whole.

    The openml client sets no time limit on requests, writes log and config files where it likes
    and keeps half-downloaded files in its cache; in a child with a folder of its own, none of that
    reaches the user.
    """
    what = f"OpenML dataset {number}"
    folder = destination.parent / files.scratch_name()
    partial = folder / "table.parquet"
    places = ("OPENML_CACHE_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
    environment = os.environ | dict.fromkeys(places, str(folder))
    command = [
        sys.executable, "-m", "pipeline.datasets.openml_download", str(number), server,
        f"{timeout:g}", str(partial),
    ]  # fmt: skip
    try:
        folder.mkdir(parents=True)
        files.sweep(destination.parent)
        child = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=timeout, check=False
        )
        problem = _problem_of(child)
        if problem:
            raise DataError(f"{what}: {problem}")
        digest = hashlib.sha256(partial.read_bytes()).hexdigest()
        files.write_text(_digest_file(destination), digest)
        partial.replace(destination)
    except subprocess.TimeoutExpired:
        raise DataError(
            f"{what}: {server} did not deliver it within dataset.timeout={timeout:g} s"
        ) from None
    except OSError as error:
        raise DataError(
            f"{what}: cannot write to {destination.parent} ({error.strerror})"
        ) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _problem_of(child: subprocess.CompletedProcess[str]) -> str | None:
    if child.returncode == 0:
        return None
    try:
        return str(json.loads(child.stdout.splitlines()[-1])["problem"])
    except (IndexError, KeyError, ValueError):
        last = (child.stderr.strip().splitlines() or ["no message"])[-1]
        return f"the openml client failed: {last}"
