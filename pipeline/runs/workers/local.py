"""Tasks in this process, one at a time, or in processes of one thread each on this machine."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from pipeline.datasets.design import Design
from pipeline.interrupts import follow
from pipeline.runs.kinds.base import OnRound
from pipeline.runs.store import Initial
from pipeline.runs.tasks import Outcome, Task
from pipeline.runs.workers.base import Workers


@contextmanager
def in_this_process(designs: Mapping[str, Design], on_round: OnRound) -> Iterator[Workers]:
    """One task at a time in this process."""
    yield _InThisProcess(designs, on_round)


@contextmanager
def local_processes(slots: int, designs: Mapping[str, Design]) -> Iterator[Workers]:
    """``slots`` processes of this machine."""
    pool = _Pool(slots, dict(designs))
    try:
        yield pool
    finally:
        pool.executor.shutdown(wait=True, cancel_futures=True)


class _InThisProcess:
    ahead = 1
    other_processes = False

    def __init__(self, designs: Mapping[str, Design], on_round: OnRound) -> None:
        self.designs, self.on_round = designs, on_round

    def submit(self, task: Task, initial: Initial | None) -> Future[Outcome]:
        future: Future[Outcome] = Future()
        design = self.designs[task.dataset]
        future.set_result(task.compute(design, initial, self.on_round))
        return future

    def trouble(self) -> str | None:
        return None

    def stop(self) -> None:
        pass


class _Pool:
    """A pool of processes, which is replaced as a whole when one of them dies."""

    other_processes = True

    def __init__(self, slots: int, designs: dict[str, Design]) -> None:
        self.slots, self.designs = slots, designs
        self.ahead = slots + 1  # one is ready to start
        self.executor = self._start()

    def _start(self) -> ProcessPoolExecutor:
        # Forked workers share the designs' memory and start at once; no thread of ours runs.
        method = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
        return ProcessPoolExecutor(
            self.slots,
            mp_context=multiprocessing.get_context(method),
            initializer=_become_worker,
            initargs=(self.designs, os.getpid()),
        )

    def submit(self, task: Task, initial: Initial | None) -> Future[Outcome]:
        try:
            return self.executor.submit(_compute, task, initial)
        except BrokenProcessPool:
            self.executor.shutdown(wait=False, cancel_futures=True)
            self.executor = self._start()
            return self.executor.submit(_compute, task, initial)

    def trouble(self) -> str | None:
        return None

    def stop(self) -> None:
        processes = list((self.executor._processes or {}).values())
        self.executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()  # a stopped process (SIGSTOP) reacts to no other signal


_designs: dict[str, Design] = {}


def _become_worker(designs: dict[str, Design], driver: int) -> None:
    follow(driver)
    _designs.update(designs)


def _compute(task: Task, initial: Initial | None) -> Outcome:
    return task.compute(_designs[task.dataset], initial)
