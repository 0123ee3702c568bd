"""Multicalibration error over random trees.

The paper estimates ‖Ê(f)‖₂, Ê_j = mean((y − f) b_j(x, f)), over random regression trees on (x, f).
A tree is drawn node by node: a uniformly random feature among those that are not constant on the
node's rows, and a uniform threshold inside their range there. What a tree contributes depends on
how one reads "weak learner"; with S_k the sum of the residuals in leaf k, n_k its rows, and n all
rows:

- ``leaf_indicators``: each leaf is a weak learner. The tree gives Σ_k (S_k / n)².
- ``random_leaf_values``: the tree is one weak learner with leaf values v_k uniform on [−1, 1].
  It gives (Σ_k v_k S_k / n)², a third of the above on average, only noisier.
- ``fitted_leaf_values``: the tree is one weak learner whose leaf values are the mean residuals
  S_k / n_k. It gives (Σ_k S_k² / (n_k n))².

The error is the root of the mean over trees.

**Its noise floor.** Rows are a sample, so S_k / n is an estimate, and its square adds its variance:
the error of a perfect predictor is not zero. Let the audited rows be independent of the predictor
(held-out rows, that is), r_i = y_i − f_i, and let a row have a weight w_i (else 1), W = Σ w_i. A
weak learner b has ε = E[r b] and the estimate ε̂ = Σ w_i r_i b_i / W. Multiplying out,

    E[(Σ w_i r_i b_i)²] = ε² (W² − Σ w_i²) + E[Σ w_i² r_i² b_i²],

since two different rows contribute ε² each time and a row with itself its second moment. So

    ((Σ w_i r_i b_i)² − Σ w_i² r_i² b_i²) / (W² − Σ w_i²)

is unbiased for ε². The leaves of a tree are disjoint: summed over them, Σ_k b_k² = 1, and
with the three sums T = mean over trees of Σ_k S_k², Q = Σ w_i² r_i², W of ``leaf_indicators``

    plug-in T / W²,   floor Q / W²,   debiased (T − Q) / (W² − Σ w_i²);

without weights these are MCE², MSE / n and (n MCE² − MSE) / (n − 1). For ``random_leaf_values`` a
leaf counts with v_k²: Q = mean over trees of Σ_k v_k² Q_k, Q_k = Σ_{i in k} w_i² r_i². For
``fitted_leaf_values`` the learner itself is estimated from the same rows; its inner mean
Σ_k (n_k / n) μ_k², μ_k the leaf's mean residual, has the unbiased estimate
Σ_k (S_k² − Q_k) / (n (n_k − 1)), of which the reading takes the square, here with its sign (the
square of an unbiased number is not unbiased itself: this one is debiased in its inner part alone).

The debiased square may be negative, and its mean over samples is right only if it may. On training
rows none of this holds: there r_i depends on y_i through f, the terms i ≠ j do not average to ε²
(boosting drives them below it), and the correction would be applied to the wrong number.

**How sure.** T − Q = Σ_{i≠j} r_i r_j K_ij, K_ij the share of trees in which rows i and j share a
leaf: a U-statistic. *p-value*: under "no miscalibration" E[r | x, f] = 0, and flipping signs of
residuals at random keeps that, r² and the trees. T of ``n_flips`` such flips gives
p = (1 + #{T_b ≥ T}) / (1 + n_flips): exact for symmetric residuals, right for others as the sample
grows, because the limit depends on second moments alone. *Standard error*: with
g_i = Σ_{j≠i} K_ij r_j / n, the jackknife of a U-statistic gives 4 Var(r g) / n, in which the
degenerate part, known from the flips' variance, counts twice: it is taken out once.

Every random number is a hash of (seed, tree, node, purpose, attempt) and not the next of a stream.
So the trees of two rounds differ only where the predictions force them to, whatever was drawn
before, and curves over rounds and strategies differ by the predictor alone.

Speed: a node is a label per row, so choosing and applying splits are passes over whole columns
without branches; float32 values are mapped to int32 in the same order, because integer minimum and
maximum vectorise while floating-point ones do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pipeline.boosting.arrays import Flags, Floats
from pipeline.boosting.encoding import design_of
from pipeline.boosting.frames import columns_of
from pipeline.boosting.splitmix import GOLDEN_GAMMA, mix

Reading = Literal["leaf_indicators", "random_leaf_values", "fitted_leaf_values"]
READINGS: tuple[Reading, ...] = ("leaf_indicators", "random_leaf_values", "fitted_leaf_values")
MAX_DEPTH = 8  # a row's leaf fits a byte

_FEATURE, _THRESHOLD, _VALUE = 0, 1, 2  # purposes of a random number
_LOWEST, _HIGHEST = np.iinfo(np.int32).min, np.iinfo(np.int32).max
_BANKS = 8  # independent accumulators hide the latency of adding to one leaf again and again
_SMALL = 16  # where a node has less than a sixteenth of the rows and its first few features are
_PATIENCE = 4  # constant, its rows are listed; looking at a list is quick, making one is not
_MASK = (1 << 64) - 1
_KEPT_BYTES = 2**25  # of leaves that an auditor keeps from one predictor to the next


FLIPS = 99
_BLOCK = 256  # rows whose flipped residuals are in the cache at once
_FLIP_CELLS = 50_000_000  # rows times trees that are flipped at most
_WORD = 8  # random signs taken from one hash


@dataclass(frozen=True)
class Leaves:
    """What an audit saw: residual sums and row counts, both (n_trees, 2 ** depth).

    n : rows, or the sum of their weights.  squares : sums of squared (weighted) residuals, where
    they were asked for.
    """

    sums: Floats
    counts: Floats
    n: float
    seed: int
    squares: Floats | None = None


@dataclass(frozen=True)
class Assessment:
    """A multicalibration error with its noise floor, and how sure it is; see the module's text.

    mce : the plug-in error.  floor : what a perfect predictor with these squared residuals would
    show.  debiased_square : unbiased for the squared error; may be negative.  standard_error : of
    the debiased square.  p_value : of "no miscalibration".
    """

    n: int
    mce: float
    floor: float
    debiased_square: float
    standard_error: float
    p_value: float
    leaves: Leaves

    @property
    def debiased(self) -> float:
        """The root of the debiased square, with its sign."""
        return signed_root(self.debiased_square)


@dataclass(frozen=True)
class _Kept:
    """Trees that do not look at the predictions are the same for all of them.

    labels : (n_trees, n) each row's leaf;  fixed : (n_trees,) whether a tree is such a one.
    """

    labels: NDArray[np.uint8]
    fixed: Flags

    @classmethod
    def nothing(cls, n_trees: int) -> _Kept:
        return cls(np.empty((0, 0), np.uint8), np.zeros(n_trees, np.bool_))


class Auditor:
    """Random-tree audits of predictors on fixed rows X (n, d).

    X is an array or a DataFrame (numbers, flags, words; missing cells are a value of their own).
    Any number of predictors may be audited on these rows; the trees are the same up to what the
    predictions themselves, which are one of the features, change. Arguments are named, because
    outcomes and predictions are easily taken for each other.

    >>> import numpy as np
    >>> X, y = np.arange(8.0)[:, None], np.array([0.0, 0, 0, 0, 1, 1, 1, 1])
    >>> Auditor(X).error(y=y, prediction=y)
    0.0
    """

    def __init__(self, X: Any, *, n_trees: int = 100, depth: int = 3, seed: int = 0) -> None:
        if not 1 <= depth <= MAX_DEPTH:
            raise ValueError(f"depth={depth}: must be from 1 to {MAX_DEPTH}")
        if n_trees < 1:
            raise ValueError(f"n_trees={n_trees}: must be at least 1")
        if not isinstance(X, np.ndarray):
            X = design_of(columns_of(X))
        if X.ndim != 2 or len(X) == 0:
            raise ValueError(f"X: must have rows and columns; its shape is {X.shape}")
        _require_finite(X, "X")
        self._keys = np.empty(X.shape[::-1], np.int32)
        for column, keys in zip(X.T, self._keys, strict=True):
            keys[:] = ordered_keys(column)
        self._low, self._high = self._keys.min(axis=1), self._keys.max(axis=1)
        self._n_trees, self._depth = n_trees, depth
        self._seed = int(seed) & _MASK
        self._kept: _Kept | None = None  # until the first predictor

    @property
    def n(self) -> int:
        """The number of rows."""
        return self._keys.shape[1]

    def leaves(self, *, prediction: Floats, residual: Floats, squares: bool = False) -> Leaves:
        """The leaf sums of ``residual`` (n,) in the trees drawn for ``prediction`` (n,)."""
        for name, values in (("prediction", prediction), ("residual", residual)):
            _require_rows(values, self.n, name)
        labels = self._room() if squares else None
        sums, counts = self._grow(prediction, residual, labels)
        if labels is None:
            return Leaves(sums, counts, self.n, self._seed)
        of_squares = np.zeros_like(sums)
        _leaf_squares(labels, residual, of_squares)
        return Leaves(sums, counts, self.n, self._seed, of_squares)

    def error(
        self,
        *,
        y: Floats,
        prediction: Floats,
        sample_weight: Floats | None = None,
        reading: Reading = "leaf_indicators",
    ) -> float:
        """The plug-in multicalibration error of ``prediction`` (n,) for outcomes ``y`` (n,)."""
        _require_rows(y, self.n, "y")
        if sample_weight is None:
            return error_of(self.leaves(prediction=prediction, residual=y - prediction), reading)
        if reading == "leaf_indicators":
            assessed = self.assess(
                y=y, prediction=prediction, sample_weight=sample_weight, n_flips=0
            )
            return assessed.mce
        raise ValueError(f"reading={reading!r}: weights are for leaf_indicators alone")

    def assess(
        self,
        *,
        y: Floats,
        prediction: Floats,
        sample_weight: Floats | None = None,
        n_flips: int = FLIPS,
    ) -> Assessment:
        """Error, floor, debiased square, standard error and p-value on rows not fitted to.

        Leaf indicators are the weak learners; ``.leaves`` has what the other readings need. With
        ``n_flips=0`` there is neither p-value nor standard error (NaN). Beyond half a million rows
        the p-value looks at some of the trees only.
        """
        _require_rows(y, self.n, "y")
        _require_rows(prediction, self.n, "prediction")
        weight = np.ones(self.n) if sample_weight is None else _weights(sample_weight, self.n)
        residual = weight * (y - prediction)
        labels = self._room()
        sums, counts = self._grow(prediction, residual, labels)
        W, q = float(weight.sum()), float(np.square(residual).sum())
        t = float(np.square(sums).sum(axis=1).mean())
        pairs = W**2 - float(np.square(weight).sum())
        p_value = error = np.nan
        if n_flips and pairs > 0:
            some = labels[: max(_FLIP_CELLS // self.n, 1)]
            flipped = self._flip(some, residual, n_flips)
            reached = float(np.square(sums[: len(some)]).sum(axis=1).mean())
            # A tie within rounding counts as reached: zero residuals are no evidence.
            p_value = (1 + int((flipped >= reached * (1 - 1e-6)).sum())) / (1 + n_flips)
            error = _standard_error(labels, sums, residual, float(np.var(flipped)), pairs)
        return Assessment(
            n=self.n,
            mce=float(np.sqrt(t)) / W,
            floor=float(np.sqrt(q)) / W,
            debiased_square=(t - q) / pairs if pairs > 0 else np.nan,
            standard_error=error,
            p_value=p_value,
            leaves=Leaves(sums, counts, W, self._seed),
        )

    def _room(self) -> NDArray[np.uint8]:
        return np.empty((self._n_trees, self.n), np.uint8)

    def _grow(
        self, f: Floats, residual: Floats, labels: NDArray[np.uint8] | None
    ) -> tuple[Floats, Floats]:
        """Sums and counts of the leaves, (n_trees, 2 ** depth) each; ``labels`` takes every row's.

        The first time, trees that do not look at f are kept.
        """
        kept, keeping = self._kept, False
        if kept is None:
            keeping = self._n_trees * self.n <= _KEPT_BYTES
            kept = _Kept.nothing(self._n_trees)
            labels = self._room() if keeping and labels is None else labels
        f_keys = ordered_keys(f)
        sums, counts = np.zeros((2, self._n_trees, 1 << self._depth))
        looked = np.zeros(self._n_trees, np.bool_)
        _leaf_sums(
            _Rows(
                self._keys,
                f_keys,
                np.append(self._low, f_keys.min()),
                np.append(self._high, f_keys.max()),
            ),
            np.ascontiguousarray(residual),
            self._depth,
            np.uint64(self._seed),
            sums,
            counts,
            np.empty((0, 0), np.uint8) if labels is None else labels,
            (kept.labels, kept.fixed),
            looked,
        )
        if keeping and labels is not None:
            self._kept = _Kept(labels.copy(), ~looked)
        return sums, counts

    def _flip(self, labels: NDArray[np.uint8], residual: Floats, n_flips: int) -> Floats:
        """T of ``n_flips`` random signs of the residuals, (n_flips,)."""
        scale = np.abs(residual).max() or 1.0  # single precision is plenty for a p-value
        narrow = (residual / scale).astype(np.float32).view(np.uint32)
        width = -(-n_flips // _WORD) * _WORD
        sums = np.zeros((labels.shape[0], 1 << self._depth, width), np.float32)
        _flip_sums(labels, narrow, np.uint64(self._seed), sums)
        squares = np.square(sums[:, :, :n_flips], dtype=np.float64).sum(axis=(0, 1))
        return squares / labels.shape[0] * scale**2


def multicalibration_error(
    X: Any,
    y: Floats,
    f: Floats,
    *,
    sample_weight: Floats | None = None,
    reading: Reading = "leaf_indicators",
    n_trees: int = 100,
    depth: int = 3,
    seed: int = 0,
) -> float:
    """The plug-in multicalibration error of predictions ``f`` (n,) of ``y`` (n,) on rows X (n, d).

    Positive even for a perfect predictor: see `Auditor.assess` for the error without its floor.
    """
    auditor = Auditor(X, n_trees=n_trees, depth=depth, seed=seed)
    outcome, prediction = (np.asarray(v, dtype=np.float64) for v in (y, f))
    return auditor.error(
        y=outcome, prediction=prediction, sample_weight=sample_weight, reading=reading
    )


def error_of(leaves: Leaves, reading: Reading = "leaf_indicators") -> float:
    """The error of audited leaves under a reading of "weak learner"; see the module's text."""
    return float(np.sqrt(_tree_squares(leaves, reading).mean()))


