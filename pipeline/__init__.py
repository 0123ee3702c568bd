"""Replication of 'On the Convergence of Multicalibration Gradient Boosting'."""

from typing import Any

__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    """`load_runs`, when it is asked for: the command line's help must not wait for pandas."""
    if name == "load_runs":
        from pipeline.runs.tidy import load_runs

        return load_runs
    raise AttributeError(f"module 'pipeline' has no attribute {name!r}")
