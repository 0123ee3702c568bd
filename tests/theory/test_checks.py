"""A measured value beside its bound."""

import numpy as np

from pipeline.theory.checks import worst_prefix


def test_worst_prefix_is_found():
    check = worst_prefix(np.array([3.0, 2.9, 1.0]), np.array([4.0, 3.0, 2.0]))
    assert (check.measured, check.bound) == (2.9, 3.0)
