"""Growing gradient-boosted trees exactly, fast.

The trees are scikit-learn's: at every node the split of largest gain over all features, legal
thresholds half-way between neighbouring values of the node, depth-first to a depth limit. What
makes them fast is that a node never looks at most of its possible splits.

The gain. For a node of N rows with residual sum T, a split that sends c rows with sum s to the left
reduces the squared error by N g with g = (s − c T/N)² / (c (N − c)). The best split maximises g.

Sums per bin. A node keeps, for every bin of every column (see `columns`), the sum of residuals and
the row count. They are running sums along fine and coarse columns, so that bin j's entry describes
the split after bin j, and plain sums in bundles, where it describes "bin j against the rest". One
child's sums are collected from its rows, always the smaller child's; the other's are the
parent's minus those. The root's sums are carried from tree to tree: a tree changes residuals by one
number per leaf, so the change of a bin's sum follows from row counts that are known already, and
single rows are visited in the smaller of two sister leaves only.

Why looking only at block borders is exact. Between two borders of a fine column a split takes some
prefix of the block's rows: c lies in [c₀ + 1, c₁ − 1] and s = s₀ + (sum of a prefix of the block).
With A the sum of |r| over the block's rows, every such sum lies within A/2 of the middle of s₀ and
s₁. So (c, s) lies in a rectangle. Since

    N g = s²/c + (T − s)²/(N − c) − T²/N

is convex in (c, s) (each term is a square over a positive linear function), its maximum over the
rectangle is at a corner. If no corner beats the best split known so far, no split inside the block
does, and the block is skipped; otherwise its rows are scanned. Borders of all columns come first,
so that the best known split is usually good enough to skip nearly all blocks.

The bound stays valid if A is too large. So A may be rounded up and go stale, which allows two
savings: counts and A share one float64 (below), and the root's A is not recomputed after a tree but
increased by what the tree can have added, until that has loosened the bound too much.

Packing. In a fine column a row weighs `unit` + ⌈|r| · scale⌉, where `unit` is a power of two above
all sums of the second term. Both parts are integers and their sums stay below 2⁵³, so that adding
and subtracting them is exact: count = ⌊weight / unit⌋, A ≤ (weight − count · unit) / scale. In the
other columns, which need no A, a row weighs `unit`.

Ties. Candidates whose gains agree to 1e-11 are tied. Within a feature the lowest threshold wins, as
in scikit-learn; between features the seed decides, as there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pipeline.boosting.engines.exact.columns import FEATURE_THRESHOLD
from pipeline.boosting.splitmix import following

TIE = 1e-11
# scikit-learn makes a leaf of a node whose variance is at most this.
PURE = np.finfo(np.float64).eps
STALE = 0.15  # how much of Σ|r| the root's bounds may be off before they are made anew
SHRUNK = 1e-3  # and at this share of their former size, residuals are summed anew in all columns

_ONE, _TWO = np.uint64(1), np.uint64(2)
_ENTRY: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
# Inside, numba's reference counting is off: it took a quarter of the time on small tables. Such a
# function must not allocate, nor return a view of an array unless it is inlined.
_OPTIONS: dict[str, Any] = _ENTRY | {"_nrt": False}
# Without NaN, infinity and signed zeros to mind, the loops vectorise. Divisions by zero happen, in
# bins whose result is then replaced by −1.
_FAST = _OPTIONS | {"fastmath": {"nnan", "ninf", "nsz", "contract", "reassoc"}}


class Table(NamedTuple):
    """A `columns.Layout` with the round's f in place, as flat arrays for compiled code."""

    features: NDArray[np.float32]
    f: NDArray[np.float32]
    codes: NDArray[np.uint16] | NDArray[np.uint32]
    first_bin: NDArray[np.int64]
    n_fine: int  # fine columns, f among them
    n_numeric: int  # fine and coarse columns
    fine_features: NDArray[np.int64]
    coarse_features: NDArray[np.int64]
    bin_feature: NDArray[np.int64]
    bin_low: NDArray[np.float32]
    bin_high: NDArray[np.float32]
    order: NDArray[np.uint32]
    values: NDArray[np.float32]
    f_order: NDArray[np.uint32]
    f_values: NDArray[np.float32]
    block_start: NDArray[np.int64]
    block_end: NDArray[np.int64]
    divisible: NDArray[np.bool_]  # whether a fine bin has more than one value


