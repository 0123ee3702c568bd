"""What a figure might have shown: curves of single runs, and means over seeds.

A rule about curves is a function of samples (n, T + 1), so that the same one can be asked of single
runs, of the mean over all seeds, and of bootstrap samples of that mean.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.curves import Runs, resamples, tail_start
from pipeline.boosting.arrays import Floats, Ints

N_SAMPLES = 10_000  # a share of them is known to 0.4 %


@dataclass(frozen=True)
class Samples:
    """Samples of an experiment's curves."""

    name: str  # what they are samples of
    runs: Runs
    weights: Mapping[str, Floats]  # by dataset, (n, n_seeds), what each seed counts
    first: int  # the first round that may be a best round
    tail: int  # the first round of the gap's tail

    def __call__(self, dataset: str, strategy: str, column: str) -> Floats:
        """The curves (n, T + 1) of a column of the rounds."""
        return self.weights[dataset] @ self.runs.curves(dataset, strategy, column)

    def best_round(self, dataset: str, strategy: str) -> Ints:
        """The round (n,) from ``first`` on with the smallest test MCE, the first such."""
        best: Ints = self(dataset, strategy, "mce_test")[:, self.first :].argmin(axis=1)
        return self.first + best


def single_runs(runs: Runs) -> Samples:
    """Figures of single runs: each sample has one seed, drawn for each dataset by itself.

    Every seed is drawn equally often, so that shares of one dataset's runs are exact.
    """
    rng, n = np.random.default_rng(0), runs.n_seeds
    equally = np.arange(N_SAMPLES) % n
    drawn = {d: np.eye(n)[rng.permutation(equally)] for d in runs.datasets}
    return _samples("single runs", runs, drawn)


def mean_curves(runs: Runs) -> Samples:
    """Means over bootstrap samples of the seeds, the same seeds for all datasets."""
    n = runs.n_seeds
    counts = np.eye(n)[resamples(n, N_SAMPLES)].mean(axis=1)
    return _samples("bootstrap samples of the seeds", runs, dict.fromkeys(runs.datasets, counts))


def mean_curve(runs: Runs) -> Samples:
    """One sample: the mean over all seeds."""
    equal = np.full((1, runs.n_seeds), 1 / runs.n_seeds)
    return _samples("mean over seeds", runs, dict.fromkeys(runs.datasets, equal))


def _samples(name: str, runs: Runs, weights: Mapping[str, Floats]) -> Samples:
    return Samples(name, runs, weights, first=0, tail=tail_start(runs.n_rounds))
