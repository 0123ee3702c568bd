"""Runs on disk: a folder a person can browse, each run complete or absent.

    <root>/runs/<dataset>/<label>/seed=007-<hash>/rounds.csv   one row per round
                                                  run.json     key, config, provenance, checksums
    <root>/initial/<dataset>/seed=007-<hash>.npz               f_0, shared by strategies

A run is written under another name and renamed, so that a kill at any moment leaves either
all of it or nothing; its checksums tell a damaged one. The hash is of the run's key (see
`pipeline.runs.keys`), which stands readable in ``run.json``.
"""

import errno
import hashlib
import io
import json
import logging
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipeline import files
from pipeline.boosting.arrays import Floats
from pipeline.errors import UserError
from pipeline.runs.keys import Key, differing, key_hash

log = logging.getLogger("pipeline")

# What every row of a run of rounds has; see `pipeline.runs.kinds.rounds`.
MEASURED = {"round", "mse_train", "mse_test", "mce_train", "mce_test", "gap", "weight"}


class StoreError(UserError):
    """The output folder cannot be written; earlier results are intact."""


class CorruptRun(Exception):  # noqa: N818
    """A stored run is damaged; the message says how."""


@dataclass(frozen=True)
class RunId:
    """The place of a run: what it is called, and the key its numbers depend on."""

    dataset: str
    label: str  # what tells it from others of its dataset and seed, such as the strategy's name
    seed: int
    key: Key

    @property
    def folder(self) -> Path:
        """The run's folder below ``runs/``."""
        return Path(self.dataset, self.label, f"seed={self.seed:03d}-{key_hash(self.key)}")

    def __str__(self) -> str:
        """For logs: dataset/strategy/seed=7."""
        return f"{self.dataset}/{self.label}/seed={self.seed}"


@dataclass(frozen=True)
class StoredRun:
    """A run read back: its rounds and its ``run.json``."""

    rounds: pd.DataFrame
    record: Mapping[str, Any]


@dataclass(frozen=True)
class Initial:
    """f_0 on the training rows (n_train,) and on the test rows (n_test,)."""

    train: Floats
    test: Floats


class RunStore:
    """The runs of one experiment's folder; those of its neighbours are found, too."""

    def __init__(self, root: Path, runs: str = "runs") -> None:
        self.root = root
        self.runs = root / runs  # those of another kind have another name

    # -- runs ---------------------------------------------------------------------------------

    def has(self, run: RunId) -> bool:
        """Whether a run is stored; raises `CorruptRun` if it is damaged."""
        return self.load(run) is not None

    def load(self, run: RunId) -> StoredRun | None:
        """A stored run, None if there is none; raises `CorruptRun` if it is damaged."""
        folder = self._find(self.runs / run.folder)
        return None if folder is None else _read(folder, run)

    def save(self, run: RunId, rounds: pd.DataFrame, record: Mapping[str, Any]) -> Path:
        """Put a run into its place, whole; a valid one that is there already is kept."""
        target = self.runs / run.folder
        csv = rounds.to_csv(index=False).encode()
        sealed = _seal({"key": run.key, **record, "rounds_sha256": _sha256(csv)})
        with self._placing(run, target) as scratch:
            (scratch / "rounds.csv").write_bytes(csv)
            (scratch / "run.json").write_text(json.dumps(sealed, indent=2, sort_keys=True))
        return target

    def adopt(self, run: RunId) -> None:
        """Copy a stored run of a neighbour, so that the experiment's folder is whole by itself."""
        target = self.runs / run.folder
        found = self._find(target)
        if found is not None and found != target:
            with self._placing(run, target) as scratch:
                shutil.copytree(found, scratch, dirs_exist_ok=True)

    def why_missing(self, run: RunId) -> str | None:
        """Which keys tell ``run`` from a stored one of the same name; None if there is none."""
        found = []
        folder = (self.runs / run.folder).parent
        for other in files.find(folder, f"seed={run.seed:03d}-*"):
            with suppress(CorruptRun):
                found.append(differing(run.key, _read(other).record["key"]))
        fewest = min((differences for differences in found if differences), key=len, default=None)
        return None if fewest is None else "; ".join(fewest)

    def stored(self) -> Iterator[tuple[Path, StoredRun]]:
        """All runs that are whole, with their folders; of others a warning is given."""
        for folder in files.find(self.runs, "*/*/seed=*-*"):
            try:
                yield folder, _read(folder)
            except CorruptRun as error:
                log.warning("%s; left out", error)

    # -- f_0 ----------------------------------------------------------------------------------

    def load_initial(self, dataset: str, seed: int, key: Key) -> Initial | None:
        """f_0 as stored under ``key``; None if absent or damaged."""
        path = self._find(self._initial_path(dataset, seed, key))
        if path is None:
            return None
        try:
            raw = _bytes_of(path)
            if _behind_checksum(key, raw[64:]) != raw:
                return None
            with np.load(io.BytesIO(raw[64:])) as arrays:
                found = arrays["train"], arrays["test"]
        except Exception:  # numpy and zip have a dozen for what they do not know
            return None
        sound = (a.dtype == np.float64 and a.ndim == 1 and np.isfinite(a).all() for a in found)
        return Initial(*found) if all(sound) else None

    def save_initial(self, dataset: str, seed: int, key: Key, initial: Initial) -> None:
        """Keep f_0 for the other strategies and for reruns."""
        path = self._initial_path(dataset, seed, key)
        buffer = io.BytesIO()
        np.savez(buffer, train=initial.train, test=initial.test)
        with clear_errors(self.root), files.replacing(path) as scratch:
            scratch.write_bytes(_behind_checksum(key, buffer.getvalue()))

    # -- housekeeping ---------------------------------------------------------------------------

    def check_writable(self) -> None:
        """Raise `StoreError` now rather than after hours of work."""
        with clear_errors(self.root):
            shutil.rmtree(self._scratch())

    def sweep(self) -> None:
        """Remove what killed processes of this machine left half-written."""
        for folder in (self.root, *files.find(self.root, "*/"), *files.find(self.root, "*/*/")):
            files.sweep(folder)

    def _find(self, path: Path) -> Path | None:
        """A path below the root, or the same path of another experiment in the output folder.

        The hash in the names of runs makes sure that they are the same wherever they lie.
        """
        if path.exists():
            return path
        below = path.relative_to(self.root)
        places = (other / below for other in files.find(self.root.parent, "*/"))
        return next((place for place in places if place.exists()), None)

    def _scratch(self) -> Path:
        folder = self.runs / files.scratch_name()  # which may be on another disk than the root
        folder.mkdir(parents=True)
        return folder

    @contextmanager
    def _placing(self, run: RunId, target: Path) -> Iterator[Path]:
        """A folder to fill, which then takes its place whole or not at all."""
        with clear_errors(self.root):
            scratch = self._scratch()
            try:
                yield scratch
                target.parent.mkdir(parents=True, exist_ok=True)
                self._install(scratch, target, run)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)

    def _install(self, scratch: Path, target: Path, run: RunId) -> None:
        for _ in range(2):
            try:
                scratch.rename(target)
                return
            except OSError as error:
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
                    raise
            try:
                _read(target, run)
                return  # somebody else finished the same run; its numbers are the same
            except CorruptRun:
                self._set_aside(target)
        raise StoreError(f"{target}: cannot be replaced")

    def _set_aside(self, folder: Path) -> None:
        """Remove a damaged run; with files of somebody else in it, move it out of the way."""
        aside = folder.with_name(f"damaged-{files.scratch_name().lstrip('.')}")
        try:
            folder.rename(aside)
        except FileNotFoundError:
            return  # another driver was quicker
        if aside.is_symlink() or not aside.is_dir():
            aside.unlink()
        elif {p.name for p in aside.iterdir()} <= {"rounds.csv", "run.json"}:
            shutil.rmtree(aside, ignore_errors=True)

    def _initial_path(self, dataset: str, seed: int, key: Key) -> Path:
        return self.root / "initial" / dataset / f"seed={seed:03d}-{key_hash(key)}.npz"


