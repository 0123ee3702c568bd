"""Compiling what a run needs before anybody waits for it."""

import logging
from pathlib import Path

import numpy as np

from pipeline.boosting.audit import Auditor
from pipeline.boosting.engines import TreeSettings, make_engine
from pipeline.boosting.engines.exact import kernel
from pipeline.boosting.forest import ExactRandomForestRegressor
from pipeline.processes import forked

log = logging.getLogger("pipeline")

_X, _F, _Y = np.array([[0.0, 0.0], [1.0, 1.0]]), np.zeros(2), np.array([0.0, 1.0])


def compile_kernels() -> None:
    """Compile the exact engine and the audit, or load them; says so where that takes a while.

    Called before workers start, so that they find it done. (A table of over 32,000 bins has wider
    codes, for which each process compiles again.)
    """
    compiled = Path(kernel.grow_trees.stats.cache_path)
    done = all(any(compiled.glob(f"kernel.{name}-*.nbi")) for name in ("grow_trees", "grow_forest"))
    if not done:
        log.info("compiling the exact engine and the audit (once, about ten seconds) ...")
        make_engine("exact", TreeSettings(1)).bind(_X)  # what both of the following need
        forked([_compile_rounds, _compile_forest_and_audit])  # both are on disk then
    _compile_rounds()
    _compile_forest_and_audit()


def compile_everything() -> None:
    """Compile what a run does not need, too: fits with weights."""
    compile_kernels()
    ExactRandomForestRegressor(1).fit(_X, _Y, np.array([1.0, 2.0]))
    make_engine("exact", TreeSettings(1)).bind(_X, _Y + 1.0).fit(_F, _Y, 0)


def _compile_rounds() -> None:
    ensemble, _ = make_engine("exact", TreeSettings(1)).bind(_X).fit(_F, _Y, 0)
    ensemble.predict(_X, _F)


def _compile_forest_and_audit() -> None:
    ExactRandomForestRegressor(1).fit(_X, _Y).predict(_X)
    auditor = Auditor(_X)
    auditor.error(y=_Y, prediction=_F, reading="random_leaf_values")
    auditor.assess(y=_Y, prediction=_F, symmetric=True)
