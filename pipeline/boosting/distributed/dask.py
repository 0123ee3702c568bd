"""Shards on the workers of a Dask cluster (extra: dask), one on each.

Dask finds the workers, reads Dask collections, and carries calls and results. A shard stays on its
worker, as state of the worker's process. (Dask has actors for that, but never answers a call to an
actor whose worker was started again.) When a worker dies, LightGBM on the others fails, waits for
ever, or ends its process. In each case the driver sees that a worker is gone, ends those that wait,
and makes the lost shards again on workers that a nanny or an operator has started meanwhile. A
cluster does one fit at a time: two would wait for each other's trainings and take too much memory.

Functions and their arguments travel as bytes: Dask's scheduler unpickles what it passes on, and may
lack this package or hold another version of it. A task that waits on each worker (`_hold`) tells
Dask that the worker is in use: an adaptive cluster would end one that looks idle, with its shard.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
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

from .fit import ShardsLost
from .parts import MemoryPart, Part, Table, Unfit
from .shard import Arguments, Network, Shard, ShardSettings

log = logging.getLogger(__name__)

T = TypeVar("T")

POLL = 0.2  # seconds between looks at the workers
FETCH = 10.0  # seconds to fetch a result, which is a few megabytes at most
GRACE = 15.0  # seconds in which shards notice that a peer is gone, before their workers are ended
LOCK = "mcgb-fit"  # a fit holds it while it uses the cluster
LEADER = ["mcgb", "fit"]  # the scheduler's entry that names the fit which holds the lock
CODE = "mcgb_code"  # the attribute of a worker that names the version of the package it holds
OTHER_CODE = (
    "the worker holds other code than this driver: another driver with a changed package uses the "
    "same cluster; run one after the other"
)
SHARDS: dict[tuple[str, int], Shard] = {}  # on a worker: its shards, by fit and number


class ClusterUnfit(RuntimeError):  # noqa: N818
    """The cluster cannot do it: too few workers, or too little memory. The message says which."""


class OnDask:
    """The holders of shards on a cluster; see `Holders`.

    n_shards : None for one per present worker.  patience : seconds to wait for workers that are
    missing, or that replace lost ones.  code : the value that `CODE` must have on all workers, or
    "" if any version of the package will do.
    """

    def __init__(
        self, client: Any, n_shards: int | None = None, patience: float = 300.0, code: str = ""
    ) -> None:
        self.client, self.patience = client, patience
        self._known: Mapping[str, Any] = {}  # the workers when they were last looked at
        present = len(self._workers())
        self.n_shards = n_shards or max(1, present)
        if present < self.n_shards:
            log.info("waiting for %d Dask workers, of which %d are there", self.n_shards, present)
        try:
            client.wait_for_workers(self.n_shards, timeout=patience)
        except TimeoutError:
            raise ClusterUnfit(
                f"{self.n_shards} Dask worker(s) are needed, {len(self._workers())} are there "
                f"after {patience:g} s"
            ) from None
        self._fit, self._code, self._remote = uuid.uuid4().hex, code, remote(code)
        self._where: dict[int, str] = {}  # the address of each shard's worker
        self._held: dict[int, Any] = {}  # the tasks that hold these workers

    @contextmanager
    def open(self) -> Iterator[OnDask]:
        """A context in which no other fit uses the cluster; at its end the shards are removed."""
        from distributed import Lock, wait

        with self.client.as_current():
            lock = Lock(LOCK)
        if not lock.acquire(timeout=GRACE):
            log.info("waiting for another fit on the same cluster")
            lock.acquire()
        try:
            self.client.set_metadata(LEADER, self._fit)
            self._warn_of_open_network()
            self.client.run(_remove_shards, on_error="ignore")  # those of drivers that were killed
            yield self
        finally:
            with contextlib.suppress(Exception):  # whatever the state of the cluster
                self.client.run(_remove_shards, self._fit, on_error="ignore")
                wait(list(self._held.values()), timeout=FETCH)  # they end now
            self._held.clear()
            with contextlib.suppress(Exception):
                lock.release()

    def _require_lead(self) -> None:
        """Raise `ClusterUnfit` if another fit has taken the cluster.

        The lock is a lease: a driver that is stopped for longer than that loses it without notice.
        """
        if self.client.get_metadata(LEADER, self._fit) != self._fit:
            raise ClusterUnfit(
                "another driver took the cluster over while this one was stopped; rounds are kept, "
                "and the same command goes on"
            )

    def _warn_of_open_network(self) -> None:
        """Say what others on the network can see."""
        hosts = {urlsplit(address).hostname for address in self._workers()}
        here = {"127.0.0.1", "localhost", "::1", None}
        if len(hosts) > 1 or not hosts <= here:
            log.warning(
                "LightGBM's traffic between workers is neither encrypted nor authenticated%s: use "
                "a network that you trust",
                "" if self.client.scheduler.address.startswith("tls") else ", nor is Dask's",
            )

    def require(self, n_bytes: float) -> None:
        """See `Holders`."""
        limits = [int(worker["memory_limit"] or 0) for worker in self._workers().values()]
        most = max(limits, default=0)
        if all(limits) and n_bytes > most:
            raise Unfit(
                f"a shard of the table would take some {n_bytes / 1e9:.1f} GB, and the workers' "
                f"memory limit is {most / 1e9:.1f} GB; use more workers, or larger limits"
            )

    def present(self) -> Collection[int]:
        """See `Holders`."""
        workers = self._workers()
        return [k for k, address in self._where.items() if address in workers]

    def place(self, shard: int, settings: ShardSettings) -> None:
        """See `Holders`."""
        self._require_lead()
        self._where.pop(shard, None)
        free = _wait_until(self._free_workers, min(GRACE, self.patience))
        if not free and self.patience > GRACE:
            log.info("waiting for a Dask worker for shard %d of %d", shard, self.n_shards)
            free = _wait_until(self._free_workers, self.patience - GRACE)
        if not free:
            raise ClusterUnfit(
                f"no Dask worker came within {self.patience:g} s for shard {shard} of "
                f"{self.n_shards}"
            )
        self._where[shard], n_threads = min(free.items())
        try:
            self._finish(
                {shard: self._submit(shard, _create, replace(settings, n_threads=n_threads))}
            )
            self._held[shard] = self._submit(shard, _hold)
        except BaseException:
            self._where.pop(shard, None)
            raise

    def _free_workers(self) -> dict[str, int]:
        """The threads of workers that run and hold no shard, by address."""
        taken = set(self._where.values())
        return {
            address: int(worker["nthreads"])
            for address, worker in self._workers().items()
            if address not in taken and _is_running(worker)
        }

    def call(
        self, action: Callable[..., T], arguments: Arguments, *, together: bool = False
    ) -> dict[int, T]:
        """See `Holders`."""
        if together:
            self._require_lead()
            networks = self._networks(list(arguments))
            arguments = {k: (*more, networks[k]) for k, more in arguments.items()}
        futures = {k: self._submit(k, _call, action, *more) for k, more in arguments.items()}
        return self._finish(futures, together)

    def map_parts(self, action: Callable[[Part], T], parts: Sequence[Part]) -> list[T]:
        """See `Holders`."""
        answers = self.client.gather([self._task(action, part) for part in parts])
        return [unpacked(self._code, answer) for answer in answers]

    def _networks(self, shards: Sequence[int]) -> dict[int, Network]:
        """The addresses at which shards can listen during a training."""
        if len(shards) == 1:
            return {shards[0]: Network(("",), 0)}
        ports = self._finish({k: self._submit(k, _free_port) for k in shards})
        machines = tuple(f"{urlsplit(self._where[k]).hostname}:{ports[k]}" for k in shards)
        if len(set(machines)) < len(shards):
            raise ShardsLost("two workers of a machine were given the same port")
        return {k: Network(machines, rank, self.patience) for rank, k in enumerate(shards)}

    # --- calls on workers -----------------------------------------------------------------------

    def _submit(self, shard: int, function: Callable[..., Any], *arguments: Any) -> Any:
        """``function((fit, shard), *arguments)`` as a task on the shard's worker."""
        address = self._where.get(shard)
        if address not in self._workers():
            raise ShardsLost(f"the worker of shard {shard} is gone")
        action = arguments[0] if function is _call else function
        name = getattr(action, "__name__", "call").strip("_")  # what the dashboard shows
        return self._task(
            _returning_errors, function, (self._fit, shard), *arguments, workers=[address],
            key=f"mcgb-{name}-{uuid.uuid4().hex}",
        )  # fmt: skip

    def _task(self, function: Callable[..., Any], *arguments: Any, **where: Any) -> Any:
        """A call as a task. Its last arguments may be chunks of Dask collections (`dask_table`)."""
        from cloudpickle import dumps  # Dask's: functions of a notebook travel as well

        plain = [a for a in arguments if not hasattr(a, "__dask_graph__")]
        key = where.pop("key", None)
        # The worker of a chunk is only preferred: a chunk keeps its name, and with it the first
        # worker that was named for it, which may be gone when the chunk is needed again.
        chunks = [
            self.client.compute(chunk, **where, allow_other_workers=bool(where))
            for chunk in arguments[len(plain) :]
        ]
        packed = dumps((function, plain))
        return self.client.submit(
            self._remote, packed, *chunks, **where, key=key, pure=False, retries=0
        )

    def _finish(self, futures: Mapping[int, Any], together: bool = False) -> dict[int, Any]:
        """The results of calls on shards, once each call has ended or has lost its worker.

        together : the calls need each other. When one has failed, workers whose calls do not end
        either are ended, because LightGBM would not give up by itself.
        """
        from distributed import CancelledError, wait

        outcomes: dict[int, Any] = {}
        broken = None  # the time at which the first call had failed
        all_ran = time.monotonic()  # the last time at which no worker was paused
        while True:
            workers, now = self._workers(), time.monotonic()
            for k in futures.keys() - outcomes.keys():
                if self._where[k] not in workers:
                    outcomes[k] = _Failed(ShardsLost(f"the worker of shard {k} is gone"))
                elif futures[k].done():
                    with contextlib.suppress(TimeoutError):  # the worker is gone, with the result
                        outcomes[k] = self._outcome(k, futures[k])
            waiting = {k: self._where[k] for k in futures if k not in outcomes}
            if not waiting:
                return self._results(outcomes, together)
            if any(isinstance(outcome, _Failed) for outcome in outcomes.values()):
                broken = broken or now
                if together and now - broken > GRACE:
                    self._end(waiting.values())
                    continue
            if all(_is_running(workers[address]) for address in waiting.values()):
                all_ran = now
            elif now - all_ran > self.patience:
                raise ClusterUnfit(
                    "a Dask worker is paused, because its memory limit is nearly reached; use more "
                    "workers, or larger limits"
                )
            with contextlib.suppress(TimeoutError, CancelledError), self.client.as_current():
                wait([futures[k] for k in waiting], timeout=POLL)

    def _outcome(self, shard: int, future: Any) -> Any:
        from distributed import CancelledError, KilledWorker

        try:
            return unpacked(self._code, future.result(timeout=FETCH))
        except TimeoutError:
            raise
        except (KilledWorker, CancelledError, OSError) as error:
            return _Failed(ShardsLost(f"shard {shard} is gone ({type(error).__name__})"))

    def _results(self, outcomes: Mapping[int, Any], together: bool) -> dict[int, Any]:
        """The results of calls; raises the error of one, or `ShardsLost`."""
        results: dict[int, Any] = {}
        lost: list[str] = []
        for k, outcome in sorted(outcomes.items()):
            if not isinstance(outcome, _Failed):
                results[k] = outcome
            elif isinstance(outcome.error, ShardsLost):
                self._where.pop(k)
                lost.append(str(outcome.error))
            elif together and type(outcome.error).__name__ == "LightGBMError":
                lost.append(f"shard {k} lost the others")
            else:
                raise outcome.error
        if lost:
            raise ShardsLost("; ".join(lost), results)
        return results

    def _end(self, addresses: Collection[str]) -> None:
        """End the processes of workers. (Dask can only ask one that has no nanny to close.)"""
        with contextlib.suppress(OSError):  # they are gone meanwhile
            self.client.run(_exit, workers=list(addresses), wait=False, on_error="ignore")
        if not _wait_until(lambda: not {*addresses} & {*self._workers()}, GRACE):
            left = sorted({*addresses} & {*self._workers()})
            raise ClusterUnfit(f"{', '.join(left)} cannot be ended; restart it")

    def _workers(self) -> Mapping[str, Any]:
        if self.client.status != "running":  # the client would repeat what it heard last
            raise ConnectionError("the connection to the Dask scheduler is lost")
        # Not client.scheduler_info(), which may return what the client asked for by itself in
        # between: a description without workers, all of which would seem to be gone.
        with contextlib.suppress(OSError):  # the status will tell
            identity = self.client.sync(self.client.scheduler.identity, n_workers=-1)
            self._known = identity["workers"]
        return self._known