def debiased_square_of(leaves: Leaves, reading: Reading) -> float:
    """The debiased square of audited leaves without weights, under a reading; see the text."""
    if leaves.squares is None:
        raise ValueError("leaves: were audited without squares=True")
    n, squares = leaves.n, leaves.squares
    if reading == "fitted_leaf_values":
        several = leaves.counts > 1
        pairs = np.where(several, np.square(leaves.sums) - squares, 0.0)
        inner = (pairs / (n * np.maximum(leaves.counts - 1.0, 1.0))).sum(axis=1)
        return float((np.sign(inner) * np.square(inner)).mean())
    values = np.square(_leaf_values(leaves)) if reading == "random_leaf_values" else 1.0
    own = (values * squares).sum(axis=1).mean()
    return float((n**2 * _tree_squares(leaves, reading).mean() - own) / (n * (n - 1.0)))


def errors_of(leaves: Leaves, readings: Sequence[Reading]) -> dict[Reading, float]:
    """`error_of` for several readings of the same audit."""
    return {reading: error_of(leaves, reading) for reading in readings}


def signed_root(square: float) -> float:
    """√square, or −√(−square)."""
    return float(np.sign(square) * np.sqrt(np.abs(square)))


def _tree_squares(leaves: Leaves, reading: Reading) -> Floats:
    """What each tree contributes, (n_trees,)."""
    epsilon = leaves.sums / leaves.n
    if reading == "leaf_indicators":
        return np.square(epsilon).sum(axis=1)
    if reading == "random_leaf_values":
        return np.square((epsilon * _leaf_values(leaves)).sum(axis=1))
    if reading == "fitted_leaf_values":
        means = leaves.sums / np.maximum(leaves.counts, 1.0)
        return np.square((epsilon * means).sum(axis=1))
    raise ValueError(f"reading={reading!r}: must be one of {', '.join(READINGS)}")


