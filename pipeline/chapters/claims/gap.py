"""Claims 1 and 2: the prediction gap under Unit."""

from __future__ import annotations

import numpy as np

from pipeline.analysis import paper
from pipeline.analysis.curves import bootstrap_interval, fit_tail, rounded_r2, tail_start
from pipeline.analysis.evidence import Evidence
from pipeline.boosting.arrays import Floats
from pipeline.chapters.claims.rules import (
    claim,
    enough_of,
    fraction,
    grade,
    percent,
    where_not,
)
from pipeline.judgement import Measured, Ruling

DECAYED = 0.2  # of the first gap
RISING_STEPS = 0.05  # of single runs' steps may rise more than the paper says


@claim(
    "1a",
    text="Unit: the gap decays towards zero on every dataset",
    paper="a clear overall decay on all five",
    figure="gap",
)
def gap_decays(e: Evidence) -> Ruling:
    """The last gap against the first."""
    ratios = {}
    for d in e.datasets:
        gaps = e.curves(d, "unit", "gap")
        ratios[d] = gaps[:, -1] / gaps[:, 1]
    above = [d for d, r in ratios.items() if r.mean() > DECAYED]
    verdict = "replicated" if not above else "partly"
    if any(r.mean() >= 1 for r in ratios.values()):
        verdict = "not replicated"
    failing = [f"{e.title(d)} ({ratios[d].mean():.2f})" for d in above]
    return Ruling(
        measured=Measured.of(
            "Dataset",
            ("last gap / first gap", "95 % interval"),
            {e.title(d): _mean_interval(r) for d, r in ratios.items()},
        ),
        rule=f"the last gap is at most {fraction(DECAYED)} of the first on every dataset "
        "(partly: below it on all)",
        verdict=verdict,
        explanation=where_not(verdict, failing, f"Above {fraction(DECAYED)}"),
    )


@claim(
    "1b",
    text=f"Unit: the gap never rises by more than {percent(paper.LARGEST_RISE)} from one round to "
    "the next",
    paper=f"≤ {percent(paper.LARGEST_RISE)}",
    figure="gap",
)
def gap_rises_little(e: Evidence) -> Ruling:
    """Rises of mean curves, and of single runs."""
    rises, shares = {}, {}
    for d in e.datasets:
        gaps = e.curves(d, "unit", "gap")[:, 1:]
        mean = gaps.mean(axis=0)
        rises[d] = float((mean[1:] / mean[:-1] - 1).max())
        shares[d] = float((gaps[:, 1:] / gaps[:, :-1] - 1 > paper.LARGEST_RISE).mean())
    in_mean = [d for d in rises if rises[d] > paper.LARGEST_RISE]
    in_seeds = [d for d in shares if shares[d] > RISING_STEPS]
    verdict = "replicated"
    if in_seeds:
        verdict = "partly"
    if in_mean:
        verdict = "partly" if len(in_mean) < len(rises) / 2 else "not replicated"
    failing = [f"{e.title(d)}: mean curve +{rises[d]:.0%}" for d in in_mean]
    failing += [f"{e.title(d)}: {shares[d]:.0%} of single steps" for d in in_seeds]
    limit = percent(paper.LARGEST_RISE)
    return Ruling(
        measured=Measured.of(
            "Dataset",
            (
                "largest rise of the mean curve",
                f"single runs' steps that rise by more than {limit}",
            ),
            {e.title(d): (f"{max(r, 0):.1%}", f"{shares[d]:.1%}") for d, r in rises.items()},
        ),
        rule=f"no step of a mean curve rises by more than {limit}, and at most "
        f"{percent(RISING_STEPS)} of single runs' steps do (partly: fewer than half of the mean "
        "curves break it)",
        verdict=verdict,
        explanation=where_not(verdict, failing, f"Rises above {limit}"),
    )


@claim(
    "2a",
    text="Unit: the tail of the log-gap is close to a line",
    paper=f"R² between {paper.LOWEST_R2} and {paper.HIGHEST_R2}",
    figure="gap",
)
def tail_is_linear(e: Evidence) -> Ruling:
    """R² of least-squares lines through the second half."""
    r2 = _tail_r2(e)
    start = tail_start(e.n_rounds)
    per_seed = {
        d: np.array([fit_tail(g, start).r2 for g in e.curves(d, "unit", "gap")]) for d in r2
    }
    low = [d for d, value in r2.items() if not value >= paper.LOWEST_R2]
    verdict = grade(len(r2) - len(low), len(r2))
    failing = [f"{e.title(d)} ({r2[d]:.2f})" for d in low]
    return Ruling(
        measured=Measured.of(
            "Dataset",
            ("R² of the mean curve", "median of single runs"),
            {
                e.title(d): (rounded_r2(r2[d]), rounded_r2(float(np.nanmedian(per_seed[d]))))
                for d in r2
            },
        ),
        rule=f"R² ≥ {paper.LOWEST_R2} over rounds {start}–{e.n_rounds} on every dataset "
        f"(partly: on {enough_of(len(r2))})",
        verdict=verdict,
        explanation=where_not(verdict, failing, f"R² below {paper.LOWEST_R2}"),
    )


@claim(
    "2b",
    text="Unit: R² is lowest on California Housing and Adult",
    paper="lowest on these two",
    figure="tail",
)
def lowest_r2_where_the_paper_says(e: Evidence) -> Ruling | None:
    """The order of the datasets by R²."""
    expected = set(paper.LOWEST_R2_ON)
    if not expected <= set(e.datasets) or len(e.datasets) < 2 * len(expected):
        return None
    r2 = _tail_r2(e)
    ordered = sorted(r2, key=lambda d: r2[d])
    hit = expected & set(ordered[: len(expected)])
    verdict = ("not replicated", "partly", "replicated")[len(hit)]
    return Ruling(
        measured=Measured.of(
            "Dataset", "R², ascending", {e.title(d): rounded_r2(r2[d]) for d in ordered}
        ),
        rule="they are the two lowest (partly: one of them is)",
        verdict=verdict,
        explanation=where_not(verdict, [e.title(d) for d in ordered[:2]], "The two lowest are"),
    )


def _tail_r2(e: Evidence) -> dict[str, float]:
    start = tail_start(e.n_rounds)
    return {d: fit_tail(e.curves(d, "unit", "gap").mean(axis=0), start).r2 for d in e.datasets}


def _mean_interval(values: Floats) -> tuple[str, str]:
    low, high = bootstrap_interval(values)
    return f"{values.mean():.2f}", f"{low:.2f}–{high:.2f}"
