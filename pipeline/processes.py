"""Work in forked processes of this machine, which share what this process has in memory."""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

from pipeline.interrupts import follow

T = TypeVar("T")

_inherited: Sequence[Callable[[], Any]] = ()  # what forked processes are to call


def cores() -> int:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def forked(work: Sequence[Callable[[], T]]) -> list[T]:
    """The results of some functions, each called in a forked process, as many at a time as cores.

    With one core, or on a system without fork, they are called in this process.
    """
    global _inherited
    slots = min(cores(), len(work))
    if slots < 2 or "fork" not in multiprocessing.get_all_start_methods():
        return [call() for call in work]
    before, _inherited = _inherited, work
    try:
        with ProcessPoolExecutor(
            slots,
            mp_context=multiprocessing.get_context("fork"),
            initializer=follow,
            initargs=(os.getpid(),),
        ) as pool:
            return list(pool.map(_call, range(len(work))))
    finally:
        _inherited = before  # this process may itself be one that was forked for some work


def _call(number: int) -> Any:
    return _inherited[number]()