def _is_running(worker: Mapping[str, Any]) -> bool:
    return worker.get("status", "running") == "running"


def _wait_until(condition: Callable[[], T], seconds: float) -> T:
    """The first true value of a condition, or its last value after some seconds."""
    deadline = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < deadline:
        time.sleep(POLL)
    return value


# --- what runs on workers -------------------------------------------------------------------------


def remote(code: str) -> Callable[..., tuple[str, bytes]]:
    """A function for Dask tasks that calls a pickled function on a worker; see `unpacked`.

    It is sent by value, since Dask finds no module that has it.
    """

    def call(packed: bytes, *data: Any) -> tuple[str, bytes]:
        import pickle

        from distributed import get_worker

        worker = get_worker()
        if code and getattr(worker, CODE, "") != code:
            return "", b""
        function, arguments = pickle.loads(packed)
        result = pickle.dumps(function(*arguments, *data))
        return getattr(worker, CODE, ""), result

    return call


def unpacked(code: str, answer: tuple[str, bytes]) -> Any:
    """The result of a call on a worker, which must have held the right code all the time."""
    held, result = answer
    if code and held != code:
        raise ClusterUnfit(OTHER_CODE)
    return pickle.loads(result)


@dataclass(frozen=True)
class _Failed:
    """An error as the result of a task: one that is raised would be logged by Dask."""

    error: Exception


