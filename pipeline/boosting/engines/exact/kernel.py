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
other columns, which need no A, a row weighs `unit`. (A row that a forest drew k times weighs k
units instead of one, and its r is k times as large.)

Masses. Where rows have masses m (`grow_weighted`), c and N above are sums of masses, s and T sums
of m r, and what is kept per bin has a third number, its mass; the packed counts are of rows, and
tell which splits leave both sides enough of them. A split strictly inside a block then has at least
the lightest row's mass more than the border before it, instead of 1.

Threads. A team of threads may grow a tree together: all of them walk the same nodes and decide the
same, from sums that they collect together. Each takes some columns (of sums, of candidates) or some
of a node's rows (to move them, to step their residuals), and they wait for each other before one
reads what another wrote. Every number is added up by one thread, in the same order as by one alone,
so that the trees do not depend on how many there are. (In theory, a chain of gains of which each is
1e-11 above the last, neither tied nor apart, might be cut another way.)

Ties. Candidates whose gains agree to 1e-11 are tied. Within a feature the lowest threshold wins, as
in scikit-learn; between features the seed decides, as there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pipeline.boosting.engines.exact.columns import FEATURE_THRESHOLD
from pipeline.boosting.engines.exact.intrinsics import add_pair, prefetch
from pipeline.boosting.engines.exact.team import (
    Team,
    best_told,
    forget,
    leads,
    part,
    part_of,
    tell,
    wait,
)
from pipeline.boosting.engines.exact.trees import leaf_of
from pipeline.boosting.splitmix import GOLDEN_GAMMA, mix

TIE = 1e-11
# scikit-learn makes a leaf of a node whose variance is at most this.
PURE = np.finfo(np.float64).eps
STALE = 0.15  # how much of Σ|r| the root's bounds may be off before they are made anew
SHRUNK = 1e-3  # and at this share of their former size, residuals are summed anew in all columns

_ONE, _TWO = np.uint64(1), np.uint64(2)
# Tables of more rows do not fit the cache, and rows are asked for some time before they are needed.
_CACHED, _AHEAD = 2**17, np.uint64(16)
_NEGLIGIBLE = 1e-13  # share of a node's mass
_NOWHERE = np.uint16(2**16 - 1)  # the label of a row that was not drawn
_ENTRY: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
# Inside, numba's reference counting is off: it took a quarter of the time on small tables. Such a
# function must not allocate, nor return a view of an array unless it is inlined. (A tuple of many
# arrays is handed over field by field, so what is called for every column takes what it needs.)
_OPTIONS: dict[str, Any] = _ENTRY | {"_nrt": False, "cache": False}
_ALLOCATING: dict[str, Any] = _ENTRY | {"cache": False}
# Without NaN, infinity and signed zeros to mind, the loops vectorise. Divisions by zero happen, in
# bins without a legal split, whose result is then replaced by −1.
_FAST = _OPTIONS | {"fastmath": {"nnan", "ninf", "nsz", "contract", "reassoc"}}


class Table(NamedTuple):
    """A `columns.Layout` with the round's f in place, as flat arrays for compiled code."""

    features: NDArray[np.float32]
    f: NDArray[np.float32]
    codes: NDArray[np.uint16] | NDArray[np.uint32]
    first_bin: NDArray[np.int64]
    groups: NDArray[np.int64]  # the first column of each group of neighbours, and their number
    n_fine: int  # fine columns, f (if there is one) among them
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


class Rules(NamedTuple):
    """What splits must obey.

    min_leaf : rows on each side.  n_tried : features that a node looks at, drawn for each anew.
    """

    min_leaf: float
    n_tried: int


class Split(NamedTuple):
    """A chosen split: rows with value ≤ ``low`` go left; no row has a value between the two."""

    found: bool
    gain: float
    feature: int
    left_n: int
    left_mass: float
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
    left_n: int
    left_mass: float
    left_sum: float


_CANDIDATE_FIELDS = len(Candidate._fields)


class Node(NamedTuple):
    """A node whose sums are in hand: a range of the row list and its label.

    ``n`` counts a row as often as it was drawn, ``mass`` and ``total`` are the sums of their masses
    (without masses, ``n``) and residuals.
    """

    label: int
    level: int
    start: int
    end: int
    n: int
    mass: float
    total: float


class Packing(NamedTuple):
    """How a row count and a sum of |r| share one number, and the least mass of a row."""

    unit: float
    scale: float
    lightest: float


class Terms(NamedTuple):
    """What the gains and promises of a node's splits depend on, worked out once."""

    n: float
    mass: float
    mean: float
    unit: float
    inverse: float  # of the unit
    half: float  # from a packed sum of |r| to half of it, rounded up
    lightest: float


class Memory(NamedTuple):
    """Working memory that the threads of a team have in common; see `Scratch`.

    other : like ``spare``, for a team.  places : of each member; see `Scratch`.
    candidates : of each member and fine column, the fields of `Candidate`.
    """

    rows: NDArray[np.uint32]
    spare: NDArray[np.uint32]
    other: NDArray[np.uint32]
    label: NDArray[np.uint16]
    row_changes: NDArray[np.float64]
    carried: NDArray[np.float64]
    levels: NDArray[np.float64]
    places: NDArray[np.uint32]
    candidates: NDArray[np.float64]


class Scratch(NamedTuple):
    """Working memory of a fit, so that growing a tree allocates nothing."""

    rows: NDArray[np.uint32]
    spare: NDArray[np.uint32]
    label: NDArray[np.uint16]
    draws: NDArray[np.uint8] | None  # how often each row was drawn; None: every row once
    mass: NDArray[np.float64] | None  # of each row; None: 1
    masses: int | None  # where those of bins begin, behind the other sums
    rules: Rules
    tried: NDArray[np.bool_]  # the features that the node looks at
    hat: NDArray[np.int64]  # that they are drawn from: all features, in any order
    team: Team | None  # None: one thread
    places: NDArray[np.uint32]  # of a node's rows in a block
    gain: NDArray[np.float64]  # of the split at each bin, where it matters
    column_gain: NDArray[np.float64]
    promise: NDArray[np.float64]  # of the splits inside each fine bin: whether to look there
    # What the current tree takes from the root's sums, and can add to its sums of |r|: by whole
    # nodes, and in pairs by single rows.
    drop: NDArray[np.float64]
    growth: NDArray[np.float64]
    row_changes: NDArray[np.float64]
    steps: NDArray[np.float64]  # of two sister leaves
    random: NDArray[np.uint64]
    waiting: NDArray[np.int64]  # a stack of nodes: the integers of `Node`
    waiting_sums: NDArray[np.float64]  # their masses and totals
    carried: NDArray[np.float64]  # the root's sums
    levels: NDArray[np.float64]  # the sums of the nodes on the stack


