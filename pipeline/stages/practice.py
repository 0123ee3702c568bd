"""``stage=practice``: corrections of a model beside each other, on rows that none has seen."""

from __future__ import annotations

import pandas as pd

from pipeline.analysis.practice import settings
from pipeline.analysis.practice import table as tables
from pipeline.analysis.practice.effects import BASE, changes, overall, with_bounds
from pipeline.analysis.practice.statements import percent
from pipeline.report.place import report_folder
from pipeline.report.practice import SHOWN, write_changes
from pipeline.runs.plan import Plan
from pipeline.runs.practice.plan import PracticePlan, practice_plan
from pipeline.runs.store import clear_errors
from pipeline.stages import run


def main(plan: Plan) -> None:
    """Compute what is missing, keep one table of it, and say what it says."""
    practice = practice_plan(plan)
    run.main(practice)
    runs = tables.collect(practice)
    if not plan.is_grid:
        _tell_one(runs)
        return
    folder = report_folder(practice)
    with clear_errors(folder):
        file = tables.write(runs, folder)
        tables.Labels.of(practice).write(folder)
        if BASE in set(runs["method"]):
            write_changes(runs, folder)
    _tell_grid(practice, runs)
    shown = folder == plan.store.root and folder.name in SHOWN
    print(f"table: {file}" + ("; stage=report of experiment=paper shows it" if shown else ""))


def _tell_one(runs: pd.DataFrame) -> None:
    """A run's measures, in a column for each way to end its rounds."""
    print(runs.drop(columns=["failed"]).set_index("rule").T.to_string())
    failed = [text for text in runs["failed"] if text]
    if failed:
        print(f"it failed: {failed[0]}")


def _tell_grid(plan: PracticePlan, runs: pd.DataFrame) -> None:
    if set(settings.OPTIONS) <= set(runs.columns):
        tried = settings.candidates(runs)
        print(tried.to_string(index=False, float_format=lambda v: f"{v:.4g}"))
        print(f"chosen: {settings.chosen(tried)}")
        return
    if plan.config.experiment.further or BASE not in set(runs["method"]):
        return
    print("change of the mean test loss against the model as it is, over all cells")
    found = overall(changes(with_bounds(runs)))
    labels = tables.Labels.of(plan).methods
    for name, row in sorted(found.items(), key=lambda item: item[1].change):
        failed = f", {row.failed} runs failed" if row.failed else ""
        print(
            f"  {labels.get(name, name):<32} {percent(row.change):>9}   worst "
            f"{percent(row.worst):>9} ({row.worst_cell}){failed}"
        )
