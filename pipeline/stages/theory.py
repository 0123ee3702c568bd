"""``stage=theory``: every statement of the paper's theory, on random instances and on real data."""

from __future__ import annotations

from pipeline.analysis.style import STRATEGIES
from pipeline.errors import ConfigError
from pipeline.report import scorecards
from pipeline.report.publish import theory_folder
from pipeline.runs.compilation import compile_kernels
from pipeline.runs.plan import Plan
from pipeline.runs.store import clear_errors
from pipeline.stages.report import require_reportable
from pipeline.theory.study import Study, conduct


def main(plan: Plan) -> None:
    """Try all statements and keep what was measured; ``stage=report`` shows it."""
    require_reportable(plan)
    if not set(STRATEGIES) <= set(plan.strategy_labels.values()):
        raise ConfigError(f"stage=theory: experiment.strategies must have {', '.join(STRATEGIES)}")
    plan.store.check_writable()
    compile_kernels()
    study = conduct(plan)
    folder = theory_folder(plan)
    with clear_errors(plan.store.root):
        study.write(folder)
    print(scorecards.of_findings(study.findings))
    print(f"findings: {folder / Study.FINDINGS}; stage=report shows them")
