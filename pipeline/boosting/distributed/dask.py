"""Shards on the workers of a Dask cluster (extra: dask), one on each.

Dask finds the workers, reads Dask collections and carries what is asked and answered; a shard stays
where it is, as state of its worker's process. LightGBM's sockets give up when a peer dies, or wait
for ever, or take their process with them: in each case whoever leads sees that a worker is gone,
ends those that wait, and makes the shards that went with them again, on workers that a nanny or
an operator has started meanwhile. One fit at a time has a cluster: two would wait for each other's
trainings, and for each other's memory.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import socket
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import numpy as np

from pipeline.boosting.distributed.fit import ShardsLost
from pipeline.boosting.distributed.parts import MemoryPart, Part, Table, Unfit
from pipeline.boosting.distributed.shard import Network, Shard, ShardSettings
from pipeline.boosting.engines.lightgbm import lightgbm_package

log = logging.getLogger("pipeline")

T = TypeVar("T")

LOOK_UP = 0.2  # seconds between looks at who is there
FETCH = 10.0  # seconds for a result, which is a few megabytes at most, to be fetched
GRACE = 15.0  # seconds in which shards notice that a peer is gone, before their workers are ended
SHARDS = "mcboost_shards"  # the attribute of a worker that holds them
FIT = "mcboost-fit"  # what a cluster's one fit at a time holds
# What Dask raises of a cluster in trouble, rather than of what was computed there.
TROUBLE = ("KilledWorker", "CancelledError", "FutureCancelledError", "CommClosedError")


class ClusterUnfit(RuntimeError):  # noqa: N818
    """The cluster cannot do it: too few workers, or too little memory. The message says which."""


@dataclass(frozen=True)
class DaskPart:
    """A chunk of Dask collections, each a Delayed or None."""

    number: int
    table: Any
    y: Any
    f0: Any = None
    start: int = 0

    def blocks(self) -> Iterator[Any]:
        """Only where it is computed; see `MemoryPart`."""
        raise NotImplementedError


class OnDask:
    """The holders of shards on a cluster; see `Holders`.

    n_shards : None: one for each worker that is there.  patience : seconds to wait for workers that
    are not there yet, or in the place of lost ones.  code : what `mcboost_code` of workers must be,
    where somebody else sees to it that they hold the same package.
    """

    def __init__(
        self, client: Any, n_shards: int | None = None, patience: float = 300.0, code: str = ""
    ) -> None:
        from distributed import wait

        lightgbm_package()  # it may not be installed
        self.client, self.patience, self._wait = client, patience, wait
        self.n_shards = n_shards or max(1, len(self._workers()))
        self._await_workers()
        self.n_threads = min(int(worker["nthreads"]) for worker in self._workers().values())
        self._token = f"{client.id}/{uuid.uuid4().hex[:8]}/{code}"
        self._where: dict[int, str] = {}

    def _await_workers(self) -> None:
        """Wait until there are as many workers as shards."""
        deadline = time.monotonic() + self.patience
        told = False
        while (n := len(self._workers())) < self.n_shards:
            if time.monotonic() > deadline:
                raise ClusterUnfit(
                    f"{self.n_shards} Dask worker(s) are needed, {n} are there after "
                    f"{self.patience:g} s"
                )
            if not told:
                log.info("waiting for %d Dask workers, of which %d are there", self.n_shards, n)
                told = True
            time.sleep(LOOK_UP)

    @contextmanager
    def open(self) -> Iterator[OnDask]:
        """As a context: the cluster is this fit's alone, and shards are removed at the end."""
        from distributed import Semaphore

        with self.client.as_current():
            turn = Semaphore(max_leases=1, name=FIT)
        if not turn.acquire(timeout=GRACE):
            log.info("waiting for another fit on the same cluster")
            turn.acquire()
        try:
            # What leaders that were killed have left, who could not say goodbye.
            self.client.run(_forget_others, self._leaders(), on_error="ignore")
            yield self
        finally:
            self.close()
            with contextlib.suppress(Exception):  # whatever state the cluster is in
                turn.release()

    def _leaders(self) -> list[str]:
        return self.client.run_on_scheduler(_clients)

    def close(self) -> None:
        """Remove the shards."""
        with contextlib.suppress(Exception):  # whatever state the cluster is in
            there = [a for a in self._where.values() if a in self._workers()]
            if there:
                self.client.run(_forget, self._token, workers=there, on_error="ignore")
        self._where.clear()

    def require(self, n_bytes: float) -> None:
        """See `Holders`."""
        limits = [int(w["memory_limit"] or 0) for w in self._workers().values()]
        most = max(limits, default=0)
        if all(limits) and n_bytes > most:
            raise Unfit(
                f"a shard of the table would take some {n_bytes / 1e9:.1f} GB, and the workers' "
                f"memory limit is {most / 1e9:.1f} GB; use more workers, or larger limits"
            )

    def present(self) -> Collection[int]:
        """See `Holders`."""
        there = self._workers()
        return [k for k, address in self._where.items() if address in there]

    def place(self, shard: int, settings: ShardSettings) -> None:
        """See `Holders`."""
        self._where.pop(shard, None)
        address = self._free_worker(shard)
        self._where[shard] = address
        threads = int(self._workers().get(address, {"nthreads": 1})["nthreads"])
        try:
            self._finish({shard: self._submit(_begin, shard, replace(settings, n_threads=threads))})
        except BaseException:
            self._where.pop(shard, None)
            raise

    def _free_worker(self, shard: int) -> str:
        deadline = time.monotonic() + self.patience
        told = False
        while True:
            taken = set(self._where.values())
            free = [a for a, w in self._workers().items() if a not in taken and _is_running(w)]
            if free:
                return sorted(free)[0]
            if time.monotonic() > deadline:
                raise ClusterUnfit(
                    f"no Dask worker came within {self.patience:g} s for shard {shard} of "
                    f"{self.n_shards}"
                )
            if not told and time.monotonic() > deadline - self.patience + GRACE:
                log.info("waiting for a Dask worker for shard %d of %d", shard, self.n_shards)
                told = True
            time.sleep(LOOK_UP)

    def call(
        self,
        action: Callable[..., T],
        arguments: Mapping[int, tuple[Any, ...]],
        *,
        together: bool = False,
    ) -> dict[int, T]:
        """See `Holders`."""
        futures = {
            k: self._submit(_act, k, action, *(self._resolved(k, a) for a in more))
            for k, more in arguments.items()
        }
        return self._finish(futures, together)

    def map_parts(self, action: Callable[[Part], T], parts: Sequence[Part]) -> list[T]:
        """See `Holders`."""
        futures = [
            self.client.submit(action, self._loaded(part) or part, pure=False) for part in parts
        ]
        return self.client.gather(futures)

    def networks(self) -> dict[int, Network]:
        """See `Holders`."""
        if self.n_shards == 1:
            return {0: Network(("",), 0)}
        ports = self._finish({k: self._submit(_free_port, k) for k in range(self.n_shards)})
        machines = tuple(
            f"{urlsplit(self._where[k]).hostname}:{ports[k]}" for k in range(self.n_shards)
        )
        if len(set(machines)) < self.n_shards:
            raise ShardsLost("two workers of a machine were given the same port")
        return {k: Network(machines, k) for k in range(self.n_shards)}

    # --- how ------------------------------------------------------------------------------------

    def _submit(self, function: Callable[..., Any], shard: int, *arguments: Any) -> Any:
        address = self._where.get(shard)
        if address is None or address not in self._workers():
            raise ShardsLost(f"the worker of shard {shard} is gone")
        return self.client.submit(
            function, self._token, shard, *arguments,
            workers=[address], allow_other_workers=False, pure=False, retries=0,
        )  # fmt: skip

    def _resolved(self, shard: int, argument: Any) -> Any:
        """A chunk of a Dask collection as a future of its rows, on the shard's worker."""
        if not isinstance(argument, DaskPart):
            return argument
        # A chunk keeps its name, and with it the first worker that it was asked of: that one may be
        # gone when it is asked of another, so it is a wish.
        return self._loaded(argument, workers=[self._where[shard]], allow_other_workers=True)

    def _loaded(self, part: Any, **where: Any) -> Any:
        if not isinstance(part, DaskPart):
            return None
        pieces = [
            None if piece is None else self.client.compute(piece, **where)
            for piece in (part.table, part.y, part.f0)
        ]
        return self.client.submit(MemoryPart, part.number, *pieces, pure=False, **where)

    def _finish(self, futures: Mapping[int, Any], together: bool = False) -> dict[int, Any]:
        """What came of tasks on the shards' workers, once all have ended or are lost."""
        where = {k: self._where[k] for k in futures}
        ended: dict[int, Any] = {}
        broken: float | None = None  # since when one is lost, or has failed
        running = time.monotonic()
        while True:
            there, now = self._workers(), time.monotonic()
            lost = {k for k in futures if k not in ended and where[k] not in there}
            for k in futures:
                if k not in ended and k not in lost and futures[k].done():
                    with contextlib.suppress(TimeoutError):  # its worker is gone, with the result
                        ended[k] = self._outcome(futures[k])
            waiting = [k for k in futures if k not in ended and k not in lost]
            failed = lost or any(isinstance(o, _Failed | _Gone) for o in ended.values())
            broken = (broken or now) if failed else None
            if not waiting:
                return self._gathered(ended, lost, together)
            if together and broken and now - broken > GRACE:
                self._end([where[k] for k in waiting])
                return self._gathered(ended, {*lost, *waiting}, together)
            if all(_is_running(there[where[k]]) for k in waiting):
                running = now
            elif now - running > self.patience:
                raise ClusterUnfit(
                    "a Dask worker is paused, because its memory limit is nearly reached; use more "
                    "workers, or larger limits"
                )
            with contextlib.suppress(TimeoutError), self.client.as_current():
                self._wait([futures[k] for k in waiting], timeout=LOOK_UP)

    def _outcome(self, future: Any) -> Any:
        try:
            return future.result(timeout=FETCH)
        except TimeoutError:
            raise
        except Exception as error:
            if type(error).__name__ in TROUBLE or isinstance(error, OSError):
                return _Gone(type(error).__name__)
            raise  # of a Dask collection, whoever wrote it

    def _gathered(
        self, ended: Mapping[int, Any], lost: Collection[int], together: bool
    ) -> dict[int, Any]:
        trouble = [f"the worker of shard {k} is gone" for k in sorted(lost)]
        finished: dict[int, Any] = {}
        for k, outcome in ended.items():
            if isinstance(outcome, _Gone):
                self._where.pop(k, None)
                trouble.append(f"shard {k} is gone ({outcome.why})")
            elif not isinstance(outcome, _Failed):
                finished[k] = outcome
            elif together and type(outcome.error).__name__ == "LightGBMError":
                trouble.append(f"shard {k} lost the others")
            else:
                raise outcome.error
        if trouble:
            raise ShardsLost("; ".join(trouble), finished)
        return finished

    def _end(self, addresses: Sequence[str]) -> None:
        """End workers that wait for a lost peer; LightGBM would not give up by itself."""
        with contextlib.suppress(OSError):  # they are gone meanwhile
            self.client.run(_exit, workers=list(addresses), wait=False, on_error="ignore")
        deadline = time.monotonic() + GRACE
        while left := set(addresses) & set(self._workers()):
            if time.monotonic() > deadline:
                raise ClusterUnfit(f"{', '.join(sorted(left))} cannot be ended; restart it")
            time.sleep(LOOK_UP)

    def _workers(self) -> Mapping[str, Any]:
        return self.client.scheduler_info()["workers"]