class Trees(NamedTuple):
    """Complete binary trees in heap order: node k's children are 2k + 1 and 2k + 2.

    A row goes left where its feature is at most the threshold. Nodes below a leaf send everything
    left, and the leaf's value stands at the left-most place of the last level.

    feature, threshold : (n_trees, 2^depth − 1);  value : (n_trees, 2^depth).
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    value: NDArray[np.float64]

    @classmethod
    def empty(cls, n_trees: int, depth: int) -> Trees:
        """Trees that send every row to a leaf of value 0."""
        inner = (1 << depth) - 1
        return cls(
            np.zeros((n_trees, inner), np.int32),
            np.full((n_trees, inner), np.inf),
            np.zeros((n_trees, inner + 1)),
        )


class Split(NamedTuple):
    """A chosen split: rows with value ≤ ``low`` go left; no row has a value between the two."""

    found: bool
    gain: float
    feature: int
    left_sum: float
    low: float
    high: float


class Candidate(NamedTuple):
    """A possible split before its threshold is worked out; ``column`` is −1 for none.

    ``bin`` is the bin it follows (or, in a bundle, splits off). Inside a block of a fine column,
    ``before`` and ``after`` are the sorted places of the node's rows around it; else they are −1.
    """

    gain: float
    column: int
    bin: int
    before: int
    after: int
    left_sum: float


class Node(NamedTuple):
    """A node whose sums are in hand: a range of the row list and its label."""

    label: int
    level: int
    start: int
    end: int
    total: float


class Packing(NamedTuple):
    """How a row count and a sum of |r| share one number; see the module's text."""

    unit: float
    scale: float


class Scratch(NamedTuple):
    """Working memory of a fit, so that growing a tree allocates nothing."""

    rows: NDArray[np.uint32]
    spare: NDArray[np.uint32]
    label: NDArray[np.uint16]
    weight: NDArray[np.float64]
    gain: NDArray[np.float64]  # of the split at each bin
    bound: NDArray[np.float64]  # on the splits inside each fine bin
    column_gain: NDArray[np.float64]
    column_bound: NDArray[np.float64]
    # What the current tree takes from the root's sums, and can add to its sums of |r|: by whole
    # nodes, and in pairs by single rows.
    drop: NDArray[np.float64]
    growth: NDArray[np.float64]
    row_changes: NDArray[np.float64]
    random: NDArray[np.uint64]
    waiting: NDArray[np.int64]  # a stack of nodes: all of `Node` but the total
    waiting_total: NDArray[np.float64]
    carried: NDArray[np.float64]  # the root's sums
    levels: NDArray[np.float64]  # the sums of the nodes on the stack


