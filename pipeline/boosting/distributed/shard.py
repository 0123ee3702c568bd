"""One shard of a large table, and what a round does with it.

A shard reads its rows once and writes them, as numbers, to files. From there they become bins of
LightGBM, f_0, and, where a shard replaces a lost one, the f_t of the rounds so far. Then the files
are removed: the training of a round also gives h_t of all rows, to the same bits as a prediction
would. What stays in memory is a byte a cell, y, weights and f_t.

With honest feedback there are two trajectories (`trajectories`), each fitted to one half of the
rows: trajectory k does not see half k, and its f_t is the trees' feature there. For the trees of
one half, the other is LightGBM's validation data. Otherwise there is one trajectory and one "half",
which it is fitted to.
"""

import contextlib
import ctypes
import hashlib
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from ..algorithm import Round, advance
from ..arrays import Floats
from ..encoding import Encoding
from ..engines.base import TreeSettings
from ..engines.lightgbm import LOG_LOSS, Bins, binning, growing, lightgbm_package, with_f
from ..frames import levels_of
from ..logloss import curvature, sigmoid
from ..losses import LogLoss, Loss
from .initial import Initial
from .parts import Part, TableRows, Unfit

T = TypeVar("T")

SLICE_CELLS = 1_000_000  # of the file of rows that are read at a time
SLICE_ROWS = 100_000  # of gradients that are computed at a time
LARGEST = 1e30  # LightGBM keeps labels and weights in single precision
ROUNDING = 1e-6  # by which given probabilities may lie outside of [0, 1]
# After which LightGBM gives up a silent peer; the driver sees much earlier that one is gone.
PEER_MINUTES = 24 * 60

Arguments = Mapping[int, tuple[Any, ...]]  # of a call on some shards, by their numbers


@dataclass(frozen=True)
class ShardSettings:
    """What all shards of a fit have in common.

    n_halves : 1, or 2 for honest feedback.  held_out : the share of rows that no round sees.
    sampled, sampled_out : the shares of the other rows, and of those, that are sent to the driver.
    """

    encoding: Encoding
    trees: TreeSettings
    eta: float
    bins: Bins
    loss: Loss
    n_halves: int
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
    """What a shard returns of a part that it has read, with samples of its rows.

    n, mass, y_sum : the number of rows that it keeps, the sum of their weights w, and Σ w y.
    digest : of all of its rows; a shard that is made again must read the same ones.
    """

    n: int
    mass: float
    y_sum: float
    training: TableRows
    held_out: TableRows
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

    @contextmanager
    def linked(self, data: Any) -> Iterator[dict[str, Any]]:
        """A context in which this thread is connected to the other shards; LightGBM's parameters.

        (LightGBM connects a thread when it makes a Booster, here one of any data, and disconnects
        it when that Booster is gone.)
        """
        if len(self.machines) == 1:
            yield {}
            return
        chosen = {"num_machines": len(self.machines), "tree_learner": "data"}
        chosen |= {"time_out": PEER_MINUTES, "verbosity": -1}
        port = int(self.machines[self.rank].rpartition(":")[2])
        where = {"machines": ",".join(self.machines), "local_listen_port": port}
        with self.linking():
            link = lightgbm_package().Booster(chosen | where | {"objective": "none"}, data)
        try:
            yield chosen
        finally:
            link.free_network()


@dataclass(frozen=True)
class Trained:
    """The outcome of a training on a shard; one of them returns the models of all trajectories."""

    trees_sha256: str
    models: tuple[str, ...] = ()


@dataclass(frozen=True)
class State:
    """Sums over the rows of a shard that a trajectory is fitted to, with their weights w.

    mass : Σ w.  residual : Σ w (y − f).  loss : the sum of the losses.  gap : Σ w (f_t − f_{t−1})²,
    0 at the start.
    """

    n: int
    mass: float
    residual: float
    loss: float
    gap: float


