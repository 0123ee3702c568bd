"""Do verdicts depend on how the paper is read where it leaves a choice?"""

from __future__ import annotations

from contextlib import suppress

import pandas as pd

from pipeline.analysis.claims import judge_all
from pipeline.analysis.curves import SQUARE
from pipeline.analysis.evidence import DEBIASED, Evidence, MissingRunsError, collect
from pipeline.boosting.audit import READINGS
from pipeline.runs.plan import Plan

SHORT = {
    "leaf_indicators": "leaf\nindicators",
    "random_leaf_values": "random\nleaf values",
    "fitted_leaf_values": "fitted\nleaf values",
    DEBIASED: "debiased\n(test)",
}
SAME_UNDER_ALL = "11"  # Table 1


def verdicts_by_reading(plan: Plan, evidence: Evidence) -> pd.DataFrame:
    """Claims × (target scaling, reading of the error); standardised targets if they were run.

    evidence : of the plan's own runs.
    """
    audit, scaling = plan.config.audit, plan.config.dataset.target_scaling
    by_scaling = {"raw" if scaling == "none" else "standardised": evidence}
    if scaling == "none":
        with suppress(MissingRunsError):  # `make readings` adds them
            by_scaling["standardised"] = collect(plan.standardised())
    columns = {}
    for name, runs in by_scaling.items():
        for reading in (*READINGS, DEBIASED):
            if reading == audit.reading:
                judged = judge_all(runs)
            elif reading in audit.also or (reading == DEBIASED and SQUARE in runs.rounds):
                judged = judge_all(runs.under(reading))
            else:
                continue
            columns[f"{name}\n{SHORT[reading]}"] = {c.id: c.verdict for c in judged}
    return pd.DataFrame(columns).drop(index=SAME_UNDER_ALL, errors="ignore")