@njit(**_ENTRY)
def grow_trees(table, residual, trees, depth, learning_rate, seed, rules, team):
    """Fit trees to ``residual`` (n,), which is left with what remains; fills ``trees``.

    ``team`` is None, or one of several that are called at the same time on the same residuals, each
    with ``trees`` of its own (all are filled alike).

    Gives nothing back: numba crashes where Ctrl-C comes while it turns results into Python objects.
    """
    n = residual.shape[0]
    scratch = _new_scratch(table, n, depth, None, None, None, rules, team)
    carried = scratch.carried
    packing = Packing(_unit(n), 1.0, 1.0)
    everything = 2 * table.first_bin[table.n_fine] - 2  # f's last bin holds all rows
    fresh = 0.0  # the packed Σ|r| when the bounds were last made anew
    former = 0.0  # max|r| when all columns were last summed anew
    for tree in range(trees.feature.shape[0]):
        start, end = part(team, 0, n)
        for i in range(start, end):
            scratch.rows[i] = i
            scratch.label[i] = 0
        wait(team)
        unit = packing.unit
        if tree == 0 or carried[everything + 1] - n * unit > (1.0 + STALE) * fresh:
            largest = _largest(residual)
            if largest == 0.0:
                break  # nothing left to fit: the remaining trees are zero
            packing = _packing(n, largest, 1.0)
            n_columns = table.n_fine  # the others are carried well enough until residuals shrink
            if tree == 0 or largest < SHRUNK * former:
                n_columns, former = table.codes.shape[1], largest
            wait(team)  # for those who still look at the old sums
            _collect(table, residual, scratch, 0, n, packing, n_columns, carried, None, None)
            fresh = carried[everything + 1] - n * unit
        scratch.drop[:] = 0.0
        scratch.growth[:] = 0.0
        scratch.random[0] = mix(seed + GOLDEN_GAMMA * np.uint64(tree + 1))
        root = Node(0, 0, 0, n, n, np.float64(n), carried[everything])
        _grow(table, residual, scratch, packing, root, trees, tree, learning_rate)
        if leads(team):
            _carry(table, scratch, packing, learning_rate)
        wait(team)


@njit(**_ENTRY)
def grow_forest(table, y, draws, trees, depth, seeds):
    """Grow a tree to ``y`` (n,) from each bootstrap sample; fills ``trees``.

    draws : (n_trees, n) how often each row is in each sample;  seeds : (n_trees,) for ties.

    A row that was drawn k times is a row of residual k y and weight k. Rows that were not drawn are
    in no node.
    """
    n = y.shape[0]
    residual = np.empty(n)
    rules = Rules(1.0, table.features.shape[0])
    scratch = _new_scratch(table, n, depth, np.empty(n, np.uint8), None, None, rules, None)
    n_columns = table.codes.shape[1]
    for tree in range(draws.shape[0]):
        n_rows, n_drawn, total, largest = np.uint64(0), 0, 0.0, 0.0
        for i in range(n):
            times = draws[tree, i]
            scratch.draws[i] = times
            scratch.label[i] = 0 if times > 0 else _NOWHERE
            scratch.rows[n_rows] = i
            n_rows += np.uint64(times > 0)
            n_drawn += times
            residual[i] = times * y[i]
            total += residual[i]
            largest = max(largest, abs(residual[i]))
        packing, end = _packing(n, largest, 1.0), np.int64(n_rows)
        root_sums = scratch.carried
        _collect(table, residual, scratch, 0, end, packing, n_columns, root_sums, None, None)
        scratch.random[0] = mix(seeds[tree])
        root = Node(0, 0, 0, end, n_drawn, np.float64(n_drawn), total)
        _grow(table, residual, scratch, packing, root, trees, tree, None)


@njit(**_ENTRY)
def grow_weighted(table, residual, weights, samples, trees, depth, learning_rate, seeds, rules):
    """Fit trees to rows with ``weights`` (n,), each to a sample of them; fills ``trees``.

    samples : (n_trees, n) how often each row is in each tree's sample, or (0, 0): once.
    seeds : (n_trees,) for ties.

    ``residual`` (n,) is left with what remains, in the sample and out of it. Rows whose mass,
    weight times sample, is 0 are in no node. A tree's values are summed up anew from its rows,
    because those of its splits come from differences, which would swallow rows of little mass.
    """
    n, n_inner = residual.shape[0], trees.feature.shape[1]
    pull, mass = np.empty(n), np.empty(n)
    sums_of_leaves, masses_of_leaves = np.empty(n_inner + 1), np.empty(n_inner + 1)
    masses = 2 * table.first_bin[-1]
    scratch = _new_scratch(table, n, depth, None, mass, masses, rules, None)
    n_columns = table.codes.shape[1]
    for tree in range(trees.feature.shape[0]):
        n_rows, total, total_mass, largest, lightest = np.uint64(0), 0.0, 0.0, 0.0, np.inf
        for i in range(n):
            mass[i] = weights[i] * samples[tree, i] if samples.shape[0] > 0 else weights[i]
            scratch.label[i] = 0 if mass[i] > 0.0 else _NOWHERE
            scratch.rows[n_rows] = i
            n_rows += np.uint64(mass[i] > 0.0)
            pull[i] = mass[i] * residual[i]
            total += pull[i]
            total_mass += mass[i]
            largest = max(largest, abs(pull[i]))
            if mass[i] > 0.0:
                lightest = min(lightest, mass[i])
        end = np.int64(n_rows)
        if largest == 0.0:
            continue  # nothing to fit
        packing = _packing(n, largest, lightest)
        _collect(table, pull, scratch, 0, end, packing, n_columns, scratch.carried, None, None)
        scratch.random[0] = mix(seeds[tree])
        root = Node(0, 0, 0, end, end, total_mass, total)
        _grow(table, pull, scratch, packing, root, trees, tree, None)
        sums_of_leaves[:] = 0.0
        masses_of_leaves[:] = 0.0
        leaves = scratch.places  # not needed for anything else now
        for i in range(n):
            leaf = leaf_of(table, trees, tree, i)
            leaves[i] = leaf
            sums_of_leaves[leaf] += pull[i]
            masses_of_leaves[leaf] += mass[i]
        for leaf in range(n_inner + 1):
            if masses_of_leaves[leaf] > 0.0:
                trees.value[tree, leaf] = sums_of_leaves[leaf] / masses_of_leaves[leaf]
        for i in range(n):
            residual[i] -= learning_rate * trees.value[tree, leaves[i]]


