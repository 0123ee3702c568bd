"""The fast audit against a slow and obvious one, hand-made cases, and what must not change it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.boosting.audit import READINGS, Auditor, Leaves, error_of
from pipeline.boosting.audit.trees import draw, ordered_keys


def slow_leaves(X, f, n_trees, depth, seed):
    """Draw the trees by the definition, with lists of rows; yields {leaf: rows} per tree."""
    Z = np.column_stack([X, f]).astype(np.float32)
    for tree in range(n_trees):
        leaves = {}

        def grow(rows, level, position, tree=tree, leaves=leaves):
            if level == depth:
                leaves[position] = rows
                return
            node = 2**level + position
            varying = [j for j in range(Z.shape[1]) if len(np.unique(Z[rows, j])) > 1]
            left, right = rows, []
            if varying:
                tries = 4 * Z.shape[1]
                draws = (int(draw(seed, tree, node, 0, a) * Z.shape[1]) for a in range(tries))
                chosen = next((j for j in draws if j in varying), None)
                if chosen is None:
                    chosen = varying[int(draw(seed, tree, node, 0, tries) * len(varying))]
                low, high = (np.float64(g(Z[rows, chosen])) for g in (np.min, np.max))
                threshold = np.float32(low + draw(seed, tree, node, 1, 0) * (high - low))
                if threshold >= np.float32(high):
                    threshold = np.nextafter(np.float32(high), np.float32(-np.inf))
                left = [i for i in rows if Z[i, chosen] <= threshold]
                right = [i for i in rows if Z[i, chosen] > threshold]
                assert left
                assert right
            grow(left, level + 1, 2 * position)
            grow(right, level + 1, 2 * position + 1)

        grow(list(range(len(Z))), 0, 0)
        yield leaves


def slow_error(X, f, residual, n_trees, depth, seed, reading):
    n, squares = len(f), []
    for tree, leaves in enumerate(slow_leaves(X, f, n_trees, depth, seed)):
        weak = []
        for leaf, rows in leaves.items():
            indicator = np.zeros(n)
            indicator[rows] = 1.0
            if reading == "random_leaf_values":
                indicator *= 2 * draw(seed, tree, leaf, 2, 0) - 1
            elif reading == "fitted_leaf_values" and rows:
                indicator *= residual[rows].mean()
            weak.append(indicator)
        if reading == "leaf_indicators":
            squares.append(sum(np.mean(residual * b) ** 2 for b in weak))
        else:
            squares.append(np.mean(residual * sum(weak)) ** 2)
    return np.sqrt(np.mean(squares))


def awkward_table(seed, n, d):
    """Constant, binary, rare and duplicated columns beside ordinary ones."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    kinds = rng.integers(0, 5, size=d)
    X[:, kinds == 0] = 3.0
    X[:, kinds == 1] = rng.random((n, (kinds == 1).sum())) < 0.5
    X[:, kinds == 2] = rng.random((n, (kinds == 2).sum())) < 0.05
    X[:, kinds == 3] = X[:, :1]
    return X, rng.normal(size=n).round(1), rng.normal(size=n)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**64 - 1),
    st.integers(1, 60),
    st.integers(1, 6),
    st.integers(1, 5),
    st.sampled_from(READINGS),
)
def test_equals_the_slow_definition(seed, n, d, depth, reading):
    X, f, residual = awkward_table(seed % 1000, n, d)
    ours = Auditor(X, n_trees=7, depth=depth, seed=seed).error(
        y=f + residual, prediction=f, reading=reading
    )
    expected = slow_error(X, f, residual, 7, depth, np.uint64(seed), reading)
    assert ours == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_equals_the_slow_definition_where_small_nodes_are_listed_rather_than_scanned():
    X, f, residual = awkward_table(4, 1500, 3)
    rare = (np.random.default_rng(0).random((1500, 40)) < 0.002).astype(float)
    X = np.column_stack([X, rare])  # in a small node nearly all of these are constant
    for reading in READINGS:
        ours = Auditor(X, n_trees=5, depth=4, seed=9).error(
            y=f + residual, prediction=f, reading=reading
        )
        assert ours == pytest.approx(slow_error(X, f, residual, 5, 4, 9, reading), rel=1e-9)


def test_equals_the_slow_definition_at_the_greatest_depth():
    X, f, residual = awkward_table(6, 700, 5)
    ours = Auditor(X, n_trees=3, depth=8, seed=1).error(y=f + residual, prediction=f)
    assert ours == pytest.approx(slow_error(X, f, residual, 3, 8, 1, "leaf_indicators"), rel=1e-9)
    with pytest.raises(ValueError, match="depth=9"):
        Auditor(X, depth=9)


def test_worked_example_of_all_three_readings():
    # One tree with two leaves, 4 rows: leaf 0 holds residuals 1 and 2, leaf 1 holds 3 and −1.
    leaves = Leaves(np.array([[3.0, 2.0]]), np.array([[2.0, 2.0]]), n=4, seed=0)
    # (3/4)² + (2/4)² = 0.5625 + 0.25
    assert error_of(leaves, "leaf_indicators") == pytest.approx(0.8125**0.5)
    # 3·(3/2)/4 + 2·(2/2)/4 = 1.125 + 0.5
    assert error_of(leaves, "fitted_leaf_values") == pytest.approx(1.625)
    v0, v1 = (2 * draw(0, 0, leaf, 2, 0) - 1 for leaf in (0, 1))
    expected = abs(v0 * 3 / 4 + v1 * 2 / 4)
    assert error_of(leaves, "random_leaf_values") == pytest.approx(expected)


