"""The log-loss: its value, the ensemble of a round fitted to it, and the adaptive weight for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from pipeline.boosting.engines.base import Floats, TreeSettings

LARGEST_LOGIT = np.log(1e6)  # initial probabilities are kept within one in a million of 0 and 1


def sigmoid(f: Floats) -> Floats:
    """μ(f) = 1 / (1 + e^(−f)), without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * f))


def logit(p: Floats) -> Floats:
    """The inverse of `sigmoid`, kept finite."""
    edge = sigmoid(np.array([LARGEST_LOGIT]))[0]
    p = np.clip(p, 1.0 - edge, edge)
    return np.log(p / (1.0 - p))


def mean_log_loss(y: Floats, f: Floats) -> float:
    """Mean of log(1 + e^f) − y f; y holds zeros and ones."""
    return float((np.logaddexp(0.0, f) - y * f).mean())


@dataclass(frozen=True)
class LogLossEnsemble:
    """Trees over (x, f) with one step per leaf: h(x, f) = lr Σ step of the row's leaf."""

    trees: tuple[DecisionTreeRegressor, ...]
    steps: tuple[Floats, ...]
    learning_rate: float

    def predict(self, X: Floats, f: Floats) -> Floats:
        """h(x, f); see `Ensemble`."""
        Z = np.column_stack([X, f]).astype(np.float32)
        h = np.zeros(len(Z))
        for tree, steps in zip(self.trees, self.steps, strict=True):
            h += self.learning_rate * steps[tree.tree_.apply(Z)]
        return h


def fit_ensemble(
    X: Floats, y: Floats, f: Floats, settings: TreeSettings, seed: int
) -> tuple[LogLossEnsemble, Floats]:
    """Gradient boosting of the log-loss on (X, f) from the offset f.

    As scikit-learn's GradientBoostingClassifier: each tree is fitted to the residuals y − μ, each
    leaf takes a Newton step. Gives the ensemble and its values on these rows.
    """
    Z = np.column_stack([X, f]).astype(np.float32)
    random = np.random.RandomState(seed)
    h = np.zeros(len(y))
    trees, all_steps = [], []
    for _ in range(settings.n_trees):
        p = sigmoid(f + h)
        tree = DecisionTreeRegressor(max_depth=settings.max_depth, random_state=random)
        tree.fit(Z, y - p)
        leaves, n_nodes = tree.tree_.apply(Z), tree.tree_.node_count
        gradient = np.bincount(leaves, y - p, n_nodes)
        curvature = np.bincount(leaves, p * (1.0 - p), n_nodes)
        steps = np.divide(gradient, curvature, out=np.zeros(n_nodes), where=curvature > 1e-150)
        h += settings.learning_rate * steps[leaves]
        trees.append(tree)
        all_steps.append(steps)
    return LogLossEnsemble(tuple(trees), tuple(all_steps), settings.learning_rate), h


@dataclass(frozen=True)
class LogLossAdaptive:
    """w_t minimises the log-loss of w φ_t; the counterpart of `Adaptive` for classification."""

    def weight(self, t: int, y: Floats, phi: Floats) -> float:  # noqa: ARG002
        """w_t by Newton's method with halved steps, from 1; see `Rescaling`."""
        w, loss = 1.0, mean_log_loss(y, phi)
        for _ in range(50):
            p = sigmoid(w * phi)
            slope = float((phi * (p - y)).mean())
            curvature = float((phi * phi * p * (1 - p)).mean())
            if abs(slope) < 1e-14 or curvature < 1e-300:
                break
            step = slope / curvature
            while abs(step) > 1e-14 and mean_log_loss(y, (w - step) * phi) > loss:
                step /= 2
            w, loss = w - step, mean_log_loss(y, (w - step) * phi)
            if abs(step) < 1e-12:
                break
        return w