def _returning_errors(function: Callable[..., T], *arguments: Any) -> T | _Failed:
    try:
        return function(*arguments)
    except Exception as error:
        return _Failed(error)


def _create(key: tuple[str, int], settings: ShardSettings) -> None:
    from distributed import get_worker

    folder = Path(get_worker().local_directory) / f"mcgb-{uuid.uuid4().hex[:12]}"
    SHARDS[key] = Shard(settings, folder)


def _hold(key: tuple[str, int]) -> None:
    """Wait, without a thread of the worker's own, as long as the worker has a shard."""
    from distributed import secede

    secede()
    while key in SHARDS:
        time.sleep(POLL)


def _call(key: tuple[str, int], action: Callable[..., T], *arguments: Any) -> T:
    if key not in SHARDS:
        raise ShardsLost(f"shard {key[1]} is gone (its worker has started anew)")
    return action(SHARDS[key], *arguments)


def _free_port(_: tuple[str, int]) -> int:
    with socket.socket() as listening:
        listening.bind(("", 0))
        return int(listening.getsockname()[1])


async def _exit() -> None:
    os._exit(1)


def _remove_shards(fit: str | None = None) -> None:
    """Remove the shards of a fit, or all."""
    for key in [key for key in SHARDS if fit in (None, key[0])]:
        shutil.rmtree(SHARDS.pop(key).folder, ignore_errors=True)


