"""Claims 7 to 10: multicalibration error on held-out rows, means over seeds.

A best round is the one from 0 to T with the smallest mean test MCE; round 0 is the initial
predictor.
"""

from functools import partial
from math import inf

import numpy as np

from pipeline.analysis import paper
from pipeline.analysis.samples import Samples, mean_curves
from pipeline.analysis.style import STRATEGIES
from pipeline.boosting.arrays import Floats, Ints
from pipeline.chapters.claims.rules import Limit, about_curves
from pipeline.report.render import share

U_MARGIN = 0.05  # how far both arms of a U stand above its bottom
FAST = ("unit", "adaptive")


def _round(t: float) -> str:
    return "never" if t == inf else f"{t:.0f}"


about_test_errors = partial(about_curves, shown=mean_curves, show=_round)


@about_test_errors(
    "7",
    text="Test MCE is U-shaped on California Housing and German Credit",
    paper="a distinct U on both",
    figure="generalization",
    what="how far the lower end of the curve stands above its smallest value",
    limit=Limit(low=U_MARGIN, by_hand=True),
    show=share,
    on=paper.U_SHAPED_ON,
    strategies=STRATEGIES,
)
def lower_arm(at: Samples, dataset: str, strategy: str) -> Floats:
    """0 where the smallest value is at an end."""
    mce = at(dataset, strategy, "mce_test")[:, at.first :]
    return np.minimum(mce[:, 0], mce[:, -1]) / mce.min(axis=1) - 1


@about_test_errors(
    "8",
    text="Unit's and Adaptive's best round lies within rounds "
    f"{paper.BEST_EARLY[0]}–{paper.BEST_EARLY[1]}",
    paper=f"{paper.BEST_EARLY[0]}–{paper.BEST_EARLY[1]}, depending on the dataset",
    figure="best_rounds",
    what="best round",
    limit=Limit(*paper.BEST_EARLY),
    strategies=FAST,
)
def best_round(at: Samples, dataset: str, strategy: str) -> Ints:
    """Of the samples' own rounds that may be best."""
    return at.best_round(dataset, strategy)


@about_test_errors(
    "9",
    text="On German Credit, Unit and Adaptive overfit almost at once",
    paper="almost immediately",
    figure="generalization",
    what=f"best round, if the curve ends {share(U_MARGIN)} above it, otherwise never",
    limit=Limit(high=2, by_hand=True),
    on=("german",),
    strategies=FAST,
)
def overfits_after(at: Samples, dataset: str, strategy: str) -> Floats:
    """Infinite where the error does not rise again."""
    mce = at(dataset, strategy, "mce_test")
    rises = mce[:, -1] >= mce[:, at.first :].min(axis=1) * (1 + U_MARGIN)
    return np.where(rises, at.best_round(dataset, strategy), inf)


@about_test_errors(
    "10a",
    text="Relaxed's best round comes later than Unit's and Adaptive's",
    paper="later",
    figure="best_rounds",
    what="rounds from the later of the others' best rounds to Relaxed's",
    limit=Limit(low=1),
    strategies=("relaxed",),
)
def later_by(at: Samples, dataset: str, strategy: str) -> Ints:
    """Negative where it is best before one of them."""
    own, *others = (at.best_round(dataset, s) for s in (strategy, *FAST))
    return own - np.maximum(*others)


# "About": how far the best round may be from the paper's.
for _id, _dataset, _title, _within in (
    ("10b", "california", "California Housing", 3),
    ("10c", "german", "German Credit", 1),
):
    _best = paper.RELAXED_BEST[_dataset]
    about_test_errors(
        _id,
        text=f"Relaxed's best round on {_title} is about {_best}",
        paper=f"about {_best}",
        figure="generalization",
        what="best round",
        limit=Limit(_best - _within, _best + _within, by_hand=True),
        on=(_dataset,),
        strategies=("relaxed",),
    )(best_round)


@about_test_errors(
    "10d",
    text="Relaxed does not reach its minimum on Adult within the rounds",
    paper=f"no minimum within {paper.N_ROUNDS}",
    figure="generalization",
    what="rounds from the best to the last one",
    limit=Limit(high=0),
    on=("adult",),
    strategies=("relaxed",),
)
def rounds_after_the_best(at: Samples, dataset: str, strategy: str) -> Ints:
    """0 if the last round is the best."""
    return at.runs.n_rounds - at.best_round(dataset, strategy)