def dask_table(client: Any, X: Any, y: Any, initial_prediction: Any = None) -> Table:
    """Dask arrays or data frames as a table; all three in the same chunks."""
    of_X, sizes = chunks_of(X)
    of_y, _ = chunks_of(y)
    of_f0 = [None] * len(of_X)
    if initial_prediction is not None:
        of_f0, _ = chunks_of(initial_prediction)
    for name, chunks in (("y", of_y), ("initial_prediction", of_f0)):
        if len(chunks) != len(of_X):
            raise Unfit(f"{name}: has {len(chunks)} chunks, X has {len(of_X)}")
    rows = sizes or _counted(client, of_X)
    kept = [chunk for chunk in zip(of_X, of_y, of_f0, rows, strict=True) if chunk[-1]]
    parts = tuple(DaskPart(k, X_, y_, f0) for k, (X_, y_, f0, _) in enumerate(kept))
    if not parts:
        raise Unfit("X: has no rows")
    names, words = _columns(X)
    return Table(parts, tuple(n for *_, n in kept), names, words, named=hasattr(X, "columns"))


def is_dask(X: Any) -> bool:
    """Whether it is a Dask array or data frame."""
    return type(X).__module__.split(".")[0] in {"dask", "dask_expr"}


def chunks_of(collection: Any) -> tuple[list[Any], list[int]]:
    """The chunks of rows of a Dask collection, as Delayed, and how many rows each has, if known.

    (Those of data frames, and of arrays made of them, would have to be counted.)
    """
    if getattr(collection, "ndim", 1) == 2 and hasattr(collection, "chunks"):
        collection = collection.rechunk({1: -1})
    chunks = list(np.asarray(collection.to_delayed(), dtype=object).reshape(-1))
    sizes = getattr(collection, "chunks", ((np.nan,),))[0]
    return chunks, [] if np.isnan(sizes).any() else [int(n) for n in sizes]


