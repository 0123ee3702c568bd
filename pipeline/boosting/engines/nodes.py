"""Fitted trees as one array of nodes, whichever engine grew them, and what they predict.

A trajectory's rounds in this form are followed by compiled code row by row, which takes no time per
round or tree beyond that of visiting nodes, and are stored as plain arrays. Predictions are those
of the engine, to the bit: values are added in the order of the trees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..arrays import Floats
from ..caching import ENTRY, INNER
from .base import Ensemble

# number : a threshold, or a leaf's value, or where a set of categories begins.  left, right : how
# far ahead the children are.  feature : a column of X, or their number for the round's feature, or
# `LEAF`.  flags : below, and the words of a set of categories, from bit 3 on.
NODE = np.dtype(
    [("number", "<f8"), ("left", "<i4"), ("right", "<i4"), ("feature", "<i4"), ("flags", "<i4")]
)
LEAF = -1
IS_SET, MISSING_LEFT, MISSING_IS_ZERO = 1, 2, 4
BLOCK = 256  # rows that a round is applied to before the next one: its nodes stay in the cache


class Nodes(NamedTuple):
    """The trees of consecutive rounds; a constant is a tree of one leaf."""

    nodes: NDArray[np.void]  # (N,) of `NODE`
    roots: NDArray[np.int64]  # (trees,) where each tree begins
    sets: NDArray[np.uint32]  # (S,) bits of sets of categories
    bounds: NDArray[np.int64]  # (rounds + 1,) where each round's trees begin in `roots`

    @classmethod
    def joined(cls, parts: Sequence[Nodes]) -> Nodes:
        """Return the rounds of several, one after the other."""
        none = cls(
            np.empty(0, NODE), np.empty(0, np.int64), np.empty(0, np.uint32), np.zeros(1, np.int64)
        )
        n_nodes, n_roots, n_sets = (
            np.cumsum([0, *(len(part[i]) for part in parts)]) for i in range(3)
        )
        moved = [part.nodes.copy() for part in parts]
        for nodes, n in zip(moved, n_sets, strict=False):
            nodes["number"][(nodes["flags"] & IS_SET) > 0] += n
        return cls(
            np.concatenate([none.nodes, *moved]),
            np.concatenate([none.roots, *(p.roots + n_nodes[k] for k, p in enumerate(parts))]),
            np.concatenate([none.sets, *(part.sets for part in parts)]),
            np.concatenate(
                [none.bounds, *(p.bounds[1:] + n_roots[k] for k, p in enumerate(parts))]
            ),
        )

    def split(self) -> Iterator[Nodes]:
        """Yield the trees of each round."""
        ends = np.append(self.roots, len(self.nodes))
        for first, last in pairwise(self.bounds):
            start, stop = ends[first], ends[last]
            roots, bounds = self.roots[first:last] - start, np.array([0, last - first])
            yield Nodes(self.nodes[start:stop], roots, self.sets, bounds)

    def check(self, n_columns: int) -> None:
        """Raise ValueError unless compiled code can follow the trees on rows of so many columns."""
        nodes, n = self.nodes, len(self.nodes)
        place, leaf = np.arange(n), nodes["feature"] == LEAF
        words = nodes["flags"].astype(np.int64) >> 3
        in_sets = ~leaf & ((nodes["flags"] & IS_SET) > 0)
        first = np.where(in_sets, nodes["number"], 0.0)
        sound = [
            np.isfinite(nodes["number"][leaf | in_sets]).all(),
            ((nodes["feature"] >= LEAF) & (nodes["feature"] <= n_columns)).all(),
            *(((nodes[s] > 0) & (place + nodes[s] < n))[~leaf].all() for s in ("left", "right")),
            ((first >= 0) & (first + words <= len(self.sets)) & (words >= 0))[in_sets].all(),
            ((self.roots >= 0) & (self.roots < n)).all() and (np.diff(self.roots) > 0).all(),
            len(self.bounds) > 0 and self.bounds[0] == 0 and self.bounds[-1] == len(self.roots),
            (np.diff(self.bounds) >= 0).all(),
        ]
        if not all(sound):
            raise ValueError("the trees are not sound")


@runtime_checkable
class OfTrees(Protocol):
    """An `Ensemble` of trees."""

    def nodes(self) -> Nodes:
        """Return the trees of the round."""
        ...


@dataclass(frozen=True)
class TreeEnsemble(Ensemble, OfTrees):
    """Trees over (x, f) as nodes; ``importances`` are the gains of the features, f last."""

    trees: Nodes
    importances: Floats

    @classmethod
    def of_lightgbm(cls, model: str, constant: float = 0.0) -> TreeEnsemble:
        """Return the trees of a model's text, and a constant that is added to them."""
        return cls(*lightgbm_nodes(model, constant))

    def predict(self, X: Floats, f: Floats) -> Floats:
        self.check_rows(X)
        out = np.empty(len(f))
        add_up(self.trees, np.ascontiguousarray(X), f, out)
        return out

    def check_rows(self, X: Floats) -> None:
        """Raise ValueError for rows of other columns, which compiled code would not notice."""
        if X.ndim != 2 or X.shape[1] != len(self.importances) - 1:
            raise ValueError(f"X: has shape {X.shape} instead of (n, {len(self.importances) - 1})")

    def gains(self) -> Floats:
        return self.importances

    def nodes(self) -> Nodes:
        return self.trees


