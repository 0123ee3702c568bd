"""Growing gradient-boosted trees exactly, fast.

The trees are scikit-learn's: at every node the split of largest gain over all features, legal
thresholds half-way between neighbouring values of the node, depth-first to a depth limit. What
makes them fast is that a node never looks at most of its possible splits:

- `columns`: features are cut into bins and blocks of rows;
- `sums`: a node has the sums of its rows in all bins;
- `gains`: from these follow the gains at borders of bins, and bounds on the gains elsewhere; why
  this is exact is proved there;
- `splits`: the best split is chosen, with a look inside of the few blocks that may hide it;
- `leaves`: the root's sums of the next tree follow from the leaves of this one;
- `structures`: what these functions pass to each other, and how it is represented.
"""

from pathlib import Path

import numpy as np
from numba import njit

from ... import splitmix
from ...caching import forget_outdated
from ...splitmix import GOLDEN_GAMMA, mix
from .leaves import carry_sums, finish_leaves, record_node, set_leaf, set_leaves, subtract_step
from .splits import best_split, is_pure
from .structures import ENTRY, INNER, Node, Packing, feature_values, packing_for, packing_unit
from .sums import collect_sums
from .trees import leaf_of

STALE = 0.15  # by how much of Σ|r| the root's bounds may be off before they are recomputed
SHRUNK = 1e-3  # residuals of this share of their former size are summed again in all columns

_NOT_DRAWN = np.uint16(2**16 - 1)  # the label of a row that is in no node


@njit(**ENTRY)
def grow_trees(table, residual, trees, learning_rate, seed, scratch):
    """Fit trees to ``residual`` (n,) and fill ``trees``; ``residual`` becomes what remains.

    Returns nothing: numba crashes if Ctrl-C comes while it turns results into Python objects.
    """
    n, carried = residual.shape[0], scratch.carried
    packing = Packing(packing_unit(n), 1.0, 1.0)
    everything = 2 * table.first_bin[table.n_fine] - 2  # f's last bin holds all rows
    fresh = 0.0  # the packed Σ|r| when the bounds were last computed
    former = 0.0  # max|r| when all columns were last summed
    for tree in range(trees.feature.shape[0]):
        for i in range(n):
            scratch.rows[i] = i
            scratch.label[i] = 0
        unit = packing.unit
        if tree == 0 or carried[everything + 1] - n * unit > (1.0 + STALE) * fresh:
            largest = _largest_residual(residual)
            if largest == 0.0:
                break  # nothing left to fit: the remaining trees are zero
            packing = packing_for(n, largest, 1.0)
            n_columns = table.n_fine  # the others stay accurate until residuals shrink
            if tree == 0 or largest < SHRUNK * former:
                n_columns, former = table.codes.shape[1], largest
            _collect_root(table, residual, scratch, n, packing, n_columns)
            fresh = carried[everything + 1] - n * unit
        scratch.drop[:] = 0.0
        scratch.growth[:] = 0.0
        scratch.random[0] = mix(seed + GOLDEN_GAMMA * np.uint64(tree + 1))
        root = Node(0, 0, 0, n, n, np.float64(n), carried[everything])
        _grow(table, residual, scratch, packing, root, trees, tree, learning_rate)
        carry_sums(table, scratch, packing, learning_rate)


@njit(**ENTRY)
def grow_forest(table, y, draws, trees, seeds, scratch):
    """Fit a tree to ``y`` (n,) on each bootstrap sample and fill ``trees``.

    draws : (n_trees, n) how often each row is in each sample;  seeds : (n_trees,) for ties.

    A row that was drawn k times is a row of residual k y and weight k. Rows that were not drawn are
    in no node.
    """
    n = y.shape[0]
    residual = np.empty(n)
    for tree in range(draws.shape[0]):
        n_rows, n_drawn, total, largest = np.uint64(0), 0, 0.0, 0.0
        for i in range(n):
            times = draws[tree, i]
            scratch.draws[i] = times
            scratch.label[i] = 0 if times > 0 else _NOT_DRAWN
            scratch.rows[n_rows] = i
            n_rows += np.uint64(times > 0)
            n_drawn += times
            residual[i] = times * y[i]
            total += residual[i]
            largest = max(largest, abs(residual[i]))
        packing, end = packing_for(n, largest, 1.0), np.int64(n_rows)
        _collect_root(table, residual, scratch, end, packing, table.codes.shape[1])
        scratch.random[0] = mix(seeds[tree])
        root = Node(0, 0, 0, end, n_drawn, np.float64(n_drawn), total)
        _grow(table, residual, scratch, packing, root, trees, tree, None)