def team_for(table: Table, size: int, depth: int) -> list[Team]:
    """The members of a team that fits a table."""
    n_sums = 2 * int(table.first_bin[-1])
    return Team.gather(
        size, _new_memory.py_func(len(table.codes), n_sums, depth, size, table.n_fine)
    )


@njit(**_ALLOCATING)
def _new_memory(n, n_sums, depth, n_members, n_fine):
    return Memory(
        np.empty(n + 1, np.uint32),
        np.empty(n + 1, np.uint32),
        np.empty(n + 1 if n_members > 1 else 0, np.uint32),
        np.zeros(n, np.uint16),
        np.zeros(n_sums),
        np.empty(n_sums),
        np.empty((depth + 1, n_sums)),
        np.empty((n_members, n + 1), np.uint32),
        np.empty((n_members, n_fine, _CANDIDATE_FIELDS)),
    )


@njit(**_ALLOCATING)
def _memory_of(team, n, n_sums, depth, n_fine):
    if team is None:
        return _new_memory(n, n_sums, depth, 1, n_fine)
    return team.memory


@njit(**_OPTIONS)
def _number(team):
    if team is None:
        return 0
    return team.me


@njit(**_ALLOCATING)
def _new_scratch(table, n, depth, draws, mass, masses, rules, team):
    n_bins, n_fine_bins = table.first_bin[-1], table.block_start.shape[0]
    n_sums = 2 * n_bins if masses is None else 3 * n_bins
    memory = _memory_of(team, n, n_sums, depth, table.n_fine)
    n_features = table.features.shape[0] + (table.f.shape[0] > 0)
    return Scratch(
        memory.rows,
        memory.spare,
        memory.label,
        draws,
        mass,
        masses,
        rules,
        np.ones(n_features, np.bool_),
        np.arange(n_features),
        team,
        memory.places[_number(team)],
        np.empty(n_bins),
        np.empty(table.first_bin.shape[0] - 1),
        np.empty(n_fine_bins),
        np.empty(n_bins),
        np.empty(n_fine_bins),
        memory.row_changes,
        np.empty(2),
        np.zeros(1, np.uint64),
        np.empty((depth + 2, 5), np.int64),
        np.empty((depth + 2, 2)),
        memory.carried,
        memory.levels,
    )


@njit(**_OPTIONS)
def _grow(table, residual, scratch, packing, root, trees, tree, learning_rate):
    """Grow one tree depth-first from the root, whose sums are ``scratch.carried``.

    Without a learning rate (which is known when this is compiled) the tree changes no residuals.

    A split hands the place of its sums in ``levels`` to the larger child and the next free place to
    the smaller one, which is grown first; so a place per level is enough.
    """
    levels = scratch.levels
    depth = levels.shape[0] - 1
    _push(scratch, 0, root)
    place = 1
    while place > 0:
        place -= 1
        node = _pop(scratch, place)
        sums = scratch.carried if node.level == 0 else levels[place]
        split = _best_split(table, residual, scratch, sums, packing, node)
        is_leaf = not split.found or _is_pure(residual, scratch, node, split.gain)
        forget(scratch.team)
        wait(scratch.team)  # before labels and residuals change
        if is_leaf:
            value = node.total / node.mass
            _set_leaf(trees.value[tree], node.label, value)
            if learning_rate is not None:
                start, end = part(scratch.team, node.start, node.end)
                _leave(residual, scratch.rows, start, end, learning_rate * value)
                _book_counts(sums, packing.unit, value, scratch.drop, scratch.growth)
                wait(scratch.team)
            continue
        trees.feature[tree, node.label] = split.feature
        trees.threshold[tree, node.label] = split.low / 2.0 + split.high / 2.0
        trees.gain[tree, node.label] = split.gain * node.mass
        column = _feature_values(table, split.feature)
        if node.level + 1 == depth:
            values = _set_leaves(trees.value[tree], node, split)
            if learning_rate is not None:
                _finish_leaves(
                    table, residual, scratch, sums, packing.unit, node, split, column, values,
                    learning_rate,
                )  # fmt: skip
            continue
        middle = _partition(scratch.team, scratch, node, column, split.low)
        label, level = 2 * node.label + 1, node.level + 1
        left_n, left_mass, left_sum = split.left_n, split.left_mass, split.left_sum
        left = Node(label, level, node.start, middle, left_n, left_mass, left_sum)
        right = Node(
            label + 1, level, middle, node.end, node.n - left_n, node.mass - left_mass,
            node.total - left_sum,
        )  # fmt: skip
        small, large = left, right
        if 2 * (middle - node.start) > node.end - node.start:
            small, large = right, left
        n_columns = table.codes.shape[1]
        _collect(
            table, residual, scratch, small.start, small.end, packing, n_columns,
            levels[place + 1], sums, levels[place],
        )  # fmt: skip
        _push(scratch, place, large)
        _push(scratch, place + 1, small)
        place += 2


@njit(inline="always", **_OPTIONS)
def _push(scratch, place, node):
    waiting = scratch.waiting
    waiting[place, 0], waiting[place, 1] = node.label, node.level
    waiting[place, 2], waiting[place, 3], waiting[place, 4] = node.start, node.end, node.n
    scratch.waiting_sums[place, 0], scratch.waiting_sums[place, 1] = node.mass, node.total


@njit(inline="always", **_OPTIONS)
def _pop(scratch, place):
    waiting = scratch.waiting
    return Node(
        waiting[place, 0], waiting[place, 1], waiting[place, 2], waiting[place, 3],
        waiting[place, 4], scratch.waiting_sums[place, 0], scratch.waiting_sums[place, 1],
    )  # fmt: skip


# --- choosing a split -----------------------------------------------------------------------


