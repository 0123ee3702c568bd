"""The exact kernel behind the engine interface."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from pipeline.boosting.arrays import Floats
from pipeline.boosting.engines.base import TreeSettings
from pipeline.boosting.engines.exact import kernel
from pipeline.boosting.engines.exact.columns import Layout, as_float32, prepare
from pipeline.boosting.engines.exact.tables import with_f
from pipeline.boosting.engines.exact.team import Team
from pipeline.boosting.engines.exact.trees import Trees, find_leaves, predict

MAX_DEPTH = 12  # a tree is stored whole, 2^depth leaves
LARGEST_RESIDUAL = 1e140  # sums of squares stay finite
WORTH_A_TEAM = 2**16  # rows from which on threads gain more by sharing than they lose by waiting


@dataclass(frozen=True)
class ExactEnsemble:
    """Fitted trees over (x, f); ``start`` is the mean of the residuals they were fitted to."""

    trees: Trees
    n_features: int  # f not counted
    start: float
    learning_rate: float

    def predict(self, X: Floats, f: Floats) -> Floats:
        """h(x, f); see `Ensemble`."""
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(f"X: has shape {X.shape} instead of (n, {self.n_features})")
        rows = np.column_stack([as_float32(X, "X"), as_float32(f, "f")])
        out = np.full(len(rows), self.start)
        predict(self.trees, self.learning_rate, rows, out)
        return out


@dataclass(frozen=True)
class ExactGrower:
    """See `Grower`."""

    table: kernel.Table
    settings: TreeSettings
    seed: int
    n_threads: int = 1
    grown: list[Trees] = field(default_factory=list)

    def grow(self, residual: Floats) -> NDArray[np.intp]:
        """See `Grower`."""
        check_finite(residual, len(self.table.f), "residual", LARGEST_RESIDUAL)
        one = TreeSettings(1, self.settings.max_depth, 0.0)
        seed = self.seed + (len(self.grown) << 32)
        tree = grow(self.table, residual.copy(), one, seed, self.n_threads)
        leaves = np.empty(len(residual), np.intp)
        find_leaves(self.table, tree, leaves)
        self.grown.append(tree)
        return leaves

    def ensemble(self, values: Sequence[Floats]) -> ExactEnsemble:
        """See `Grower`."""
        trees = Trees.empty(len(self.grown), self.settings.max_depth)
        for k, (tree, of_leaves) in enumerate(zip(self.grown, values, strict=True)):
            trees.feature[k], trees.threshold[k] = tree.feature[0], tree.threshold[0]
            trees.value[k, : len(of_leaves)] = of_leaves
        n_features = len(self.table.features)
        return ExactEnsemble(trees, n_features, 0.0, self.settings.learning_rate)


@dataclass(frozen=True)
class ExactFitter:
    """A prepared training matrix; every round adds its f."""

    layout: Layout
    settings: TreeSettings
    n_threads: int = 1

    def fit(self, f: Floats, residual: Floats, seed: int) -> tuple[ExactEnsemble, Floats]:
        """Fit a round; see `Fitter`."""
        check_finite(residual, self.layout.features.shape[1], "residual", LARGEST_RESIDUAL)
        start = float(np.average(residual))
        left = residual - start
        table = with_f(self.layout, f)
        trees = grow(table, left, self.settings, seed, self.n_threads)
        n_features = len(self.layout.features)
        return ExactEnsemble(trees, n_features, start, self.settings.learning_rate), residual - left

    def grower(self, f: Floats, seed: int) -> ExactGrower:
        """See `Fitter`."""
        return ExactGrower(with_f(self.layout, f), self.settings, seed, self.n_threads)


@dataclass(frozen=True)
class ExactEngine:
    """``engine="exact"``; a large table is fitted by ``n_threads`` threads, to the same bits."""

    settings: TreeSettings
    n_threads: int = 1

    def bind(self, X: Floats) -> ExactFitter:
        """See `Engine`."""
        check_depth(self.settings.max_depth)
        return ExactFitter(prepare(X), self.settings, self.n_threads)


def grow(
    table: kernel.Table, residual: Floats, settings: TreeSettings, seed: int, n_threads: int
) -> Trees:
    """Grow trees to residual (n,), which is left with what remains of it."""
    n_trees, depth, rate = settings.n_trees, settings.max_depth, settings.learning_rate
    members: list[Team | None] = [None]
    if n_threads > 1 and len(residual) >= WORTH_A_TEAM:
        members = [*kernel.team_for(table, n_threads, depth)]
    filled = [Trees.empty(n_trees, depth) for _ in members]

    def work(member: Team | None, trees: Trees) -> None:
        kernel.grow_trees(table, residual, trees, depth, rate, np.uint64(seed), member)

    if len(members) == 1:
        work(members[0], filled[0])
    else:
        _all_or_none([partial(work, *pair) for pair in zip(members, filled, strict=True)])
    return filled[0]


def _all_or_none(works: Sequence[Callable[[], None]]) -> None:
    """Do works that wait for each other, each in a thread.

    None begins before all threads are there: where Ctrl-C or a lack of threads comes between, none
    waits for another that never comes.
    """
    go = threading.Event()
    complete: list[bool] = []
    failures: list[Exception] = []

    def enter(work: Callable[[], None]) -> None:
        go.wait()
        if complete:
            try:
                work()
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=enter, args=(work,), daemon=True) for work in works]
    try:
        for thread in threads:
            thread.start()
        complete.append(True)
    finally:
        go.set()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def check_depth(max_depth: int) -> None:
    """Refuse trees that cannot be stored whole."""
    if not 1 <= max_depth <= MAX_DEPTH:
        raise ValueError(f"max_depth={max_depth}: must be from 1 to {MAX_DEPTH} for engine='exact'")


def check_finite(values: Floats, n: int, name: str, largest: float) -> None:
    """Compiled code trusts its inputs."""
    if values.shape != (n,):
        raise ValueError(f"{name}: has shape {values.shape} instead of ({n},)")
    if not np.abs(values).max() < largest:  # a NaN compares false
        raise ValueError(f"{name}: holds NaN, infinity or a value too large to be squared")
