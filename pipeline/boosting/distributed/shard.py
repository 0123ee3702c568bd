"""Some rows of a large table, and what a round does with them.

Rows are read once and written, as numbers, to a file beside whoever holds them; from there they
become LightGBM's bins, f_0, and, where a shard takes the place of a lost one, the f_t of the rounds
so far. Then the file is removed: a round gives h_t on its own rows as a by-product of the training,
to the same bits as a prediction would. What stays in memory is a byte a cell, y and f_t.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.boosting.algorithm import Round, advance
from pipeline.boosting.arrays import Flags, Floats
from pipeline.boosting.distributed.initial import Initial
from pipeline.boosting.distributed.parts import Block, Part, Unfit
from pipeline.boosting.encoding import Encoding
from pipeline.boosting.engines.base import TreeSettings
from pipeline.boosting.engines.lightgbm import (
    Bins,
    binning,
    growing,
    lightgbm_package,
    with_f,
)
from pipeline.boosting.frames import MISSING, Numbers, columns_of, word

SLICE_CELLS = 1_000_000  # of a file of rows that are read at a time


@dataclass(frozen=True)
class ShardSettings:
    """What all shards of a fit have in common.

    held_out : the share of rows that no round sees.  sampled, sampled_out : the shares of the other
    rows, and of those, that are sent to whoever leads the fit.
    """

    encoding: Encoding
    trees: TreeSettings
    eta: float
    bins: Bins
    seed: int
    held_out: float
    sampled: float
    sampled_out: float
    n_threads: int = 1


@dataclass(frozen=True)
class Rows:
    """Rows in full: X (n, d) as numbers, y (n,), and initial predictions (n,) if given."""

    X: Floats
    y: Floats
    f0: Floats | None

    def take(self, which: Flags) -> Rows:
        """Some of them."""
        return Rows(self.X[which], self.y[which], None if self.f0 is None else self.f0[which])

    @classmethod
    def joined(cls, pieces: Sequence[Rows]) -> Rows:
        """Several pieces as one."""
        f0 = [piece.f0 for piece in pieces if piece.f0 is not None]
        return cls(
            np.concatenate([piece.X for piece in pieces]),
            np.concatenate([piece.y for piece in pieces]),
            np.concatenate(f0) if len(f0) == len(pieces) else None,
        )


@dataclass(frozen=True)
class Read:
    """What a shard tells of a part that it has read: sampled rows, and Σ y of the n it keeps."""

    n: int
    y_sum: float
    training: Rows
    held_out: Rows


@dataclass(frozen=True)
class Network:
    """Where the shards of a training listen, as host:port, and which of them this one is."""

    machines: tuple[str, ...]
    rank: int

    def parameters(self, minutes: int) -> dict[str, Any]:
        """For LightGBM."""
        if len(self.machines) == 1:
            return {}
        return {
            "machines": ",".join(self.machines),
            "num_machines": len(self.machines),
            "local_listen_port": int(self.machines[self.rank].rpartition(":")[2]),
            "tree_learner": "data",
            "time_out": minutes,
        }


@dataclass(frozen=True)
class Trained:
    """A training's outcome on a shard: its model, told once, and sums over the rows.

    y_phi, phi_phi : Σ y φ and Σ φ² of φ = f + η h, for w_t.
    """

    trees_sha256: str
    model: str | None
    y_phi: float
    phi_phi: float


@dataclass(frozen=True)
class State:
    """Where a shard is, as sums over its n rows.

    residual, loss : Σ (y − f) and Σ (y − f)².  gap : Σ (f_t − f_{t−1})², 0 at the start.
    """

    n: int
    residual: float
    loss: float
    gap: float


# After which LightGBM gives up a silent peer: whoever leads sees those that are gone much earlier.
PEER_MINUTES = 24 * 60


@dataclass
class Shard:
    """See the module's text; ``folder`` is a place for files."""

    settings: ShardSettings
    folder: Path
    n: int = 0
    _pieces: list[tuple[Floats, Floats | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin an empty file of rows."""
        self._spool = self.folder / "rows"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._spool.write_bytes(b"")
        except OSError as error:
            raise Unfit(f"rows cannot be written to {self.folder} ({error})") from None
        self._bins: Any = None
        self._phi: Floats | None = None
        self._gap = 0.0

    # --- making it ------------------------------------------------------------------------------

    def read(self, part: Part) -> Read:
        """Add the rows of a part."""
        s = self.settings
        bits = np.random.PCG64([s.seed, part.number])
        random = np.random.Generator(bits.advance(part.start))  # past the rows before
        n, y_sum, training, held_out = 0, 0.0, [], []
        with self._spool.open("ab") as file:
            for block in part.blocks():
                rows = self._encoded(block)
                u = random.random(len(rows.y))  # which of a part's rows are what
                out = u < s.held_out
                sampled = u >= 1.0 - (1.0 - s.held_out) * s.sampled
                held_out.append(rows.take(u < s.held_out * s.sampled_out))
                training.append(rows.take(sampled & ~out))
                kept = rows.take(~out) if out.any() else rows
                self._write(file, kept.X)
                self._pieces.append((kept.y, kept.f0))
                n += len(kept.y)
                y_sum += float(kept.y.sum())
        self.n += n
        _give_back()
        return Read(n, y_sum, Rows.joined(training), Rows.joined(held_out))

    def _write(self, file: Any, X: Floats) -> None:
        try:
            np.ascontiguousarray(X).tofile(file)
        except OSError as error:
            raise Unfit(f"rows cannot be written to {self.folder} ({error})") from None

    def _encoded(self, block: Block) -> Rows:
        try:
            X = self.settings.encoding.encode(block.table)
        except ValueError as error:
            raise Unfit(str(error)) from None
        if np.isinf(X).any():
            name = self.settings.encoding.names[int(np.isinf(X).any(axis=0).argmax())]
            raise Unfit(f"X: column {name!r} holds infinity")
        return Rows(X, block.y, block.f0)

    def bin(self, reference: bytes) -> None:
        """Make the bins of X, with the boundaries of ``reference``."""
        lightgbm = lightgbm_package()
        if not self.n:
            raise Unfit("a shard has no rows to fit: the table is too small for so many workers")
        self.y = np.concatenate([y for y, _ in self._pieces])
        given = [f0 for _, f0 in self._pieces if f0 is not None]
        self._given = np.concatenate(given) if given else None
        self._pieces.clear()
        parameters = self._binning()
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            file = Path(folder) / "reference.bin"
            file.write_bytes(reference)
            of_sample = lightgbm.Dataset(str(file), params=parameters).construct()
            rows = _sequence(lightgbm, self)
            self._bins = lightgbm.Dataset(rows, reference=of_sample, params=parameters).construct()
        _give_back()

    def start(self, initial: Initial, rounds: Sequence[Round]) -> State:
        """Compute f_0 and follow the rounds so far; the rows' file is not needed any more."""
        f, before = [], []
        at = 0
        for X in self.slices():
            given = None if self._given is None else self._given[at : at + len(X)]
            at += len(X)
            now = earlier = initial.predict(X, given)
            for round_ in rounds:
                earlier, now = now, advance(now, X, round_, self.settings.eta)
            f.append(now)
            before.append(earlier)
        self.f = np.concatenate(f)
        self._gap = _square(self.f - np.concatenate(before))
        self._given = None
        self._spool.unlink(missing_ok=True)
        _give_back()
        return self.state()

    def slices(self) -> Iterator[Floats]:
        """The rows of X in order, some at a time."""
        d = self.n_features
        step = max(1, SLICE_CELLS // d)
        for start in range(0, self.n, step):
            yield self.rows(start, min(start + step, self.n))

    def rows(self, start: int, stop: int) -> Floats:
        """Some rows of X."""
        d = self.n_features
        with self._spool.open("rb") as file:
            cells = np.fromfile(file, np.float64, (stop - start) * d, offset=start * d * 8)
        return cells.reshape(stop - start, d)

    @property
    def n_features(self) -> int:
        """Of X as numbers."""
        return len(self.settings.encoding.names)

    # --- rounds ---------------------------------------------------------------------------------

    def train(self, f_sample: Floats, constant: float, seed: int, network: Network) -> Trained:
        """A round's ensemble, fitted together with the other shards.

        f_sample : f_t of all shards' sampled rows, which the bins of f_t are made of.
        constant : the mean residual over all shards, from which the trees start. (LightGBM's own
        start would be the mean of the shards' means.)
        """
        if len(network.machines) == 1:
            return self._train(f_sample, constant, seed, network)
        # LightGBM's network belongs to its thread. One of its own takes all of it along, whatever
        # happened; another training there would find connections to peers that are gone.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(self._train, f_sample, constant, seed, network).result()

    def _train(self, f_sample: Floats, constant: float, seed: int, network: Network) -> Trained:
        s, lightgbm = self.settings, lightgbm_package()
        parameters = self._binning()
        sample = np.ascontiguousarray(f_sample[:, None])
        reference = lightgbm.Dataset(sample, params=parameters).construct()
        label = self.y - self.f
        label -= constant
        data = with_f(self.f, label, self._bins, parameters, reference=reference)
        chosen = {
            "learning_rate": s.trees.learning_rate, "boost_from_average": False, "metric": "none",
        }  # fmt: skip
        booster = lightgbm.Booster(
            parameters | growing(s.trees, seed) | network.parameters(PEER_MINUTES) | chosen, data
        )
        try:
            for _ in range(s.trees.n_trees):
                if booster.update():
                    break
            phi = _training_values(booster)
        finally:
            booster.free_network()
        phi += constant
        phi *= s.eta
        phi += self.f
        self._phi = phi
        text = booster.model_to_string()
        trees = text.partition("\nparameters:")[0]  # behind them are ports and the like
        return Trained(
            hashlib.sha256(trees.encode()).hexdigest(),
            text if network.rank == 0 else None,
            float((self.y * phi).sum()),
            _square(phi),
        )

    def step(self, weight: float) -> State:
        """Move to f_{t+1} = w_t φ_t."""
        if self._phi is None:
            raise RuntimeError("there is no φ_t to move to")
        self._phi *= weight
        self._gap = _square(self._phi - self.f)
        self.f, self._phi = self._phi, None
        _give_back()  # what the training took
        return self.state()

    def state(self) -> State:
        """Where it is."""
        residual = self.y - self.f
        return State(self.n, float(residual.sum()), _square(residual), self._gap)

    def _binning(self) -> dict[str, Any]:
        # Each shard has its own rows; LightGBM is not to share them out.
        return binning(self.settings.bins, self.settings.n_threads) | {"pre_partition": True}


def size_of(n: float, d: int) -> float:
    """About how many bytes a process takes at most that holds n rows of d columns.

    Bins of X, twice while a round is trained, y, f, φ and what LightGBM keeps of a row; and Python
    with its libraries. (Measured: 1.30 GB for 3.04 million rows of 101 columns.)
    """
    return 0.3e9 + n * (2.0 * (d + 1) + 125.0)


def levels_of(part: Part, columns: Sequence[str], most: int) -> dict[str, set[str]]:
    """The words in some columns of a part; of a column with too many, some of them."""
    found: dict[str, set[str]] = {name: set() for name in columns}
    for block in part.blocks():
        for column in columns_of(block.table[list(columns)]):
            if len(found[column.name]) > most:
                continue
            if isinstance(column, Numbers):
                values = np.unique(column.cells)
                words = {MISSING if np.isnan(value) else word(value) for value in values}
            else:
                words = set(column.levels)
            found[column.name] |= words
    return found


def reference_of(sample: Floats, settings: ShardSettings, folder: Path) -> bytes:
    """The boundaries of X's bins, from a sample (m, d), in a form for `Shard.bin`."""
    lightgbm = lightgbm_package()
    parameters = binning(settings.bins, settings.n_threads) | {"pre_partition": True}
    categorical = list(settings.encoding.categorical)
    data = lightgbm.Dataset(sample, params=parameters, categorical_feature=categorical)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        file = Path(place) / "reference.bin"
        data.construct().subset([0]).construct().save_binary(str(file))
        return file.read_bytes()


def _sequence(lightgbm: Any, shard: Shard) -> Any:
    """A shard's rows as LightGBM reads them, slice by slice."""

    class Rows(lightgbm.Sequence):  # type: ignore[misc]
        batch_size = max(1, SLICE_CELLS // shard.n_features)

        def __len__(self) -> int:
            return shard.n

        def __getitem__(self, which: Any) -> Floats:
            if isinstance(which, slice):
                start, stop, _ = which.indices(shard.n)
                return shard.rows(start, stop)
            return shard.rows(which, which + 1)[0]

    return Rows()


def _training_values(booster: Any) -> Floats:
    """What a booster predicts for the rows that it was trained on, (n,)."""
    values: list[Floats] = []

    def listen(prediction: Floats, _: Any) -> tuple[str, float, bool]:
        values.append(prediction.copy())
        return "values", 0.0, False

    booster.eval_train(listen)
    return values[0]


def _give_back() -> None:
    """Have libraries return freed memory, which counts against a worker's limit till then."""
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _square(v: Floats) -> float:
    return float(np.square(v).sum())
