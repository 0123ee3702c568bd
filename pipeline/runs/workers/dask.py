"""Tasks on a Dask cluster (extra: dask).

Workers need Python with this project's dependencies; the project itself is sent to those that lack
it, and so is the data. Results come back to the driver, which stores them. A task whose worker
dies, or gives no sign of life, is given to another by the scheduler.

Several drivers may use one cluster, perhaps with different code. A worker process can hold one
version of the package only, so a hash of the code travels with each task and each outcome, and a
worker that holds another refuses. Tasks and data travel as bytes, which nothing reads before the
hashes were compared.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import pickle
import socket
import struct
import sys
import time
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from pipeline.boosting.distributed.dask import ClusterUnfit, OnDask
from pipeline.boosting.distributed.fit import Holders
from pipeline.config.schema import Grid
from pipeline.datasets.design import Design
from pipeline.errors import UserError
from pipeline.paths import DATA, ROOT
from pipeline.runs import provenance
from pipeline.runs.store import Initial
from pipeline.runs.strategies import sources_of
from pipeline.runs.tasks import Outcome, Task
from pipeline.runs.workers.base import Workers

CONNECT_SECONDS = 15
ASK_SECONDS = 5.0  # between questions about silent workers, and for an answer
LARGEST_GREETING = 2**20  # bytes; a Dask scheduler's is some hundred


class ClusterError(UserError):
    """The cluster cannot be used."""


def _gone(scheduler: str) -> str:
    return (
        f"grid.scheduler={scheduler}: the scheduler is gone; what was stored stays, and the same "
        "command goes on"
    )


class _DaskWorkers:
    elsewhere = True

    def __init__(self, client: Any, grid: Grid, package: _Package, designs: Mapping[str, Design]):
        self.client, self.package = client, package
        self.scheduler, self.patience = str(grid.scheduler), grid.patience
        self.executor = client.get_executor(retries=2)
        self.asked = 0.0
        # As results of tasks, and not scattered, so that the scheduler can make them again when
        # the only worker that holds one dies.
        self.handles = {
            name: client.submit(_hold, pickle.dumps(design)) for name, design in designs.items()
        }

    @property
    def ahead(self) -> int:
        """One for each thread of the workers that are there now, and one that lies ready."""
        return sum(int(worker["nthreads"]) for worker in self._workers().values()) + 1

    def submit(self, task: Task, initial: Initial | None) -> Future[Outcome]:
        work = pickle.dumps((task, initial, sources_of(c.strategy for c in task.configs)))
        try:
            raw = self.executor.submit(
                _compute_there, self.package.code, self.handles[task.dataset], work
            )
        except Exception:  # what a closed client raises holds the whole message
            raise ClusterError(_gone(self.scheduler)) from None
        return _translated(raw, self.package.code)

    def trouble(self) -> str | None:
        if self.client.status in {"closed", "closing"}:
            raise ClusterError(_gone(self.scheduler))
        workers = self._workers()
        if not workers:
            return "no worker is left; waiting for one"
        now = time.time()
        if any(now - float(worker["last_seen"]) > self.patience for worker in workers.values()):
            dropped = self._drop_silent()
            if dropped:
                return (
                    f"no sign of life from {', '.join(dropped)} for "
                    f"grid.patience={self.patience:g} s; its tasks go to others"
                )
        return None

    def _drop_silent(self) -> list[str]:
        """Ask the scheduler, whose clock counts, to give up silent workers; not too often."""
        if time.monotonic() - self.asked < ASK_SECONDS:
            return []
        self.asked = time.monotonic()
        try:
            return self.client.sync(
                self.client._run_on_scheduler, _drop_silent, self.patience,
                callback_timeout=ASK_SECONDS,
            )  # fmt: skip
        except Exception:  # it is busy, or closing; there will be another time
            return []

    def stop(self) -> None:
        with contextlib.suppress(Exception):  # whatever state the connection is in
            self.executor.shutdown(wait=False)

    def _workers(self) -> Mapping[str, Any]:
        """What the scheduler said of its workers lately; asked for in the background."""
        return self.client._scheduler_identity.get("workers", {})


@contextmanager
def cluster(grid: Grid, designs: Mapping[str, Design]) -> Iterator[Workers]:
    """The cluster behind ``grid.scheduler``, ready to compute with ``designs``."""
    with _connected(grid) as (client, package):
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)  # a design, once
        with _made_ready(grid):
            workers = _DaskWorkers(client, grid, package, designs)
        yield workers


@contextmanager
def shard_holders(grid: Grid, n_shards: int | None) -> Iterator[Holders]:
    """The cluster behind ``grid.scheduler`` as holders of a table's shards."""
    with _connected(grid) as (client, package):
        try:
            with OnDask(client, n_shards, grid.patience, package.code).open() as holders:
                yield holders
        except ClusterUnfit as error:
            raise ClusterError(f"grid.scheduler={grid.scheduler}: {error}") from None
        except OSError as error:  # what a client that lost its scheduler raises
            if client.status == "running":
                raise
            raise ClusterError(_gone(str(grid.scheduler))) from error


