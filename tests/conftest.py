"""Shared by all tests: nothing may touch the checkout's outputs or cache."""

import os

from hypothesis import settings

# The same cases in every run; HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("fixed", derandomize=True)
settings.register_profile("explore", derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

# Workers of pytest-xdist share two cores; nested threads would only slow them down.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