@njit(**_OPTIONS)
def _best_split(table, residual, scratch, sums, packing, node):
    """The split of largest gain; ties between features are broken at random."""
    best = Candidate(-1.0, -1, 0, -1, -1, 0, 0.0, 0.0)
    if node.end - node.start < 2 or node.n < 2.0 * scratch.rules.min_leaf:
        return _complete(table, scratch.label, sums, packing.unit, node, best)
    unit, gain = packing.unit, scratch.gain
    first_bin, n_fine, n_numeric = table.first_bin, table.n_fine, table.n_numeric
    lot = mix(scratch.random[0] + GOLDEN_GAMMA * np.uint64(node.label + 1))
    rules, tried, masses = scratch.rules, scratch.tried, scratch.masses
    some = rules.n_tried < tried.shape[0]
    if some:
        _draw_features(tried, scratch.hat, rules.n_tried, lot)
    terms = _terms(node, packing)
    known = _border_gains(table, sums, terms, rules, tried, gain, scratch.column_gain, masses)
    enough = _nearly(known)
    _promises(
        first_bin, table.divisible, sums, terms, enough, scratch.promise, rules.min_leaf, masses
    )
    _scan_together(scratch.team, table, residual, scratch, sums, terms, node, enough)
    for c in range(scratch.column_gain.shape[0]):
        largest, enough = scratch.column_gain[c], _nearly(max(known, best.gain))
        if c < n_fine:
            if some and not _is_tried(table, tried, c):
                continue
            candidate = _fine_candidate(
                scratch.team, table, residual, scratch, sums, terms, node, c, enough
            )
            best = _prefer(table, best, candidate, lot)
        elif largest < enough:
            continue
        elif c < n_numeric:
            j = _first_reaching(gain, first_bin[c], largest)
            count = _count(sums, j, unit)
            mass = _mass(sums, j, count, scratch.masses)
            candidate = Candidate(largest, c, j, -1, -1, count, mass, sums[2 * j])
            best = _prefer(table, best, candidate, lot)
        else:
            for j in range(first_bin[c], first_bin[c + 1] - 1):
                if gain[j] >= enough:
                    # The rest has the feature's lower value and goes left.
                    count = _count(sums, j, unit)
                    mass = node.mass - _mass(sums, j, count, scratch.masses)
                    rest_n, rest = node.n - count, node.total - sums[2 * j]
                    candidate = Candidate(gain[j], c, j, -1, -1, rest_n, mass, rest)
                    best = _prefer(table, best, candidate, lot)
    return _complete(table, scratch.label, sums, unit, node, best)


@njit(inline="always", **_FAST)
def _terms(node, packing):
    half, mean = 0.5000000001 / packing.scale, node.total / node.mass
    n, unit, lightest = np.float64(node.n), packing.unit, packing.lightest
    return Terms(n, node.mass, mean, unit, 1.0 / unit, half, lightest)


@njit(**_OPTIONS)
def _prefer(table, best, candidate, lot):
    """The better of two candidates; of tied ones, that whose feature draws the lower lot.

    A lot depends on the seed, the tree, the node and the feature, and not on other candidates.
    """
    if candidate.column < 0 or (best.column >= 0 and candidate.gain < best.gain * (1.0 - TIE)):
        return best
    if best.column < 0 or candidate.gain > best.gain * (1.0 + TIE):
        return candidate
    ours = mix(lot ^ np.uint64(_feature(table, best)))
    theirs = mix(lot ^ np.uint64(_feature(table, candidate)))
    return candidate if theirs < ours else best


@njit(**_OPTIONS)
def _draw_features(tried, hat, n_tried, lot):
    """Choose the features that a node looks at, by a few steps of a shuffle."""
    n = hat.shape[0]
    tried[:] = False
    for k in range(n_tried):
        other = k + np.int64(mix(lot + GOLDEN_GAMMA * np.uint64(k + 1)) % np.uint64(n - k))
        hat[k], hat[other] = hat[other], hat[k]
        tried[hat[k]] = True


@njit(**_OPTIONS)
def _is_tried(table, tried, column):
    """Whether a node looks at the feature of a fine or coarse column."""
    if column < table.order.shape[0]:
        return tried[table.fine_features[column]]
    if column < table.n_fine:
        return tried[table.features.shape[0]]  # f
    return tried[table.coarse_features[column - table.n_fine]]


@njit(inline="always", **_FAST)
def _gain(left_sum, left_mass, mass, mean):
    """g of the module's text."""
    excess = left_sum - left_mass * mean
    return excess * excess / (left_mass * (mass - left_mass))


@njit(**_FAST)
def _mass(sums, j, count, masses):
    """The mass of bin j; whether there are masses at all is known when this is compiled."""
    if masses is None:
        return np.float64(count)
    return sums[np.uint64(masses) + np.uint64(j)]


# Whether a bin's split gains more than g needs no division: (s − c T/N)² > g c (N − c). So loops
# over all bins, which must vectorise, look for promising ones, and only those are worked out.


@njit(**_OPTIONS)
def _border_gains(table, sums, terms, rules, tried, gains, column_gain, masses):
    """The best gain at a bin of each column, where it may be the best of all; and the best of all.

    Elsewhere −1. Looks at groups of columns, so that small columns cost little.
    """
    least, some = rules.min_leaf, rules.n_tried < tried.shape[0]
    first_bin, groups, known = table.first_bin, table.groups, -1.0
    for group in range(groups.shape[0] - 1):
        columns = range(groups[group], groups[group + 1])
        start, end = first_bin[columns.start], first_bin[columns.stop]
        enough = _nearly(known)
        if known >= 0.0 and not _reaching(sums, start, end, terms, least, enough, masses):
            for c in columns:
                column_gain[c] = -1.0
            continue
        _bin_gains(sums, start, end, terms, least, gains, masses)
        if some:
            _pass_over(table, tried, columns.start, columns.stop, gains)
        for c in columns:
            # A bundle's last bin is no split.
            end = first_bin[c + 1] - (c >= table.n_numeric)
            column_gain[c] = _maximum(gains, first_bin[c], end)
            known = max(known, column_gain[c])
    return known


