"""Multicalibration error over random trees.

- `trees`: how random trees are drawn, and the compiled sums over their leaves;
- `estimates`: the error that follows from these sums, its noise floor and its unbiased square;
- `significance`: p-value and standard error;
- `auditor`: all of it for predictors on fixed rows.
"""

from .auditor import Assessment, Auditor, multicalibration_error
from .estimates import (
    READINGS,
    Leaves,
    Reading,
    debiased_square_of,
    error_of,
    errors_of,
    signed_root,
)

__all__ = [
    "READINGS",
    "Assessment",
    "Auditor",
    "Leaves",
    "Reading",
    "debiased_square_of",
    "error_of",
    "errors_of",
    "multicalibration_error",
    "signed_root",
]