def _standard_error(
    labels: NDArray[np.uint8], sums: Floats, residual: Floats, flip_variance: float, pairs: float
) -> float:
    """Of (T − Q) / pairs: the jackknife, the degenerate part counted once."""
    n = len(residual)
    shared = np.zeros(n)
    _gather(labels, sums, shared)
    psi = residual * (shared / len(labels) - residual)
    jackknife = 4.0 * n * float(psi.var(ddof=1)) if n > 1 else 0.0
    return float(np.sqrt(max(jackknife - flip_variance, flip_variance))) / pairs


def ordered_keys(values: Floats) -> NDArray[np.int32]:
    """int32 images of float32 ``values`` in the same order; 0.0 and −0.0 have one image."""
    with np.errstate(over="ignore"):
        bits = (values.astype(np.float32) + np.float32(0)).view(np.int32)
    return bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))


def _leaf_values(leaves: Leaves) -> Floats:
    n_trees, n_leaves = leaves.sums.shape
    return _draw_leaf_values(n_trees, n_leaves, np.uint64(leaves.seed))


def _weights(sample_weight: Any, n: int) -> Floats:
    weight = np.asarray(sample_weight, dtype=np.float64)
    _require_rows(weight, n, "sample_weight")
    if (weight < 0).any() or not weight.any():
        raise ValueError("sample_weight: must not be negative, nor zero everywhere")
    return weight


