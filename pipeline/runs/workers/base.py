"""What a grid needs of its workers."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol

from pipeline.runs.store import Initial
from pipeline.runs.tasks import Outcome, Task


class Workers(Protocol):
    """Computes tasks.

    other_processes : whether tasks run in other processes, which have to be stopped in order.
    ahead : how many tasks may be submitted before the first has ended.
    """

    other_processes: bool

    @property
    def ahead(self) -> int: ...  # noqa: D102

    def submit(self, task: Task, initial: Initial | None) -> Future[Outcome]:
        """Start a task; a dead worker is a `BrokenExecutor` or `CancelledError` of its future."""
        ...

    def trouble(self) -> str | None:
        """What keeps tasks from being computed, if anything; raises if they never will be."""
        ...

    def stop(self) -> None:
        """End all tasks at once."""
        ...
