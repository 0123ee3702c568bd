"""Compiling what a run needs before anybody waits for it."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np

from pipeline.boosting.audit import Auditor
from pipeline.boosting.engines import TreeSettings, make_engine
from pipeline.boosting.engines.exact import kernel

log = logging.getLogger("pipeline")


def compile_kernels() -> None:
    """Compile the exact engine and the audit, or load them; says so where that takes a while.

    Called before workers start, so that they find it done. (A table of over 32,000 bins has wider
    codes, for which each process compiles again.)
    """
    compiled = Path(kernel.grow_trees.stats.cache_path)
    if not any(compiled.glob("kernel.grow_trees-*.nbi")):
        log.info("compiling the exact engine and the audit (once, about half a minute) ...")
    X, f, y = np.array([[0.0, 0.0], [1.0, 1.0]]), np.zeros(2), np.array([0.0, 1.0])
    ensemble, _ = make_engine("exact", TreeSettings(1)).bind(X).fit(f, y, 0)
    ensemble.predict(X, f)
    auditor = Auditor(X)
    auditor.error(y=y, prediction=f, reading="random_leaf_values")
    auditor.assess(y=y, prediction=f)
