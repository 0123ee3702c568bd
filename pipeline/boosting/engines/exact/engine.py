"""The exact kernel with the interface of an engine."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ...arrays import Floats
from ...splitmix import GOLDEN_GAMMA
from ..base import Engine, Ensemble, Fitter, Grower, GrowsTrees, TreeSettings, draw_sample
from ..nodes import LEAF, NODE, Nodes, OfTrees, constant_tree, single_precision
from . import kernel
from .columns import as_float32, prepare, with_f
from .structures import Scratch, Table
from .trees import Trees, find_leaves, predict

MAX_DEPTH = 12  # a tree is stored as a complete one, with 2^depth leaves
LARGEST_RESIDUAL = 1e140  # sums of squares stay finite
SAMPLES_BYTES = 2**25  # memory for the samples of a batch of trees

NO_SAMPLES = np.empty((0, 0), np.uint8)


@dataclass(frozen=True)
class ExactEnsemble(Ensemble, OfTrees):
    """Fitted trees over (x, f); ``start`` is the mean of the residuals that they were fitted to."""

    trees: Trees
    n_features: int  # without f
    start: float
    learning_rate: float

    def predict(self, X: Floats, f: Floats) -> Floats:
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(f"X: has shape {X.shape} instead of (n, {self.n_features})")
        rows = np.column_stack([as_float32(X, "X"), as_float32(f, "f")])
        out = np.full(len(rows), self.start)
        predict(self.trees, self.learning_rate, rows, out)
        return out

    def gains(self) -> Floats:
        return self.trees.gains(self.n_features + 1)

    def nodes(self) -> Nodes:
        return exact_nodes(self.trees, self.learning_rate, self.start)


@dataclass(frozen=True)
class ExactGrower(Grower):
    """Grows the kernel's trees one at a time."""

    table: Table
    settings: TreeSettings
    seed: int
    grown: list[Trees] = field(default_factory=list)

    def grow(self, residual: Floats, mass: Floats | None = None) -> NDArray[np.intp]:
        check_finite(residual, len(self.table.f), "residual", LARGEST_RESIDUAL)
        one = replace(self.settings, n_trees=1, learning_rate=0.0, subsample=1.0)
        seed = self.seed + (len(self.grown) << 32)
        if mass is None:
            tree = grow(self.table, residual.copy(), one, seed)
        else:
            tree = grow_weighted(self.table, residual.copy(), relative(mass), one, seed)
        leaves = np.empty(len(residual), np.intp)
        find_leaves(self.table, tree, leaves)
        self.grown.append(tree)
        return leaves

    def ensemble(self, values: Sequence[Floats]) -> ExactEnsemble:
        trees = Trees.empty(len(self.grown), self.settings.max_depth)
        for k, (tree, of_leaves) in enumerate(zip(self.grown, values, strict=True)):
            trees.feature[k], trees.threshold[k] = tree.feature[0], tree.threshold[0]
            trees.gain[k] = tree.gain[0]
            trees.value[k, : len(of_leaves)] = of_leaves
        n_features = len(self.table.features)
        return ExactEnsemble(trees, n_features, 0.0, self.settings.learning_rate)


@dataclass(frozen=True)
class ExactFitter(Fitter, GrowsTrees):
    """A prepared training matrix, to which every round adds its f."""

    prepared: Table
    settings: TreeSettings
    mass: Floats | None = None

    def fit(self, f: Floats, residual: Floats, seed: int) -> tuple[ExactEnsemble, Floats]:
        (n_features, n), mass = self.prepared.features.shape, self.mass
        check_finite(residual, n, "residual", LARGEST_RESIDUAL)
        start = float(np.average(residual, weights=mass))
        left = residual - start
        table = with_f(self.prepared, f)
        if mass is None and self.settings.subsample == 1.0:
            trees = grow(table, left, self.settings, seed)
        else:
            mass = np.ones(n) if mass is None else mass
            trees = grow_weighted(table, left, mass, self.settings, seed)
        return ExactEnsemble(trees, n_features, start, self.settings.learning_rate), residual - left

    def grower(self, f: Floats, seed: int) -> ExactGrower:
        return ExactGrower(with_f(self.prepared, f), self.settings, seed)


