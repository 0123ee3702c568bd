"""Shards on the workers of a Dask cluster (extra: dask), one on each.

Dask finds the workers, reads Dask collections and carries what is asked and answered; a shard stays
where it is, as state of its worker's process. LightGBM's sockets give up when a peer dies, or wait
for ever, or take their process with them: in each case whoever leads sees that a worker is gone,
ends those that wait, and makes the shards that went with them again, on workers that a nanny or
an operator has started meanwhile.
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
GRACE = 15.0  # seconds in which shards notice that a peer is gone, before their workers are ended
SHARDS = "mcboost_shards"  # the attribute of a worker that holds them


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

    n_shards : one for each worker that is there, unless it is said.  patience : seconds to wait for
    a worker in the place of a lost one.
    """

    def __init__(self, client: Any, n_shards: int | None = None, patience: float = 300.0) -> None:
        from distributed import wait

        lightgbm_package()  # it may not be installed
        self.client, self.patience, self._wait = client, patience, wait
        workers = self._workers()
        if not workers or len(workers) < (n_shards or 0):
            raise ClusterUnfit(
                f"{n_shards or 1} Dask worker(s) are needed, {len(workers)} are there"
            )
        self.n_shards = n_shards or len(workers)
        self.n_threads = min(int(worker["nthreads"]) for worker in workers.values())
        self._token = f"{client.id}/{uuid.uuid4().hex[:8]}"
        self._where: dict[int, str] = {}
        # What leaders that were killed have left, who could not say goodbye.
        leaders = client.run_on_scheduler(_clients)
        client.run(_forget_others, leaders, on_error="ignore")

    @contextmanager
    def open(self) -> Iterator[OnDask]:
        """As a context: shards are removed at the end."""
        try:
            yield self
        finally:
            self.close()

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
        settings = replace(settings, n_threads=threads)
        self._finish({shard: self._submit(_begin, shard, settings)})

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
        return self._loaded(argument, workers=[self._where[shard]])

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
        lost: dict[int, float] = {}  # since when
        running = time.monotonic()
        while True:
            there, now = self._workers(), time.monotonic()
            lost = {k: lost.get(k, now) for k, address in where.items() if address not in there}
            waiting = [k for k, future in futures.items() if k not in lost and not future.done()]
            if not waiting:
                break
            if lost and together and now - max(lost.values()) > GRACE:
                self._end([where[k] for k in waiting])
                lost |= dict.fromkeys(waiting, now)
                break
            if all(_is_running(there[where[k]]) for k in waiting):
                running = now
            elif now - running > self.patience:
                raise ClusterUnfit(
                    "a Dask worker is paused, because its memory limit is nearly reached; use more "
                    "workers, or larger limits"
                )
            with contextlib.suppress(TimeoutError), self.client.as_current():
                self._wait([futures[k] for k in waiting], timeout=LOOK_UP)
        return self._gathered({k: f for k, f in futures.items() if k not in lost}, lost, together)

    def _gathered(
        self, futures: Mapping[int, Any], lost: Collection[int], together: bool
    ) -> dict[int, Any]:
        finished: dict[int, Any] = {}
        trouble = [f"the worker of shard {k} is gone" for k in sorted(lost)]
        for k, future in futures.items():
            try:
                outcome = future.result()
            except Exception as error:  # not the action's, which are outcomes: the cluster's
                trouble.append(f"shard {k} did not answer ({type(error).__name__})")
                continue
            if not isinstance(outcome, _Failed):
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
        with contextlib.suppress(Exception):
            self.client.run(os._exit, 1, workers=list(addresses), wait=False)
        deadline = time.monotonic() + GRACE
        while set(addresses) & set(self._workers()) and time.monotonic() < deadline:
            time.sleep(LOOK_UP)

    def _workers(self) -> Mapping[str, Any]:
        return self.client.scheduler_info()["workers"]


def dask_table(X: Any, y: Any, initial_prediction: Any = None) -> Table:
    """Dask arrays or data frames as a table; all three in the same chunks."""
    of_X, rows = chunks_of(X)
    of_y, _ = chunks_of(y, counted=False)
    of_f0 = [None] * len(of_X)
    if initial_prediction is not None:
        of_f0, _ = chunks_of(initial_prediction, counted=False)
    for name, chunks in (("y", of_y), ("initial_prediction", of_f0)):
        if len(chunks) != len(of_X):
            raise Unfit(f"{name}: has {len(chunks)} chunks, X has {len(of_X)}")
    kept = [chunk for chunk in zip(of_X, of_y, of_f0, rows, strict=True) if chunk[-1]]
    parts = tuple(DaskPart(k, X_, y_, f0) for k, (X_, y_, f0, _) in enumerate(kept))
    names, words = _columns(X)
    return Table(parts, tuple(n for *_, n in kept), names, words, named=hasattr(X, "columns"))


def is_dask(X: Any) -> bool:
    """Whether it is a Dask array or data frame."""
    return type(X).__module__.split(".")[0] in {"dask", "dask_expr"}


def chunks_of(collection: Any, *, counted: bool = True) -> tuple[list[Any], list[int]]:
    """The chunks of rows of a Dask collection, as Delayed, and how many rows each has.

    Those of data frames, and of arrays made of them, must be counted.
    """
    if getattr(collection, "ndim", 1) == 2 and hasattr(collection, "chunks"):
        collection = collection.rechunk({1: -1})
    chunks = list(np.asarray(collection.to_delayed(), dtype=object).reshape(-1))
    if not counted:
        return chunks, []
    if hasattr(collection, "chunks") and not np.isnan(collection.chunks[0]).any():
        return chunks, [int(n) for n in collection.chunks[0]]
    import dask

    return chunks, list(dask.compute(*[dask.delayed(len)(chunk) for chunk in chunks]))


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


def _begin(token: str, shard: int, settings: ShardSettings) -> None:
    worker = _worker()
    folder = Path(worker.local_directory) / f"mcboost-{uuid.uuid4().hex[:12]}"
    shards = worker.__dict__.setdefault(SHARDS, {})
    shards[token, shard] = Shard(settings, folder)


@dataclass(frozen=True)
class _Failed:
    """An error as an outcome, which Dask does not log."""

    error: Exception


def _act(token: str, shard: int, action: Callable[..., T], *arguments: Any) -> T | _Failed:
    try:
        return action(getattr(_worker(), SHARDS)[token, shard], *arguments)
    except Exception as error:
        return _Failed(error)


def _free_port(token: str, shard: int) -> int:  # noqa: ARG001
    with socket.socket() as listening:
        listening.bind(("", 0))
        return int(listening.getsockname()[1])


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
