"""The predictions from which the rounds of a large table start."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.dummy import DummyRegressor

from ..arrays import Floats
from ..engines.base import TreeSettings
from ..engines.lightgbm import Bins, binning, growing, lightgbm_package
from ..engines.nodes import Nodes, constant_tree, lightgbm_nodes
from ..losses import Loss
from ..storage import StoredForest
from .parts import TableRows

FOREST = TreeSettings(100, 5, subsample=0.632)  # the paper's, as far as LightGBM has it


def fitted_forest(
    rows: TableRows, settings: TreeSettings, bins: Bins, seed: int, categorical: tuple[int, ...]
) -> str:
    """The text of LightGBM's forest over (0, x), fitted to rows.

    It is fitted to the driver's sample: over shards, the rows that a tree draws would depend on how
    the table is divided. Of outcomes 0 and 1, the mean of its trees is a probability. Rows with
    weights are drawn in proportion to them: LightGBM's forests fail on some tables with weights.
    """
    lightgbm = lightgbm_package()
    if rows.weights is not None:
        shares = rows.weights / rows.weights.sum()
        rows = rows.take(np.random.default_rng(seed).choice(len(rows), len(rows), p=shares))
    parameters = binning(bins, 1) | growing(settings, seed) | {"boosting": "rf"}
    data = lightgbm.Dataset(
        np.column_stack([np.zeros(len(rows)), rows.X]), rows.y, params=parameters,
        categorical_feature=[j + 1 for j in categorical],
    )  # fmt: skip
    return lightgbm.train(parameters, data, settings.n_trees).model_to_string()


@dataclass(frozen=True)
class Initial:
    """The initial predictor of X as numbers.

    kind : "forest", "mean" or "given", that is, predictions come with the rows.  text : the
    forest's model, or the mean; as it is in a checkpoint.
    """

    kind: str
    text: str | None
    loss: Loss

    @cached_property
    def trees(self) -> Nodes:
        """The forest, or the mean as a tree of one leaf."""
        if self.kind == "forest":
            return lightgbm_nodes(str(self.text))[0]
        none = Nodes.joined([])
        leaf, one = constant_tree(float(str(self.text))), np.array([0, 1], np.int64)
        return none._replace(nodes=leaf, roots=one[:1], bounds=one)

    def predictor(self, classes: Any = None) -> Any:
        """What a model has as its ``init_``; of a classifier, with the labels of both classes."""
        if self.kind == "given":
            return None
        if self.kind == "mean" and classes is None:  # which is stored as a number
            mean = DummyRegressor(strategy="constant", constant=float(str(self.text)))
            return mean.fit([[0.0]], [0.0])
        return StoredForest((self.trees,), classes)

    def scores(self, rows: Floats, given: Floats | None) -> Floats:
        """f_0 of rows X (n, d), or that of their given predictions (n,)."""
        if self.kind != "given":
            given = StoredForest((self.trees,)).predict(rows)
        if given is None:
            raise ValueError("initial_prediction: is needed for these rows")
        return self.loss.score(given)