@njit(**ENTRY)
def grow_weighted(table, residual, weights, samples, trees, learning_rate, seeds, scratch):
    """Fit trees to rows with ``weights`` (n,), each to a sample of them, and fill ``trees``.

    samples : (n_trees, n) how often each row is in each tree's sample; (0, 0) means once.
    seeds : (n_trees,) for ties.

    ``residual`` (n,) becomes what remains, also of rows outside of the samples. Rows whose mass,
    weight times sample, is 0 are in no node. A tree's values are computed again from its rows,
    because those of its splits come from differences, in which rows of little mass would be lost.
    """
    n, n_inner = residual.shape[0], trees.feature.shape[1]
    weighted, mass = np.empty(n), scratch.mass
    sums_of_leaves, masses_of_leaves = np.empty(n_inner + 1), np.empty(n_inner + 1)
    for tree in range(trees.feature.shape[0]):
        n_rows, total, total_mass, largest, lightest = np.uint64(0), 0.0, 0.0, 0.0, np.inf
        for i in range(n):
            mass[i] = weights[i] * samples[tree, i] if samples.shape[0] > 0 else weights[i]
            scratch.label[i] = 0 if mass[i] > 0.0 else _NOT_DRAWN
            scratch.rows[n_rows] = i
            n_rows += np.uint64(mass[i] > 0.0)
            weighted[i] = mass[i] * residual[i]
            total += weighted[i]
            total_mass += mass[i]
            largest = max(largest, abs(weighted[i]))
            if mass[i] > 0.0:
                lightest = min(lightest, mass[i])
        end = np.int64(n_rows)
        if largest == 0.0:
            continue  # nothing to fit
        packing = packing_for(n, largest, lightest)
        _collect_root(table, weighted, scratch, end, packing, table.codes.shape[1])
        scratch.random[0] = mix(seeds[tree])
        root = Node(0, 0, 0, end, end, total_mass, total)
        _grow(table, weighted, scratch, packing, root, trees, tree, None)
        sums_of_leaves[:] = 0.0
        masses_of_leaves[:] = 0.0
        leaves = scratch.places  # which nothing else uses here
        for i in range(n):
            leaf = leaf_of(table, trees, tree, i)
            leaves[i] = leaf
            sums_of_leaves[leaf] += weighted[i]
            masses_of_leaves[leaf] += mass[i]
        for leaf in range(n_inner + 1):
            if masses_of_leaves[leaf] > 0.0:
                trees.value[tree, leaf] = sums_of_leaves[leaf] / masses_of_leaves[leaf]
        for i in range(n):
            residual[i] -= learning_rate * trees.value[tree, leaves[i]]


@njit(**INNER)
def _collect_root(table, residual, scratch, end, packing, n_columns):
    """Fill ``scratch.carried`` with the sums of the first rows in some columns.

    The root has no parent. What is then written to the first level is not read, and costs less than
    another compilation of `collect_sums`.
    """
    sums, rest, start = scratch.carried, scratch.levels[0], np.int64(0)
    collect_sums(table, residual, scratch, start, end, packing, n_columns, sums, sums, rest)