@njit(**_ENTRY)
def grow_trees(table, residual, trees, depth, learning_rate, seed):
    """Fit trees to ``residual`` (n,), which is left with what remains; fills ``trees``.

    Gives nothing back: numba crashes where Ctrl-C comes while it turns results into Python objects.
    """
    n = residual.shape[0]
    n_trees = trees.feature.shape[0]
    n_bins = table.first_bin[-1]
    scratch = Scratch(
        np.empty(n + 1, np.uint32),
        np.empty(n + 1, np.uint32),
        np.zeros(n, np.uint16),
        np.empty(n),
        np.empty(n_bins),
        np.empty(table.block_start.shape[0]),
        np.empty(table.first_bin.shape[0] - 1),
        np.empty(table.n_fine),
        np.empty(n_bins),
        np.empty(table.block_start.shape[0]),
        np.zeros(2 * n_bins),
        np.array([seed], np.uint64),
        np.empty((depth + 2, 4), np.int64),
        np.empty(depth + 2),
        np.empty(2 * n_bins),
        np.empty((depth + 1, 2 * n_bins)),
    )
    carried = scratch.carried
    unit = 2.0 ** (52 - np.ceil(np.log2(n + 1.0)))
    packing = Packing(unit, 1.0)
    everything = 2 * table.first_bin[table.n_fine] - 2  # f's last bin holds all rows
    fresh = 0.0  # the packed Σ|r| when the bounds were last made anew
    former = 0.0  # max|r| when all columns were last summed anew
    for tree in range(n_trees):
        for i in range(n):
            scratch.rows[i] = i
        if tree == 0 or carried[everything + 1] - n * unit > (1.0 + STALE) * fresh:
            largest = np.abs(residual).max()
            if largest == 0.0:
                break  # nothing left to fit: the remaining trees are zero
            packing = Packing(unit, min(unit / 4.0 / (n + 1.0) / largest, 1e200))
            _weigh(residual, scratch.weight, packing)
            n_columns = table.n_fine  # the others are carried well enough until residuals shrink
            if tree == 0 or largest < SHRUNK * former:
                n_columns, former = table.codes.shape[1], largest
            _collect(table, residual, scratch, 0, n, unit, n_columns, carried)
            fresh = carried[everything + 1] - n * unit
        else:
            _weigh(residual, scratch.weight, packing)
        scratch.drop[:] = 0.0
        scratch.growth[:] = 0.0
        root = Node(0, 0, 0, n, carried[everything])
        _grow(table, residual, scratch, packing, root, trees, tree, learning_rate)
        _carry(table, scratch, packing, learning_rate)


@njit(**_OPTIONS)
def _grow(table, residual, scratch, packing, root, trees, tree, learning_rate):
    """Grow one tree depth-first from the root, whose sums are ``scratch.carried``.

    A split hands the place of its sums in ``levels`` to the larger child and the next free place to
    the smaller one, which is grown first; so a place per level is enough.
    """
    levels = scratch.levels
    depth = levels.shape[0] - 1
    scratch.label[:] = 0
    _push(scratch, 0, root)
    place = 1
    while place > 0:
        place -= 1
        node = _pop(scratch, place)
        sums = scratch.carried if node.level == 0 else levels[place]
        split = _best_split(table, residual, scratch, sums, packing, node)
        if not split.found or _is_pure(residual, scratch.rows, node, split.gain):
            _finish_leaf(
                residual, scratch, sums, packing.unit, node, trees.value[tree], learning_rate
            )
            continue
        trees.feature[tree, node.label] = split.feature
        trees.threshold[tree, node.label] = split.low / 2.0 + split.high / 2.0
        last = node.level + 1 == depth
        column = _feature_values(table, split.feature)
        middle = _partition(scratch, node, column, split.low, not last)
        left = Node(2 * node.label + 1, node.level + 1, node.start, middle, split.left_sum)
        right = Node(
            2 * node.label + 2, node.level + 1, middle, node.end, node.total - split.left_sum
        )
        small, large = left, right
        if 2 * (middle - node.start) > node.end - node.start:
            small, large = right, left
        if last:
            _finish_leaves(
                table, residual, scratch, sums, packing.unit, small, large,
                trees.value[tree], learning_rate,
            )  # fmt: skip
        else:
            child = levels[place + 1]
            n_columns = table.codes.shape[1]
            _collect(
                table, residual, scratch, small.start, small.end, packing.unit, n_columns, child
            )
            _subtract(sums, child, levels[place])
            _push(scratch, place, large)
            _push(scratch, place + 1, small)
            place += 2


@njit(inline="always", **_OPTIONS)
def _push(scratch, place, node):
    waiting = scratch.waiting
    waiting[place, 0], waiting[place, 1] = node.label, node.level
    waiting[place, 2], waiting[place, 3] = node.start, node.end
    scratch.waiting_total[place] = node.total


