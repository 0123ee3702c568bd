"""Every statement of the theory, tried; a module per theorem.

A module has the checks of a theorem, the small instances on which a statement of it fails, and,
under ``@tries(id)``, the function that tries each statement; the words are in statements.yaml.
"""

# In the paper's order, which is the order of the findings.
from pipeline.theory.findings import unit, error, linear, relaxed, adaptive, hybrid, certificate  # noqa: F401, I001
from pipeline.theory.findings import feedback  # noqa: F401
from pipeline.theory.statements import Level
from pipeline.theory.verdicts import REGISTRY, record

__all__ = ["REGISTRY", "Level", "record"]