def _counted(client: Any, chunks: Sequence[Any]) -> list[int]:
    from dask import delayed

    return client.gather(client.compute([delayed(len)(chunk) for chunk in chunks]))


def _columns(X: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of columns, and of those that hold words."""
    if not hasattr(X, "columns"):
        return tuple(f"x{j}" for j in range(X.shape[1])), ()
    names = tuple(str(name) for name in X.columns)
    words = tuple(
        str(n) for n, kind in X.dtypes.items() if getattr(kind, "kind", "O") not in "biuf"
    )
    return names, words


def _is_running(worker: Mapping[str, Any]) -> bool:
    return worker.get("status", "running") == "running"


# --- what runs on workers -------------------------------------------------------------------------


def _worker() -> Any:
    from distributed import get_worker

    return get_worker()


def _begin(token: str, shard: int, settings: ShardSettings) -> _Failed | None:
    worker = _worker()

    def begin() -> None:
        folder = Path(worker.local_directory) / f"mcboost-{uuid.uuid4().hex[:12]}"
        worker.__dict__.setdefault(SHARDS, {})[token, shard] = Shard(settings, folder)

    return _tried(token, begin)


@dataclass(frozen=True)
class _Failed:
    """An error as an outcome, which Dask does not log."""

    error: Exception


@dataclass(frozen=True)
class _Gone:
    """There is no such shard."""

    why: str


def _act(token: str, shard: int, action: Callable[..., T], *arguments: Any) -> T | _Failed | _Gone:
    held = getattr(_worker(), SHARDS, {}).get((token, shard))
    if held is None:
        return _Gone("its worker has started anew")
    return _tried(token, lambda: action(held, *arguments))


def _tried(token: str, action: Callable[[], T]) -> T | _Failed:
    code = token.split("/")[-1]
    try:
        if code and getattr(_worker(), "mcboost_code", "") != code:
            raise ClusterUnfit(
                "the worker holds other code than this driver: another driver with a changed "
                "package uses the same cluster; run one after the other"
            )
        return action()
    except Exception as error:
        return _Failed(error)


def _free_port(token: str, shard: int) -> int:  # noqa: ARG001
    with socket.socket() as listening:
        listening.bind(("", 0))
        return int(listening.getsockname()[1])


async def _exit() -> None:
    os._exit(1)


def _forget(token: str, dask_worker: Any) -> None:
    _drop(dask_worker, lambda of_shard: of_shard == token)


def _forget_others(leaders: Sequence[str], dask_worker: Any) -> None:
    _drop(dask_worker, lambda of_shard: of_shard.partition("/")[0] not in leaders)


def _drop(worker: Any, unwanted: Callable[[str], bool]) -> None:
    shards = worker.__dict__.get(SHARDS, {})
    for key in [key for key in shards if unwanted(key[0])]:
        shutil.rmtree(shards.pop(key).folder, ignore_errors=True)


def _clients(dask_scheduler: Any) -> list[str]:
    return list(dask_scheduler.clients)
