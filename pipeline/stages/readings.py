"""``stage=readings``: the paper's grid under every reading of what it leaves open."""

from __future__ import annotations

from pipeline.analysis import readings
from pipeline.analysis.scope import scope_of
from pipeline.errors import ConfigError
from pipeline.report import scorecards
from pipeline.report.place import report_folder
from pipeline.report.publish import READINGS_FILE, write_table
from pipeline.runs.plan import Plan
from pipeline.runs.store import clear_errors
from pipeline.stages import run


def main(plan: Plan) -> None:
    """Compute what is missing and count the claims that each reading gives."""
    if not plan.is_grid or not scope_of(plan).is_replication:
        raise ConfigError(
            "stage=readings: needs the paper's datasets, strategies and settings, such as "
            "experiment=paper (fewer seeds: 'experiment.seeds=[0,1]')"
        )
    run.main(readings.all_runs(plan))
    table = readings.verdicts(plan)
    file = report_folder(plan) / READINGS_FILE
    with clear_errors(plan.store.root):
        write_table(file, table)
    print(scorecards.of_readings(table))
    print(f"table: {file}; stage=report shows it")
