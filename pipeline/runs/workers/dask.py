"""Tasks on a Dask cluster (extra: dask).

Workers need Python with this project's dependencies; the project itself is sent to those that lack
it, and so is the data. Results come back to the driver, which stores them. A task whose worker dies
is given to another by the scheduler.
"""

from __future__ import annotations

import io
import sys
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from pipeline.datasets.design import Design
from pipeline.errors import UserError
from pipeline.paths import DATA, ROOT
from pipeline.runs.store import Initial
from pipeline.runs.tasks import Outcome, Task, compute
from pipeline.runs.workers.base import Workers

CONNECT_SECONDS = 15


class ClusterError(UserError):
    """The cluster cannot be used."""


class _DaskWorkers:
    elsewhere = True

    def __init__(self, client: Any, designs: Mapping[str, Design]) -> None:
        self.client = client
        self.executor = client.get_executor(retries=2)
        # As results of tasks, and not scattered, so that the scheduler can make them again when
        # the only worker that holds one dies.
        self.handles = {name: client.submit(_hold, design) for name, design in designs.items()}
        self.ahead = sum(client.nthreads().values()) + 1  # one lies ready

    def submit(self, task: Task, initial: Initial | None) -> Future[Outcome]:
        return self.executor.submit(compute, task, self.handles[task.dataset], initial)

    def stop(self) -> None:
        self.executor.shutdown(wait=False)


def _hold(design: Design) -> Design:
    return design


@contextmanager
def cluster(scheduler: str, designs: Mapping[str, Design]) -> Iterator[Workers]:
    """The cluster behind ``scheduler``, ready to compute with ``designs``."""
    try:
        from distributed import Client
    except ImportError:
        raise ClusterError(
            "grid.backend=dask: needs the extra 'dask'; install it with "
            "pip install -c requirements.lock -e '.[dask]'"
        ) from None
    try:
        client: Any = Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"grid.scheduler={scheduler}: cannot be reached ({type(error).__name__})"
        ) from None
    with client:
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)  # a design, once
        try:
            client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError:
            raise ClusterError(
                f"grid.scheduler={scheduler}: no worker joined within {CONNECT_SECONDS} s"
            ) from None
        client.register_plugin(_package_plugin())
        yield _DaskWorkers(client, designs)


def _package_plugin() -> Any:
    """A worker plugin that unpacks this package on workers that do not have the same files."""
    import cloudpickle
    from distributed import WorkerPlugin

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in [*sorted((ROOT / "pipeline").rglob("*.py")), DATA / "manifest.yaml"]:
            archive.write(file, file.relative_to(ROOT))
    payload = buffer.getvalue()

    class SendPackage(WorkerPlugin):
        name = "mcboost-replication"

        def setup(self, worker: Any) -> None:
            import importlib.util
            import io
            import sys
            import zipfile
            from pathlib import Path

            archive = zipfile.ZipFile(io.BytesIO(payload))
            found = importlib.util.find_spec("pipeline")
            here = Path(str(found.origin)).parents[1] if found and found.origin else Path()
            if any(
                not (here / name).is_file() or (here / name).read_bytes() != archive.read(name)
                for name in archive.namelist()
            ):
                folder = Path(worker.local_directory) / "mcboost-replication"
                archive.extractall(folder)
                sys.path.insert(0, str(folder))
                for name in [m for m in sys.modules if m.split(".")[0] == "pipeline"]:
                    del sys.modules[name]

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    return SendPackage()