@dataclass(frozen=True)
class ExactEngine(Engine):
    """``engine="exact"``."""

    settings: TreeSettings

    def __post_init__(self) -> None:
        """Check the settings."""
        self.settings.check_plain("exact")
        check_depth(self.settings.max_depth)

    def bind(self, X: Floats, weights: Floats | None = None) -> ExactFitter:
        mass = None if weights is None else relative(weights)
        return ExactFitter(prepare(X), self.settings, mass)


def exact_nodes(trees: Trees, rate: float, start: float) -> Nodes:
    """Return trees of the kernel as nodes, with their values times a rate, and a constant."""
    n_trees, inner = trees.feature.shape
    size, own = 2 * inner + 1, np.arange(2 * inner + 1)
    nodes = np.zeros((n_trees, size), NODE)
    nodes["feature"], nodes["left"], nodes["right"] = LEAF, own + 1, own + 2
    nodes["feature"][:, :inner] = trees.feature
    nodes["number"][:, :inner] = single_precision(trees.threshold)
    nodes["number"][:, inner:] = rate * trees.value
    return Nodes(
        np.concatenate([constant_tree(start), nodes.ravel()]),
        np.concatenate([[0], 1 + size * np.arange(n_trees)]),
        np.empty(0, np.uint32),
        np.array([0, 1 + n_trees]),
    )


def grow(table: Table, residual: Floats, settings: TreeSettings, seed: int) -> Trees:
    """Fit trees to residual (n,), which becomes what remains of it."""
    trees = Trees.empty(settings.n_trees, settings.max_depth)
    scratch = Scratch.create(table, settings)
    kernel.grow_trees(table, residual, trees, settings.learning_rate, np.uint64(seed), scratch)
    return trees


def grow_weighted(
    table: Table, residual: Floats, mass: Floats, settings: TreeSettings, seed: int
) -> Trees:
    """Fit trees to rows with masses (n,), each to its own sample of the rows."""
    n, n_trees, rate = len(residual), settings.n_trees, settings.learning_rate
    trees = Trees.empty(n_trees, settings.max_depth)
    scratch = Scratch.create(table, settings, weighted=True)
    seeds = np.uint64(seed) + GOLDEN_GAMMA * np.arange(1, n_trees + 1, dtype=np.uint64)
    at_once = max(1, SAMPLES_BYTES // n)
    for first in range(0, n_trees, at_once):
        some = slice(first, first + at_once)
        samples = NO_SAMPLES
        if settings.subsample < 1.0:
            which = range(n_trees)[some]
            samples = np.stack([draw_sample(seed, t, n, settings.subsample) for t in which])
        kernel.grow_weighted(
            table, residual, mass, samples, trees.some(some), rate, seeds[some], scratch
        )
    return trees


def relative(weights: Floats) -> Floats:
    """Return weights as masses, which are at most 1."""
    return weights / weights.max()


def check_depth(max_depth: int) -> None:
    """Raise ValueError for a depth that is too large to store complete trees."""
    if not 1 <= max_depth <= MAX_DEPTH:
        raise ValueError(f"max_depth={max_depth}: must be from 1 to {MAX_DEPTH} for engine='exact'")


def check_finite(values: Floats, n: int, name: str, largest: float) -> None:
    """Raise ValueError for values that compiled code cannot handle."""
    if values.shape != (n,):
        raise ValueError(f"{name}: has shape {values.shape} instead of ({n},)")
    if not np.abs(values).max() < largest:  # a NaN compares false
        raise ValueError(f"{name}: holds NaN, infinity or a value too large to be squared")
