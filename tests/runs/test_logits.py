"""What is recorded of rounds with the log-loss, held against loops and the theory's own code."""

import numpy as np
import pytest

from pipeline.boosting.logloss import curvature, log_losses, sigmoid
from pipeline.runs.logits import INTERVALS, SMOOTHNESS, Logits


@pytest.fixture(scope="module")
def logits():
    random = np.random.default_rng(1)
    X = np.column_stack(
        [random.normal(size=400), random.random(400) < 0.3, random.random(400) < 0.6]
    )
    y = (random.random(400) < sigmoid(X[:, 0] - X[:, 1])).astype(float)
    return Logits(X.astype(float), y), random.normal(size=400), random.normal(size=400) / 5


def test_groups_are_rows_above_a_median_or_with_an_indicator(logits):
    rows, _, _ = logits
    X = rows.X
    expected = [X[:, 0] > np.median(X[:, 0]), X[:, 1] == 1, X[:, 1] == 1, X[:, 2] == 1]
    assert {g.tobytes() for g in rows.groups} == {g.tobytes() for g in expected}


def test_alpha_and_bounds_are_those_of_a_loop_over_groups_and_intervals(logits):
    rows, f, _ = logits
    found, y, p = rows.multicalibration(f), rows.y, sigmoid(f)
    edges = np.quantile(p, np.linspace(0, 1, INTERVALS + 1)[1:-1])
    interval = np.array([sum(edge < value for edge in edges) for value in p])
    worst, constants = (0.0, None), []
    for group in rows.groups:
        tau = np.sqrt(np.mean(group * p * (1 - p)))
        for k in range(INTERVALS):
            cell = group & (interval == k)
            alpha = abs(np.mean(cell * (y - p))) / tau
            constants.append(cell.sum() / group.sum() / np.mean((p * (1 - p))[group]))
            if alpha > worst[0]:
                worst = alpha, cell
    assert found["alpha"] == pytest.approx(worst[0])
    cell = worst[1]
    moved = f + cell * (y - p)[cell].mean()
    decrease = np.mean(log_losses(y, f) - log_losses(y, moved))
    scale = 2 / np.sqrt(1 - SMOOTHNESS) * np.sqrt(max(constants))
    assert found["bound_lemma"] == pytest.approx(scale * np.sqrt(decrease))
    assert found["alpha"] <= found["bound_lemma"]


def test_terms_of_the_theorem_are_of_the_whole_step(logits):
    rows, f, h = logits
    eta, weight = 0.25, 0.9
    found = rows.of_step(f, weight * (f + eta * h), eta, weight)
    assert found["m"] == pytest.approx(min(curvature(f).min(), curvature(f + h).min()))
    rise = np.mean(log_losses(rows.y, f + h) - log_losses(rows.y, f))
    assert found["epsilon"] == pytest.approx(max(rise, 0))