class Half:
    """Rows of a shard: X in a file until it is binned, and what else is known of them.

    f, phi : by trajectory, f_t (n,), and φ_t between a training and its step.
    """

    def __init__(self, file: Path, n_columns: int) -> None:
        self.file, self.n_columns, self.n = file, n_columns, 0
        self.f: list[Floats] = []
        self.phi: list[Floats] = []
        self._pieces: list[tuple[Floats | None, ...]] = []
        file.write_bytes(b"")

    def add(self, rows: TableRows, file: Any) -> None:
        """Add rows; their X goes to the open file."""
        np.ascontiguousarray(rows.X).tofile(file)
        self._pieces.append((rows.y, rows.weights, rows.f0))
        self.n += len(rows)

    def bin(self, reference: Any, parameters: Mapping[str, Any], scale: float) -> None:
        """Make the bins of X, and divide the weights by ``scale``."""
        if not self.n:
            raise Unfit("a shard has no rows to fit: the table is too small for so many workers")
        y, weights, self.given = (
            None if pieces[0] is None else np.concatenate(pieces)
            for pieces in zip(*self._pieces, strict=True)
        )
        assert y is not None
        self.y, self.weights = y, None if weights is None else weights / scale
        self._pieces.clear()
        rows = _sequence(lightgbm_package(), self)
        data = lightgbm_package().Dataset(rows, reference=reference, params=parameters)
        self.bins = data.construct()

    def rows(self, start: int, stop: int) -> Floats:
        """Some rows of X, from the file."""
        d = self.n_columns
        with self.file.open("rb") as file:
            cells = np.fromfile(file, np.float64, (stop - start) * d, offset=start * d * 8)
        return cells.reshape(stop - start, d)

    def total(self, values: Floats) -> float:
        """Σ w v of values v (n,)."""
        return float((values if self.weights is None else self.weights * values).sum())