@njit(**_OPTIONS)
def _pass_over(table, tried, first, last, gains):
    """No gain for features of some columns that the node does not look at."""
    for c in range(first, last):
        numeric = c < table.n_numeric
        hidden = numeric and not _is_tried(table, tried, c)
        for j in range(table.first_bin[c], table.first_bin[c + 1] - (not numeric)):
            if hidden or (not numeric and not tried[table.bin_feature[j]]):
                gains[j] = -1.0


@njit(**_FAST)
def _reaching(sums, start, end, terms, least, enough, masses):
    """Whether a split at the bins of a range gains ``enough`` (a maximum would not vectorise)."""
    found, n, mass, mean, inverse = 0, terms.n, terms.mass, terms.mean, terms.inverse
    legal = _least_product(n, least)
    for j in range(np.uint64(start), np.uint64(end)):
        count = np.floor(sums[j + j + _ONE] * inverse)
        left_mass = _mass(sums, j, count, masses)
        product = left_mass * (mass - left_mass)
        excess = sums[j + j] - left_mass * mean
        reaches = excess * excess >= enough * product
        found += np.int64(reaches & (_product(product, mass, count, n, masses) > legal))
    return found > 0


@njit(**_FAST)
def _bin_gains(sums, start, end, terms, least, gains, masses):
    """The gain of the split at each bin of a range; −1 if a side has too few rows."""
    n, mass, mean, inverse = terms.n, terms.mass, terms.mean, terms.inverse
    legal = _least_product(n, least)
    for j in range(np.uint64(start), np.uint64(end)):
        count = np.floor(sums[j + j + _ONE] * inverse)
        left_mass = _mass(sums, j, count, masses)
        product = left_mass * (mass - left_mass)
        excess = sums[j + j] - left_mass * mean
        enough = _product(product, mass, count, n, masses) > legal
        gains[j] = excess * excess / product if enough else -1.0


@njit(inline="always", **_FAST)
def _least_product(n, least):
    """Counts c of rows before a split leave both sides enough rows if c (n − c) is larger."""
    return least * (n - least) - 0.5


@njit(**_FAST)
def _product(product, mass, count, n, masses):
    """The product of the row counts on both sides; without masses it is that of the masses.

    A side whose mass is lost in the rounding of the other's counts as empty.
    """
    if masses is None:
        return product
    return count * (n - count) if product > _NEGLIGIBLE * mass * mass else -1.0


@njit(**_FAST)
def _maximum(values, start, end):
    largest = -1.0
    for j in range(np.uint64(start), np.uint64(end)):
        largest = max(largest, values[j])
    return largest


@njit(**_FAST)
def _promises(first_bin, divisible, sums, terms, enough, promises, least, masses):
    """Not negative for each block of the fine columns that may hide a split gaining ``enough``."""
    inverse = terms.inverse
    for j in range(_ONE, np.uint64(promises.shape[0])):
        at = j + j
        before = np.floor(sums[at - _ONE] * inverse)
        after = np.floor(sums[at + _ONE] * inverse)
        promises[j] = _block_promise(
            sums[at - _TWO], sums[at - _ONE], before, _mass(sums, j - _ONE, before, masses),
            sums[at], sums[at + _ONE], after, _mass(sums, j, after, masses),
            divisible[j], terms, enough,
        )  # fmt: skip
    for c in range(first_bin.shape[0]):
        j = first_bin[c]
        if j >= promises.shape[0]:
            break
        after = np.floor(sums[2 * j + 1] * inverse)
        promises[j] = _block_promise(
            0.0, 0.0, 0.0, 0.0, sums[2 * j], sums[2 * j + 1], after, _mass(sums, j, after, masses),
            divisible[j], terms, enough,
        )  # fmt: skip
    if least > 1.0:
        _break_promises(first_bin, sums, inverse, least, terms.n - least, promises)


@njit(**_OPTIONS)
def _break_promises(first_bin, sums, inverse, least, most, promises):
    """For blocks all of whose splits leave a side too few rows."""
    for c in range(first_bin.shape[0] - 1):
        before = 0.0
        for j in range(first_bin[c], min(first_bin[c + 1], promises.shape[0])):
            after = np.floor(sums[2 * j + 1] * inverse)
            if after <= least or before >= most:
                promises[j] = -1.0
            before = after


@njit(inline="always", **_FAST)
def _block_promise(
    sum0, weight0, count0, mass0, sum1, weight1, count1, mass1, divisible, terms, enough
):  # fmt: skip
    """At the corners of the rectangle of the splits strictly inside a block."""
    mass, mean = terms.mass, terms.mean
    reach = ((weight1 - weight0) - (count1 - count0) * terms.unit) * terms.half
    middle = 0.5 * (sum0 + sum1)
    low, high = mass0 + terms.lightest, mass1 - terms.lightest
    excess_low = abs(middle - low * mean) + reach
    excess_high = abs(middle - high * mean) + reach
    promise = max(
        excess_low * excess_low - enough * (low * (mass - low)),
        excess_high * excess_high - enough * (high * (mass - high)),
    )
    return promise if divisible and count1 - count0 > 1.5 else -1.0


@njit(**_FAST)
def _any_promise(promises, start, end):
    found = 0
    for j in range(np.uint64(start), np.uint64(end)):
        found += np.int64(promises[j] >= 0.0)
    return found > 0


@njit(inline="always", **_OPTIONS)
def _nearly(gain):
    """A little less than a gain, so that what ties with it is not lost; more than −1, no gain."""
    return gain * (1.0 - TIE)


@njit(**_OPTIONS)
def _scan_together(team, table, residual, scratch, sums, terms, node, enough):
    """Each member of a team finds the candidates in its share of every fine column."""
    if team is not None:
        for c in range(table.n_fine):
            if not _is_tried(table, scratch.tried, c):
                continue
            first, last = _share_of_bins(team, scratch.promise, table.first_bin, c)
            found = _range_candidate(
                table, residual, scratch, sums, terms, node, c, enough, first, last
            )
            _note(team.memory.candidates[team.me, c], found)
        wait(team)


@njit(**_OPTIONS)
def _share_of_bins(team, promises, first_bin, column):
    """The bins of a column that are this member's: as many promising ones as the others have."""
    start, end, total = first_bin[column], first_bin[column + 1], 0
    for j in range(start, end):
        total += promises[j] >= 0.0
    some, more = part(team, 0, total)
    first = _after_promising(promises, start, end, some)
    return first, end if team.me == team.size - 1 else _after_promising(promises, start, end, more)


