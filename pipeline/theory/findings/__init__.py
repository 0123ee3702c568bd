"""Every statement of the theory, tried; see `registry` for what a verdict means."""

# Imported for their findings, in the paper's order.
from pipeline.theory.findings import unit, error, linear, relaxed, adaptive, hybrid  # noqa: F401, I001
from pipeline.theory.findings.registry import REGISTRY, Finding, Verdict, find, find_all, finding

finding(
    "G1",
    where="Eq. (6), on GBDTs",
    text="The training MCE of the paper's GBDT rounds is at most (gap/η + √(2ε_t))/√n.",
)(error.gbdt_rounds_obey_the_bound)

__all__ = ["REGISTRY", "Finding", "Verdict", "find", "find_all"]