class Shard:
    """The rows of some parts; the module's text says what becomes of them.

    folder : for its files; it is made if it does not exist.
    """

    def __init__(self, settings: ShardSettings, folder: Path) -> None:
        self.settings, self.folder = settings, folder
        with self._writing():
            folder.mkdir(parents=True, exist_ok=True)
            n_columns = len(settings.encoding.names)
            self.halves = [Half(folder / f"rows-{j}", n_columns) for j in range(settings.n_halves)]

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise Unfit(f"rows cannot be written to {self.folder} ({error})") from None

    def fitted_half(self, k: int) -> Half:
        """The rows that trajectory k is fitted to."""
        return self.halves[(k + 1) % len(self.halves)]

    # --- preparation ----------------------------------------------------------------------------

    def read(self, part: Part) -> Read:
        """Add the rows of a part."""
        s = self.settings
        bits = np.random.PCG64([s.seed, part.number])
        random = np.random.Generator(bits.advance(part.start))  # one number a row
        n, mass, y_sum, training, held_out = 0, 0.0, 0.0, [], []
        digest = hashlib.blake2b(digest_size=16)
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(half.file.open("ab")) for half in self.halves]
            for block in part.blocks():
                rows = self._encoded(block)
                for values in (rows.X, rows.y, rows.weights, rows.f0):
                    if values is not None:
                        digest.update(np.ascontiguousarray(values).data)
                u = random.random(len(rows))  # decides what becomes of a row
                seen = np.ones(len(rows), bool) if rows.weights is None else rows.weights > 0
                out = u < s.held_out
                sampled = u >= 1.0 - (1.0 - s.held_out) * s.sampled
                if s.n_halves > 1:  # by digits of u that decide nothing else
                    rows = replace(rows, half=(u * 2.0**40).astype(np.int64) % s.n_halves)
                held_out.append(rows.take(seen & (u < s.held_out * s.sampled_out)))
                training.append(rows.take(seen & sampled & ~out))
                kept = rows.take(seen & ~out) if out.any() or not seen.all() else rows
                with self._writing():
                    for j, (half, file) in enumerate(zip(self.halves, files, strict=True)):
                        half.add(kept if kept.half is None else kept.take(kept.half == j), file)
                n += len(kept)
                mass += float(kept.weights_or_ones.sum())
                y_sum += float((kept.y if kept.weights is None else kept.weights * kept.y).sum())
        _release_memory()
        samples = (TableRows.joined(training), TableRows.joined(held_out))
        return Read(n, mass, y_sum, *samples, digest.digest())

    def _encoded(self, rows: TableRows) -> TableRows:
        """The rows with X as numbers; raises `Unfit` if a value cannot be used."""
        if not np.isfinite(rows.y).all():
            raise Unfit("y: some rows have a missing or infinite target")
        if np.abs(rows.y).max(initial=0.0) > LARGEST:
            raise Unfit(
                f"y: values beyond {LARGEST:g} are too large to be squared; use other units"
            )
        if rows.weights is not None and not ((rows.weights >= 0) & (rows.weights < LARGEST)).all():
            raise Unfit("sample_weight: is missing, negative or infinite for some rows")
        if rows.f0 is not None and not np.isfinite(rows.f0).all():
            raise Unfit("initial_prediction: is missing or infinite for some rows")
        if isinstance(self.settings.loss, LogLoss):
            if not np.isin(rows.y, (0.0, 1.0)).all():
                raise Unfit("y: must be 0 or 1 for the log-loss; name the value that counts as 1")
            if rows.f0 is not None and np.abs(rows.f0 - 0.5).max(initial=0.0) > 0.5 + ROUNDING:
                raise Unfit("initial_prediction: must hold probabilities, from 0 to 1")
        try:
            X = self.settings.encoding.encode(rows.X)
        except ValueError as error:
            raise Unfit(str(error)) from None
        if np.isinf(X).any():
            name = self.settings.encoding.names[int(np.isinf(X).any(axis=0).argmax())]
            raise Unfit(f"X: column {name!r} holds infinity")
        return replace(rows, X=X)

    def bin(self, reference: bytes, scale: float) -> None:
        """Make the bins of X, with the boundaries of ``reference``, and divide weights by scale."""
        lightgbm, parameters = lightgbm_package(), self.settings.binning()
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            file = Path(folder) / "reference.bin"
            file.write_bytes(reference)
            of_sample = lightgbm.Dataset(str(file), params=parameters).construct()
            for half in self.halves:
                half.bin(of_sample, parameters, scale)
        _release_memory()

    def start(self, initial: Initial, rounds: Sequence[Sequence[Round]]) -> tuple[State, ...]:
        """Compute f_0 and apply the rounds so far; then the files of rows are removed.

        rounds : those of each trajectory.
        """
        step = max(1, SLICE_CELLS // self.halves[0].n_columns)
        befores = []
        for j, half in enumerate(self.halves):
            half.f = [np.empty(half.n) for _ in self.halves]
            before = np.empty(half.n)  # of the trajectory that is fitted to these rows
            own = (j - 1) % len(self.halves)
            for at in range(0, half.n, step):
                some = slice(at, min(at + step, half.n))
                X = half.rows(some.start, some.stop)
                f0 = initial.scores(X, None if half.given is None else half.given[some])
                f, before[some] = [f0] * len(self.halves), f0
                for all_at_t in zip(*rounds, strict=True):
                    before[some] = f[own]
                    f = followed(f, X, all_at_t, self.settings.eta, f[j])
                for k, values in enumerate(f):
                    half.f[k][some] = values
            half.given = None
            half.file.unlink(missing_ok=True)
            befores.append(before)
        _release_memory()
        n = len(self.halves)
        return tuple(self._state(k, befores[(k + 1) % n]) for k in range(n))

    # --- rounds ---------------------------------------------------------------------------------

    def train(
        self, feature_sample: Floats, constants: Sequence[float], seed: int, network: Network
    ) -> Trained:
        """Fit a round's ensembles, one a trajectory, together with the other shards.

        feature_sample : of all shards' sampled rows, from which the bins of the trees' feature are
        made.  constants : from which the trees start; for the squared loss, the mean residual over
        all shards. (LightGBM's own start would be the mean of the shards' means.)
        """
        # LightGBM's network belongs to its thread. A new one takes all of it along when it ends; in
        # an old one, another training would find connections to peers that are gone.
        with ThreadPoolExecutor(1) as thread:
            found = thread.submit(self._train, feature_sample, constants, seed, network).result()
        digest = hashlib.sha256()
        for text in found:  # behind the trees are ports and the like
            digest.update(text.partition("\nparameters:")[0].encode())
        return Trained(digest.hexdigest(), tuple(found) if network.rank == 0 else ())

    def _train(
        self, feature_sample: Floats, constants: Sequence[float], seed: int, network: Network
    ) -> list[str]:
        s, parameters = self.settings, self.settings.binning()
        sample = np.ascontiguousarray(feature_sample[:, None])
        reference = lightgbm_package().Dataset(sample, params=parameters).construct()
        every = growing(s.trees, seed) | {"learning_rate": s.trees.learning_rate, "metric": "none"}
        every |= parameters | {"boost_from_average": False}
        if isinstance(s.loss, LogLoss):
            every |= LOG_LOSS | {"objective": "none"}
        for half in self.halves:
            half.phi = [np.empty(0)] * len(self.halves)
        with network.linked(reference) as linked:
            return [
                self._train_one(k, constant, reference, every | linked)
                for k, constant in enumerate(constants)
            ]

    def _train_one(
        self, k: int, constant: float, reference: Any, parameters: dict[str, Any]
    ) -> str:
        """Fit the ensemble of trajectory k; its text. φ_t of all rows is kept."""
        s, own, binning = self.settings, self.fitted_half(k), self.settings.binning()
        feature, f = own.f[(k + 1) % len(self.halves)], own.f[k]
        objective, label, weights = None, own.y, None
        if isinstance(s.loss, LogLoss):
            objective = _log_loss_slopes(own.y, f, own.weights)
        else:
            label, weights = own.y - f - constant, own.weights
        data = with_f(feature, label, own.bins, binning, reference=reference, weight=weights)
        booster = lightgbm_package().Booster(parameters, data)
        others = [half for half in self.halves if half is not own]
        for half in others:
            nothing = np.zeros(half.n)
            data = with_f(half.f[k], nothing, half.bins, binning, reference=reference)
            booster.add_valid(data, "other")
        for _ in range(s.trees.n_trees):
            if booster.update(fobj=objective):
                break
        for half, h in zip([own, *others], _values(booster), strict=True):
            h += constant
            h *= s.eta
            h += half.f[k]
            half.phi[k] = h
        return booster.model_to_string()

    def reduced(self, k: int, function: Callable[[Floats, Floats, Floats | None], T]) -> T:
        """A function of y, φ_t and the weights of the rows that trajectory k is fitted to."""
        half = self.fitted_half(k)
        return function(half.y, half.phi[k], half.weights)

    def step(self, weights: Sequence[float]) -> tuple[State, ...]:
        """Move to f_{t+1} = w_t φ_t, with the w_t of each trajectory."""
        if not all(half.phi for half in self.halves):
            raise RuntimeError("there is no φ_t to move to")
        states = []
        for k, weight in enumerate(weights):
            before = self.fitted_half(k).f[k]
            for half in self.halves:
                half.phi[k] *= weight
                half.f[k] = half.phi[k]
            states.append(self._state(k, before))
        for half in self.halves:
            half.phi = []
        _release_memory()  # what the training took
        return tuple(states)

    def _state(self, k: int, before: Floats) -> State:
        half, loss = self.fitted_half(k), self.settings.loss
        f = half.f[k]
        return State(
            half.n,
            float(half.n) if half.weights is None else float(half.weights.sum()),
            half.total(half.y - f),
            half.total(loss.of_rows(half.y, f)),
            half.total(np.square(f - before)),
        )


def followed(
    f: Sequence[Floats], X: Floats, rounds: Sequence[Round], eta: float, feature: Floats
) -> list[Floats]:
    """The f_{t+1} of rows X (n, d) in each trajectory, from their f_t and the trees' feature."""
    pairs = zip(f, rounds, strict=True)
    return [advance(f_k, X, round_k, eta, feature) for f_k, round_k in pairs]


def size_of(n: float, d: int, n_trajectories: int = 1) -> float:
    """About the most bytes that a process takes which holds n rows of d columns.

    These are the bins of X, twice while a round is trained, y, f, φ and what LightGBM keeps of a
    row; and Python with its libraries. (Measured: 1.30 GB for 3.04 million rows of 101 columns.)
    """
    return 0.3e9 + n * (2.0 * (d + 1) + 109.0 + 16.0 * n_trajectories)


def words_of(part: Part, columns: Sequence[str], most: int) -> dict[str, set[str]]:
    """The words in some columns of a part; of a column with too many, some of them."""
    found: dict[str, set[str]] = {name: set() for name in columns}
    for block in part.blocks():
        for name in columns:
            if len(found[name]) <= most:
                found[name] |= {*levels_of(block.X[name], name).levels}
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


def _sequence(lightgbm: Any, half: Half) -> Any:
    """Rows as LightGBM reads them, slice by slice."""

    class RowsOfFile(lightgbm.Sequence):  # type: ignore[misc]
        batch_size = max(1, SLICE_CELLS // half.n_columns)

        def __len__(self) -> int:
            return half.n

        def __getitem__(self, which: Any) -> Floats:
            if isinstance(which, slice):
                start, stop, _ = which.indices(half.n)
                return half.rows(start, stop)
            return half.rows(which, which + 1)[0]

    return RowsOfFile()


def _values(booster: Any) -> list[Floats]:
    """What a booster has added up for its training rows, and for those that it validates."""
    values: list[Floats] = []

    def listen(prediction: Floats, _: Any) -> tuple[str, float, bool]:
        values.append(prediction.copy())
        return "values", 0.0, False

    booster.eval_train(listen)
    booster.eval_valid(listen)
    return values


def _log_loss_slopes(y: Floats, f: Floats, weights: Floats | None) -> Callable[..., Any]:
    """The log-loss of f + h as an objective of LightGBM.

    (LightGBM's own would start from f, and return probabilities: h to the bit cannot be had.)
    """
    first, second = np.empty(len(y), np.float32), np.empty(len(y), np.float32)

    def slopes(h: Floats, _: Any) -> tuple[Any, Any]:
        for at in range(0, len(y), SLICE_ROWS):
            some = slice(at, at + SLICE_ROWS)
            now = f[some] + h[some]
            w = 1.0 if weights is None else weights[some]
            first[some] = w * (sigmoid(now) - y[some])
            second[some] = w * curvature(now)
        return first, second

    return slopes


def _release_memory() -> None:
    """Return freed memory to the system; till then it counts against a worker's limit."""
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
