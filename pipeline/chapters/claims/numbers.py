"""Claims 11 and 12: Table 1, and the theorems' bounds on every run."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from pipeline.analysis.bounds import relaxed_bound
from pipeline.analysis.curves import rises
from pipeline.analysis.evidence import Evidence
from pipeline.analysis.table1 import COUNTS
from pipeline.boosting.arrays import Floats
from pipeline.chapters.claims.rules import VERDICTS, claim, grades, where_not
from pipeline.judgement import Ruling


@claim(
    "11",
    text="Table 1: raw features, features and data points",
    paper=lambda e: f"{len(COUNTS) * len(e.table1)} numbers",
)
def table1_matches(e: Evidence) -> Ruling | None:
    """Number by number."""
    if e.table1.empty:
        return None
    cells = [
        (f"{row['dataset']} {what}", row[f"{what}_ours"], row[f"{what}_paper"])
        for row in e.table1.to_dict("records")
        for what in COUNTS
    ]
    wrong = [f"{name} {ours} instead of {paper}" for name, ours, paper in cells if ours != paper]
    equal = np.array([[ours == paper for _, ours, paper in cells]])
    verdict = VERDICTS[grades(equal)[0]]
    return Ruling(
        measured=f"{len(cells) - len(wrong)} of {len(cells)} agree",
        details={"agree": str(len(cells) - len(wrong)), "of": str(len(cells))},
        rule="all agree (partly: at least half of them)",
        verdict=verdict,
        explanation=where_not(verdict, wrong, "Different"),
    )


@claim(
    "12a",
    text="Theorem 4.1: the average squared gap of every Unit run obeys its bound",
    paper="holds",
)
def theorem_41_average_gap(e: Evidence) -> Ruling:
    """(1/T) Σ gap² ≤ (4η/m) V(f_0)/T with V = ½‖y − f_0‖², m = 1 and no oracle error."""

    def used(run: pd.Series, gaps: Floats) -> float:
        return float(np.square(gaps).sum() / (2 * e.eta * run["norm_residual0"] ** 2))

    shares, broken = _bounded(e, "unit", used)
    return _unless_broken(
        f"Σ gap² is at most {max(shares):.2f} of the bound, {np.median(shares):.2f} in the median",
        "Σ‖f_{t+1} − f_t‖² ≤ 4η V(f_0) for every run, the oracle's error taken as zero, which "
        "makes the bound tighter than the theorem's",
        broken,
    )


@claim("12b", text="Theorem 4.1: the loss of every Unit run is non-increasing", paper="holds")
def theorem_41_loss(e: Evidence) -> Ruling:
    """Round by round."""
    broken = []
    for d in e.datasets:
        rising = rises(e.curves(d, "unit", "mse_train")).any(axis=1)
        broken += [f"{e.titles[d]} ({int(rising.sum())} runs)"] if rising.any() else []
    return _unless_broken(
        f"rises on {len(broken)} datasets" if broken else "no run rises",
        "no round of any Unit run raises the training loss, the oracle's error taken as zero",
        broken,
    )


@claim(
    "12c", text="Theorem 4.5: the smallest gap of every Relaxed run obeys its bound", paper="holds"
)
def theorem_45_min_gap(e: Evidence) -> Ruling:
    """Run by run."""

    def used(run: pd.Series, gaps: Floats) -> float:
        bound = relaxed_bound(run["norm_y"], run["norm_residual0"], e.eta, len(gaps))
        return float(gaps.min() / bound)

    shares, broken = _bounded(e, "relaxed", used)
    return _unless_broken(
        f"the smallest gap is at most {max(shares):.1e} of the bound, "
        f"{np.median(shares):.1e} in the median run",
        "min gap ≤ (√η‖y − f_0‖ + γ)/√T for every run, γ as in the appendix",
        broken,
    )


@claim("12d", text="Theorem 4.6: ω_t ≥ 0 in every Adaptive run", paper="holds")
def theorem_46_weights(e: Evidence) -> Ruling:
    """Weight by weight."""
    adaptive = e.rounds[(e.rounds["strategy"] == "adaptive") & (e.rounds["round"] > 0)]
    weights = adaptive["weight"]
    return _unless_broken(
        f"{len(weights)} weights between {weights.min():.4f} and {weights.max():.4f}",
        "no weight of any run is negative",
        sorted({e.titles[d] for d in adaptive[weights < 0]["dataset"]}),
    )


def _unless_broken(measured: str, rule: str, broken: list[str]) -> Ruling:
    """A single run that breaks a bound is enough."""
    verdict = VERDICTS[0 if broken else -1]
    return Ruling(
        measured=measured,
        rule=rule,
        verdict=verdict,
        explanation=where_not(verdict, broken, "Broken on"),
    )


def _bounded(
    e: Evidence, strategy: str, used: Callable[[pd.Series, Floats], float]
) -> tuple[list[float], list[str]]:
    """The share of a bound that each run of a strategy uses, and the runs that break it.

    used : that share, of a run's sizes and its gaps (T,).
    """
    shares, broken = [], []
    sizes = e.sizes[e.sizes["strategy"] == strategy].sort_values("seed")
    for dataset in e.datasets:
        of_dataset = sizes[sizes["dataset"] == dataset].iterrows()
        for (_, run), gaps in zip(of_dataset, e.curves(dataset, strategy, "gap"), strict=True):
            shares.append(used(run, gaps[1:]))
            if shares[-1] > 1:
                broken.append(f"{e.titles[dataset]} seed {run['seed']}")
    return shares, broken
