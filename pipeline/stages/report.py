"""``stage=report``: figures, verdicts and the page, from stored runs."""

from __future__ import annotations

import time

from pipeline.analysis.evidence import collect
from pipeline.analysis.paper import N_SEEDS, TABLE1
from pipeline.analysis.style import STRATEGIES
from pipeline.errors import ConfigError
from pipeline.report import scorecards
from pipeline.report.publish import page_file, publish
from pipeline.runs.plan import Plan
from pipeline.runs.store import clear_errors

FEWEST_ROUNDS = 6  # for a line through the second half


def main(plan: Plan, started: float | None = None) -> None:
    """Write the report; ``started`` is when the session began, for its own words."""
    require_reportable(plan)
    evidence = collect(plan)
    wall = None if started is None else time.monotonic() - started
    with clear_errors(plan.store.root):
        claims = publish(plan, evidence, wall)
    print(scorecards.of_claims(claims))
    if len(plan.datasets) < len(TABLE1) or len(plan.seeds) < N_SEEDS:
        print(
            f"a reduced grid ({len(plan.datasets)} datasets, {len(plan.seeds)} seeds): its "
            "verdicts say little; those of experiment=paper count"
        )
    print(f"report: {page_file(plan)}")


def require_reportable(plan: Plan) -> None:
    """Raise `ConfigError` before anything is computed that could not be reported on."""
    config, stage = plan.config, f"stage={plan.config.stage}"
    if not plan.is_grid:
        raise ConfigError(f"{stage}: needs a grid, such as experiment=paper")
    if set(config.experiment.strategies) != set(STRATEGIES):
        raise ConfigError(f"{stage}: experiment.strategies must be {', '.join(STRATEGIES)}")
    if config.experiment.vary:
        raise ConfigError(
            f"{stage}: a report is of one setting, and this grid varies "
            f"{', '.join(config.experiment.further)}"
        )
    if config.boosting.rounds < FEWEST_ROUNDS:
        raise ConfigError(
            f"{stage}: boosting.rounds={config.boosting.rounds}: must be at least {FEWEST_ROUNDS}"
        )
    if config.dataset.target_scaling != "none" and config.experiment.name == "paper":
        raise ConfigError(
            f"{stage}: the paper's report is of raw targets and shows standardised ones beside "
            "them (make readings); choose another experiment.name for a report of its own"
        )
