"""``stage=run``: one run or a grid; what is in the store is not computed again."""

import logging

from pipeline.runs.grid import Summary, run_plan
from pipeline.runs.plan import Plan
from pipeline.runs.progress import RoundTable
from pipeline.runs.sweeps import leave_note

log = logging.getLogger("pipeline")


def main(plan: Plan) -> None:
    """Compute what is missing and say where it is."""
    if plan.notes is not None:
        log.info("%s ...", ", ".join(map(str, plan.run_ids())))
    summary = run_plan(plan)
    where = plan.store.root
    if not plan.is_grid:
        _tell_run(summary, plan)
    elif not summary.computed:
        log.info("all %d runs are in %s already", summary.total, where)
    else:
        log.info(
            "%d runs computed in %.1f s (%.1f s inside runs), %d found; all are in %s",
            summary.computed, summary.seconds, summary.run_seconds, summary.found, where,
        )  # fmt: skip


def _tell_run(summary: Summary, plan: Plan) -> None:
    """Of rounds what was not shown while they were computed; of others the table, transposed."""
    ((run_id, _, stored),) = plan.stored()
    said = "stored in" if summary.computed else "already computed:"
    if not plan.kind.shows_rounds:
        print(stored.rounds.dropna(axis=1, how="all").T.to_string(header=False))
    elif plan.notes is not None:
        leave_note(plan.notes, plan.overrides, stored.rounds)
        said = f"{run_id}: {said}"
    elif not summary.computed:
        RoundTable().show(stored.rounds)
    print(f"{said} {plan.store.runs / run_id.folder}")
