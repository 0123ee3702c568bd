"""``stage=reproduce``: an experiment's missing runs, then its report or its chapters."""

import time

from pipeline.runs.plan import Plan
from pipeline.stages import report, run


def main(plan: Plan) -> None:
    """Run, then report."""
    started = time.monotonic()
    report.require_reportable(plan)
    run.main(plan)
    report.main(plan)
    minutes, seconds = divmod(round(time.monotonic() - started), 60)
    print(f"elapsed: {minutes} min {seconds} s")
