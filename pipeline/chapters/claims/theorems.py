"""Claim 12: the theorems' bounds on every run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pipeline.analysis.bounds import relaxed_bound
from pipeline.analysis.curves import rises
from pipeline.analysis.evidence import Evidence
from pipeline.boosting.arrays import Floats
from pipeline.chapters.claims.rules import claim, where_not
from pipeline.judgement import Ruling


@claim(
    "12a",
    text="Theorem 4.1: the average squared gap of every Unit run obeys its bound",
    paper="holds",
)
def theorem_41_average_gap(e: Evidence) -> Ruling:
    """(1/T) Σ gap² ≤ (4η/m) V(f_0)/T with V = ½‖y − f_0‖², m = 1 and no oracle error."""
    slack, broken = [], []
    for sizes, gaps in _with_sizes(e, "unit"):
        bound = 2 * e.eta * sizes["norm_residual0"] ** 2
        slack.append(np.square(gaps).sum() / bound)
        if slack[-1] > 1:
            broken.append(f"{e.title(sizes['dataset'])} seed {sizes['seed']}")
    verdict = _all_or_nothing(broken)
    return Ruling(
        measured=f"Σ gap² is at most {max(slack):.2f} of the bound, "
        f"{np.median(slack):.2f} in the median",
        rule="Σ‖f_{t+1} − f_t‖² ≤ 4η V(f_0) for every run, the oracle's error taken as zero, which "
        "makes the bound tighter than the theorem's",
        verdict=verdict,
        explanation=where_not(verdict, broken, "Broken by"),
    )


@claim(
    "12b",
    text="Theorem 4.1: the loss of every Unit run is non-increasing",
    paper="holds",
)
def theorem_41_loss(e: Evidence) -> Ruling:
    """Round by round."""
    broken = []
    for d in e.datasets:
        rising = rises(e.curves(d, "unit", "mse_train")).any(axis=1)
        broken += [f"{e.title(d)} ({int(rising.sum())} runs)"] if rising.any() else []
    verdict = _all_or_nothing(broken)
    return Ruling(
        measured="no run rises" if not broken else f"rises on {len(broken)} datasets",
        rule="no round of any Unit run raises the training loss, the oracle's error taken as zero",
        verdict=verdict,
        explanation=where_not(verdict, broken, "Rises on"),
    )


@claim(
    "12c",
    text="Theorem 4.5: the smallest gap of every Relaxed run obeys its bound",
    paper="holds",
)
def theorem_45_min_gap(e: Evidence) -> Ruling:
    """Run by run."""
    ratios, broken = [], []
    for sizes, gaps in _with_sizes(e, "relaxed"):
        bound = relaxed_bound(sizes["norm_y"], sizes["norm_residual0"], e.eta, len(gaps))
        ratios.append(gaps.min() / bound)
        if ratios[-1] > 1:
            broken.append(f"{e.title(sizes['dataset'])} seed {sizes['seed']}")
    verdict = _all_or_nothing(broken)
    return Ruling(
        measured=f"the smallest gap is at most {max(ratios):.1e} of the bound, "
        f"{np.median(ratios):.1e} in the median run",
        rule="min gap ≤ (√η‖y − f_0‖ + γ)/√T for every run, γ as in the appendix",
        verdict=verdict,
        explanation=where_not(verdict, broken, "Broken by"),
    )


@claim("12d", text="Theorem 4.6: ω_t ≥ 0 in every Adaptive run", paper="holds")
def theorem_46_weights(e: Evidence) -> Ruling:
    """Weight by weight."""
    adaptive = e.rounds[(e.rounds["strategy"] == "adaptive") & (e.rounds["round"] > 0)]
    weights = adaptive["weight"]
    broken = sorted({e.title(d) for d in adaptive[weights < 0]["dataset"]})
    verdict = _all_or_nothing(broken)
    return Ruling(
        measured=f"{len(weights)} weights between {weights.min():.4f} and {weights.max():.4f}",
        rule="no weight of any run is negative",
        verdict=verdict,
        explanation=where_not(verdict, broken, "Negative on"),
    )


def _all_or_nothing(broken: list[str]) -> str:
    return "not replicated" if broken else "replicated"


def _with_sizes(e: Evidence, strategy: str) -> list[tuple[Mapping[str, Any], Floats]]:
    """Per run of a strategy: its sizes, and its gaps (T,)."""
    gaps = {
        key: g["gap"].to_numpy(np.float64)[1:]
        for key, g in e.rounds[e.rounds["strategy"] == strategy].groupby(["dataset", "seed"])
    }
    rows: list[Any] = e.sizes[e.sizes["strategy"] == strategy].to_dict("records")
    return [(row, gaps[row["dataset"], row["seed"]]) for row in rows]