# --- tables of Dask collections -------------------------------------------------------------------


def dask_table(
    client: Any, X: Any, y: Any, initial_prediction: Any = None, sample_weight: Any = None
) -> Table:
    """Dask arrays or data frames as a table, whose parts are `MemoryPart`s that Dask will make.

    All collections must have the same chunks.
    """
    from dask import delayed

    of_X, sizes = chunks_of(X)
    others = {"y": y, "initial_prediction": initial_prediction, "sample_weight": sample_weight}
    columns = [of_X]
    for name, collection in others.items():
        columns.append([None] * len(of_X) if collection is None else chunks_of(collection)[0])
        if len(columns[-1]) != len(of_X):
            raise Unfit(f"{name}: has {len(columns[-1])} chunks, X has {len(of_X)}")
    rows = sizes or client.compute([delayed(len)(chunk) for chunk in of_X], sync=True)
    kept = [chunk for chunk in zip(*columns, rows, strict=True) if chunk[-1]]
    if not kept:
        raise Unfit("X: has no rows")
    parts = tuple(delayed(MemoryPart)(k, *chunk[:-1]) for k, chunk in enumerate(kept))
    names = tuple(map(str, getattr(X, "columns", (f"x{j}" for j in range(X.shape[1])))))
    kinds = X.dtypes.items() if hasattr(X, "columns") else ()
    words = tuple(str(name) for name, kind in kinds if getattr(kind, "kind", "O") not in "biuf")
    return Table(parts, tuple(n for *_, n in kept), names, words, named=hasattr(X, "columns"))


def is_dask(X: Any) -> bool:
    """Whether it is a Dask array or data frame."""
    return type(X).__module__.split(".")[0] == "dask"


def chunks_of(collection: Any) -> tuple[list[Any], list[int]]:
    """The chunks of rows of a Dask collection, as Delayed, and how many rows each has, if known.

    (The rows of data frames, and of arrays made from them, would have to be counted.)
    """
    if getattr(collection, "ndim", 1) == 2 and hasattr(collection, "chunks"):
        collection = collection.rechunk({1: -1})
    chunks = list(np.asarray(collection.to_delayed(), dtype=object).reshape(-1))
    sizes = getattr(collection, "chunks", ((np.nan,),))[0]
    return chunks, [] if np.isnan(sizes).any() else [int(n) for n in sizes]
