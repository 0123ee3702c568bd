"""Checks: one function per inequality or identity, each giving a measured value beside its bound.

Names and numbers follow the paper; where a sharper or corrected form is known, it stands beside.
"""

from pipeline.theory.checks.check import ROUNDING, Check, identity, labelled, worst_prefix

__all__ = ["ROUNDING", "Check", "identity", "labelled", "worst_prefix"]