@njit(**_OPTIONS)
def _after_promising(promises, start, end, count):
    """The bin after the first ``count`` promising ones."""
    j = start
    while count > 0 and j < end:
        count -= promises[j] >= 0.0
        j += 1
    return j


@njit(**_OPTIONS)
def _fine_candidate(team, table, residual, scratch, sums, terms, node, column, enough):
    """The best split of a fine column, on a border or inside a block, if it gains ``enough``."""
    if team is None:
        first, last = table.first_bin[column], table.first_bin[column + 1]
        return _range_candidate(
            table, residual, scratch, sums, terms, node, column, enough, first, last
        )
    best = Candidate(enough, -1, 0, -1, -1, 0, 0.0, 0.0)
    for member in range(team.size):
        found = _noted(team.memory.candidates[member, column])
        if found.column >= 0 and _improves(found.gain, best):
            best = found
    return best


@njit(**_OPTIONS)
def _note(fields, found):
    fields[0], fields[1], fields[2], fields[3] = found.gain, found.column, found.bin, found.before
    fields[4], fields[5], fields[6] = found.after, found.left_n, found.left_mass
    fields[7] = found.left_sum


@njit(**_OPTIONS)
def _noted(fields):
    return Candidate(
        fields[0], np.int64(fields[1]), np.int64(fields[2]), np.int64(fields[3]),
        np.int64(fields[4]), np.int64(fields[5]), fields[6], fields[7],
    )  # fmt: skip


@njit(**_OPTIONS)
def _range_candidate(
    table, residual, scratch, sums, terms, node, column, enough, start, end
):  # fmt: skip
    """The best split at some bins of a fine column or inside them, if it gains ``enough``."""
    best = Candidate(enough, -1, 0, -1, -1, 0, 0.0, 0.0)
    first, unit = table.first_bin[column], terms.unit
    border_gain, border = scratch.column_gain[column], table.first_bin[column + 1]
    if border_gain >= enough:  # after this bin lies the best border
        border = _first_reaching(scratch.gain, first, border_gain)
    elif not _any_promise(scratch.promise, start, end):
        return best
    for j in range(start, end):
        if scratch.promise[j] >= 0.0:
            best_known = max(best.gain, _nearly(_nearly(best_told(scratch.team))))
            if _still_promising(sums, j, first, terms, best_known, scratch.masses):
                best = _scan(table, residual, scratch, sums, unit, node, column, j, best)
                tell(scratch.team, best.gain)
        if j == border and _improves(border_gain, best):
            count = _count(sums, j, unit)
            mass = _mass(sums, j, count, scratch.masses)
            best = Candidate(border_gain, column, j, -1, -1, count, mass, sums[2 * j])
    return best


@njit(**_FAST)
def _still_promising(sums, j, first, terms, enough, masses):
    """Whether a block holds its promise of a lower gain for ``enough``, too."""
    sum0, weight0, before, mass0 = 0.0, 0.0, 0.0, 0.0
    inverse = terms.inverse
    if j > first:
        sum0, weight0 = sums[2 * j - 2], sums[2 * j - 1]
        before = np.floor(weight0 * inverse)
        mass0 = _mass(sums, j - 1, before, masses)
    after = np.floor(sums[2 * j + 1] * inverse)
    promise = _block_promise(
        sum0, weight0, before, mass0, sums[2 * j], sums[2 * j + 1], after,
        _mass(sums, j, after, masses), True, terms, enough,
    )  # fmt: skip
    return promise >= 0.0


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
    label, places = scratch.label, scratch.places
    total_mass, mean = node.mass, node.total / node.mass
    inner = j > table.first_bin[column]
    left_sum = sums[2 * j - 2] if inner else 0.0
    count = _count(sums, j - 1, unit) if inner else 0
    mass = _mass(sums, j - 1, count, scratch.masses) if inner else 0.0
    legal = _least_product(node.n, scratch.rules.min_leaf)
    found, large = np.uint64(0), label.shape[0] > _CACHED
    for q in range(np.uint64(table.block_start[j]), np.uint64(table.block_end[j])):
        places[found] = q
        if large:
            prefetch(residual, np.uint64(order[q]))
        found += np.uint64(label[order[q]] == node.label)
    previous = np.int64(-1)
    for k in range(found):
        q = np.int64(places[k])
        if previous >= 0 and values[q] > values[previous] + FEATURE_THRESHOLD:
            # Most splits are refused, and refusing needs no division.
            left_mass = _current(mass, count, scratch.masses)
            excess = left_sum - left_mass * mean
            product = left_mass * (total_mass - left_mass)
            rows_product = _product(product, total_mass, count, node.n, scratch.masses)
            if excess * excess >= best.gain * product and rows_product > legal:
                gain = _gain(left_sum, left_mass, total_mass, mean)
                if _improves(gain, best):
                    best = Candidate(gain, column, j, previous, q, count, left_mass, left_sum)
        previous = q
        left_sum += residual[order[q]]
        count += _times(scratch.draws, order[q])
        mass += _mass_of(scratch.mass, order[q])
    return best


@njit(inline="always", **_OPTIONS)
def _improves(gain, best):
    """Whether a later split of the same feature replaces ``best``: ties go to the first."""
    return gain > best.gain * (1.0 + TIE) if best.column >= 0 else gain >= best.gain


@njit(**_OPTIONS)
def _complete(table, label, sums, unit, node, best):
    """The split of a candidate: its feature and the node's neighbouring values around it."""
    c, j = best.column, best.bin
    low, high = np.float32(0), np.float32(0)
    if c < 0:
        return Split(False, best.gain, 0, 0, 0.0, 0.0, low, high)
    if c < table.n_fine:
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
        count = _count(sums, j, unit)
        below, above = j, j + 1
        while below > table.first_bin[c] and _count(sums, below - 1, unit) == count:
            below -= 1
        while _count(sums, above, unit) == count:
            above += 1
        low, high = table.bin_low[below], table.bin_low[above]
    else:
        low, high = table.bin_low[j], table.bin_high[j]
    feature = _feature(table, best)
    left_n, left_mass = best.left_n, best.left_mass
    return Split(True, best.gain, feature, left_n, left_mass, best.left_sum, low, high)


