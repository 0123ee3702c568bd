"""``stage=report``: figures, verdicts and the page, from stored runs."""

from __future__ import annotations

import time

from pipeline.analysis.evidence import collect
from pipeline.errors import ConfigError
from pipeline.report import scorecards
from pipeline.report.publish import publish
from pipeline.runs.plan import Plan
from pipeline.runs.store import clear_errors

FEWEST_ROUNDS = 6  # for a line through the second half


def main(plan: Plan, started: float | None = None) -> None:
    """Write the report; ``started`` is when the session began, for its own words."""
    require_reportable(plan)
    evidence = collect(plan)
    wall = None if started is None else time.monotonic() - started
    with clear_errors(plan.store.root):
        published = publish(plan, evidence, wall)
    if published.claims:
        print(scorecards.of_claims(published.claims))
    else:
        print(scorecards.of_summary(published.summary))
    for line in published.scope.banner:
        print(line)
    print(f"report: {published.folder / 'report.html'}")


def require_reportable(plan: Plan) -> None:
    """Raise `ConfigError` before anything is computed that could not be reported on."""
    config, stage = plan.config, f"stage={plan.config.stage}"
    if not plan.is_grid:
        raise ConfigError(f"{stage}: needs a grid, such as experiment=paper")
    others = [key for key in config.experiment.further if not key.startswith("strategy.")]
    if others:
        raise ConfigError(
            f"{stage}: a report is of one setting but for strategies, and this grid varies "
            f"{', '.join(others)}; stage=compare sets several side by side"
        )
    if config.boosting.rounds < FEWEST_ROUNDS:
        raise ConfigError(
            f"{stage}: boosting.rounds={config.boosting.rounds}: must be at least {FEWEST_ROUNDS}"
        )
