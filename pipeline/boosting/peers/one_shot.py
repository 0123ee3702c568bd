"""One ensemble instead of rounds (Jin, Ding, Ngo, Wu, 2025, arXiv 2505.17435, Algorithm 1).

Trees of depth two over the groups' flags and the model's prediction are fitted to y − f once and
added to f. As in the paper's Appendix E: LightGBM, at most 5,000 trees, stopped after 50 without an
improvement on 30 % of the rows, which are held out for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from pipeline.boosting.arrays import Floats
from pipeline.boosting.peers.base import Corrected, Method, Sample
from pipeline.boosting.peers.trees import boosted_trees


@dataclass(frozen=True)
class OneShotTrees(Method):
    """Adds one ensemble of small trees over the groups' flags and f, fitted to y − f by LightGBM.

    See the module's text.

    learning_rate : the paper tries 0.01 to 1; the default is LightGBM's.  features : the share of
    the columns that a tree may use (the paper tries 0.1 to 1).  aside : the share of the rows that
    is held out for stopping.  in_sample : the model was fitted to these rows, so the validation
    rows are used for stopping.
    """

    name = "one_shot"
    needs = "lightgbm"

    learning_rate: float = 0.1
    depth: int = 2
    features: float = 1.0
    trees: int = 5000
    patience: int = 50
    aside: float = 0.3
    in_sample: bool = False

    @property
    @override
    def validates(self) -> bool:
        return self.in_sample

    @override
    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:
        train, stopping = sample, validation
        if not self.in_sample:
            order = np.random.default_rng(seed).permutation(len(sample))
            n_train = max(1, round(len(sample) * (1 - self.aside)))
            train, stopping = sample.take(order[:n_train]), sample.take(order[n_train:])
        groups = sample.large_groups

        def inputs(rows: Sample) -> Floats:
            return np.column_stack([rows.f, rows.groups[:, groups]])

        model = boosted_trees(
            inputs(train),
            train.y - train.f,
            inputs(stopping),
            stopping.y - stopping.f,
            False,
            seed,
            patience=self.patience,
            n_trees=self.trees,
            max_depth=self.depth,
            num_leaves=2**self.depth,
            learning_rate=self.learning_rate,
            colsample_bytree=self.features,
        )

        def predict(rows: Sample) -> Floats:
            corrected = rows.f + model.predict(inputs(rows))
            return np.clip(corrected, 0.0, 1.0) if rows.binary else corrected

        return Corrected(predict, model.n_trees)
