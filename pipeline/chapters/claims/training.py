"""Claims 3 to 6: errors on the training rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pipeline.analysis import paper
from pipeline.analysis.curves import rises
from pipeline.analysis.evidence import Evidence
from pipeline.analysis.style import STRATEGIES
from pipeline.chapters.claims.rules import (
    claim,
    enough_of,
    fraction,
    grade,
    number,
    where_not,
)
from pipeline.judgement import Measured, Ruling

RISING_CURVES = 1 / 3  # of the mean curves
FIRST_ROUNDS = 3
AS_FAST = 1.05
VANISHED = 0.1  # of the first training MCE
ORDERS = 2


@claim(
    "3",
    text="Training MSE never increases, for every strategy and dataset",
    paper="monotone for all",
    figure="training",
)
def mse_never_rises(e: Evidence) -> Ruling:
    """Every run, and the mean curves."""
    broken_runs, broken_means = {}, []
    n_curves = len(STRATEGIES) * len(e.datasets)
    for d in e.datasets:
        for s in STRATEGIES:
            mse = e.curves(d, s, "mse_train")
            rising = rises(mse)
            if rising.any():
                first = sorted({int(t) + 1 for t in np.nonzero(rising)[1]})
                shown = ", ".join(map(str, first[:4])) + ("…" if len(first) > 4 else "")
                broken_runs[f"{e.title(d)}/{s}"] = (
                    f"{int(rising.any(axis=1).sum())} of {len(mse)} runs, rounds {shown}"
                )
            if rises(mse.mean(axis=0, keepdims=True)).any():
                broken_means.append(f"{e.title(d)}/{s}")
    verdict = "replicated"
    if broken_runs:
        few = len(broken_means) <= RISING_CURVES * n_curves
        verdict = "partly" if few else "not replicated"
    failing = [f"{k} ({v})" for k, v in broken_runs.items()]
    return Ruling(
        measured=f"{len(broken_runs)} of {n_curves} curves have runs with a rise; "
        f"{len(broken_means)} mean curves rise",
        rule="no run's MSE rises at any round (partly: at most "
        f"{fraction(RISING_CURVES)} of the mean curves rise)",
        verdict=verdict,
        explanation=where_not(verdict, failing, "Rises"),
    )


@claim(
    "4",
    text="Relaxed converges more slowly at first than Unit and Adaptive",
    paper="slightly slower",
    figure="training",
)
def relaxed_starts_slower(e: Evidence) -> Ruling:
    """Training MSE of the first rounds."""
    first = slice(1, FIRST_ROUNDS + 1)
    held, ratios = [], {}
    for d in e.datasets:
        relaxed = e.curves(d, "relaxed", "mse_train")[:, first]
        others = [e.curves(d, s, "mse_train")[:, first] for s in ("unit", "adaptive")]
        ratios[d] = relaxed.mean() / max(o.mean() for o in others)
        if all((relaxed.mean(axis=0) > o.mean(axis=0)).all() for o in others):
            held.append(d)
    verdict = grade(len(held), len(e.datasets))
    failing = [e.title(d) for d in e.datasets if d not in held]
    *some, last = map(str, range(1, FIRST_ROUNDS + 1))
    return Ruling(
        measured=Measured.of(
            "Dataset",
            f"training MSE of rounds 1–{FIRST_ROUNDS}, Relaxed / the slower of the others",
            {e.title(d): f"{r:.2f}" for d, r in ratios.items()},
        ),
        rule=f"Relaxed's mean training MSE is above both others' at rounds {', '.join(some)} and "
        f"{last} on every dataset (partly: on {enough_of(len(e.datasets))})",
        verdict=verdict,
        explanation=where_not(verdict, failing, "Not slower on"),
    )


@claim(
    "5",
    text="Adaptive is at least as fast as Unit",
    paper="matches or exceeds Unit",
    figure="training",
)
def adaptive_is_as_fast(e: Evidence) -> Ruling:
    """Training MSE over all rounds."""
    ratios = {}
    for d in e.datasets:
        unit, adaptive = (
            e.curves(d, s, "mse_train").mean(axis=0)[1:] for s in ("unit", "adaptive")
        )
        ratios[d] = float(np.exp(np.log(adaptive / unit).mean()))
    slower = [d for d, r in ratios.items() if r > AS_FAST]
    verdict = grade(len(ratios) - len(slower), len(ratios))
    failing = [f"{e.title(d)} ({ratios[d]:.2f})" for d in slower]
    return Ruling(
        measured=Measured.of(
            "Dataset",
            "training MSE Adaptive / Unit, geometric mean over rounds",
            {e.title(d): f"{r:.3f}" for d, r in ratios.items()},
        ),
        rule=f"that ratio is at most {AS_FAST} on every dataset "
        f"(partly: on {enough_of(len(ratios))})",
        verdict=verdict,
        explanation=where_not(verdict, failing, "Slower on"),
    )


@claim(
    "6a", text="Training MCE tends to 0", paper="a consistent trend towards 0", figure="training"
)
def training_mce_vanishes(e: Evidence) -> Ruling:
    """The last training MCE against the first."""
    ratios = _mce_ratios(e, e.datasets)
    above = [k for k, r in ratios.items() if r > VANISHED]
    verdict = "replicated" if not above else "partly"
    if any(r >= 1 for r in ratios.values()):
        verdict = "not replicated"
    failing = [f"{k} ({ratios[k]:.2f})" for k in above]
    return Ruling(
        measured=_ratio_table(e, ratios),
        rule=f"the last is at most {fraction(VANISHED)} of the first for every dataset and "
        "strategy (partly: smaller)",
        verdict=verdict,
        explanation=where_not(verdict, failing, f"Above {fraction(VANISHED)}"),
    )


@claim(
    "6b",
    text="Training MCE falls by orders of magnitude on German Credit and Diabetes",
    paper="some orders of magnitude",
    figure="training",
)
def training_mce_falls_by_orders(e: Evidence) -> Ruling | None:
    """How many orders."""
    if not set(paper.MCE_FALLS_ON) <= set(e.datasets):
        return None
    ratios = _mce_ratios(e, paper.MCE_FALLS_ON)
    worst, enough = max(ratios.values()), 10.0**-ORDERS
    verdict = (
        "replicated" if worst <= enough else "partly" if worst <= 10 * enough else "not replicated"
    )
    failing = [f"{k} ({r:.1e})" for k, r in ratios.items() if r > enough]
    return Ruling(
        measured=_ratio_table(e, ratios),
        rule=f"at least {number(ORDERS)} orders for all strategies on both "
        f"(partly: {number(ORDERS - 1)} order)",
        verdict=verdict,
        explanation=where_not(verdict, failing, f"Less than {number(ORDERS)}"),
    )


def _ratio_table(e: Evidence, ratios: Mapping[str, float]) -> Measured:
    """Datasets in rows, strategies in columns."""
    named = {e.title(d) for d in e.datasets}
    by_dataset: dict[str, tuple[str, ...]] = {}
    for key, ratio in ratios.items():
        title = next(t for t in named if key.startswith(f"{t}/"))
        by_dataset[title] = (*by_dataset.get(title, ()), f"{ratio:.1e}")
    heads = tuple(f"last / first training MCE, {s}" for s in STRATEGIES)
    return Measured.of("Dataset", heads, by_dataset)


def _mce_ratios(e: Evidence, datasets: Sequence[str]) -> dict[str, float]:
    ratios = {}
    for d in datasets:
        for s in STRATEGIES:
            mean = e.curves(d, s, "mce_train").mean(axis=0)
            ratios[f"{e.title(d)}/{s}"] = float(mean[-1] / mean[0])
    return ratios
