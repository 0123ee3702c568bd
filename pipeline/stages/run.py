"""``stage=run``: one run or a grid; what is in the store is not computed again."""

from __future__ import annotations

import logging

from pipeline.runs.grid import Summary, run_plan
from pipeline.runs.plan import Plan
from pipeline.runs.progress import RoundTable

log = logging.getLogger("pipeline")


def main(plan: Plan) -> None:
    """Compute what is missing and say where it is."""
    summary = run_plan(plan)
    if plan.is_grid:
        _tell_grid(summary, plan)
    elif plan.kind.shows_rounds:
        _tell_run(summary, plan)
    else:
        _tell_table(plan)


def _tell_grid(summary: Summary, plan: Plan) -> None:
    if not summary.computed:
        log.info("all %d runs are in %s already", summary.total, plan.store.root)
        return
    log.info(
        "%d runs computed in %.1f s (%.1f s inside runs), %d found; all are in %s",
        summary.computed,
        summary.seconds,
        summary.run_seconds,
        summary.found,
        plan.store.root,
    )


def _tell_run(summary: Summary, plan: Plan) -> None:
    (run_id,) = plan.run_ids()
    folder = plan.store.runs / run_id.folder
    if summary.computed:
        print(f"stored in {folder}")
        return
    stored = plan.store.load(run_id)
    assert stored is not None  # found a moment ago
    RoundTable(named=plan.shared_terminal).show(stored.rounds)
    print(f"already computed: {folder}")


def _tell_table(plan: Plan) -> None:
    """A run's table, a column for each of its rows."""
    ((run_id, _, stored),) = plan.stored()
    print(stored.rounds.dropna(axis=1, how="all").T.to_string(header=False))
    print(f"stored in {plan.store.runs / run_id.folder}")
