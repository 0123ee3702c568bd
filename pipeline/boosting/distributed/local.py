"""A single shard in this process, for a table that fits into its memory as bins."""

import tempfile
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from .parts import Part
from .shard import Arguments, Network, Shard, ShardSettings

T = TypeVar("T")


class InThisProcess(AbstractContextManager["InThisProcess"]):
    """The holder of one shard; see `Holders`. At the end of the context its files are removed.

    folder : for the table's rows while they are read; None is the system's.
    """

    n_shards = 1

    def __init__(self, n_threads: int = 1, folder: Path | None = None) -> None:
        self.n_threads = n_threads
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        self._folder = tempfile.TemporaryDirectory(prefix=".mcgb-", dir=folder)
        self._shard: Shard | None = None

    def __exit__(self, *_: object) -> None:
        """Remove the shard."""
        self._shard = None
        self._folder.cleanup()

    def require(self, n_bytes: float) -> None:
        """Do nothing: the memory of this machine is not checked."""

    def present(self) -> Collection[int]:
        """See `Holders`."""
        return () if self._shard is None else (0,)

    def place(self, shard: int, settings: ShardSettings) -> None:  # noqa: ARG002
        """See `Holders`."""
        settings = replace(settings, n_threads=self.n_threads)
        self._shard = Shard(settings, Path(self._folder.name))

    def call(
        self, action: Callable[..., T], arguments: Arguments, *, together: bool = False
    ) -> dict[int, T]:
        """See `Holders`."""
        alone = (Network(("",), 0),) if together else ()
        return {k: action(self._shard, *more, *alone) for k, more in arguments.items()}

    def map_parts(self, action: Callable[[Part], T], parts: Sequence[Part]) -> list[T]:
        """See `Holders`."""
        return [action(part) for part in parts]
