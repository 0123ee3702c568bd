"""Dask clusters that fail: schedulers and workers that die, stop, lie, or are something else."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pandas as pd

from pipeline import files
from pipeline.paths import ROOT
from scripts.attack.downloads import free_port
from scripts.attack.ground import (
    SMALL,
    Tally,
    ended_well,
    in_parallel,
    process,
    same,
    with_suppressed,
)

# Slow enough that things can happen in the middle of it.
GRID = (*SMALL, "experiment.seeds=[0,1,2,3,4,5]", "boosting.rounds=60", "grid.backend=dask")


class Cluster:
    """A scheduler and workers, each a process of its own."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        port = free_port()
        self.address = f"tcp://127.0.0.1:{port}"
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"
        )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:  # a busy machine starts it slowly
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        self.workers = [self.add() for _ in range(workers)]

    def add(self) -> subprocess.Popen[bytes]:
        """One more worker."""
        return self._start("worker", self.address, "--nthreads", "1", "--no-nanny",
                           "--no-dashboard", "--local-directory", str(self.folder))  # fmt: skip

    def stop(self) -> None:
        """End all of it."""
        for one in (*self.workers, self.scheduler):
            with_suppressed(one.kill)
            one.wait()

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:]],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder,
        )  # fmt: skip


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A cluster that is gone afterwards."""
    one = Cluster(folder, workers)
    try:
        yield one
    finally:
        one.stop()


def attack(folder: Path, truth: pd.DataFrame, tries: int) -> Tally:
    """``tries`` failures of each kind in turn; what was stored must be the undisturbed numbers."""
    tally = Tally("Dask failures")
    names = [list(KINDS)[k % len(KINDS)] for k in range(tries)]
    in_parallel(
        tally,
        [(f"{name} {k}", partial(KINDS[name], folder, k)) for k, name in enumerate(names)],
        at_once=1,
    )
    tally.identical = same(folder / "store", truth)
    return tally


def _grid(
    folder: Path, k: int, happen: Callable[[Cluster], None], allowed: list[int], within: float
) -> str | None:
    """A grid on a cluster on which something happens once some runs are stored."""
    out = folder / "store"
    with cluster(folder / f"c{k}") as one:
        lines = [*GRID, f"grid.scheduler={one.address}", f"output_dir={out}", "grid.patience=4"]
        shutil.rmtree(out / "smoke" / "runs" / "german", ignore_errors=True)
        with process(*lines) as child:
            deadline = time.monotonic() + 150
            while child.poll() is None and not files.find(out, "smoke/runs/german/*/seed=*"):
                if time.monotonic() > deadline:
                    return "nothing was stored"
                time.sleep(0.1)
            happen(one)
            return ended_well(child, within, allowed)


def _stop_one(one: Cluster) -> None:
    os.kill(one.workers[0].pid, signal.SIGSTOP)


def _all_gone_then_new(one: Cluster) -> None:
    for worker in one.workers:
        worker.kill()
        worker.wait()
    time.sleep(3)
    one.workers.append(one.add())


def _refused(address: str) -> Callable[[Path, int], str | None]:
    def attempt(folder: Path, _: int) -> str | None:
        with process(
            *GRID, f"grid.scheduler={address}", f"output_dir={folder / 'nowhere'}"
        ) as child:
            return ended_well(child, 40, [1, 2])

    return attempt


def _listener(says: bytes) -> Callable[[Path, int], str | None]:
    """A port where something else listens."""

    def attempt(folder: Path, k: int) -> str | None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            held: list[socket.socket] = []

            def accept() -> None:
                try:
                    while True:
                        held.append(server.accept()[0])
                        held[-1].sendall(says)
                except OSError:
                    pass

            threading.Thread(target=accept, daemon=True).start()
            return _refused(f"tcp://127.0.0.1:{port}")(folder, k)

    return attempt


def _other_code(folder: Path, k: int) -> str | None:
    """A second driver whose package differs: nobody's numbers may be the other's."""
    changed = folder / f"changed{k}"
    for name in ("pipeline", "conf", "data"):
        shutil.copytree(ROOT / name, changed / name, ignore=shutil.ignore_patterns("__pycache__"))
    rescaling = changed / "pipeline" / "boosting" / "rescaling.py"
    rescaling.write_text(rescaling.read_text() + "\n# changed\n")
    out = folder / "store"
    with cluster(folder / f"c{k}") as one:
        shared = [f"grid.scheduler={one.address}"]
        shutil.rmtree(out / "smoke" / "runs" / "german", ignore_errors=True)
        environment = os.environ | {"PYTHONPATH": str(changed)}
        with (
            process(*GRID, *shared, f"output_dir={out}") as ours,
            process(*GRID, *shared, f"output_dir={folder / f'other{k}'}", cwd=changed,
                    env=environment) as theirs,
        ):  # fmt: skip
            # The changed package is compiled anew on the workers, which takes a minute.
            faults = [ended_well(ours, 240, [0, 1]), ended_well(theirs, 240, [0, 1])]
    return next((fault for fault in faults if fault), None)


KINDS: dict[str, Callable[[Path, int], str | None]] = {
    "scheduler killed": lambda f, k: _grid(f, k, lambda c: c.scheduler.kill(), [1], 40),
    "worker killed": lambda f, k: _grid(f, k, lambda c: c.workers[0].kill(), [0], 90),
    "worker stopped": lambda f, k: _grid(f, k, _stop_one, [0], 90),
    "all workers gone, one comes": lambda f, k: _grid(f, k, _all_gone_then_new, [0], 90),
    "two drivers, two codes": _other_code,
    "nobody listens": lambda f, k: _refused(f"tcp://127.0.0.1:{free_port()}")(f, k),
    "a silent port": _listener(b""),
    "a web server": _listener(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    "no port": _refused("tcp://127.0.0.1"),
    "unknown scheme": _refused("foo://127.0.0.1:8786"),
    "tls without certificates": _refused("tls://127.0.0.1:8786"),
}