def _require_rows(values: Floats, n: int, name: str) -> None:
    if values.shape != (n,):
        raise ValueError(f"{name}: has shape {values.shape} instead of ({n},)")
    _require_finite(values, name)


def _require_finite(values: Floats, name: str) -> None:
    if not np.isfinite(values).all():
        raise ValueError(f"{name}: holds NaN or infinity")


@njit(cache=True, nogil=True)
def draw(seed, tree, node, purpose, attempt):
    """A number in [0, 1) that depends on the five integers alone."""
    z = mix(np.uint64(seed) + GOLDEN_GAMMA)
    z = mix(z ^ (np.uint64(tree) << np.uint64(32)) ^ np.uint64(node))
    z = mix(z ^ (np.uint64(attempt) << np.uint64(8)) ^ np.uint64(purpose))
    return np.float64(z >> np.uint64(11)) * 2.0**-53


@njit(cache=True, nogil=True)
def _draw_leaf_values(n_trees, n_leaves, seed):
    values = np.empty((n_trees, n_leaves))
    for tree in range(n_trees):
        for leaf in range(n_leaves):
            values[tree, leaf] = 2.0 * draw(seed, tree, leaf, _VALUE, 0) - 1.0
    return values


class _Rows(NamedTuple):
    """What trees are drawn over: ordered keys of X, (d, n), and of f, (n,), and their ranges."""

    x_keys: NDArray[np.int32]
    f_keys: NDArray[np.int32]
    low: NDArray[np.int32]
    high: NDArray[np.int32]


