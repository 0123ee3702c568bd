"""Shared by all tests: nothing may touch the checkout's outputs or cache."""

import os

# Workers of pytest-xdist share two cores; nested threads would only slow them down.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
