"""The paper's empirical claims, each judged by a rule against the measured runs.

The rules were written down before the outcome was looked at; their thresholds are the paper's
numbers where it gives one. A claim's verdict is *replicated*, *partly* or *not replicated*, with
the measured value beside the paper's and, where it is not fully replicated, the datasets,
strategies, seeds or rounds at which it fails.

Curves are means over seeds, as in the paper's figures, unless a rule says "every run".
"""

# Imported for their claims, in the paper's order.
from pipeline.analysis.claims import gap, training, generalization, tables, theorems  # noqa: F401, I001
from pipeline.analysis.claims.registry import REGISTRY, Claim, Verdict, as_records, judge_all

__all__ = ["REGISTRY", "Claim", "Verdict", "as_records", "judge_all"]
