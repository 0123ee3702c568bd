"""Fitted models as ONNX graphs, which other runtimes and languages can evaluate.

A round is one `TreeEnsemble` of the operator set ai.onnx.ml 5, the first with double precision and
sets of categories, over the columns of X and, last, the round's feature. Numbers are doubles
throughout, so that a threshold sends a row to the same side as here.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .arrays import Floats
from .encoding import CategoryCode, LevelCode, NumberCode
from .engines.nodes import IS_SET, LEAF, MISSING_IS_ZERO, MISSING_LEFT, Nodes
from .logloss import LARGEST_LOGIT, sigmoid
from .storage import forest_trees, init_kind, round_trees
from .trajectories import Trajectory

OPSETS = {"": 18, "ai.onnx.ml": 5}
IR_VERSION = 10  # what runtimes of these operator sets read
LESS_OR_EQUAL, MEMBER = 0, 6  # modes of a node
SUM = 1


def to_onnx(model: Any) -> Any:
    """Return a fitted estimator as an ONNX model; needs the package onnx (extra ``onnx``).

    Parameters
    ----------
    model : MulticalibrationBoostingRegressor or MulticalibrationBoostingClassifier
        A fitted estimator whose rounds are trees.

    Returns
    -------
    onnx.ModelProto
        A graph with the outputs ``prediction`` (n,), or ``probabilities`` (n, classes) and
        ``label`` (n,). Its inputs are ``X`` (n, d) of doubles, if all columns are numbers, and
        otherwise one for each column, (n, 1), named as the column: doubles, or strings for
        categories (a missing category is the word ``"(missing)"``). If the initial predictor was
        passed by the user, there is the further input ``initial_prediction`` (n, 1) of doubles, or
        (n, classes) for more than two classes: what that model predicts (of two classes, the
        probability of the second).

    Raises
    ------
    ValueError
        If the rounds are not trees.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from mcgb import MulticalibrationBoostingRegressor, to_onnx
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = MulticalibrationBoostingRegressor(random_state=0).fit(X, y)
    >>> [value.name for value in to_onnx(model).graph.input]
    ['X']
    """
    check_is_fitted(model)
    graph = _Graph()
    columns = _columns(graph, model)
    classes = getattr(model, "classes_", None)
    n_scores = 1 if classes is None or len(classes) == 2 else len(classes)
    if init_kind(model) in ("none", "user"):
        start = graph.input("initial_prediction", n_scores)
    else:
        start = _initial(graph, model, columns)
    if classes is None:
        f = _corrected(graph, model, columns, start)
        graph.output("prediction", graph.add("Squeeze", f, graph.constant([1])), ["n"])
        return graph.model()
    starts, parts = [start], (model,)
    if model.corrections_:
        starts, parts = graph.columns(start, n_scores), model.corrections_
    each = [
        graph.add("Sigmoid", _corrected(graph, part, columns, _logit(graph, p)))
        for part, p in zip(parts, starts, strict=True)
    ]
    _add_classes(graph, each, classes)
    return graph.model()


def _add_classes(graph: "_Graph", each: Sequence[str], classes: Any) -> None:
    """Add the outputs of a classifier: probabilities of the classes, or of the second of two."""
    if len(each) == 1:
        each = [graph.add("Sub", graph.constant([[1.0]]), *each), *each]
    proba = graph.add("Concat", *each, axis=1)
    sums = graph.add("ReduceSum", proba, graph.constant([1]), keepdims=1)
    graph.output("probabilities", graph.add("Div", proba, sums), ["n", len(classes)])
    best = graph.add("ArgMax", proba, axis=1, keepdims=0)  # of equal ones the first, as `predict`
    kind = {"f": "DOUBLE", "b": "INT64", "i": "INT64", "u": "INT64"}.get(classes.dtype.kind)
    labels = classes.astype({"DOUBLE": np.float64, "INT64": np.int64, None: str}[kind])
    label = graph.add("Gather", graph.constant(labels), best)
    graph.output("label", label, ["n"], kind or "STRING")


class _Graph:
    """An ONNX graph that is built node by node; values are known by their names."""

    def __init__(self) -> None:
        import onnx  # an extra

        self.onnx = onnx
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.constants: list[Any] = []

    def tensor(self, values: Any, name: str = "values") -> Any:
        values = np.asarray(values)
        words = values.astype(object) if values.dtype.kind == "U" else values
        return self.onnx.numpy_helper.from_array(words, name)

    def input(self, name: str, width: int, kind: str = "DOUBLE") -> str:
        self.inputs.append(self._described(name, kind, ["n", width]))
        return name

    def output(self, name: str, value: str, shape: Sequence[Any], kind: str = "DOUBLE") -> None:
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))
        self.outputs.append(self._described(name, kind, shape))

    def _described(self, name: str, kind: str, shape: Sequence[Any]) -> Any:
        number = getattr(self.onnx.TensorProto, kind)
        return self.onnx.helper.make_tensor_value_info(name, number, shape)

    def constant(self, values: Any) -> str:
        self.constants.append(self.tensor(values, f"constant_{len(self.constants)}"))
        return self.constants[-1].name

    def add(self, operator: str, *values: str, domain: str = "", **attributes: Any) -> str:
        name = f"{operator}_{len(self.nodes)}"
        self.nodes.append(
            self.onnx.helper.make_node(operator, values, [name], domain=domain, **attributes)
        )
        return name

    def everywhere(self, value: float) -> str:
        """Return a column (n, 1) of one value."""
        n = self.add("Shape", self.inputs[0].name, start=0, end=1)
        shape = self.add("Concat", n, self.constant([1]), axis=0)
        return self.add("Expand", self.constant([[value]]), shape)

    def columns(self, value: str, width: int) -> list[str]:
        """Return the columns of a matrix, each (n, 1)."""
        return [self.add("Gather", value, self.constant([j]), axis=1) for j in range(width)]

    def model(self) -> Any:
        helper = self.onnx.helper
        graph = helper.make_graph(
            self.nodes, "mcgb", self.inputs, self.outputs, initializer=self.constants
        )
        opsets = [helper.make_opsetid(name, version) for name, version in OPSETS.items()]
        return helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="mcgb"
        )


def _columns(graph: _Graph, model: Any) -> list[str]:
    """Add the inputs; return the columns of the trees' matrix that each column becomes, (n, k)."""
    codes = model.encoding_.codes
    if all(isinstance(code, NumberCode) for code in codes):
        given = graph.columns(graph.input("X", len(codes)), len(codes))
        pairs = zip(codes, given, strict=True)
        return [x if code.kept else _filled(graph, code, x) for code, x in pairs]
    found = []
    for code in codes:
        if isinstance(code, NumberCode):
            x = graph.input(code.name, 1)
            found.append(x if code.kept else _filled(graph, code, x))
            continue
        found.append(
            graph.add(
                "LabelEncoder",
                graph.input(code.name, 1, "STRING"),
                domain="ai.onnx.ml",
                keys_strings=list(code.levels),
                values_tensor=graph.tensor(np.arange(len(code.levels), dtype=np.float64)),
                default_tensor=graph.tensor(np.array([np.nan])),
            )
        )
        if isinstance(code, LevelCode):
            found[-1] = _indicators(graph, found[-1], len(code.levels))
    return found


