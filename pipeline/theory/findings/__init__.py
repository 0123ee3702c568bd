"""Every statement of the theory, tried; see `registry` for what a verdict means."""

# Imported for their findings, in the paper's order.
from pipeline.theory.findings import (  # noqa: F401, I001
    unit, error, linear, relaxed, adaptive, hybrid, certificate,
)  # fmt: skip
from pipeline.theory.findings.registry import REGISTRY, Finding, Level, Verdict, find, find_all

__all__ = ["REGISTRY", "Finding", "Level", "Verdict", "find", "find_all"]
