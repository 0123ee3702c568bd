"""What an experiment's stored runs amount to, as tables; nothing is computed anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from pipeline.analysis.curves import Runs
from pipeline.analysis.table1 import table_of_runs
from pipeline.errors import UserError
from pipeline.runs.plan import Plan
from pipeline.runs.store import CorruptRun


class MissingRunsError(UserError):
    """The store lacks runs of the experiment."""


@dataclass(frozen=True)
class Evidence(Runs):
    """All that claims are judged by and reports are made of: the runs, and

    sizes : one row per run with dataset, strategy, seed and the run's sizes and norms.
    eta : the step size of the runs.
    table1 : the frame of `pipeline.analysis.table1`.
    records : the runs' ``run.json``.
    """

    sizes: pd.DataFrame
    eta: float
    table1: pd.DataFrame
    records: Sequence[Mapping[str, Any]] = ()

    def title(self, dataset: str) -> str:
        """A dataset's display name."""
        return self.titles[dataset]

    def under(self, reading: str) -> Evidence:
        """The same runs with another reading of the multicalibration error that they recorded."""
        columns = {f"mce_{side}": self.rounds[f"mce_{side}_{reading}"] for side in SIDES}
        return replace(self, rounds=self.rounds.assign(**columns))


SIDES = ("train", "test")


def collect(plan: Plan) -> Evidence:
    """Read all runs of a plan; raises `MissingRunsError` if some are not there."""
    frames, sizes, records, missing = [], [], [], []
    run_ids = plan.run_ids()
    for run in run_ids:
        try:
            stored = plan.store.load(run)
        except CorruptRun:
            stored = None
        if stored is None:
            missing.append(str(run))
            continue
        frames.append(stored.rounds)
        records.append(stored.record)
        name = {"dataset": run.dataset, "strategy": run.strategy, "seed": run.seed}
        sizes.append(name | stored.record["sizes"])
    if missing:
        raise MissingRunsError(
            f"{len(missing)} of {len(run_ids)} runs are not in {plan.store.root} (the first is "
            f"{missing[0]}); compute them with stage=run"
        )
    return Evidence(
        rounds=pd.concat(frames, ignore_index=True),
        titles=plan.titles,
        sizes=pd.DataFrame(sizes),
        eta=plan.config.boosting.eta,
        table1=table_of_runs(records),
        records=records,
    )