@njit(inline="always", **_OPTIONS)
def _pop(scratch, place):
    waiting = scratch.waiting
    return Node(
        waiting[place, 0], waiting[place, 1], waiting[place, 2], waiting[place, 3],
        scratch.waiting_total[place],
    )  # fmt: skip


# --- choosing a split -----------------------------------------------------------------------


@njit(**_OPTIONS)
def _best_split(table, residual, scratch, sums, packing, node):
    """The split of largest gain; ties between features are broken at random."""
    n = node.end - node.start
    best, ties = Candidate(-1.0, -1, 0, -1, -1, 0.0), 0
    if n < 2:
        return _complete(table, scratch.label, sums, packing.unit, node, best)
    unit, mean = packing.unit, node.total / n
    first_bin, n_fine, n_numeric = table.first_bin, table.n_fine, table.n_numeric
    gain, bound = scratch.gain, scratch.bound
    _bin_gains(sums, n, mean, unit, gain)
    known = _column_maxima(gain, first_bin, n_numeric, scratch.column_gain)
    _inner_bounds(first_bin, table.divisible, sums, n, mean, packing, bound)
    _column_maxima(bound, first_bin, n_fine, scratch.column_bound)
    for c in range(scratch.column_gain.shape[0]):
        enough = known * (1.0 - TIE)
        largest = scratch.column_gain[c]
        if largest < enough and (c >= n_fine or scratch.column_bound[c] < enough):
            continue
        if c < n_fine:
            candidate = _fine_candidate(table, residual, scratch, sums, unit, node, c, enough)
            best, ties = _prefer(best, ties, candidate, scratch.random)
        elif c < n_numeric:
            j = _first_reaching(gain, first_bin[c], largest)
            candidate = Candidate(largest, c, j, -1, -1, sums[2 * j])
            best, ties = _prefer(best, ties, candidate, scratch.random)
        else:
            for j in range(first_bin[c], first_bin[c + 1] - 1):
                if gain[j] >= enough:
                    # The rest has the feature's lower value and goes left.
                    rest = node.total - sums[2 * j]
                    candidate = Candidate(gain[j], c, j, -1, -1, rest)
                    best, ties = _prefer(best, ties, candidate, scratch.random)
        known = max(known, best.gain)
    return _complete(table, scratch.label, sums, unit, node, best)


@njit(**_OPTIONS)
def _prefer(best, ties, candidate, random):
    """The better of two candidates; of k tied ones each is kept with probability 1/k."""
    if candidate.column < 0 or (best.column >= 0 and candidate.gain < best.gain * (1.0 - TIE)):
        return best, ties
    if best.column < 0 or candidate.gain > best.gain * (1.0 + TIE):
        return candidate, 1
    ties += 1
    return (candidate, ties) if following(random) % np.uint64(ties) == 0 else (best, ties)


@njit(inline="always", **_FAST)
def _gain(left_sum, left_count, n, mean):
    """g of the module's text; −1 if a side is empty."""
    product = left_count * (n - left_count)
    excess = left_sum - left_count * mean
    return excess * excess / product if product > 0.5 else -1.0


# The next three are loops over all bins that must vectorise: one that both divides and keeps a
# maximum does not.


@njit(**_FAST)
def _bin_gains(sums, n, mean, unit, gains):
    """The gain of the split at each bin."""
    inverse = 1.0 / unit
    for j in range(np.uint64(gains.shape[0])):
        gains[j] = _gain(sums[j + j], np.floor(sums[j + j + _ONE] * inverse), n, mean)


@njit(**_FAST)
def _inner_bounds(first_bin, divisible, sums, n, mean, packing, bounds):
    """What a split strictly inside each block of the fine columns could gain at most."""
    unit, inverse, half = packing.unit, 1.0 / packing.unit, 0.5000000001 / packing.scale
    for j in range(_ONE, np.uint64(bounds.shape[0])):
        at = j + j
        bounds[j] = _block_bound(
            sums[at - _TWO], sums[at - _ONE], sums[at], sums[at + _ONE], divisible[j],
            n, mean, unit, inverse, half,
        )  # fmt: skip
    for c in range(first_bin.shape[0]):
        j = first_bin[c]
        if j >= bounds.shape[0]:
            break
        bounds[j] = _block_bound(
            0.0, 0.0, sums[2 * j], sums[2 * j + 1], divisible[j], n, mean, unit, inverse, half
        )


