"""What a grid needs of its workers; those of this machine: this process, or several."""

import multiprocessing
import os
from abc import abstractmethod
from collections.abc import Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from typing import Any

from pipeline.interrupts import follow
from pipeline.runs.kinds.base import OnRound
from pipeline.runs.store import Initial
from pipeline.runs.tasks import Outcome, Task


class Workers(AbstractContextManager["Workers"]):
    """Computes tasks, until its context ends.

    other_processes : whether tasks run in other processes, which have to be stopped in order.
    """

    other_processes = True

    @property
    @abstractmethod
    def ahead(self) -> int:
        """How many tasks may be submitted before the first has ended."""

    @abstractmethod
    def submit(self, task: Task, initial: Initial | None) -> Future[Outcome]:
        """Start a task; a dead worker is a `BrokenExecutor` or `CancelledError` of its future."""

    def trouble(self) -> str | None:
        """What keeps tasks from being computed, if anything; raises if they never will be."""
        return None

    def stop(self) -> None:
        """End all tasks at once."""

    def __exit__(self, *_: object) -> None:
        """Nothing, unless there is something to close."""


class InThisProcess(Workers):
    """One task at a time in this process; ``on_round`` is called after every round."""

    ahead = 1
    other_processes = False

    def __init__(self, materials: Mapping[str, Any], on_round: OnRound) -> None:
        self.materials, self.on_round = materials, on_round

    def submit(self, task: Task, initial: Initial | None) -> Future[Outcome]:  # noqa: D102
        future: Future[Outcome] = Future()
        future.set_result(task.compute(self.materials[task.dataset], initial, self.on_round))
        return future


class Pool(Workers):
    """``slots`` processes of this machine, replaced as a whole when one of them dies."""

    def __init__(self, slots: int, materials: Mapping[str, Any]) -> None:
        self.slots, self.materials = slots, dict(materials)
        self.executor = self._start()

    @property
    def ahead(self) -> int:
        """One task for each process, and one that is ready to start."""
        return self.slots + 1

    def _start(self) -> ProcessPoolExecutor:
        # Forked workers share the materials' memory and start at once; no thread of ours runs.
        method = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
        return ProcessPoolExecutor(
            self.slots,
            mp_context=multiprocessing.get_context(method),
            initializer=_become_worker,
            initargs=(self.materials, os.getpid()),
        )

    def submit(self, task: Task, initial: Initial | None) -> Future[Outcome]:  # noqa: D102
        try:
            return self.executor.submit(_compute, task, initial)
        except BrokenProcessPool:
            self.executor.shutdown(wait=False, cancel_futures=True)
            self.executor = self._start()
            return self.executor.submit(_compute, task, initial)

    def stop(self) -> None:  # noqa: D102
        processes = list((self.executor._processes or {}).values())
        self.executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()  # a stopped process (SIGSTOP) reacts to no other signal

    def __exit__(self, *_: object) -> None:
        """Wait for what runs, and drop what waits."""
        self.executor.shutdown(wait=True, cancel_futures=True)


_materials: dict[str, Any] = {}


def _become_worker(materials: dict[str, Any], driver: int) -> None:
    follow(driver)
    _materials.update(materials)


def _compute(task: Task, initial: Initial | None) -> Outcome:
    return task.compute(_materials[task.dataset], initial)
