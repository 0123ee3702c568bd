"""What an experiment's stored runs amount to, as tables; nothing is computed anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from pipeline.analysis.curves import Runs
from pipeline.analysis.table1 import table_of_runs
from pipeline.runs.plan import Plan
from pipeline.runs.strategies import identity, labels_of

SIDES = ("train", "test")


@dataclass(frozen=True)
class Evidence(Runs):
    """The runs, and what else claims are judged by and reports are made of."""

    # One row per run with dataset, strategy, seed and the run's sizes and norms
    sizes: pd.DataFrame
    eta: float  # the step size of the runs
    table1: pd.DataFrame  # the frame of `pipeline.analysis.table1`
    records: Sequence[Mapping[str, Any]] = ()  # the runs' ``run.json``

    def test_share(self, dataset: str) -> float:
        """Test rows per training row."""
        one = self.sizes[self.sizes["dataset"] == dataset].iloc[0]
        return float(one["n_test"] / one["n_train"])

    def under(self, reading: str) -> Evidence:
        """The same runs with another reading of the multicalibration error that they recorded."""
        columns = {f"mce_{side}": self.rounds[f"mce_{side}_{reading}"] for side in SIDES}
        return replace(self, rounds=self.rounds.assign(**columns))


def collect(plan: Plan) -> Evidence:
    """Read all runs of a plan; raises `MissingRunsError` if some are not there."""
    names = labels_of(config.strategy for config in plan.configs)
    runs = [
        (run, names[identity(config.strategy)], stored) for run, config, stored in plan.stored()
    ]
    records = [stored.record for _, _, stored in runs]
    sizes = pd.DataFrame(
        {"dataset": run.dataset, "strategy": label, "seed": run.seed} | stored.record["sizes"]
        for run, label, stored in runs
    )
    rounds = pd.concat(
        [stored.rounds.assign(strategy=label) for _, label, stored in runs], ignore_index=True
    )
    return Evidence(
        rounds=rounds,
        titles=plan.titles,
        sizes=sizes,
        eta=plan.config.boosting.eta,
        table1=table_of_runs(records),
        records=records,
    )
