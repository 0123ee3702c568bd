"""One shard of a large table, and what a round does with it.

A shard reads its rows once and writes them, as numbers, to a file. From there they become bins of
LightGBM, f_0, and, where a shard replaces a lost one, the f_t of the rounds so far. Then the file
is removed: the training of a round also gives h_t of its own rows, to the same bits as a prediction
would. What stays in memory is a byte a cell, y and f_t.
"""

import contextlib
import ctypes
import hashlib
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..algorithm import Round, advance
from ..arrays import Floats
from ..encoding import Encoding
from ..engines.base import TreeSettings
from ..engines.lightgbm import Bins, binning, growing, lightgbm_package, with_f
from ..frames import MISSING, Numbers, columns_of, word
from .initial import Initial
from .parts import Part, Rows, Unfit

SLICE_CELLS = 1_000_000  # of the file of rows that are read at a time
LARGEST = 1e30  # LightGBM keeps labels in single precision
# After which LightGBM gives up a silent peer; the driver sees much earlier that one is gone.
PEER_MINUTES = 24 * 60

Arguments = Mapping[int, tuple[Any, ...]]  # of a call on some shards, by their numbers


@dataclass(frozen=True)
class ShardSettings:
    """What all shards of a fit have in common.

    held_out : the share of rows that no round sees.  sampled, sampled_out : the shares of the other
    rows, and of those, that are sent to the driver.
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

    def binning(self) -> dict[str, Any]:
        """LightGBM's parameters of the bins; each shard has its own rows already."""
        return binning(self.bins, self.n_threads) | {"pre_partition": True}


@dataclass(frozen=True)
class Read:
    """What a shard returns of a part that it has read: Σ y of the n rows it keeps, and samples.

    digest : of all of its rows; a shard that is made again must read the same ones.
    """

    n: int
    y_sum: float
    training: Rows
    held_out: Rows
    digest: bytes


@dataclass(frozen=True)
class Network:
    """Where the shards of a training listen, as host:port, and which of them this one is.

    patience : seconds in which the shards must have found each other.
    """

    machines: tuple[str, ...]
    rank: int
    patience: float = 300.0

    @contextmanager
    def linking(self) -> Iterator[None]:
        """A context in which the shards connect to each other.

        LightGBM waits for ever if a stranger holds its port's attention, and cannot be interrupted.
        Then this process ends, which the driver takes for a lost worker: it begins anew on other
        ports.
        """
        end = threading.Timer(self.patience, os._exit, (1,))
        end.daemon = True
        if len(self.machines) > 1:
            end.start()
        try:
            yield
        finally:
            end.cancel()

    def parameters(self) -> dict[str, Any]:
        """LightGBM's parameters of the network."""
        if len(self.machines) == 1:
            return {}
        return {
            "machines": ",".join(self.machines),
            "num_machines": len(self.machines),
            "local_listen_port": int(self.machines[self.rank].rpartition(":")[2]),
            "tree_learner": "data",
            "time_out": PEER_MINUTES,
        }


@dataclass(frozen=True)
class Trained:
    """The outcome of a training on a shard: the model, from one shard only, and sums over rows.

    y_phi, phi_phi : Σ y φ and Σ φ² of φ = f + η h, for w_t.
    """

    trees_sha256: str
    model: str | None
    y_phi: float
    phi_phi: float


@dataclass(frozen=True)
class State:
    """Sums over the n rows of a shard.

    residual, loss : Σ (y − f) and Σ (y − f)².  gap : Σ (f_t − f_{t−1})², 0 at the start.
    """

    n: int
    residual: float
    loss: float
    gap: float


