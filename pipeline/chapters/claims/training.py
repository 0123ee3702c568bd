"""Claims 3 to 6: errors on the training rows."""

import numpy as np

from pipeline.analysis import paper
from pipeline.analysis.curves import ROUNDING
from pipeline.analysis.samples import Samples
from pipeline.analysis.style import STRATEGIES
from pipeline.boosting.arrays import Floats
from pipeline.chapters.claims.gap import DECAYED
from pipeline.chapters.claims.rules import Limit, about_curves
from pipeline.report.render import share

FIRST_ROUNDS = 3


@about_curves(
    "3",
    text="Training MSE never increases, for every strategy and dataset",
    paper="monotone for all",
    figure="training",
    what="the largest change of the training MSE from one round to the next",
    limit=Limit(high=ROUNDING),
    show=share,
    strategies=STRATEGIES,
)
def largest_mse_rise(at: Samples, dataset: str, strategy: str) -> Floats:
    """Negative where every step goes down."""
    mse = at(dataset, strategy, "mse_train")
    rises: Floats = (mse[:, 1:] / mse[:, :-1] - 1).max(axis=1)
    return rises


@about_curves(
    "4",
    text="Relaxed converges more slowly at first than Unit and Adaptive",
    paper="slightly slower",
    figure="training",
    what=f"Relaxed's training MSE in units of the larger of the others', the smallest ratio of "
    f"rounds 1 to {FIRST_ROUNDS}",
    limit=Limit(low=1.0),
    show="{:.3f}".format,
    strategies=("relaxed",),
)
def slower_start(at: Samples, dataset: str, strategy: str) -> Floats:
    """Above 1 where it is behind both others in all these rounds."""
    slow, *others = (
        at(dataset, s, "mse_train")[:, 1 : FIRST_ROUNDS + 1] for s in (strategy, "unit", "adaptive")
    )
    ratios: Floats = (slow / np.maximum(*others)).min(axis=1)
    return ratios


@about_curves(
    "5",
    text="Adaptive is at least as fast as Unit",
    paper="matches or exceeds Unit",
    figure="training",
    what="Adaptive's training MSE in units of Unit's, geometric mean over rounds",
    limit=Limit(high=1.05, by_hand=True),
    show="{:.3f}".format,
    strategies=("adaptive",),
)
def speed_against_unit(at: Samples, dataset: str, strategy: str) -> Floats:
    """Below 1 where it is faster."""
    ours, units = (at(dataset, s, "mse_train")[:, 1:] for s in (strategy, "unit"))
    return np.exp(np.log(ours / units).mean(axis=1))


@about_curves(
    "6a",
    text="Training MCE tends to 0",
    paper="a consistent trend towards 0",
    figure="training",
    what="the last training MCE as a share of the first",
    limit=DECAYED,
    show="{:.2g}".format,
    strategies=STRATEGIES,
)
def last_training_mce(at: Samples, dataset: str, strategy: str) -> Floats:
    """The last against round 0."""
    mce = at(dataset, strategy, "mce_train")
    return mce[:, -1] / mce[:, 0]


about_curves(
    "6b",
    text="Training MCE falls by orders of magnitude on German Credit and Diabetes",
    paper="some orders of magnitude",
    figure="training",
    what="the last training MCE as a share of the first",
    limit=Limit(high=0.01, by_hand=True),
    looser=Limit(high=0.1),
    show="{:.2g}".format,
    on=paper.MCE_FALLS_ON,
    strategies=STRATEGIES,
)(last_training_mce)
