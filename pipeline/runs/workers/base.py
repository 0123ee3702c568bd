"""What a grid needs of its workers."""

from abc import abstractmethod
from concurrent.futures import Future
from contextlib import AbstractContextManager

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