@contextmanager
def _connected(grid: Grid) -> Iterator[tuple[Any, _Package]]:
    """A client of the cluster, whose workers hold this package."""
    scheduler = str(grid.scheduler)
    try:
        from distributed import Client
    except ImportError:
        raise ClusterError(
            "grid.backend=dask: needs the extra 'dask'; install it with "
            "pip install -c requirements.lock -e '.[dask]'"
        ) from None
    for name in ("distributed", "tornado", "asyncio", "concurrent.futures"):
        # What they log of a cluster that dies, with tracebacks, is said here in a sentence.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    _require_scheduler(scheduler)
    try:
        client: Any = Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
    except Exception as error:  # each kind of connection has its own
        raise ClusterError(
            f"grid.scheduler={scheduler}: cannot be reached ({type(error).__name__}: {error})"
        ) from None
    with _closing(client):
        try:
            client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError:
            raise ClusterError(
                f"grid.scheduler={scheduler}: no worker joined within {CONNECT_SECONDS} s"
            ) from None
        package = _Package()
        with _made_ready(grid):
            client.register_plugin(package.plugin())
        yield client, package


@contextmanager
def _made_ready(grid: Grid) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # a worker's full disk, a scheduler that dies just now
        raise ClusterError(
            f"grid.scheduler={grid.scheduler}: the workers cannot be made ready "
            f"({type(error).__name__}: {error})"
        ) from None


@contextmanager
def _closing(client: Any) -> Iterator[None]:
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # a scheduler that is gone needs no goodbye
            client.close(timeout=2)


def _require_scheduler(address: str) -> None:
    """Raise `ClusterError` unless a Dask scheduler answers: the client would wait for ever.

    It speaks first, and begins with the length of what it says.
    """
    parts = urlsplit(address)
    if parts.scheme == "tls":
        _require_tls(address)
        return
    try:
        with socket.create_connection(
            (str(parts.hostname), int(parts.port or 0)), timeout=CONNECT_SECONDS
        ) as connection:
            connection.settimeout(CONNECT_SECONDS)
            greeting = connection.recv(8, socket.MSG_WAITALL)
    except TimeoutError:
        raise ClusterError(
            f"grid.scheduler={address}: said nothing for {CONNECT_SECONDS} s; it is no Dask "
            "scheduler, or a very busy one"
        ) from None
    except OSError as error:
        raise ClusterError(
            f"grid.scheduler={address}: cannot be reached ({error.strerror or error})"
        ) from None
    if len(greeting) < 8 or struct.unpack("<Q", greeting)[0] > LARGEST_GREETING:
        raise ClusterError(f"grid.scheduler={address}: what answers there is no Dask scheduler")