def _filled(graph: _Graph, code: NumberCode, x: str) -> str:
    return graph.add("Where", graph.add("IsNaN", x), graph.constant([[code.fill]]), x)


def _indicators(graph: _Graph, codes: str, n_levels: int) -> str:
    equal = graph.add("Equal", codes, graph.constant([np.arange(n_levels, dtype=np.float64)]))
    return graph.add("Cast", equal, to=graph.onnx.TensorProto.DOUBLE)


def _initial(graph: _Graph, model: Any, columns: Sequence[str]) -> str:
    """Return what a stored initial predictor predicts: (n, 1), or (n, classes) for many."""
    if init_kind(model) == "mean":
        return graph.everywhere(float(np.ravel(model.init_.constant_)[0]))
    if model._init_sees == "indicators" and model.encoding_.is_native:
        pairs = zip(model.encoding_.codes, columns, strict=True)
        columns = [
            _indicators(graph, x, len(code.levels))
            if isinstance(code, CategoryCode)
            else _filled(graph, code, x)
            for code, x in pairs
        ]
    matrix = graph.add("Concat", *columns, axis=1)
    found = [_trees(graph, trees, 1.0, matrix) for trees in forest_trees(model.init_)]
    return found[0] if len(found) == 1 else graph.add("Concat", *found, axis=1)