@njit(cache=True, nogil=True, error_model="numpy")
def _leaf_sums(data, residual, depth, seed, sums, counts, labels, kept, looked):
    """Fill ``sums`` and ``counts`` (n_trees, 2^depth), which come as zeros.

    ``labels`` takes each row's leaf, (n_trees, n), unless it is empty. ``kept`` has the labels of
    trees that were drawn before, and which these are; ``looked`` is set for trees that look at f.
    """
    n, (n_trees, n_leaves) = residual.shape[0], sums.shape
    place, rows = np.empty(n, np.uint8), np.empty(n + 1, np.uint32)
    banks = np.empty(_BANKS * n_leaves)
    kept_labels, fixed = kept
    for tree in range(n_trees):
        if fixed[tree]:
            leaves = kept_labels[tree]
        else:
            looked[tree] = _draw_tree(data, place, rows, depth, tree, seed)
            leaves = place
        _accumulate(leaves, residual, banks, sums[tree], counts[tree])
        if labels.shape[0] > 0:
            for row in range(n):  # (as one assignment it takes three seconds to compile)
                labels[tree, row] = leaves[row]


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_tree(data, place, rows, depth, tree, seed):
    """Fill ``place`` with each row's leaf; tells whether f was looked at."""
    looked = False
    place[:] = 0
    for level in range(depth):
        # From the last node to the first: a node's children never take the label of a node
        # of this level that is still to be split.
        for k in range((1 << level) - 1, -1, -1):
            label = np.uint8(k)
            count = _count(place, label)
            feature, threshold = np.int64(0), np.int32(_HIGHEST)  # all rows go left
            if count > 1:
                feature, threshold, looked_here = _random_split(
                    data, place, label, level, count, rows, tree, seed
                )
                looked |= looked_here
            _descend(place, label, _column(data, feature), threshold)
    return looked


