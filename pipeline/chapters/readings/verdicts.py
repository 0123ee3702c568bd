"""How the paper may be read: its claims under every combination of the readings left open.

The target in raw units or standardised; t counted from 0 (Relaxed's first weight 7/8) or from 1
(26/27); three readings of the multicalibration error, and its debiased square on test rows; round
0, the initial predictor, counted among the rounds that may be best, or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import pandas as pd

from pipeline.analysis.curves import SQUARE
from pipeline.analysis.evidence import DEBIASED, Evidence, collect
from pipeline.boosting.audit import READINGS
from pipeline.chapters.claims import claim as claims
from pipeline.config.schema import Config
from pipeline.runs.plan import MissingRunsError, Plan

AXES = ["target", "t", "error", "round_0"]
SCALINGS = {"raw": "none", "standardised": "standardise"}
OFFSETS = {"from 0": 2.0, "from 1": 3.0}  # of the weights 1 − (t + offset)⁻³
ERRORS = {name: name.replace("_", " ") for name in READINGS} | {DEBIASED: "debiased (test)"}
VERDICTS = ("replicated", "partly", "not replicated")
SAME_UNDER_ALL = ("11", "12")  # Table 1, and the theorems' bounds


@dataclass(frozen=True)
class Variant:
    """A way to read the paper that needs runs of its own."""

    target: str
    t: str
    plan: Plan


def variants(plan: Plan) -> list[Variant]:
    """The four readings that need runs of their own, whichever of them the plan has."""
    found = []
    for target, scaling in SCALINGS.items():
        for t, offset in OFFSETS.items():
            read = [_read(config, scaling, offset) for config in plan.configs]
            configs = tuple(c for k, c in enumerate(read) if c not in read[:k])
            found.append(Variant(target, t, replace(plan, configs=configs)))
    return found


def verdicts(plan: Plan, evidence: Evidence | None = None) -> pd.DataFrame:
    """A row per reading and claim: target, t, error, round_0, claim, verdict.

    evidence : of the plan's own runs, if they were collected already. Readings whose runs are not
    stored are left out.
    """
    rows: list[tuple[str, ...]] = []
    for variant in variants(plan):
        known = evidence if variant.plan.configs == plan.configs else None
        with suppress(MissingRunsError):  # `make readings` adds them
            rows += _judged(variant, known or collect(variant.plan))
    return pd.DataFrame(rows, columns=[*AXES, "claim", "verdict"])


def scores(table: pd.DataFrame) -> pd.DataFrame:
    """How many claims each reading gives: a row per combination, the best first."""
    order = table[AXES].drop_duplicates()
    marks = pd.get_dummies(table["verdict"]).reindex(columns=list(VERDICTS), fill_value=0)
    counts = pd.concat([table[AXES], marks], axis=1).groupby(AXES, as_index=False).sum()
    counts = order.merge(counts, on=AXES)
    return counts.sort_values(list(VERDICTS), ascending=False, kind="stable", ignore_index=True)


def matters(table: pd.DataFrame) -> pd.DataFrame:
    """Per claim: how often each verdict comes out, and which of the choices change it."""
    rows = []
    for claim, one in table.groupby("claim", sort=False):
        counts = one["verdict"].value_counts()
        changing = [axis for axis in AXES if _changes(one, axis)]
        rows.append(
            {"claim": claim, **{v: int(counts.get(v, 0)) for v in VERDICTS}, "depends_on": changing}
        )
    return pd.DataFrame(rows)


def under_none(table: pd.DataFrame) -> list[str]:
    """The claims that no reading of the paper replicates."""
    counts = matters(table)
    return [str(claim) for claim in counts.loc[counts["replicated"] == 0, "claim"]]


def _changes(verdicts_: pd.DataFrame, axis: str) -> bool:
    """Whether two readings that differ in ``axis`` alone give different verdicts."""
    others = [a for a in AXES if a != axis]
    several = verdicts_.groupby(others)["verdict"].nunique()
    return bool((several > 1).any())


def _judged(variant: Variant, runs: Evidence) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for error, evidence in _by_error(variant.plan, runs).items():
        for first, counted in ((0, "counted"), (1, "not counted")):
            rows += [
                (variant.target, variant.t, error, counted, claim.id, claim.verdict)
                for claim in claims.judge_all(replace(evidence, first=first))
                if not claim.id.startswith(SAME_UNDER_ALL)
            ]
    return rows


def _by_error(plan: Plan, runs: Evidence) -> Mapping[str, Evidence]:
    """The runs under each reading of the error that they recorded."""
    audit, found = plan.config.audit, {}
    for reading, name in ERRORS.items():
        if reading == audit.reading:
            found[name] = runs
        elif reading in audit.also or (reading == DEBIASED and SQUARE in runs.rounds):
            found[name] = runs.under(reading)
    return found


def _read(config: Config, scaling: str, offset: float) -> Config:
    dataset = config.dataset.model_copy(update={"target_scaling": scaling})
    strategy = config.strategy
    if strategy.label == "relaxed":
        strategy = strategy.model_copy(update={"offset": offset})
    return config.model_copy(update={"dataset": dataset, "strategy": strategy})