@njit(**_FAST)
def _column_maxima(values, first_bin, n_numeric, maxima):
    """The largest value in each column, and of them all; a bundle's last bin is no split."""
    overall = -1.0
    for c in range(maxima.shape[0]):
        largest = -1.0
        end = first_bin[c + 1] - (c >= n_numeric)
        for j in range(np.uint64(first_bin[c]), np.uint64(end)):
            largest = max(largest, values[j])
        maxima[c] = largest
        overall = max(overall, largest)
    return overall


@njit(inline="always", **_FAST)
def _block_bound(sum0, weight0, sum1, weight1, divisible, n, mean, unit, inverse, half):
    """The largest gain at a corner of the rectangle of the splits strictly inside a block."""
    count0, count1 = np.floor(weight0 * inverse), np.floor(weight1 * inverse)
    reach = ((weight1 - weight0) - (count1 - count0) * unit) * half
    middle = 0.5 * (sum0 + sum1)
    low, high = count0 + 1.0, count1 - 1.0
    excess_low = abs(middle - low * mean) + reach
    excess_high = abs(middle - high * mean) + reach
    bound = max(
        excess_low * excess_low / (low * (n - low)), excess_high * excess_high / (high * (n - high))
    )
    return bound if divisible and count1 - count0 > 1.5 else -1.0


@njit(**_OPTIONS)
def _fine_candidate(table, residual, scratch, sums, unit, node, column, enough):
    """The best split of a fine column, on a border or inside a block, if it gains ``enough``."""
    best = Candidate(enough, -1, 0, -1, -1, 0.0)
    first, last = table.first_bin[column], table.first_bin[column + 1]
    border_gain, bounds = scratch.column_gain[column], scratch.bound
    border = last  # the bin after which the best border lies
    if border_gain >= enough:
        border = _first_reaching(scratch.gain, first, border_gain)
    for j in range(first, last):
        if bounds[j] >= best.gain:
            best = _scan(table, residual, scratch, sums, unit, node, column, j, best)
        if j == border and _improves(border_gain, best):
            best = Candidate(border_gain, column, j, -1, -1, sums[2 * j])
    return best


@njit(**_OPTIONS)
def _first_reaching(gains, first, gain):
    """The first bin from ``first`` on whose split has the ``gain``, up to ties."""
    j = first
    while gains[j] < gain * (1.0 - TIE):
        j += 1
    return j


@njit(**_OPTIONS)
def _scan(table, residual, scratch, sums, unit, node, column, j, best):
    """``best``, or a better split among the node's rows in block ``j`` of a fine column."""
    order, values = _sorted_rows(table, column)
    label, places = scratch.label, scratch.spare
    n = node.end - node.start
    mean = node.total / n
    inner = j > table.first_bin[column]
    left_sum = sums[2 * j - 2] if inner else 0.0
    count = _count(sums, j - 1, unit) if inner else 0
    found = np.uint64(0)
    for q in range(np.uint64(table.block_start[j]), np.uint64(table.block_end[j])):
        places[found] = q
        found += np.uint64(label[order[q]] == node.label)
    previous = np.int64(-1)
    for k in range(found):
        q = np.int64(places[k])
        if previous >= 0 and values[q] > values[previous] + FEATURE_THRESHOLD:
            # Most splits are refused, and refusing needs no division.
            excess = left_sum - count * mean
            product = np.float64(count) * (n - count)
            if excess * excess >= best.gain * product:
                gain = _gain(left_sum, np.float64(count), n, mean)
                if _improves(gain, best):
                    best = Candidate(gain, column, j, previous, q, left_sum)
        previous = q
        left_sum += residual[order[q]]
        count += 1
    return best