def test_single_binary_feature_leaves_no_choice():
    # Only x can be split, and any threshold separates 0 from 1: leaves {0, 1} and {2}.
    X, f = np.array([[0.0], [0.0], [1.0]]), np.zeros(3)
    error = Auditor(X, n_trees=10, depth=1).error(y=np.array([1.0, 2.0, 6.0]), prediction=f)
    assert error == pytest.approx(((3 / 3) ** 2 + (6 / 3) ** 2) ** 0.5)


@pytest.mark.parametrize("reading", READINGS)
class TestInvariants:
    X, f, residual = awkward_table(11, 300, 8)

    def error(self, reading, residual=None, order=slice(None), seed=1):
        auditor = Auditor(self.X[order], n_trees=40, depth=3, seed=seed)
        residual = self.residual if residual is None else residual
        leaves = auditor.leaves(prediction=self.f[order], residual=residual[order])
        return error_of(leaves, reading)

    def test_zero_for_zero_residuals(self, reading):
        assert self.error(reading, np.zeros(300)) == 0

    def test_scales_with_the_residuals(self, reading):
        power = 2 if reading == "fitted_leaf_values" else 1
        assert self.error(reading, -3 * self.residual) == pytest.approx(
            3**power * self.error(reading)
        )

    def test_ignores_the_order_of_rows(self, reading):
        order = np.random.default_rng(0).permutation(300)
        assert self.error(reading, order=order) == pytest.approx(self.error(reading), rel=1e-12)

    def test_is_the_same_again_and_other_for_another_seed(self, reading):
        assert self.error(reading) == self.error(reading)
        assert self.error(reading) != self.error(reading, seed=2)


def test_random_leaf_values_have_a_third_of_the_mean_square_of_leaf_indicators():
    X, f, residual = awkward_table(5, 400, 6)
    leaves = Auditor(X, n_trees=20_000, depth=3, seed=3).leaves(prediction=f, residual=residual)
    ratio = (error_of(leaves, "random_leaf_values") / error_of(leaves, "leaf_indicators")) ** 2
    assert ratio == pytest.approx(1 / 3, rel=0.05)


def test_trees_that_do_not_touch_f_are_the_same_for_every_predictor():
    # f constant: it is never split, so its value cannot matter.
    X, _, residual = awkward_table(5, 200, 6)
    auditor = Auditor(X, n_trees=30, seed=3)
    errors = [
        error_of(auditor.leaves(prediction=f, residual=residual))
        for f in (np.zeros(200), np.full(200, 9.0))
    ]
    assert errors[0] == errors[1]


def test_features_and_thresholds_are_drawn_uniformly():
    rng = np.random.default_rng(0)
    X = rng.random((500, 3))
    n_trees, used = 4000, np.zeros(4)
    f = rng.random(500)
    left = []
    for leaves in slow_leaves(X, f, n_trees=n_trees, depth=1, seed=7):
        cuts = [
            Z[leaves[0]].max() < Z[leaves[1]].min()
            for Z in np.column_stack([X, f]).astype(np.float32).T
        ]
        used[cuts.index(True)] += 1
        left.append(len(leaves[0]) / 500)
    assert (np.abs(used / n_trees - 1 / 4) < 0.03).all()
    assert abs(np.mean(left) - 1 / 2) < 0.02
    assert abs(np.var(left) - 1 / 12) < 0.01


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=2, max_size=50))
def test_keys_keep_the_order_and_equality_of_float32(values):
    values = np.array(values, np.float64)
    keys = ordered_keys(values)
    np.testing.assert_array_equal(keys[:, None] < keys, values[:, None] < values)
    np.testing.assert_array_equal(keys[:, None] == keys, values[:, None] == values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depth": 0}, "depth=0"),
        ({"depth": 9}, "depth=9"),
        ({"n_trees": 0}, "n_trees=0"),
        ({"X": np.array([[np.nan]])}, "X: holds NaN"),
        ({"X": np.empty((0, 3))}, "X: must have rows"),
        ({"f": np.array([1.0, 2.0])}, "prediction: has shape"),
        ({"y": np.array([np.inf])}, "y: holds NaN or infinity"),
        ({"w": np.array([-1.0])}, "sample_weight: must not be negative"),
        ({"reading": "tea_leaves"}, "reading='tea_leaves'"),
    ],
)
def test_unusable_input_is_refused_by_name(change, message):
    use = {"X": np.zeros((1, 1)), "f": np.zeros(1), "y": np.ones(1), "w": None} | change
    reading = use.pop("reading", "leaf_indicators")
    X, f, y, w = (use.pop(name) for name in "Xfyw")
    with pytest.raises(ValueError, match=message):
        Auditor(X, **use).error(y=y, prediction=f, sample_weight=w, reading=reading)
