"""Claims 7 to 10: multicalibration error on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.analysis import paper
from pipeline.analysis.curves import best_round, bootstrap_best_rounds
from pipeline.analysis.evidence import Evidence
from pipeline.analysis.style import STRATEGIES
from pipeline.boosting.arrays import Floats
from pipeline.chapters.claims.rules import (
    MOST,
    claim,
    enough_of,
    grade,
    percent,
    where_not,
)
from pipeline.judgement import Measured, Ruling

U_MARGIN = 0.05  # how far both arms of a U stand above its bottom
AT_ONCE = 2  # rounds
SHARE_OF_SAMPLES = 0.2
FAST = ("unit", "adaptive")
# "About": how far the best round may be from the paper's.
ABOUT = {"california": 3, "german": 1}


@claim(
    "7",
    text="Test MCE is U-shaped on California Housing and German Credit",
    paper="a distinct U on both",
    figure="generalization",
)
def held_out_mce_is_u_shaped(e: Evidence) -> Ruling | None:
    """Both arms of each curve."""
    datasets = paper.U_SHAPED_ON
    if not set(datasets) <= set(e.datasets):
        return None
    shapes, detail = {}, {}
    for d in datasets:
        for s in STRATEGIES:
            mean = e.curves(d, s, "mce_test").mean(axis=0)[e.first :]
            key = f"{e.title(d)}/{s}"
            shapes[key] = _is_u(mean)
            low = mean.min()
            detail[key] = (
                str(e.first + int(mean.argmin())),
                f"{mean[0] / low - 1:+.0%}",
                f"{mean[-1] / low - 1:+.0%}",
            )
    both = all(any(shapes[f"{e.title(d)}/{s}"] for s in STRATEGIES) for d in datasets)
    verdict = "replicated" if all(shapes.values()) else "partly" if both else "not replicated"
    return Ruling(
        measured=Measured.of(
            "Dataset / strategy",
            ("best round", "start above it", "end above it"),
            detail,
        ),
        rule=f"best round strictly inside, both ends at least {percent(U_MARGIN)} above it, for "
        "all strategies on both (partly: for one strategy on each)",
        verdict=verdict,
        explanation=where_not(verdict, [k for k, u in shapes.items() if not u], "No U for"),
    )


@claim(
    "8",
    text="Unit's and Adaptive's best round lies within rounds "
    f"{paper.BEST_EARLY[0]}–{paper.BEST_EARLY[1]}",
    paper=f"{paper.BEST_EARLY[0]}–{paper.BEST_EARLY[1]}, depending on the dataset",
    figure="best_rounds",
)
def fast_strategies_are_best_early(e: Evidence) -> Ruling:
    """Best rounds of the mean curves, with a bootstrap over seeds."""
    first, last = paper.BEST_EARLY
    best, later = {}, []
    for d in e.datasets:
        for s in FAST:
            curves = e.curves(d, s, "mce_test")
            later.append(best_round(curves, first=1))
            samples = bootstrap_best_rounds(curves, first=e.first)
            low, high = np.quantile(samples, [0.05, 0.95])
            best[f"{e.title(d)}/{s}"] = (best_round(curves, e.first), int(low), int(high))
    outside = [k for k, (t, _, _) in best.items() if not first <= t <= last]
    verdict = grade(len(best) - len(outside), len(best))
    failing = [f"{k} ({best[k][0]})" for k in outside]
    return Ruling(
        measured=Measured.of(
            "Dataset / strategy",
            ("best round", "90 % of bootstrap samples of the seeds"),
            {k: (str(t), f"{a}–{b}") for k, (t, a, b) in best.items()},
        ),
        rule=f"the mean test MCE is smallest at a round from {first} to {last} in all cases "
        f"(partly: in {percent(MOST)})",
        verdict=verdict,
        explanation=where_not(verdict, failing, "Outside")
        + ("" if verdict == "replicated" or e.first else _without_the_start(later)),
    )


@claim(
    "9",
    text="On German Credit, Unit and Adaptive overfit almost at once",
    paper="almost immediately",
    figure="generalization",
)
def german_overfits_at_once(e: Evidence) -> Ruling | None:
    """An early best round, and a rise after it."""
    if "german" not in e.datasets:
        return None
    held, detail = [], {}
    for s in FAST:
        mean = e.curves("german", s, "mce_test").mean(axis=0)
        t = e.first + int(mean[e.first :].argmin())
        detail[s] = (str(t), f"{mean[-1] / mean[t] - 1:+.0%}")
        if t <= AT_ONCE and _ends_above(mean[-1], mean[t]):
            held.append(s)
    verdict = ("not replicated", "partly", "replicated")[len(held)]
    failing = [
        f"{s} (best at round {t}, at the end {rise})"
        for s, (t, rise) in detail.items()
        if s not in held
    ]
    return Ruling(
        measured=Measured.of("Strategy", ("best round", "test MCE at the end, against it"), detail),
        rule=f"test MCE is smallest at round {AT_ONCE} or before and ends at least "
        f"{percent(U_MARGIN)} above (partly: for one)",
        verdict=verdict,
        explanation=where_not(verdict, failing, "Not so for"),
    )


@claim(
    "10a",
    text="Relaxed's best round comes later than Unit's and Adaptive's",
    paper="later",
    figure="best_rounds",
)
def relaxed_is_best_later(e: Evidence) -> Ruling:
    """The order of the strategies' best rounds."""
    rounds, from_one = (
        {
            d: {s: best_round(e.curves(d, s, "mce_test"), first) for s in STRATEGIES}
            for d in e.datasets
        }
        for first in (e.first, 1)
    )
    held, held_from_one = (
        [d for d, r in table.items() if r["relaxed"] > max(r[s] for s in FAST)]
        for table in (rounds, from_one)
    )
    verdict = grade(len(held), len(rounds))
    failing = [e.title(d) for d in rounds if d not in held]
    return Ruling(
        measured=Measured.of(
            "Dataset",
            tuple(f"best round, {s}" for s in STRATEGIES),
            {e.title(d): tuple(str(r[s]) for s in STRATEGIES) for d, r in rounds.items()},
        ),
        rule=f"later than both on every dataset (partly: on {enough_of(len(rounds))})",
        verdict=verdict,
        explanation=where_not(verdict, failing, "Not later on")
        + (
            ""
            if verdict == "replicated" or e.first
            else f" Counted from round 1 on, it is later on {len(held_from_one)} of {len(rounds)}."
        ),
    )