@contextmanager
def clear_errors(root: Path) -> Iterator[None]:
    """Turns failures to write below ``root`` into one sentence."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"output_dir: cannot write to {error.filename or root} ({error.strerror or error}); "
            "results stored so far are intact"
        ) from None


def _read(folder: Path, run: RunId | None = None) -> StoredRun:
    """The run in a folder, after its checksums were found right.

    run : the one that should be there; a folder that was renamed holds another.
    """
    try:
        csv = _bytes_of(folder / "rounds.csv")
        record = json.loads(_bytes_of(folder / "run.json"))
        whole = isinstance(record, dict) and _seal(record) == record
    except FileNotFoundError as error:
        raise CorruptRun(f"{folder}: {Path(error.filename).name} is missing") from None
    except (OSError, ValueError, RecursionError) as error:
        raise CorruptRun(f"{folder}: run.json cannot be read ({error})") from None
    if not whole:
        raise CorruptRun(f"{folder}: run.json does not match its checksum")
    if _sha256(csv) != record.get("rounds_sha256"):
        raise CorruptRun(f"{folder}: rounds.csv does not match its checksum")
    key = record.get("key")
    boosting = key.get("boosting", {}) if isinstance(key, dict) else None
    if not isinstance(boosting, dict) or not isinstance(boosting.get("rounds", 0), int):
        raise CorruptRun(f"{folder}: run.json has no key, or an odd one")
    if run is not None and key != json.loads(json.dumps(run.key)):
        raise CorruptRun(f"{folder}: holds a run of other settings")
    try:
        rounds = pd.read_csv(io.BytesIO(csv), **files.EXACT_FLOATS)
    except ValueError as error:
        raise CorruptRun(f"{folder}: rounds.csv cannot be read ({error})") from None
    last = record["key"].get("boosting", {}).get("rounds")
    if last is not None and not _is_sound(rounds, last):
        raise CorruptRun(f"{folder}: rounds.csv holds what rounds cannot be")
    return StoredRun(rounds, record)


def _is_sound(rounds: pd.DataFrame, last: int) -> bool:
    """Whether a table has the rounds 0, …, ``last``, and numbers where rounds have numbers."""
    if not set(rounds) >= MEASURED or rounds["round"].tolist() != list(range(last + 1)):
        return False
    numbers = rounds.drop(columns=["dataset", "strategy"], errors="ignore")
    return (
        all(dtype.kind in "fiu" for dtype in numbers.dtypes)
        and not np.isinf(numbers.to_numpy(np.float64)).any()
        and bool(rounds[["mse_train", "mce_train"]].notna().all(axis=None))
        and bool(rounds[["gap", "weight"]].iloc[1:].notna().all(axis=None))
    )


def _bytes_of(path: Path) -> bytes:
    """A regular file's content; anything else, such as a pipe, might never end."""
    if not path.is_file() and path.exists():
        raise OSError(f"{path.name} is not a file")
    return path.read_bytes()


def _behind_checksum(key: Key, blob: bytes) -> bytes:
    """Some bytes behind the checksum of them and of what they depend on."""
    return _sha256(json.dumps(key, sort_keys=True).encode() + blob).encode() + blob


def _seal(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with a checksum of its other entries."""
    content = {name: value for name, value in record.items() if name != "record_sha256"}
    text = json.dumps(content, sort_keys=True)
    return json.loads(text) | {"record_sha256": _sha256(text.encode())}


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