def _logit(graph: _Graph, p: str) -> str:
    """Add what `logloss.logit` does."""
    largest = float(sigmoid(np.array([LARGEST_LOGIT]))[0])
    p = graph.add("Clip", p, graph.constant(1.0 - largest), graph.constant(largest))
    return graph.add("Log", graph.add("Div", p, graph.add("Sub", graph.constant([[1.0]]), p)))


def _corrected(graph: _Graph, model: Any, columns: Sequence[str], f0: str) -> str:
    """Add f_0 + Σ share (f_T − f_0), as `trajectories.corrected` computes it."""
    total = f0
    for trajectory in model.trajectories_:
        moved = graph.add("Sub", _end(graph, trajectory, columns, f0), f0)
        total = graph.add(
            "Add", total, graph.add("Mul", moved, graph.constant([[trajectory.share]]))
        )
    return total


def _end(graph: _Graph, trajectory: Trajectory, columns: Sequence[str], f0: str) -> str:
    """Add the rounds of a trajectory: f_{t+1} = w_t f_t + (w_t η) h_t."""
    f = f0 if trajectory.start is None else graph.everywhere(trajectory.start)
    fixed = {"none": graph.everywhere(0.0), "initial": f0}
    for step, trees in zip(trajectory.rounds, round_trees(trajectory), strict=True):
        feature = fixed.get(trajectory.feedback, f)
        matrix = graph.add("Concat", *columns, feature, axis=1)
        h = _trees(graph, trees, step.weight * trajectory.eta, matrix)
        if step.weight != 1.0:
            f = graph.add("Mul", f, graph.constant([[step.weight]]))
        f = graph.add("Add", f, h)
    return f


def _trees(graph: _Graph, trees: Nodes, factor: float, matrix: str) -> str:
    """Add the sum of all trees of a matrix's rows, (n, 1), times a factor."""
    leaf = trees.nodes["feature"] == LEAF
    alone = trees.roots[leaf[trees.roots]]  # trees of one leaf, which the operator does not have
    constant = graph.everywhere(factor * float(trees.nodes["number"][alone].sum()))
    inner, leaves = np.flatnonzero(~leaf), np.setdiff1d(np.flatnonzero(leaf), alone)
    if len(inner) == 0:
        return constant
    rank = np.zeros(len(leaf), np.int64)
    rank[inner], rank[leaves] = np.arange(len(inner)), np.arange(len(leaves))
    own = trees.nodes[inner]
    is_set, number = (own["flags"] & IS_SET) > 0, own["number"]
    as_zero, missing_left = ((own["flags"] & flag) > 0 for flag in (MISSING_IS_ZERO, MISSING_LEFT))
    left_if_missing = ~is_set & np.where(as_zero, number >= 0, missing_left)
    attributes: dict[str, Any] = {
        "tree_roots": rank[trees.roots[~leaf[trees.roots]]],
        "nodes_featureids": own["feature"],
        "nodes_splits": graph.tensor(np.where(is_set, 0.0, number)),
        "nodes_modes": graph.tensor(np.where(is_set, MEMBER, LESS_OR_EQUAL).astype(np.uint8)),
        "nodes_missing_value_tracks_true": left_if_missing.astype(np.int64),
        "n_targets": 1,
        "leaf_targetids": np.zeros(len(leaves), np.int64),
        "leaf_weights": graph.tensor(factor * trees.nodes["number"][leaves]),
    }
    for side, place in (("true", inner + own["left"]), ("false", inner + own["right"])):
        attributes[f"nodes_{side}nodeids"] = rank[place]
        attributes[f"nodes_{side}leafs"] = leaf[place].astype(np.int64)
    if is_set.any():
        members = [_members(trees, node) for node in own[is_set]]
        attributes["membership_values"] = graph.tensor(np.concatenate(members))
    plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in attributes.items()}
    h = graph.add("TreeEnsemble", matrix, domain="ai.onnx.ml", aggregate_function=SUM, **plain)
    return graph.add("Add", h, constant) if len(alone) else h


def _members(trees: Nodes, node: Any) -> Floats:
    """Return the categories in a node's set, and NaN, which ends it."""
    first, n_words = int(node["number"]), int(node["flags"]) >> 3
    words = trees.sets[first : first + n_words].astype("<u4")
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")
    return np.append(np.flatnonzero(bits).astype(np.float64), np.nan)