@njit(**INNER)
def _grow(table, residual, scratch, packing, root, trees, tree, learning_rate):
    """Grow one tree depth-first from the root, whose sums are ``scratch.carried``.

    Without a learning rate the tree changes no residuals.

    The sums of a node's larger child take the node's place in ``levels``, and those of the smaller
    one, which is grown first, take the next free place; so one place per level is enough.
    """
    levels = scratch.levels
    depth = levels.shape[0] - 1
    _push(scratch, 0, root)
    place = 1
    while place > 0:
        place -= 1
        node = _pop(scratch, place)
        sums = scratch.carried if node.level == 0 else levels[place]
        split = best_split(table, residual, scratch, sums, packing, node)
        if not split.found or is_pure(residual, scratch, node, split.gain):
            value = node.total / node.mass
            set_leaf(trees.value[tree], node.label, value)
            if learning_rate is not None:
                subtract_step(residual, scratch.rows, node, learning_rate * value)
                record_node(sums, packing.unit, value, scratch.drop, scratch.growth)
            continue
        trees.feature[tree, node.label] = split.feature
        trees.threshold[tree, node.label] = split.low / 2.0 + split.high / 2.0
        trees.gain[tree, node.label] = split.gain * node.mass
        column = feature_values(table, split.feature)
        if node.level + 1 == depth:
            values = set_leaves(trees.value[tree], node, split)
            if learning_rate is not None:
                unit, rate = packing.unit, learning_rate
                finish_leaves(
                    table, residual, scratch, sums, unit, node, split, column, values, rate
                )
            continue
        middle = _partition(scratch, node, column, split.low)
        label, level = 2 * node.label + 1, node.level + 1
        left_n, left_mass, left_sum = split.left_n, split.left_mass, split.left_sum
        right_n, right_mass = node.n - left_n, node.mass - left_mass
        right_sum = node.total - left_sum
        left = Node(label, level, node.start, middle, left_n, left_mass, left_sum)
        right = Node(label + 1, level, middle, node.end, right_n, right_mass, right_sum)
        small, large = left, right
        if 2 * (middle - node.start) > node.end - node.start:
            small, large = right, left
        start, end, n_columns = small.start, small.end, table.codes.shape[1]
        of_small, of_large = levels[place + 1], levels[place]
        collect_sums(
            table, residual, scratch, start, end, packing, n_columns, of_small, sums, of_large
        )
        _push(scratch, place, large)
        _push(scratch, place + 1, small)
        place += 2


@njit(inline="always", **INNER)
def _push(scratch, place, node):
    waiting = scratch.waiting
    waiting[place, 0], waiting[place, 1] = node.label, node.level
    waiting[place, 2], waiting[place, 3], waiting[place, 4] = node.start, node.end, node.n
    scratch.waiting_sums[place, 0], scratch.waiting_sums[place, 1] = node.mass, node.total


@njit(inline="always", **INNER)
def _pop(scratch, place):
    ints, floats = scratch.waiting[place], scratch.waiting_sums[place]
    return Node(ints[0], ints[1], ints[2], ints[3], ints[4], floats[0], floats[1])


@njit(**INNER)
def _partition(scratch, node, column, low):
    """Move the rows of the left child before those of the right; return the border of the two."""
    rows, label, rights = scratch.rows, scratch.label, scratch.spare
    left, right = np.uint64(node.start), np.uint64(0)
    first_child = np.uint16(2 * node.label + 1)
    for q in range(np.uint64(node.start), np.uint64(node.end)):
        i = rows[q]
        goes_right = column[i] > low
        rows[left] = i
        rights[right] = i
        left += np.uint64(not goes_right)
        right += np.uint64(goes_right)
        label[i] = first_child + np.uint16(goes_right)
    for q in range(right):
        rows[left + q] = rights[q]
    return np.int64(left)


@njit(**INNER)
def _largest_residual(residual):
    largest = 0.0
    for value in residual:
        largest = max(largest, abs(value))
    return largest


for _entry in (grow_trees, grow_forest, grow_weighted):
    forget_outdated(_entry, [Path(splitmix.__file__), *Path(__file__).parent.glob("*.py")])