def _best_of_relaxed(e: Evidence, dataset: str) -> Ruling | None:
    """Whether Relaxed's best round is about the paper's."""
    if dataset not in e.datasets:
        return None
    expected, within = paper.RELAXED_BEST[dataset], ABOUT[dataset]
    curves = e.curves(dataset, "relaxed", "mce_test")
    t = best_round(curves, e.first)
    samples = bootstrap_best_rounds(curves, first=e.first)
    low, high = (int(q) for q in np.quantile(samples, [0.025, 0.975]))
    verdict = (
        "replicated"
        if abs(t - expected) <= within
        else "partly"
        if low <= expected <= high
        else "not replicated"
    )
    return Ruling(
        measured=f"{t} (95 % of bootstrap samples: {low}–{high})",
        rule=f"within {within} of {expected} (partly: {expected} is in the bootstrap interval)",
        verdict=verdict,
        explanation=where_not(verdict, [], f"The mean curve is lowest at round {t}."),
    )


@claim(
    "10b",
    text=f"Relaxed's best round on California Housing is about {paper.RELAXED_BEST['california']}",
    paper=f"about {paper.RELAXED_BEST['california']}",
    figure="generalization",
)
def relaxed_best_on_california(e: Evidence) -> Ruling | None:
    """California Housing."""
    return _best_of_relaxed(e, "california")


@claim(
    "10c",
    text=f"Relaxed's best round on German Credit is about {paper.RELAXED_BEST['german']}",
    paper=f"about {paper.RELAXED_BEST['german']}",
    figure="generalization",
)
def relaxed_best_on_german(e: Evidence) -> Ruling | None:
    """German Credit."""
    return _best_of_relaxed(e, "german")


@claim(
    "10d",
    text=lambda e: f"Relaxed does not reach its minimum on Adult within {e.n_rounds} rounds",
    paper=f"no minimum within {paper.N_ROUNDS}",
    figure="generalization",
)
def relaxed_keeps_improving_on_adult(e: Evidence) -> Ruling | None:
    """Whether the last round is the best."""
    if "adult" not in e.datasets:
        return None
    curves = e.curves("adult", "relaxed", "mce_test")
    t = best_round(curves, e.first)
    share = float((bootstrap_best_rounds(curves, first=e.first) == e.n_rounds).mean())
    verdict = (
        "replicated"
        if t == e.n_rounds
        else "partly"
        if share >= SHARE_OF_SAMPLES
        else "not replicated"
    )
    return Ruling(
        measured=f"best round {t}; the last round is best in {share:.0%} of bootstrap samples",
        rule="the last round has the smallest mean test MCE "
        f"(partly: in {percent(SHARE_OF_SAMPLES)} of bootstrap samples)",
        verdict=verdict,
        explanation=where_not(verdict, [], f"The minimum is at round {t}."),
    )


def _is_u(mean: Floats) -> bool:
    t = int(mean.argmin())
    inside = 0 < t < len(mean) - 1
    return inside and _ends_above(min(mean[0], mean[-1]), mean[t])


def _ends_above(end: float, bottom: float) -> bool:
    """By the margin; a debiased square may be negative."""
    return end - bottom >= U_MARGIN * abs(bottom)


def _without_the_start(rounds: Sequence[int]) -> str:
    """What would hold if the initial predictor, round 0, could not be the best."""
    low, high = paper.BEST_EARLY
    inside = sum(low <= t <= high for t in rounds)
    return (
        f" Round 0, the initial predictor, counts here; from round 1 on, {inside} of "
        f"{len(rounds)} best rounds lie within {low}–{high}."
    )