def single_precision(threshold: Floats) -> Floats:
    """Return the doubles c for which x ≤ c if and only if x, rounded to single precision, is at
    most the threshold.
    """
    below = threshold.astype(np.float32)
    with np.errstate(over="ignore"):
        below = np.where(below > threshold, np.nextafter(below, np.float32(-np.inf)), below)
        above = np.nextafter(below, np.float32(np.inf))
        middle = (below.astype(np.float64) + above.astype(np.float64)) / 2
    odd = (below.view(np.uint32) & 1).astype(bool)  # a tie goes to the even neighbour
    found = np.where(odd, np.nextafter(middle, -np.inf), middle)
    return np.where(np.isfinite(below) & np.isfinite(above), found, threshold)


@njit(**INNER)
def _leaf_value(nodes, sets, k, row, feature):
    """Return the value of the leaf that a row reaches from node k."""
    while nodes[k].feature != LEAF:
        j, flags = nodes[k].feature, nodes[k].flags
        value = feature if j == row.shape[0] else row[j]
        if np.isnan(value) and flags & MISSING_IS_ZERO:
            value = 0.0
        if flags & IS_SET:
            left = False
            if value >= 0.0 and value < 32.0 * (flags >> 3):
                category = np.int64(value)
                word = sets[np.int64(nodes[k].number) + (category >> 5)]
                left = (word >> np.uint32(category & 31)) & np.uint32(1) != np.uint32(0)
        elif np.isnan(value):
            left = flags & MISSING_LEFT != 0
        else:
            left = value <= nodes[k].number
        k += nodes[k].left if left else nodes[k].right
    return nodes[k].number


@njit(**ENTRY)
def follow(rounds, weights, eta, renewed, X, feature, f):
    """Replace f (n,) by the predictions after all rounds; ``renewed``: f is also the feature."""
    for first in range(0, f.shape[0], BLOCK):
        last = min(first + BLOCK, f.shape[0])
        for t in range(weights.shape[0]):
            for i in range(first, last):
                given = f[i] if renewed else feature[i]
                h = 0.0
                for tree in range(rounds.bounds[t], rounds.bounds[t + 1]):
                    h += _leaf_value(rounds.nodes, rounds.sets, rounds.roots[tree], X[i], given)
                f[i] = weights[t] * (f[i] + eta * h)


@njit(**ENTRY)
def add_up(rounds, X, feature, out):
    """Fill ``out`` (n,) with the sum of all trees on (X, feature)."""
    for i in range(out.shape[0]):
        h = 0.0
        for tree in range(rounds.roots.shape[0]):
            h += _leaf_value(rounds.nodes, rounds.sets, rounds.roots[tree], X[i], feature[i])
        out[i] = h


def constant_tree(value: float) -> NDArray[np.void]:
    """Return a tree of one leaf."""
    return np.array([(value, 0, 0, LEAF, 0)], NODE)


