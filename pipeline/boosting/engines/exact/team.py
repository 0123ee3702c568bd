"""Threads that run the same code together, each doing a part of the work; see `kernel`.

A function that may be run by a team takes a `Team`, or None for one thread. Which of the two is
known when it is compiled, and for one thread nothing of this module is left.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pipeline.boosting.engines.exact.intrinsics import atomic_add, atomic_load

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}

_WAITING, _PASSED = np.uint64(0), np.uint64(1)  # places in the barrier
_SLOT = 16  # numbers of different threads are in different cache lines


class Team(NamedTuple):
    """A member of a team: one of its threads.

    barrier : how many threads wait, and how often all of them have waited.
    counts : a number of each thread that the others read after the next wait.
    gains : the best gain that each thread has found so far.
    memory : what the threads share, a named tuple.
    """

    me: int
    size: int
    barrier: NDArray[np.int64]
    counts: NDArray[np.int64]
    gains: NDArray[np.float64]
    memory: Any

    @classmethod
    def create(cls, size: int, memory: Any) -> list[Team]:
        """Return the members of a new team."""
        barrier, counts = np.zeros(2, np.int64), np.zeros(size, np.int64)
        gains = np.full(_SLOT * size, -1.0)
        return [cls(me, size, barrier, counts, gains, memory) for me in range(size)]


@njit(**OPTIONS)
def part(team, start, end):
    """Return this thread's part of a range."""
    if team is None:
        return start, end
    return part_of(team.me, team.size, start, end)


@njit(**OPTIONS)
def part_of(member, size, start, end):
    """Return a thread's part of a range."""
    length = end - start
    return start + length * member // size, start + length * (member + 1) // size


@njit(**OPTIONS)
def is_first(team):
    """Return whether this thread does what only one thread must do."""
    if team is None:
        return True
    return team.me == 0


@njit(**OPTIONS)
def wait(team):
    """Wait until all threads are here."""
    if team is not None:
        passed = atomic_load(team.barrier, _PASSED)
        if atomic_add(team.barrier, _WAITING, 1) == team.size - 1:
            atomic_add(team.barrier, _WAITING, -team.size)
            atomic_add(team.barrier, _PASSED, 1)
        else:
            while atomic_load(team.barrier, _PASSED) == passed:
                pass


@njit(**OPTIONS)
def best_known_gain(team):
    """Return the best gain that a thread has published, −1 for none."""
    best = -1.0
    if team is not None:
        for member in range(team.size):
            best = max(best, team.gains[_SLOT * member])
    return best


@njit(**OPTIONS)
def publish_gain(team, gain):
    """Let the other threads know of a gain."""
    if team is not None:
        team.gains[_SLOT * team.me] = gain


@njit(**OPTIONS)
def withdraw_gain(team):
    """Withdraw the published gain, before the next wait."""
    if team is not None:
        team.gains[_SLOT * team.me] = -1.0