@njit(**_OPTIONS)
def _feature(table, candidate):
    c = candidate.column
    if c < table.n_fine:
        return table.fine_features[c] if c < table.order.shape[0] else table.features.shape[0]
    if c < table.n_numeric:
        return table.coarse_features[c - table.n_fine]
    return table.bin_feature[candidate.bin]


@njit(**_OPTIONS)
def _is_pure(residual, scratch, node, gain):
    """scikit-learn's stopping rule; the variance is at least the gain, so it is rarely needed.

    (Where values are huge beside their spread, scikit-learn's variance cancels to nothing and it
    stops early; this does not.)
    """
    if gain > 2.0 * PURE:
        return False
    total, squares = 0.0, 0.0
    for q in range(node.start, node.end):
        i = scratch.rows[q]
        value = residual[i]
        total += value
        squares += value * value / _times(scratch.draws, i) / _mass_or_one(scratch.mass, i)
    return squares / node.mass - (total / node.mass) ** 2 <= PURE


# --- sums of a node -------------------------------------------------------------------------


@njit(**_OPTIONS)
def _collect(table, residual, scratch, start, end, packing, n_columns, sums, parent, rest):
    """The sums of the rows in a range of the row list, in the first ``n_columns`` columns.

    If they are some of a ``parent``'s rows, also the sums of the others.
    """
    first, last = part(scratch.team, 0, n_columns)
    first_bin, n_fine, n_numeric = table.first_bin, table.n_fine, table.n_numeric
    sums[2 * first_bin[first] : 2 * first_bin[last]] = 0.0
    codes, rows, unit, scale = table.codes, scratch.rows, packing.unit, packing.scale
    fine = range(np.uint64(first), np.uint64(min(last, n_fine)))
    others = range(np.uint64(max(first, n_fine)), np.uint64(last))
    large, stop = residual.shape[0] > _CACHED, np.uint64(end)
    for q in range(np.uint64(start), stop):
        i = rows[q]
        if large and q + _AHEAD < stop:
            prefetch(residual, np.uint64(rows[q + _AHEAD]))
            _fetch(codes, rows[q + _AHEAD])
        value = residual[i]
        plain = unit * _times(scratch.draws, i)
        weight = plain + np.ceil(abs(value) * scale)
        for c in fine:
            add_pair(sums, np.uint64(codes[i, c]), value, weight)
        for c in others:
            add_pair(sums, np.uint64(codes[i, c]), value, plain)
    _collect_masses(table, scratch, start, end, sums, parent, rest, scratch.masses)
    _settle(sums, first_bin, first, min(last, n_numeric), parent, rest)
    if parent is not None:
        for at in range(2 * first_bin[max(first, n_numeric)], 2 * first_bin[max(last, n_numeric)]):
            rest[at] = parent[at] - sums[at]
    wait(scratch.team)


@njit(**_OPTIONS)
def _collect_masses(table, scratch, start, end, sums, parent, rest, masses):
    """The masses of bins, as `_collect` their sums; nothing without masses."""
    if masses is not None:
        first_bin, codes, rows, mass = table.first_bin, table.codes, scratch.rows, scratch.mass
        behind, n_bins = np.uint64(masses), np.uint64(first_bin[-1])
        sums[masses:] = 0.0
        for q in range(np.uint64(start), np.uint64(end)):
            i = rows[q]
            for c in range(np.uint64(codes.shape[1])):
                sums[behind + (np.uint64(codes[i, c]) >> _ONE)] += mass[i]
        for c in range(table.n_numeric):
            total = 0.0
            for j in range(np.uint64(first_bin[c]), np.uint64(first_bin[c + 1])):
                total += sums[behind + j]
                sums[behind + j] = total
        if parent is not None:
            for j in range(behind, behind + n_bins):
                rest[j] = parent[j] - sums[j]


@njit(inline="always", **_OPTIONS)
def _fetch(codes, row):
    """Ask for a row that comes up soon: the machine cannot guess the next one of a node."""
    width, i = np.uint64(codes.shape[1]), np.uint64(row)
    prefetch(codes, i * width)
    prefetch(codes, i * width + width - _ONE)


