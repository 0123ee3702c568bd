"""How likely the paper's statements are under each way to read it.

A reading is a combination of choices that the text leaves open. A statement's probability under it
is the share of samples (`pipeline.analysis.samples`) in which it is true: for Figures 1 and 2 of
figures of single runs or of means over bootstrap samples of the seeds, for Figure 3 of such means.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd

from pipeline.analysis import paper
from pipeline.analysis.evidence import Evidence, collect
from pipeline.analysis.samples import Samples, mean_curves, single_runs
from pipeline.boosting.arrays import Flags
from pipeline.boosting.audit import READINGS
from pipeline.chapters.claims import RULES
from pipeline.config.schema import Audit, Config
from pipeline.runs.plan import MissingRunsError, Plan

ROWS = {"80 %": 0.2, "all": 0.0}  # test_size
TARGETS = {"raw": "none", "standardised": "standardise"}
OFFSETS = {"from 0": 2.0, "from 1": 3.0}  # of the weights 1 − (t + offset)⁻³
CURVES = {"a single run": single_runs, "the mean over seeds": mean_curves}
TAILS = {"at round 1": 1, "at round 6": 6, "at round 11": 11}
ERRORS = {name: name.replace("_", " ") for name in READINGS}
ROUND_0 = {"counted": 0, "not counted": 1}
AXES = ["rows", "curve", "tail", "target", "t", "error", "round_0"]
TRAINING, TEST = ["rows", "target", "t", "curve", "tail"], ["target", "t", "error", "round_0"]
R2_TOLERANCE = 0.03  # by hand: how far the smallest and largest R² may be from the paper's


def _r2_range(at: Samples) -> Flags:
    r2 = RULES["2a"].values(at)
    ends = np.column_stack([r2.min(axis=1) - paper.LOWEST_R2, r2.max(axis=1) - paper.HIGHEST_R2])
    near: Flags = (np.abs(ends) <= R2_TOLERANCE).all(axis=1)
    return near & RULES["2b"].satisfied(at)


def _some_rise(at: Samples) -> Flags:
    """The paper speaks of rises, and of none above its limit; both in whole per cent."""
    largest = np.round(100 * RULES["1b"].values(at).max(axis=1))
    return (largest >= 1) & (largest <= 100 * paper.LARGEST_RISE)


def _some_u(dataset: str) -> Callable[[Samples], Flags]:
    """Whether a strategy's curve is a U: the paper has others overfit at once on German Credit."""
    rule = replace(RULES["7"], on=(dataset,))
    return lambda at: np.asarray(rule.limit.keeps(rule.values(at)).any(axis=1))


IN_TRAINING: Mapping[str, Callable[[Samples], Flags]] = {
    f"R² {paper.LOWEST_R2}–{paper.HIGHEST_R2}": _r2_range,
    "gaps rise, by ≤ 10 %": _some_rise,
    "MSE monotone": RULES["3"].satisfied,
}
ON_TEST_ROWS: Mapping[str, Callable[[Samples], Flags]] = {
    "Relaxed: California 12": RULES["10b"].satisfied,
    "Relaxed: German 5": RULES["10c"].satisfied,
    "Relaxed: Adult last": RULES["10d"].satisfied,
    "Unit, Adaptive: 1–8": RULES["8"].satisfied,
    "U on California": _some_u("california"),
    "U on German": _some_u("german"),
}
STATEMENTS = [*IN_TRAINING, *ON_TEST_ROWS]


@dataclass(frozen=True)
class Variant:
    """A way to read the paper that needs runs of its own."""

    rows: str
    target: str
    t: str
    plan: Plan


def variants(plan: Plan) -> list[Variant]:
    """The readings that need runs of their own, whichever of them the plan has."""
    found = []
    for rows, target, t in product(ROWS, TARGETS, OFFSETS):
        read = [_read(config, ROWS[rows], TARGETS[target], OFFSETS[t]) for config in plan.configs]
        configs = tuple(c for k, c in enumerate(read) if c not in read[:k])
        found.append(Variant(rows, target, t, replace(plan, configs=configs)))
    return found


def stored(plan: Plan) -> Iterator[tuple[Variant, Evidence]]:
    """The variants whose runs are there."""
    for variant in variants(plan):
        with suppress(MissingRunsError):
            yield variant, collect(variant.plan)


def probabilities(runs: Iterable[tuple[Variant, Evidence]]) -> pd.DataFrame:
    """A row per reading: its choices, each statement's probability, their product, the posterior.

    The product takes the statements as independent given the reading. The posterior is that of a
    uniform prior over the readings at hand.
    """
    training: list[tuple[str | float, ...]] = []
    test: list[tuple[str | float, ...]] = []
    for variant, evidence in runs:
        place = (variant.target, variant.t)
        for (curve, drawn), (tail, start) in product(CURVES.items(), TAILS.items()):
            at = replace(drawn(evidence), tail=start)
            training.append((variant.rows, *place, curve, tail, *_shares(IN_TRAINING, at)))
        if ROWS[variant.rows] == 0:
            continue  # nothing is held out
        for error, read in _by_error(variant.plan.config.audit, evidence):
            for counted, first in ROUND_0.items():
                at = replace(mean_curves(read), first=first)
                test.append((*place, error, counted, *_shares(ON_TEST_ROWS, at)))
    table = pd.DataFrame(training, columns=[*TRAINING, *IN_TRAINING]).merge(
        pd.DataFrame(test, columns=[*TEST, *ON_TEST_ROWS])
    )
    table["joint"] = table[STATEMENTS].prod(axis=1)
    table["posterior"] = table["joint"] / table["joint"].sum()
    return table[[*AXES, *STATEMENTS, "joint", "posterior"]]


def by_choice(table: pd.DataFrame) -> pd.DataFrame:
    """A row per option of each choice: mean probabilities over all else, and the posterior."""
    rows = []
    for axis in AXES:
        for option, some in table.groupby(axis, sort=False):
            means = some[[*STATEMENTS, "joint"]].mean()
            rows.append(
                {"choice": axis, "option": option, **means, "posterior": some["posterior"].sum()}
            )
    return pd.DataFrame(rows)


def smoothed(share: float, n: int) -> float:
    """A share as n runs tell it: with one success and one failure more, never 0 or 1."""
    return (n * share + 1) / (n + 2)


def _shares(statements: Mapping[str, Callable[[Samples], Flags]], at: Samples) -> list[float]:
    n = at.runs.n_seeds
    return [smoothed(float(true(at).mean()), n) for true in statements.values()]


def _by_error(audit: Audit, runs: Evidence) -> Iterator[tuple[str, Evidence]]:
    """The runs under each reading of the error that they recorded."""
    for reading, name in ERRORS.items():
        if reading == audit.reading:
            yield name, runs
        elif reading in audit.also:
            yield name, runs.under(reading)


def _read(config: Config, test_size: float, scaling: str, offset: float) -> Config:
    changes = {"target_scaling": scaling, "test_size": test_size}
    dataset = config.dataset.model_copy(update=changes)
    strategy = config.strategy
    if strategy.label == "relaxed":
        strategy = strategy.model_copy(update={"offset": offset})
    return config.model_copy(update={"dataset": dataset, "strategy": strategy})