def forest_nodes(forest: Any, k: int = 0) -> Nodes:
    """Return the trees of a fitted random forest of scikit-learn, which add up to its mean.

    Of a forest of classes, to the probability of class k.
    """
    trees = []
    for estimator in forest.estimators_:
        tree, place = estimator.tree_, np.arange(estimator.tree_.node_count)
        leaf = tree.children_left < 0
        nodes = np.zeros(len(place), NODE)
        value = tree.value[:, 0, k] / len(forest.estimators_)
        nodes["number"] = np.where(leaf, value, single_precision(tree.threshold))
        nodes["feature"] = np.where(leaf, LEAF, tree.feature)
        nodes["left"] = np.where(leaf, 0, tree.children_left - place)
        nodes["right"] = np.where(leaf, 0, tree.children_right - place)
        nodes["flags"] = MISSING_LEFT * tree.missing_go_to_left
        trees.append(nodes)
    starts = np.cumsum([0, *map(len, trees)])[:-1]
    bounds = np.array([0, len(trees)])
    return Nodes(np.concatenate(trees), starts, np.empty(0, np.uint32), bounds)


def lightgbm_nodes(text: str, constant: float = 0.0) -> tuple[Nodes, Floats]:
    """Return the trees of a model of LightGBM over (f, X), and the gains of its features, f last.

    text : the model as LightGBM writes it.  Raises ValueError if it is damaged, or has trees that
    this library does not make.
    """
    head, *blocks = text.split("\nTree=")
    try:
        about = _entries(head)
        n_features = int(about["max_feature_idx"]) + 1
        if len(about["tree_sizes"].split()) != len(blocks) or "\nend of trees\n" not in text:
            raise ValueError("incomplete")
        gains, trees = np.zeros(n_features), []
        sets: list[int] = []
        for block in blocks:
            tree, own_sets = _lightgbm_tree(_entries(block), n_features, len(sets), gains)
            trees.append(tree)
            sets.extend(own_sets)
    except (KeyError, IndexError, OverflowError, ValueError) as error:
        raise ValueError(f"no model of LightGBM, or a damaged one ({error!r})") from None
    if constant:
        trees.append(constant_tree(constant))
    sizes = np.cumsum([0, *map(len, trees)])
    nodes = np.concatenate(trees) if trees else np.empty(0, NODE)
    if "\naverage_output\n" in head:  # a random forest
        nodes["number"][nodes["feature"] == LEAF] /= len(blocks)
    found = Nodes(
        nodes,
        sizes[:-1].astype(np.int64),
        np.array(sets, np.uint32),
        np.array([0, len(trees)], np.int64),
    )
    found.check(n_features - 1)
    return found, np.roll(gains, -1)


def _entries(block: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in block.split("\n\n")[0].splitlines() if "=" in line)


def _lightgbm_tree(
    entries: dict[str, str], n_features: int, n_sets: int, gains: Floats
) -> tuple[NDArray[np.void], list[int]]:
    """Return a tree with its inner nodes first, and its sets; add to the gains of features."""

    def numbers(name: str) -> Floats:
        return np.array(entries[name].split(), np.float64)

    n_leaves = int(entries["num_leaves"])
    inner, values = n_leaves - 1, numbers("leaf_value")
    if len(values) != n_leaves or n_leaves < 1 or entries.get("is_linear", "0") != "0":
        raise ValueError("leaves")
    nodes = np.zeros(inner + n_leaves, NODE)
    nodes["number"][inner:], nodes["feature"][inner:] = values, LEAF
    if inner == 0:
        return nodes, []
    feature, kind = numbers("split_feature").astype(np.int32), numbers("decision_type").astype(int)
    np.add.at(gains, feature, np.maximum(numbers("split_gain"), 0.0))
    own = nodes[:inner]
    own["feature"] = np.where(feature == 0, n_features - 1, feature - 1)
    own["number"] = numbers("threshold")
    for side in ("left", "right"):
        child = numbers(f"{side}_child").astype(np.int32)  # ~k is leaf k
        own[side] = np.where(child < 0, inner + ~child, child) - np.arange(inner)
    missing = kind >> 2 & 3
    if (missing == 1).any():
        raise ValueError("zeros that count as missing")
    is_set = (kind & 1).astype(bool)
    own["flags"] = MISSING_LEFT * (kind >> 1 & 1) + np.where(missing == 0, MISSING_IS_ZERO, 0)
    if not is_set.any():
        return nodes, []
    bounds, words = numbers("cat_boundaries").astype(np.int64), numbers("cat_threshold")
    which = own["number"][is_set].astype(np.int64)
    own["number"][is_set] = n_sets + bounds[which]
    # A missing category is in no set.
    own["flags"][is_set] = IS_SET + ((bounds[which + 1] - bounds[which]) << 3)
    return nodes, [int(word) for word in words]
