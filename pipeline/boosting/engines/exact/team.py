"""Threads that walk through the same code together, each doing its part; see `kernel`.

A function that may be run by a team takes a `Team` or None, for one thread. Which of the two is
known when it is compiled, and for one thread nothing of this module is left.

(The kernel's compiled cache does not see this file change: `make clean` after changing it.)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pipeline.boosting.engines.exact.intrinsics import fetch_add, look_at

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}

_WAITING, _WAITS = np.uint64(0), np.uint64(1)  # places on the board
_SLOT = 16  # far enough apart that writing one place does not disturb the next


class Team(NamedTuple):
    """A member of a team."""

    me: int
    size: int
    board: NDArray[np.int64]  # how many wait, and how often all have waited
    counts: NDArray[np.int64]  # what each has to tell the others after the next wait
    told: NDArray[np.float64]  # the best gain of each so far
    memory: Any  # what they have in common, a named tuple

    @classmethod
    def gather(cls, size: int, memory: Any) -> list[Team]:
        """The members of a team."""
        board, counts = np.zeros(2, np.int64), np.zeros(size, np.int64)
        told = np.full(_SLOT * size, -1.0)
        return [cls(me, size, board, counts, told, memory) for me in range(size)]


@njit(**OPTIONS)
def part(team, start, end):
    """This member's part of a range."""
    if team is None:
        return start, end
    return part_of(team.me, team.size, start, end)


@njit(**OPTIONS)
def part_of(member, size, start, end):
    """A member's part of a range."""
    length = end - start
    return start + length * member // size, start + length * (member + 1) // size


@njit(**OPTIONS)
def leads(team):
    """Whether this member does what one alone must do."""
    if team is None:
        return True
    return team.me == 0


@njit(**OPTIONS)
def wait(team):
    """Until all members are here."""
    if team is not None:
        waits = look_at(team.board, _WAITS)
        if fetch_add(team.board, _WAITING, 1) == team.size - 1:
            fetch_add(team.board, _WAITING, -team.size)
            fetch_add(team.board, _WAITS, 1)
        else:
            while look_at(team.board, _WAITS) == waits:
                pass


# What one member has found spares others to look where nothing as good can be. When they hear of it
# makes no difference to what is found: only splits that are clearly worse are passed over.


@njit(**OPTIONS)
def best_told(team):
    """The best gain that a member has told, −1 for none."""
    best = -1.0
    if team is not None:
        for member in range(team.size):
            best = max(best, team.told[_SLOT * member])
    return best


@njit(**OPTIONS)
def tell(team, gain):
    """Tell the best gain so far."""
    if team is not None:
        team.told[_SLOT * team.me] = gain


@njit(**OPTIONS)
def forget(team):
    """Take back what was told, before the next wait."""
    if team is not None:
        team.told[_SLOT * team.me] = -1.0