@njit(**_OPTIONS)
def _settle(sums, first_bin, first, last, parent, rest):
    """Turn the sums of numeric columns into running sums; the rest is the ``parent``'s minus those.

    (Without a parent, which is known when this is compiled, there is no rest.) A running sum waits
    for its last addition, so two columns are done side by side.
    """
    for c in range(first, last, 2):
        a, b = np.uint64(2 * first_bin[c]), np.uint64(2 * first_bin[c + 1])
        a_end, b_end = b, b
        if c + 1 < last:
            b_end = np.uint64(2 * first_bin[c + 2])
        value_a, weight_a, value_b, weight_b = 0.0, 0.0, 0.0, 0.0
        for _ in range(min(a_end - a, b_end - b) // _TWO):
            value_a, weight_a = value_a + sums[a], weight_a + sums[a + _ONE]
            value_b, weight_b = value_b + sums[b], weight_b + sums[b + _ONE]
            _write(sums, a, value_a, weight_a, parent, rest)
            _write(sums, b, value_b, weight_b, parent, rest)
            a += _TWO
            b += _TWO
        _run(sums, a, a_end, value_a, weight_a, parent, rest)
        _run(sums, b, b_end, value_b, weight_b, parent, rest)


@njit(**_OPTIONS)
def _run(sums, start, end, value, weight, parent, rest):
    for at in range(start, end, _TWO):
        value, weight = value + sums[at], weight + sums[at + _ONE]
        _write(sums, at, value, weight, parent, rest)


@njit(**_OPTIONS)
def _write(sums, at, value, weight, parent, rest):
    sums[at], sums[at + _ONE] = value, weight
    if parent is not None:
        rest[at], rest[at + _ONE] = parent[at] - value, parent[at + _ONE] - weight


@njit(**_OPTIONS)
def _partition(team, scratch, node, column, low):
    """Order the node's rows as left child, right child; gives the border between the two."""
    rows, spare = scratch.rows, scratch.spare
    if team is None:
        right = _separate(scratch, node, node.start, node.end, column, low, rows, node.start, spare)
        middle = node.end - right
        _copy(spare, 0, right, rows, middle)
        return middle
    start, end = part(team, node.start, node.end)
    other = team.memory.other
    right = _separate(scratch, node, start, end, column, low, spare, start, other[start:])
    team.counts[team.me] = right
    wait(team)
    all_right, right_before = 0, 0
    for member in range(team.size):
        right_before += team.counts[member] if member < team.me else 0
        all_right += team.counts[member]
    middle = node.end - all_right
    _copy(spare, start, end - start - right, rows, start - right_before)
    _copy(other, start, right, rows, middle + right_before)
    wait(team)
    return middle


@njit(**_OPTIONS)
def _separate(scratch, node, start, end, column, low, lefts, at, rights):
    """Write some rows of a node to ``lefts``, from ``at`` on, or ``rights``, which are counted."""
    rows, label = scratch.rows, scratch.label
    left, right = np.uint64(at), np.uint64(0)
    first_child = np.uint16(2 * node.label + 1)
    for q in range(np.uint64(start), np.uint64(end)):
        i = rows[q]
        goes_right = column[i] > low
        lefts[left] = i
        rights[right] = i
        left += np.uint64(not goes_right)
        right += np.uint64(goes_right)
        label[i] = first_child + np.uint16(goes_right)
    return np.int64(right)


@njit(**_OPTIONS)
def _copy(source, start, size, target, at):
    for q in range(np.uint64(size)):
        target[np.uint64(at) + q] = source[np.uint64(start) + q]


# --- leaves, and what they do to the next root ------------------------------------------------


@njit(**_OPTIONS)
def _set_leaf(value_at, label, value):
    """Write a leaf's value at its left-most place of the last level."""
    n_leaves = value_at.shape[0]
    place = label
    while place + 1 < n_leaves:
        place = 2 * place + 1
    value_at[place + 1 - n_leaves] = value


@njit(**_OPTIONS)
def _set_leaves(value_at, node, split):
    """Write the values of a node's two children on the last level, and give them."""
    left = split.left_sum / split.left_mass
    right = (node.total - split.left_sum) / (node.mass - split.left_mass)
    _set_leaf(value_at, 2 * node.label + 1, left)
    _set_leaf(value_at, 2 * node.label + 2, right)
    return left, right


@njit(**_OPTIONS)
def _finish_leaves(
    table, residual, scratch, sums, unit, node, split, column, values, learning_rate
):  # fmt: skip
    """Take the steps of two sisters on the last level off their rows, and book them.

    All rows are booked with the larger leaf's value, from the parent's counts; then the smaller
    leaf's rows are corrected one by one.
    """
    rows, spare, low = scratch.rows, scratch.spare, split.low
    small_is_right = 2 * split.left_n > node.n
    small, large = (values[1], values[0]) if small_is_right else values
    # No branch in the loop: it would be taken half of the time.
    steps, flip = scratch.steps, np.uint64(not small_is_right)
    steps[0], steps[1] = learning_rate * values[0], learning_rate * values[1]
    start, end = part(scratch.team, node.start, node.end)
    to = np.uint64(start)
    for q in range(np.uint64(start), np.uint64(end)):
        i = rows[q]
        goes_right = np.uint64(column[i] > low)
        residual[i] -= steps[goes_right]
        spare[to] = i
        to += goes_right ^ flip
    _book_counts(sums, unit, large, scratch.drop, scratch.growth)
    change, change_abs = small - large, abs(small) - abs(large)
    _book_small(scratch.team, table, scratch, node, np.int64(to) - start, change, change_abs)


@njit(**_OPTIONS)
def _book_small(team, table, scratch, node, n_small, change, change_abs):
    """Correct the bins of the rows in the smaller leaf, which lie where each member put them."""
    n_columns = table.codes.shape[1]
    if team is None:
        _book_rows(table, scratch, node.start, n_small, 0, n_columns, change, change_abs)
        return
    team.counts[team.me] = n_small
    wait(team)
    first, last = part(team, 0, n_columns)
    for member in range(team.size):
        start, _ = part_of(member, team.size, node.start, node.end)
        _book_rows(table, scratch, start, team.counts[member], first, last, change, change_abs)
    wait(team)


@njit(**_OPTIONS)
def _leave(residual, rows, start, end, step):
    """Take a leaf's step off the residuals of some of its rows."""
    for q in range(np.uint64(start), np.uint64(end)):
        residual[rows[q]] -= step


@njit(**_OPTIONS)
def _book_rows(table, scratch, start, n_rows, first, last, change, change_abs):
    """Add a change to some columns' bins of rows that lie in ``spare``.

    That of |r| matters in fine columns alone.
    """
    codes, rows, pairs = table.codes, scratch.spare, scratch.row_changes
    fine = range(np.uint64(first), np.uint64(min(last, table.n_fine)))
    others = range(np.uint64(max(first, table.n_fine)), np.uint64(last))
    large, end = codes.shape[0] > _CACHED, np.uint64(start + n_rows)
    for q in range(np.uint64(start), end):
        i = rows[q]
        if large and q + _AHEAD < end:
            _fetch(codes, rows[q + _AHEAD])
        for c in fine:
            add_pair(pairs, np.uint64(codes[i, c]), change, change_abs)
        for c in others:
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
def _sorted_rows(table, c):
    if c < table.order.shape[0]:
        return table.order[c], table.values[c]
    return table.f_order, table.f_values


@njit(**_OPTIONS)
def _times(draws, i):
    """How often row i was drawn; whether that is known at all is known when this is compiled."""
    if draws is None:
        return 1
    return np.int64(draws[i])


@njit(**_OPTIONS)
def _mass_of(mass, i):
    """The mass of row i, where rows have masses; else nobody asks."""
    if mass is None:
        return 0.0
    return mass[i]


@njit(**_OPTIONS)
def _mass_or_one(mass, i):
    if mass is None:
        return 1.0
    return mass[i]


@njit(**_OPTIONS)
def _current(mass, count, masses):
    """A running mass, which without masses is a running count."""
    if masses is None:
        return np.float64(count)
    return mass


@njit(**_OPTIONS)
def _largest(residual):
    largest = 0.0
    for value in residual:
        largest = max(largest, abs(value))
    return largest


@njit(**_OPTIONS)
def _unit(n):
    return 2.0 ** (52 - np.ceil(np.log2(n + 1.0)))


@njit(**_OPTIONS)
def _packing(n, largest, lightest):
    """For ``n`` draws of residuals up to ``largest``."""
    return Packing(_unit(n), min(_unit(n) / 4.0 / (n + 1.0) / largest, 1e200), lightest)
