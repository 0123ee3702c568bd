"""What is recorded of rounds with the log-loss, where f is a logit: losses, and the theory's terms.

In the paper's letters: V(f) = Σ log(1 + e^f) − y f has L = 1/4, and m of assumption (A2) is the
smallest curvature μ(1 − μ) on the segments from f_t to f_t + h_t.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pipeline.boosting.arrays import Flags, Floats
from pipeline.boosting.logloss import curvature, log_losses, mean_log_loss, sigmoid

SMOOTHNESS = 0.25  # L
MOST_GROUPS, SMALLEST_GROUP = 40, 0.01
INTERVALS = 10


@dataclass(frozen=True)
class Logits:
    """The training rows X (n, d) and labels y (n,) of rounds with the log-loss."""

    X: Floats
    y: Floats

    @cached_property
    def groups(self) -> Sequence[Flags]:
        """Rows above the median of a column (of an indicator: those that have it), (n,) each."""
        found = [column > np.median(column) for column in self.X.T]
        found += [column > 0.5 for column in self.X.T if set(np.unique(column)) == {0.0, 1.0}]
        sized = [group for group in found if group.mean() >= SMALLEST_GROUP]
        return sized[:: -(-len(sized) // MOST_GROUPS)] if sized else [np.ones(len(self.y), bool)]

    def of_step(self, before: Floats, after: Floats, eta: float, weight: float) -> dict[str, float]:
        """The terms of Theorem 4.1 for the step from f_t to f_{t+1} = w_t (f_t + η h_t), (n,) each.

        m : of this step.  epsilon : by how much the whole step h_t raises the mean loss, if it
        does, which is the ε_t that the theorem's proof uses.
        """
        whole = before + (after / weight - before) / eta
        start, end = mean_log_loss(self.y, before), mean_log_loss(self.y, whole)
        return {
            "m": float(min(curvature(before).min(), curvature(whole).min())),
            "epsilon": max(end - start, 0.0),
            **self.multicalibration(before),
        }

    def multicalibration(self, f: Floats) -> dict[str, float]:
        """α of f over groups × ten intervals of predictions, and Lemma A.2's bound on it.

        The bound has the decrease of the lemma's own h̃. (Proposition A.3 needs the best step of the
        class, which is not known for trees.)
        """
        p, n = sigmoid(f), len(f)
        edges = np.quantile(p, np.linspace(0, 1, INTERVALS + 1)[1:-1])
        interval, residual, variance = np.searchsorted(edges, p), self.y - p, curvature(f)
        best: tuple[float, float, Any] = (-1.0, 0.0, None)
        largest = 0.0  # C_T²
        for group in self.groups:
            inside = interval[group]
            sums = np.bincount(inside, residual[group], INTERVALS)
            counts = np.bincount(inside, minlength=INTERVALS)
            deviation = np.abs(sums) / n / np.sqrt(variance[group].sum() / n)
            k = int(deviation.argmax())
            if deviation[k] > best[0]:
                best = deviation[k], sums[k] / counts[k], np.flatnonzero(group)[inside == k]
            largest = max(largest, counts.max() / len(inside) / variance[group].mean())
        alpha, step, rows = best
        y = self.y[rows]
        decrease = (log_losses(y, f[rows]) - log_losses(y, f[rows] + step)).sum() / n
        scale = 2 / np.sqrt(1 - SMOOTHNESS) * np.sqrt(largest)
        return {
            "alpha": float(alpha),
            "bound_lemma": float(scale * np.sqrt(max(decrease, 0.0))),
        }
