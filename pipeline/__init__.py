"""Replication of 'On the Convergence of Multicalibration Gradient Boosting'."""

__version__ = "0.1.0"
