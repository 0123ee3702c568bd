"""splitmix64 (Steele, Lea and Flood, 2014) for compiled code: a hash of an integer.

Inlined by numba, so that a caller's own compiler options hold inside. (The audit's compiled code is
not compiled again when this file changes: `make clean` after changing it.)
"""

import numpy as np
from numba import njit

GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)


@njit(inline="always")
def mix(z):
    """Return a uint64 of which every bit depends on all bits of ``z``."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