@njit(inline="always", **_OPTIONS)
def _improves(gain, best):
    """Whether a later split of the same feature replaces ``best``: ties go to the first."""
    return gain > best.gain * (1.0 + TIE) if best.column >= 0 else gain >= best.gain


@njit(**_OPTIONS)
def _complete(table, label, sums, unit, node, best):
    """The split of a candidate: its feature and the node's neighbouring values around it."""
    c, j = best.column, best.bin
    feature, low, high = np.int64(0), np.float32(0), np.float32(0)
    if c < 0:
        return Split(False, best.gain, feature, 0.0, low, high)
    if c < table.n_fine:
        feature = _fine_feature(table, c)
        order, values = _sorted_rows(table, c)
        before, after = best.before, best.after
        if before < 0:  # on the border after a block
            before, after = table.block_end[j] - 1, table.block_end[j]
            while label[order[before]] != node.label:
                before -= 1
            while label[order[after]] != node.label:
                after += 1
        low, high = values[before], values[after]
    elif c < table.n_numeric:
        feature = table.coarse_features[c - table.n_fine]
        count = _count(sums, j, unit)
        below, above = j, j + 1
        while below > table.first_bin[c] and _count(sums, below - 1, unit) == count:
            below -= 1
        while _count(sums, above, unit) == count:
            above += 1
        low, high = table.bin_low[below], table.bin_low[above]
    else:
        feature = table.bin_feature[j]
        low, high = table.bin_low[j], table.bin_high[j]
    return Split(True, best.gain, feature, best.left_sum, low, high)


@njit(**_OPTIONS)
def _is_pure(residual, rows, node, gain):
    """scikit-learn's stopping rule; the variance is at least the gain, so it is rarely needed.

    (Where values are huge beside their spread, scikit-learn's variance cancels to nothing and it
    stops early; this does not.)
    """
    if gain > 2.0 * PURE:
        return False
    total, squares = 0.0, 0.0
    for q in range(node.start, node.end):
        value = residual[rows[q]]
        total += value
        squares += value * value
    n = node.end - node.start
    return squares / n - (total / n) ** 2 <= PURE


# --- sums of a node -------------------------------------------------------------------------


@njit(**_OPTIONS)
def _collect(table, residual, scratch, start, end, unit, n_columns, sums):
    """The sums of the rows in a range of the row list, in the first ``n_columns`` columns."""
    sums[: 2 * table.first_bin[n_columns]] = 0.0
    codes, rows, row_weight = table.codes, scratch.rows, scratch.weight
    fine, columns = np.uint64(table.n_fine), np.uint64(n_columns)
    for q in range(np.uint64(start), np.uint64(end)):
        i = rows[q]
        value, weight = residual[i], row_weight[i]
        for c in range(fine):
            at = np.uint64(codes[i, c])
            sums[at] += value
            sums[at + _ONE] += weight
        for c in range(fine, columns):
            at = np.uint64(codes[i, c])
            sums[at] += value
            sums[at + _ONE] += unit
    _accumulate(sums, table.first_bin, min(table.n_numeric, n_columns))


