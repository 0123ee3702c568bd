"""Tasks on the workers of a Dask cluster (extra: dask).

Workers need Python with this project's dependencies. The driver sends them the project itself, if
they lack it, and the data; it stores the results that they return. The scheduler gives a task whose
worker dies or falls silent to another worker.

Several drivers may use one cluster, perhaps with different code. A worker process can hold only one
version of the package, so a hash of the code travels with each task and each result, and a worker
that holds another version refuses the task. Tasks and data travel as bytes, which are not unpickled
before the hashes are compared.
"""

import contextlib
import hashlib
import io
import json
import logging
import pickle
import socket
import struct
import sys
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pipeline.boosting.distributed.dask import CODE, ClusterUnfit, OnDask, remote, unpacked
from pipeline.boosting.distributed.fit import Holders
from pipeline.config.schema import Grid
from pipeline.errors import UserError
from pipeline.paths import DATA, ROOT
from pipeline.runs import provenance
from pipeline.runs.store import Initial
from pipeline.runs.strategies import provided, sources_of
from pipeline.runs.tasks import Outcome, Task
from pipeline.runs.workers.base import Workers

CONNECT_SECONDS = 15
ANSWER_SECONDS = 2.0  # after which a scheduler is too busy to describe itself
LARGEST_GREETING = 2**20  # bytes; a Dask scheduler's is some hundred


class ClusterError(UserError):
    """The cluster cannot be used."""


def _gone(scheduler: object) -> str:
    return (
        f"grid.scheduler={scheduler}: the scheduler is gone; what was stored stays, and the same "
        "command goes on"
    )


class _DaskWorkers(Workers):
    def __init__(self, client: Any, grid: Grid, code: str, designs: Mapping[str, Any]) -> None:
        self.client, self.grid, self.code, self.remote = client, grid, code, remote(code)
        self.executor = client.get_executor(retries=2)
        self.silent: list[str] = []  # workers that the scheduler has given up
        self.described = {"n_workers": 1, "total_threads": 1}
        client.subscribe_topic("scheduler", self._note_silent)
        # As results of tasks, and not scattered, so that the scheduler can compute a design again
        # when the only worker that holds it dies.
        self.designs = {
            name: client.submit(bytes, pickle.dumps(design)) for name, design in designs.items()
        }

    @property
    def ahead(self) -> int:
        """One task for each thread of the present workers, and one that is ready to start."""
        return int(self._cluster()["total_threads"]) + 1

    def submit(self, task: Task, initial: Initial | None) -> Future[Outcome]:
        sources = sources_of(config.strategy for config in task.configs)
        packed = pickle.dumps((_compute, (task, initial, sources)))
        try:
            raw = self.executor.submit(self.remote, packed, self.designs[task.dataset])
        except Exception:  # a closed client's error contains the whole message
            raise ClusterError(_gone(self.grid.scheduler)) from None
        return _unpickled(raw, self.code)

    def trouble(self) -> str | None:
        if self.client.status in {"closed", "closing"}:
            raise ClusterError(_gone(self.grid.scheduler))
        if self.silent:
            silent, self.silent = self.silent, []
            return (
                f"no sign of life from {', '.join(silent)} for "
                f"grid.patience={self.grid.patience:g} s; its tasks go to others"
            )
        if not self._cluster()["n_workers"]:
            return "no worker is left; waiting for one"
        return None

    def stop(self) -> None:
        with contextlib.suppress(Exception):  # whatever the state of the connection
            self.executor.shutdown(wait=False)

    def _cluster(self) -> Mapping[str, Any]:
        """The scheduler's description of itself, or its last one if it does not answer soon."""
        # Not client.scheduler_info(), which has no timeout: Ctrl-C would wait for a stopped one.
        with contextlib.suppress(Exception):
            self.described = self.client.sync(
                self.client.scheduler.identity, n_workers=0, callback_timeout=ANSWER_SECONDS
            )
        return self.described

    def _note_silent(self, event: tuple[float, Any]) -> None:
        if event[1].get("action") == "worker-ttl-timed-out":
            self.silent.extend(event[1]["workers"])


@contextmanager
def cluster(grid: Grid, designs: Mapping[str, Any]) -> Iterator[Workers]:
    """The cluster behind ``grid.scheduler``, ready to compute with ``designs``."""
    with _connected(grid) as (client, code):
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)  # a design, once
        with _preparing(grid):
            workers = _DaskWorkers(client, grid, code, designs)
        yield workers


@contextmanager
def shard_holders(grid: Grid, n_shards: int | None) -> Iterator[Holders]:
    """The cluster behind ``grid.scheduler``, ready to hold the shards of a table."""
    with _connected(grid) as (client, code):
        try:
            with OnDask(client, n_shards, grid.patience, code).open() as holders:
                yield holders
        except ClusterUnfit as error:
            raise ClusterError(f"grid.scheduler={grid.scheduler}: {error}") from None
        except OSError as error:  # what a client that lost its scheduler raises
            if client.status == "running":
                raise
            raise ClusterError(_gone(grid.scheduler)) from error


