"""One ensemble instead of rounds (Jin, Ding, Ngo, Wu, 2025, arXiv 2505.17435, Algorithm 1).

Trees of depth two over the groups' flags and the model's prediction are added to f, by LightGBM and
the squared error. As in the paper's Appendix E, there are at most 5,000 trees, stopped after 50
without an improvement on 30 % of the rows, which are held out for it. The other defaults are those
of the authors' code (hjenryin/Discretization-free-MC), which also keeps predictions within the
range of y. What the appendix calls a share of the features is one of the rows in the code.
"""

from dataclasses import dataclass

import numpy as np

from ..arrays import Floats
from .base import Corrected, Method, Range, Sample
from .trees import boosted_trees


@dataclass(frozen=True)
class OneShotTrees(Method):
    """Adds one ensemble of small trees over the groups' flags and f, fitted to y − f by LightGBM.

    See the module's text.
    """

    name = "one_shot"
    validates_by = "in_sample"

    learning_rate: float = 0.01
    rows: float = 0.5  # the share of the rows that a tree is fitted to
    bins: int = 8192  # of a column, at most
    depth: int = 2
    trees: int = 5000
    patience: int = 50
    aside: float = 0.3  # the share of the rows that is held out for stopping
    # The model was fitted to these rows, so the validation rows are used for stopping
    in_sample: bool = False

    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:
        train, stopping = sample, validation
        if not self.in_sample:
            order = np.random.default_rng(seed).permutation(len(sample))
            n_train = max(1, round(len(sample) * (1 - self.aside)))
            train, stopping = sample.take(order[:n_train]), sample.take(order[n_train:])
        groups, scale = sample.large_groups, Range.of(sample)

        def inputs(rows: Sample) -> Floats:
            return np.column_stack([rows.f, rows.groups[:, groups]])

        model = boosted_trees(
            inputs(train),
            train.y,
            inputs(stopping),
            stopping.y,
            False,
            seed,
            start=train.f,
            start_val=stopping.f,
            patience=self.patience,
            n_trees=self.trees,
            max_depth=self.depth,
            num_leaves=2**self.depth,
            learning_rate=self.learning_rate,
            bagging_fraction=self.rows,
            bagging_freq=1,
            max_bin=self.bins,
            min_data_in_bin=1,
        )

        def predict(rows: Sample) -> Floats:
            return np.clip(rows.f + model.scores(inputs(rows)), scale.low, scale.high)

        return Corrected(predict, model.n_trees)
