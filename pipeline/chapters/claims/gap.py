"""Claims 1 and 2: the prediction gap under Unit."""

import numpy as np

from pipeline.analysis import paper
from pipeline.analysis.curves import rounded_r2, tail_r2
from pipeline.analysis.samples import Samples
from pipeline.boosting.arrays import Floats, Ints
from pipeline.chapters.claims.rules import Limit, about_curves
from pipeline.report.render import share

DECAYED = Limit(high=0.5, by_hand=True)  # of the first round's


@about_curves(
    "1a",
    text="Unit: the gap decays towards zero on every dataset",
    paper="a clear overall decay on all five",
    figure="gap",
    what="the last gap as a share of the first",
    limit=DECAYED,
    show="{:.2g}".format,
)
def last_gap(at: Samples, dataset: str, strategy: str) -> Floats:
    """The last gap against the first."""
    gaps = at(dataset, strategy, "gap")
    return gaps[:, -1] / gaps[:, 1]


@about_curves(
    "1b",
    text=f"Unit: the gap never rises by more than {share(paper.LARGEST_RISE)} from one round to "
    "the next",
    paper=f"≤ {share(paper.LARGEST_RISE)}",
    figure="gap",
    what="the largest change of the gap from one round to the next",
    limit=Limit(high=paper.LARGEST_RISE),
    show=share,
)
def largest_rise(at: Samples, dataset: str, strategy: str) -> Floats:
    """Negative where every step goes down."""
    gaps = at(dataset, strategy, "gap")[:, 1:]
    rises: Floats = (gaps[:, 1:] / gaps[:, :-1] - 1).max(axis=1)
    return rises


@about_curves(
    "2a",
    text="Unit: the tail of the log-gap is close to a line",
    paper=f"R² between {paper.LOWEST_R2} and {paper.HIGHEST_R2}",
    figure="gap",
    what="R² of the line through the second half of the rounds",
    limit=Limit(low=paper.LOWEST_R2),
    show=rounded_r2,
)
def r2_of_the_tail(at: Samples, dataset: str, strategy: str) -> Floats:
    """From the samples' own start of the tail."""
    return tail_r2(at(dataset, strategy, "gap"), at.tail)


@about_curves(
    "2b",
    text="Unit: R² is lowest on California Housing and Adult",
    paper="lowest on these two",
    figure="tail",
    what="place in the ascending order of the datasets' R²",
    limit=Limit(high=len(paper.LOWEST_R2_ON)),
    show="{:.0f}".format,
    on=paper.LOWEST_R2_ON,
)
def place_by_r2(at: Samples, dataset: str, strategy: str) -> Ints:
    """1 for the lowest."""
    own = r2_of_the_tail(at, dataset, strategy)
    others = [r2_of_the_tail(at, d, strategy) for d in at.runs.datasets if d != dataset]
    return np.asarray(1 + np.sum([other < own for other in others], axis=0, dtype=np.int64))