@njit(cache=True, nogil=True)
def _leaf_squares(labels, residual, squares):
    """Add each row's squared residual to its leaf of every tree."""
    for tree in range(labels.shape[0]):
        for i in range(residual.shape[0]):
            squares[tree, labels[tree, i]] += residual[i] * residual[i]


@njit(cache=True, nogil=True)
def _gather(labels, sums, out):
    """Add to each row (n,) the sum of its leaf of every tree."""
    for tree in range(labels.shape[0]):
        for i in range(out.shape[0]):
            out[i] += sums[tree, labels[tree, i]]


@njit(cache=True, nogil=True, fastmath=True)
def _flip_sums(labels, residual, seed, sums):
    """Leaf sums of residuals with random signs, (n_trees, 2^depth, flips), which come as zeros.

    residual : (n,) the bits of float32 values. A row's signs are bits of hashes of its number, the
    same for every tree. Rows are taken in blocks, all trees of a block before the next, so that its
    flipped residuals stay in the cache; the inner loops vectorise.
    """
    n, n_flips = residual.shape[0], sums.shape[2]
    bits = np.empty((_BLOCK, n_flips), np.uint32)
    signed = bits.view(np.float32)
    start_of_stream = mix(seed + GOLDEN_GAMMA)
    for start in range(0, n, _BLOCK):
        size = min(_BLOCK, n - start)
        for i in range(size):
            value = residual[start + i]
            for word in range(n_flips // _WORD):
                place = np.uint64((start + i) * 1024 + word)
                random = np.uint32(mix(start_of_stream ^ mix(place + GOLDEN_GAMMA)))
                for b in range(np.uint32(_WORD)):
                    flip = ((random >> b) & np.uint32(1)) << np.uint32(31)
                    bits[i, word * _WORD + b] = value ^ flip
        for tree in range(labels.shape[0]):
            for i in range(size):
                leaf_sums, row = sums[tree, labels[tree, start + i]], signed[i]
                for b in range(n_flips):
                    leaf_sums[b] += row[b]


@njit(cache=True, nogil=True, error_model="numpy")
def _random_split(data, place, label, level, count, rows, tree, seed):
    """A feature that varies on the node's rows, a threshold key, and whether f was looked at.

    All rows go left if no feature varies.
    """
    n_features, members = data.low.shape[0], rows[:0]
    node, looked = (1 << level) + np.int64(label), False
    tries = 4 * n_features
    for attempt in range(tries):
        if attempt == _PATIENCE and count * _SMALL <= place.shape[0]:
            members = _members(place, label, rows)
        feature = np.int64(draw(seed, tree, node, _FEATURE, attempt) * n_features)
        looked |= feature == n_features - 1
        smallest, largest = _range(data, place, label, level, members, feature)
        if smallest < largest:
            u = draw(seed, tree, node, _THRESHOLD, 0)
            return feature, _threshold(smallest, largest, u), looked
    # Almost all features are constant here: choose among the others directly.
    varying = np.empty(n_features, np.int64)
    n_varying = 0
    for other in range(n_features):
        smallest, largest = _range(data, place, label, level, members, other)
        if smallest < largest:
            varying[n_varying] = other
            n_varying += 1
    if n_varying == 0:
        return np.int64(0), np.int32(_HIGHEST), True
    chosen = varying[np.int64(draw(seed, tree, node, _FEATURE, tries) * n_varying)]
    smallest, largest = _range(data, place, label, level, members, chosen)
    return chosen, _threshold(smallest, largest, draw(seed, tree, node, _THRESHOLD, 0)), True


@njit(cache=True, nogil=True)
def _column(data, feature):
    return data.x_keys[feature] if feature < data.x_keys.shape[0] else data.f_keys


@njit(cache=True, nogil=True)
def _count(place, label):
    """A node's rows; counted in bytes by the hundred, as many at once as possible."""
    count = 0
    for start in range(0, place.shape[0], 128):
        some = np.uint8(0)
        for i in range(start, min(start + 128, place.shape[0])):
            some = np.uint8(some + np.uint8(place[i] == label))
        count += np.int64(some)
    return count


@njit(cache=True, nogil=True)
def _members(place, label, rows):
    """A node's rows, in the buffer ``rows``."""
    filled = np.uint64(0)
    for i in range(np.uint64(place.shape[0])):
        rows[filled] = i
        filled += np.uint64(place[i] == label)
    return rows[: np.int64(filled)]


@njit(cache=True, nogil=True)
def _range(data, place, label, level, members, feature):
    """Smallest and largest key of a feature among the rows at a node."""
    if level == 0:
        return data.low[feature], data.high[feature]
    column = _column(data, feature)
    if members.shape[0] == 0:
        return _masked_range(column, place, label)
    smallest = largest = column[members[0]]
    for i in members:
        smallest, largest = min(smallest, column[i]), max(largest, column[i])
    return smallest, largest


@njit(cache=True, nogil=True)
def _masked_range(column, place, k):
    """Smallest and largest key among the rows at node k."""
    smallest, largest = np.int32(_HIGHEST), np.int32(_LOWEST)
    for i in range(column.shape[0]):
        inside = place[i] == k
        smallest = min(smallest, column[i] if inside else np.int32(_HIGHEST))
        largest = max(largest, column[i] if inside else np.int32(_LOWEST))
    return smallest, largest


@njit(cache=True, nogil=True)
def _threshold(smallest, largest, u):
    """The key of a uniform value in [smallest, largest), so that both sides have rows."""
    a, b = _value(smallest), _value(largest)
    key = _key(a + u * (b - a))
    return min(max(key, smallest), largest - np.int32(1))


@njit(cache=True, nogil=True)
def _value(key):
    """The float64 value of an ordered key."""
    buffer = np.empty(1, np.int32)
    buffer[0] = key ^ ((key >> np.int32(31)) & np.int32(0x7FFFFFFF))
    return np.float64(buffer.view(np.float32)[0])


@njit(cache=True, nogil=True)
def _key(value):
    """The ordered key of a float64 value rounded to float32."""
    buffer = np.empty(1, np.float32)
    buffer[0] = np.float32(value) + np.float32(0)
    bits = buffer.view(np.int32)[0]
    return np.int32(bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF)))


@njit(cache=True, nogil=True)
def _descend(place, k, column, threshold):
    """Send the rows at node k to node 2k (key ≤ threshold) or 2k + 1 of the next level."""
    left = np.uint8(2 * k)
    for i in range(place.shape[0]):
        child = left + np.uint8(column[i] > threshold)
        place[i] = child if place[i] == k else place[i]


@njit(cache=True, nogil=True)
def _accumulate(place, residual, banks, sums, counts):
    banks[:] = 0.0
    n_leaves = sums.shape[0]
    for i in range(np.uint64(place.shape[0])):
        banks[(i % np.uint64(_BANKS)) * np.uint64(n_leaves) + np.uint64(place[i])] += residual[i]
    for leaf in range(n_leaves):
        counts[leaf] = _count(place, np.uint8(leaf))
        for bank in range(_BANKS):
            sums[leaf] += banks[bank * n_leaves + leaf]