class Shard:
    """The rows of some parts; the module's text says what becomes of them.

    folder : for its files; it is made if it does not exist.
    """

    def __init__(self, settings: ShardSettings, folder: Path) -> None:
        self.settings, self.folder = settings, folder
        self.n, self.n_features = 0, len(settings.encoding.names)
        self._pieces: list[tuple[Floats, Floats | None]] = []  # y and f0 as they are read
        self._phi: Floats | None = None
        self._gap = 0.0
        self._file = folder / "rows"
        with self._writing():
            folder.mkdir(parents=True, exist_ok=True)
            self._file.write_bytes(b"")

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise Unfit(f"rows cannot be written to {self.folder} ({error})") from None

    # --- preparation ----------------------------------------------------------------------------

    def read(self, part: Part) -> Read:
        """Add the rows of a part."""
        s = self.settings
        bits = np.random.PCG64([s.seed, part.number])
        random = np.random.Generator(bits.advance(part.start))  # one number a row
        n, y_sum, training, held_out = 0, 0.0, [], []
        digest = hashlib.blake2b(digest_size=16)
        with self._file.open("ab") as file:
            for block in part.blocks():
                rows = self._encoded(block)
                for values in (rows.X, rows.y, rows.f0):
                    if values is not None:
                        digest.update(np.ascontiguousarray(values).data)
                u = random.random(len(rows.y))  # decides what becomes of a row
                out = u < s.held_out
                sampled = u >= 1.0 - (1.0 - s.held_out) * s.sampled
                held_out.append(rows.take(u < s.held_out * s.sampled_out))
                training.append(rows.take(sampled & ~out))
                kept = rows.take(~out) if out.any() else rows
                with self._writing():
                    np.ascontiguousarray(kept.X).tofile(file)
                self._pieces.append((kept.y, kept.f0))
                n += len(kept.y)
                y_sum += float(kept.y.sum())
        self.n += n
        _release_memory()
        samples = (Rows.joined(training), Rows.joined(held_out))
        return Read(n, y_sum, *samples, digest.digest())

    def _encoded(self, rows: Rows) -> Rows:
        """The rows with X as numbers; raises `Unfit` if a value cannot be used."""
        if not np.isfinite(rows.y).all():
            raise Unfit("y: some rows have a missing or infinite target")
        if np.abs(rows.y).max(initial=0.0) > LARGEST:
            raise Unfit(
                f"y: values beyond {LARGEST:g} are too large to be squared; use other units"
            )
        if rows.f0 is not None and not np.isfinite(rows.f0).all():
            raise Unfit("initial_prediction: is missing or infinite for some rows")
        try:
            X = self.settings.encoding.encode(rows.X)
        except ValueError as error:
            raise Unfit(str(error)) from None
        if np.isinf(X).any():
            name = self.settings.encoding.names[int(np.isinf(X).any(axis=0).argmax())]
            raise Unfit(f"X: column {name!r} holds infinity")
        return replace(rows, X=X)

    def bin(self, reference: bytes) -> None:
        """Make the bins of X, with the boundaries of ``reference``."""
        lightgbm, parameters = lightgbm_package(), self.settings.binning()
        if not self.n:
            raise Unfit("a shard has no rows to fit: the table is too small for so many workers")
        self.y = np.concatenate([y for y, _ in self._pieces])
        given = [f0 for _, f0 in self._pieces if f0 is not None]
        self._given = np.concatenate(given) if given else None
        self._pieces.clear()
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            file = Path(folder) / "reference.bin"
            file.write_bytes(reference)
            of_sample = lightgbm.Dataset(str(file), params=parameters).construct()
            rows = _sequence(lightgbm, self)
            self._bins = lightgbm.Dataset(rows, reference=of_sample, params=parameters).construct()
        _release_memory()

    def start(self, initial: Initial, rounds: Sequence[Round]) -> State:
        """Compute f_0 and apply the rounds so far; then the file of rows is removed."""
        f, before = np.empty(self.n), np.empty(self.n)
        step = max(1, SLICE_CELLS // self.n_features)
        for at in range(0, self.n, step):
            some = slice(at, min(at + step, self.n))
            X = self.rows(some.start, some.stop)
            f[some] = before[some] = initial.predict(
                X, None if self._given is None else self._given[some]
            )
            for round_ in rounds:
                before[some] = f[some]
                f[some] = advance(f[some], X, round_, self.settings.eta)
        self.f = f
        self._gap = _square(f - before)
        self._given = None
        self._file.unlink(missing_ok=True)
        _release_memory()
        return self.state()

    def rows(self, start: int, stop: int) -> Floats:
        """Some rows of X, from the file."""
        d = self.n_features
        with self._file.open("rb") as file:
            cells = np.fromfile(file, np.float64, (stop - start) * d, offset=start * d * 8)
        return cells.reshape(stop - start, d)

    # --- rounds ---------------------------------------------------------------------------------

    def train(self, f_sample: Floats, constant: float, seed: int, network: Network) -> Trained:
        """Fit a round's ensemble together with the other shards.

        f_sample : f_t of all shards' sampled rows, from which the bins of f_t are made.
        constant : the mean residual over all shards, from which the trees start. (LightGBM's own
        start would be the mean of the shards' means.)
        """
        # LightGBM's network belongs to its thread. A new one takes all of it along when it ends; in
        # an old one, another training would find connections to peers that are gone.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(self._train, f_sample, constant, seed, network).result()

    def _train(self, f_sample: Floats, constant: float, seed: int, network: Network) -> Trained:
        s, lightgbm = self.settings, lightgbm_package()
        parameters = s.binning()
        sample = np.ascontiguousarray(f_sample[:, None])
        reference = lightgbm.Dataset(sample, params=parameters).construct()
        label = self.y - self.f
        label -= constant
        data = with_f(self.f, label, self._bins, parameters, reference=reference)
        chosen = {
            "learning_rate": s.trees.learning_rate, "boost_from_average": False, "metric": "none",
        }  # fmt: skip
        every = parameters | growing(s.trees, seed) | network.parameters() | chosen
        with network.linking():
            booster = lightgbm.Booster(every, data)
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
        _release_memory()  # what the training took
        return self.state()

    def state(self) -> State:
        """The sums over its rows."""
        residual = self.y - self.f
        return State(self.n, float(residual.sum()), _square(residual), self._gap)


def size_of(n: float, d: int) -> float:
    """About the most bytes that a process takes which holds n rows of d columns.

    These are the bins of X, twice while a round is trained, y, f, φ and what LightGBM keeps of a
    row; and Python with its libraries. (Measured: 1.30 GB for 3.04 million rows of 101 columns.)
    """
    return 0.3e9 + n * (2.0 * (d + 1) + 125.0)


def levels_of(part: Part, columns: Sequence[str], most: int) -> dict[str, set[str]]:
    """The words in some columns of a part; of a column with too many, some of them."""
    found: dict[str, set[str]] = {name: set() for name in columns}
    for block in part.blocks():
        for column in columns_of(block.X[list(columns)]):
            if len(found[column.name]) > most:
                continue
            if isinstance(column, Numbers):
                values = np.unique(column.cells)
                words = {MISSING if np.isnan(value) else word(value) for value in values}
            else:
                words = set(column.levels)
            found[column.name] |= words
    return found


def reference_of(sample: Floats, settings: ShardSettings) -> bytes:
    """The boundaries of X's bins, from a sample (m, d), in a form for `Shard.bin`."""
    categorical = list(settings.encoding.categorical)
    data = lightgbm_package().Dataset(
        sample, params=settings.binning(), categorical_feature=categorical
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "reference.bin"
        data.construct().subset([0]).construct().save_binary(str(file))
        return file.read_bytes()


def _sequence(lightgbm: Any, shard: Shard) -> Any:
    """A shard's rows as LightGBM reads them, slice by slice."""

    class RowsOfFile(lightgbm.Sequence):  # type: ignore[misc]
        batch_size = max(1, SLICE_CELLS // shard.n_features)

        def __len__(self) -> int:
            return shard.n

        def __getitem__(self, which: Any) -> Floats:
            if isinstance(which, slice):
                start, stop, _ = which.indices(shard.n)
                return shard.rows(start, stop)
            return shard.rows(which, which + 1)[0]

    return RowsOfFile()


def _training_values(booster: Any) -> Floats:
    """The predictions of a booster for the rows that it was trained on, (n,)."""
    values: list[Floats] = []

    def listen(prediction: Floats, _: Any) -> tuple[str, float, bool]:
        values.append(prediction.copy())
        return "values", 0.0, False

    booster.eval_train(listen)
    return values[0]


def _release_memory() -> None:
    """Return freed memory to the system; till then it counts against a worker's limit."""
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _square(v: Floats) -> float:
    return float(np.square(v).sum())