@contextmanager
def _connected(grid: Grid) -> Iterator[tuple[Any, str]]:
    """A client of the cluster, whose workers hold this package, and the hash of the package."""
    scheduler = _address(str(grid.scheduler))
    try:
        import cloudpickle
        from distributed import Client
    except ImportError:
        raise ClusterError(
            "grid.backend=dask: needs the extra 'dask'; install it with "
            "pip install -c requirements.lock -e '.[dask]'"
        ) from None
    names = ("distributed", "distributed.client", "tornado", "tornado.application", "asyncio")
    for name in (*names, "concurrent.futures"):
        # They log a cluster's failure with tracebacks; here it is reported in a sentence.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    _require_scheduler(scheduler)
    try:
        client: Any = Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
    except Exception as error:  # each kind of connection has its own
        raise ClusterError(
            f"grid.scheduler={scheduler}: cannot be reached ({type(error).__name__}: {error})"
        ) from None
    try:
        try:
            client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError:
            raise ClusterError(
                f"grid.scheduler={scheduler}: no worker joined within {CONNECT_SECONDS} s"
            ) from None
        # What is sent by name is sent by value instead: the scheduler may lack the package.
        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        code, plugin = _package()
        with _preparing(grid):
            client.run_on_scheduler(_replace_silent_workers, grid.patience)
            client.register_plugin(plugin)
        yield client, code
    finally:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            client.close(timeout=2)


@contextmanager
def _preparing(grid: Grid) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # a worker's full disk, a scheduler that dies just now
        raise ClusterError(
            f"grid.scheduler={grid.scheduler}: the workers cannot be made ready "
            f"({type(error).__name__}: {error})"
        ) from None


def _address(scheduler: str) -> str:
    """The address of a scheduler, which may be in its scheduler file."""
    if not scheduler.endswith(".json"):
        return scheduler
    try:
        return str(json.loads(Path(scheduler).expanduser().read_text())["address"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ClusterError(
            f"grid.scheduler={scheduler}: is no scheduler file that can be read "
            f"({type(error).__name__})"
        ) from None


def _require_scheduler(address: str) -> None:
    """Raise `ClusterError` unless a Dask scheduler answers: the client would wait for ever.

    A scheduler speaks first, and begins with the length of its message.
    """
    parts = urlsplit(address)
    if parts.scheme == "tls":
        import dask

        if not dask.config.get("distributed.comm.tls.ca-file", None):
            raise ClusterError(
                f"grid.scheduler={address}: needs certificates; name them in Dask's configuration "
                "(distributed.comm.tls)"
            )
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


def _unpickled(raw: Future[tuple[str, bytes]], code: str) -> Future[Outcome]:
    """The outcome of a task, or an error if a worker with other code answered."""
    future: Future[Outcome] = Future()

    def unpickle(done: Future[tuple[str, bytes]]) -> None:
        try:
            future.set_result(unpacked(code, done.result()))
        except ClusterUnfit as error:
            future.set_exception(ClusterError(str(error)))
        except (Exception, CancelledError) as error:
            future.set_exception(error)

    raw.add_done_callback(unpickle)
    return future


# --- what runs on workers and on the scheduler ----------------------------------------------------


def _compute(task: Task, initial: Initial | None, sources: Any, design: bytes) -> Outcome:
    with provided(sources):
        return task.compute(pickle.loads(design), initial)


async def _replace_silent_workers(seconds: float, dask_scheduler: Any) -> None:
    """Set the scheduler's option worker-ttl, and look every few seconds instead of once a ttl.

    The driver that connected last decides. Dask never gives up a worker before it has missed ten
    heartbeats, which are half a second apart on a cluster of up to ten workers.
    """
    from tornado.ioloop import PeriodicCallback

    callbacks = dask_scheduler.periodic_callbacks
    if "worker-ttl" in callbacks:
        callbacks["worker-ttl"].stop()
    dask_scheduler.worker_ttl = seconds
    callbacks["worker-ttl"] = PeriodicCallback(
        dask_scheduler.check_worker_ttl, 1000 * min(seconds, 5.0)
    )
    callbacks["worker-ttl"].start()


def _package() -> tuple[str, Any]:
    """A hash of this package's code, and a plugin that makes a worker hold this code and no other.

    (Dask's UploadDirectory needs a nanny, and leaves modules that were imported before.)
    """
    from distributed import WorkerPlugin

    files = [*sorted((ROOT / "pipeline").rglob("*.py")), DATA / "manifest.yaml"]
    digest, buffer = hashlib.sha256(), io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            name, content = str(file.relative_to(ROOT)), file.read_bytes()
            digest.update(f"{name}/{len(content)}/".encode() + content)
            archive.writestr(name, content)
        archive.writestr(provenance.SENT_COMMIT, provenance.git_commit() or "")
    code, packed, note = digest.hexdigest(), buffer.getvalue(), provenance.SENT_COMMIT

    class SendPackage(WorkerPlugin):  # type: ignore[misc]
        name = "mcgb"

        def setup(self, worker: Any) -> None:
            import importlib.util
            import io
            import sys
            import zipfile
            from pathlib import Path

            if getattr(worker, CODE, None) == code:
                return
            setattr(worker, CODE, "")  # neither the old nor the new one, for a moment
            archive = zipfile.ZipFile(io.BytesIO(packed))
            found = importlib.util.find_spec("pipeline")
            here = Path(str(found.origin)).parents[1] if found and found.origin else Path()
            if any(
                not (here / name).is_file() or (here / name).read_bytes() != archive.read(name)
                for name in archive.namelist()
                if name != note
            ):
                folder = Path(worker.local_directory) / f"mcgb-{code[:16]}"
                archive.extractall(folder)
                sys.path.insert(0, str(folder))
            # Also where the files are the same: they may have been others when imported.
            for name in [m for m in sys.modules if m.split(".")[0] == "pipeline"]:
                del sys.modules[name]
            setattr(worker, CODE, code)

    return code, SendPackage()