@njit(**_OPTIONS)
def _accumulate(sums, first_bin, n_numeric):
    """Turn the sums of numeric columns into running sums.

    A running sum waits for its last addition, so two columns are done side by side.
    """
    for c in range(0, n_numeric, 2):
        a, b = np.uint64(2 * first_bin[c]), np.uint64(2 * first_bin[c + 1])
        a_end, b_end = b, b
        if c + 1 < n_numeric:
            b_end = np.uint64(2 * first_bin[c + 2])
        value_a, weight_a, value_b, weight_b = 0.0, 0.0, 0.0, 0.0
        for _ in range(min(a_end - a, b_end - b) // _TWO):
            value_a, weight_a = value_a + sums[a], weight_a + sums[a + _ONE]
            value_b, weight_b = value_b + sums[b], weight_b + sums[b + _ONE]
            sums[a], sums[a + _ONE] = value_a, weight_a
            sums[b], sums[b + _ONE] = value_b, weight_b
            a += _TWO
            b += _TWO
        _run(sums, a, a_end, value_a, weight_a)
        _run(sums, b, b_end, value_b, weight_b)


@njit(inline="always", **_OPTIONS)
def _run(sums, start, end, value, weight):
    for at in range(start, end, _TWO):
        value, weight = value + sums[at], weight + sums[at + _ONE]
        sums[at], sums[at + _ONE] = value, weight


@njit(**_OPTIONS)
def _subtract(a, b, out):
    for j in range(out.shape[0]):
        out[j] = a[j] - b[j]


@njit(**_OPTIONS)
def _partition(scratch, node, column, low, relabel):
    """Order the node's rows as left child, right child; gives the border between the two."""
    rows, spare, label = scratch.rows, scratch.spare, scratch.label
    left, right = np.uint64(node.start), np.uint64(0)
    first_child = np.uint16(2 * node.label + 1)
    for q in range(np.uint64(node.start), np.uint64(node.end)):
        i = rows[q]
        goes_right = column[i] > low
        rows[left] = i
        spare[right] = i
        left += np.uint64(not goes_right)
        right += np.uint64(goes_right)
        if relabel:
            label[i] = first_child + np.uint16(goes_right)
    middle = node.end - np.int64(right)
    for q in range(right):
        rows[np.uint64(middle) + q] = spare[q]
    return middle


# --- leaves, and what they do to the next root ------------------------------------------------


@njit(**_OPTIONS)
def _finish_leaf(residual, scratch, sums, unit, node, value_at, learning_rate):
    """Close a node above the last level: its sums tell its part in the root's change."""
    value = _set_leaf(residual, scratch.rows, node, value_at, learning_rate)
    _book_counts(sums, unit, value, scratch.drop, scratch.growth)


@njit(**_OPTIONS)
def _finish_leaves(table, residual, scratch, sums, unit, small, large, value_at, learning_rate):
    """Close two sisters on the last level.

    All rows of their parent are booked with the larger leaf's value, from the parent's counts; then
    the smaller leaf's rows are corrected one by one.
    """
    large_value = _set_leaf(residual, scratch.rows, large, value_at, learning_rate)
    small_value = _set_leaf(residual, scratch.rows, small, value_at, learning_rate)
    _book_counts(sums, unit, large_value, scratch.drop, scratch.growth)
    change, change_abs = small_value - large_value, abs(small_value) - abs(large_value)
    _book_rows(table, scratch, small, change, change_abs)


@njit(**_OPTIONS)
def _set_leaf(residual, rows, node, value_at, learning_rate):
    """Write a leaf's value at its left-most place of the last level; step its rows' residuals."""
    value = node.total / (node.end - node.start)
    n_leaves = value_at.shape[0]
    place = node.label
    while place + 1 < n_leaves:
        place = 2 * place + 1
    value_at[place + 1 - n_leaves] = value
    step = learning_rate * value
    for q in range(np.uint64(node.start), np.uint64(node.end)):
        residual[rows[q]] -= step
    return value


@njit(**_OPTIONS)
def _book_rows(table, scratch, node, change, change_abs):
    """Add a change to the bins of a node's rows; that of |r| matters in fine columns alone."""
    codes, rows, pairs = table.codes, scratch.rows, scratch.row_changes
    fine, all_columns = np.uint64(table.n_fine), np.uint64(codes.shape[1])
    for q in range(np.uint64(node.start), np.uint64(node.end)):
        i = rows[q]
        for c in range(fine):
            at = np.uint64(codes[i, c])
            pairs[at] += change
            pairs[at + _ONE] += change_abs
        for c in range(fine, all_columns):
            pairs[np.uint64(codes[i, c])] += change


@njit(**_FAST)
def _book_counts(sums, unit, value, drop, growth):
    """Book all rows of a node with one leaf value."""
    inverse, size = 1.0 / unit, abs(value)
    for j in range(np.uint64(drop.shape[0])):
        drop[j] += value * np.floor(sums[j + j + _ONE] * inverse)
    for j in range(np.uint64(growth.shape[0])):
        growth[j] += size * np.floor(sums[j + j + _ONE] * inverse)


@njit(**_OPTIONS)
def _carry(table, scratch, packing, learning_rate):
    """Bring the root's sums to the new residuals, and empty ``scratch.row_changes``."""
    first_bin, n_fine, n_numeric = table.first_bin, table.n_fine, table.n_numeric
    pairs, sums = scratch.row_changes, scratch.carried
    drop, growth = scratch.drop, scratch.growth
    for c in range(first_bin.shape[0] - 1):
        change, change_abs = 0.0, 0.0
        for j in range(np.uint64(first_bin[c]), np.uint64(first_bin[c + 1])):
            change += pairs[j + j]
            pairs[j + j] = 0.0
            drop[j] += change
            if c >= n_numeric:
                change = 0.0
        if c < n_fine:
            for j in range(np.uint64(first_bin[c]), np.uint64(first_bin[c + 1])):
                change_abs += pairs[j + j + _ONE]
                pairs[j + j + _ONE] = 0.0
                growth[j] += change_abs
    for j in range(np.uint64(drop.shape[0])):
        sums[j + j] -= learning_rate * drop[j]
    _loosen(growth, sums, packing, learning_rate)


@njit(**_FAST)
def _loosen(growth, sums, packing, learning_rate):
    """A row's packed |r| grows by at most lr |value| · scale, rounded up: one more per row, and one
    per bin for the rounding of running sums here.
    """
    inverse, scale = 1.0 / packing.unit, learning_rate * packing.scale
    for j in range(np.uint64(growth.shape[0])):
        added = np.ceil(max(growth[j], 0.0) * scale)
        sums[j + j + _ONE] += added + np.floor(sums[j + j + _ONE] * inverse) + (j + 1.0)


# --- small things ----------------------------------------------------------------------------


@njit(inline="always", **_OPTIONS)
def _count(sums, j, unit):
    return np.int64(np.floor(sums[2 * j + 1] / unit))


@njit(inline="always", **_OPTIONS)
def _feature_values(table, feature):
    return table.features[feature] if feature < table.features.shape[0] else table.f


@njit(inline="always", **_OPTIONS)
def _fine_feature(table, c):
    return table.fine_features[c] if c < table.n_fine - 1 else table.features.shape[0]


@njit(inline="always", **_OPTIONS)
def _sorted_rows(table, c):
    if c < table.n_fine - 1:
        return table.order[c], table.values[c]
    return table.f_order, table.f_values


@njit(**_OPTIONS)
def _weigh(residual, weight, packing):
    unit, scale = packing.unit, packing.scale
    for i in range(residual.shape[0]):
        weight[i] = unit + np.ceil(abs(residual[i]) * scale)


# --- prediction ------------------------------------------------------------------------------


@njit(**_ENTRY)
def predict(trees, learning_rate, rows, out):
    """Add Σ lr · leaf value for float32 ``rows`` (n, d + 1), f last, to ``out`` (n,)."""
    n_trees, n_inner = trees.feature.shape
    depth = 0
    while (1 << depth) - 1 < n_inner:
        depth += 1
    for i in range(rows.shape[0]):
        for tree in range(n_trees):
            node = 0
            for _ in range(depth):
                value = rows[i, trees.feature[tree, node]]
                node = 2 * node + 1 + (value > trees.threshold[tree, node])
            out[i] += learning_rate * trees.value[tree, node - n_inner]


@njit(**_ENTRY)
def find_leaves(table, trees, out):
    """The leaf of the first of ``trees`` that each training row falls into, to ``out`` (n,)."""
    features, f, n_inner = table.features, table.f, trees.feature.shape[1]
    for i in range(out.shape[0]):
        node = 0
        while node < n_inner:
            j = trees.feature[0, node]
            value = features[j, i] if j < features.shape[0] else f[i]
            node = 2 * node + 1 + (value > trees.threshold[0, node])
        out[i] = node - n_inner