def _require_tls(address: str) -> None:
    import dask

    if not dask.config.get("distributed.comm.tls.ca-file", None):
        raise ClusterError(
            f"grid.scheduler={address}: needs certificates; name them in Dask's configuration "
            "(distributed.comm.tls)"
        )


# --- what runs on workers, sent by value ----------------------------------------------------------


def _hold(design: bytes) -> bytes:
    return design


def _compute_there(code: str, design: bytes, work: bytes) -> tuple[str, bytes]:
    """The code that the worker held before and after, and the outcome; none if it was another."""
    import pickle

    from distributed import get_worker

    worker: Any = get_worker()
    held = getattr(worker, "mcboost_code", "")
    if held != code:
        return held, b""
    from pipeline.runs.strategies import provided

    task, initial, sources = pickle.loads(work)
    with provided(sources):
        outcome = pickle.dumps(task.compute(pickle.loads(design), initial))
    return worker.mcboost_code, outcome


async def _drop_silent(patience: float, dask_scheduler: Any) -> list[str]:
    """Have the scheduler forget silent workers; their tasks go to others."""
    import time

    silent = [
        address
        for address, worker in dask_scheduler.workers.items()
        if time.time() - worker.last_seen > patience
    ]
    for address in silent:
        await dask_scheduler.remove_worker(address, stimulus_id="silent", close=False)
    return silent


def _translated(raw: Future[tuple[str, bytes]], code: str) -> Future[Outcome]:
    """The outcome of a task, or an error where a worker with other code answered."""
    future: Future[Outcome] = Future()

    def pass_on(done: Future[tuple[str, bytes]]) -> None:
        try:
            held, outcome = done.result()
            if held != code:
                raise ClusterError(
                    "the worker holds other code than this driver: another driver with a changed "
                    "package uses the same cluster; run one after the other"
                )
            future.set_result(pickle.loads(outcome))
        except (Exception, CancelledError) as error:
            future.set_exception(error)

    raw.add_done_callback(pass_on)
    return future


class _Package:
    """This package as an archive, and the hash of its code."""

    def __init__(self) -> None:
        files = [*sorted((ROOT / "pipeline").rglob("*.py")), DATA / "manifest.yaml"]
        contents = {str(f.relative_to(ROOT)): f.read_bytes() for f in files}
        digest = hashlib.sha256()
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in contents.items():
                digest.update(f"{name}/{len(content)}/".encode() + content)
                archive.writestr(name, content)
        self.code = digest.hexdigest()
        self.payload = buffer.getvalue()
        self.commit = provenance.git_commit() or ""

    def plugin(self) -> Any:
        """A worker plugin that has a worker hold this code, and no other."""
        import cloudpickle
        from distributed import WorkerPlugin

        payload, code, commit, note = self.payload, self.code, self.commit, provenance.SENT_COMMIT

        class SendPackage(WorkerPlugin):  # type: ignore[misc]
            name = "mcboost-replication"

            def setup(self, worker: Any) -> None:
                import importlib.util
                import io
                import sys
                import zipfile
                from pathlib import Path

                if getattr(worker, "mcboost_code", None) == code:
                    return
                worker.mcboost_code = ""  # neither the old nor the new one, for a moment
                archive = zipfile.ZipFile(io.BytesIO(payload))
                found = importlib.util.find_spec("pipeline")
                here = Path(str(found.origin)).parents[1] if found and found.origin else Path()
                if any(
                    not (here / name).is_file() or (here / name).read_bytes() != archive.read(name)
                    for name in archive.namelist()
                ):
                    folder = Path(worker.local_directory) / f"mcboost-replication-{code[:16]}"
                    archive.extractall(folder)
                    (folder / note).write_text(commit, encoding="utf-8")
                    sys.path.insert(0, str(folder))
                # Also where the files are the same: they may have been others when imported.
                for name in [m for m in sys.modules if m.split(".")[0] == "pipeline"]:
                    del sys.modules[name]
                worker.mcboost_code = code

        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        return SendPackage()
