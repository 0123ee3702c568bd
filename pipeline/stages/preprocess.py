"""``stage=preprocess``: build the design matrix and describe it."""

import pandas as pd

from pipeline.runs.plan import Plan
from pipeline.stages import fetch


def main(plan: Plan) -> None:
    """Preprocess the chosen dataset."""
    fetch.main(plan)
    dataset = plan.config.dataset
    table, design = plan.library.table(dataset), plan.library.design(dataset)
    n, d = design.X.shape
    print(f"design matrix {n} x {d} from {len(design.covariates)} covariates")
    print(f"target {' + '.join(table.target)}: mean {design.y.mean():.6g}, sd {design.y.std():.6g}")
    features = pd.DataFrame(design.X, columns=list(design.feature_names))
    summary = features.agg(["min", "mean", "max"]).T
    summary["missing"] = features.isna().sum()
    print(summary.to_string(float_format=lambda v: f"{v:.5g}"))
