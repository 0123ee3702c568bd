"""How much of a correction to keep, judged on rows that it was not fitted to.

The number of rounds is the one with the smallest loss there, round 0 being a candidate like all
others. Where a predictor needs no correction, the best of several rounds looks better than it is,
so what is kept is a share of the correction: 1 − (`DOUBT` · standard error / gain)² of the gain on
these rows, or nothing if the gain is smaller than `DOUBT` standard errors.

The log-loss of few rows is judged with caution (`Loss.cautious`): if none of them is wrong, ever
larger logits would look best. What is kept must gain without that caution, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize
from sklearn.base import BaseEstimator
from sklearn.metrics import check_scoring

from .arrays import Floats
from .audit import Auditor
from .losses import Loss
from .rows import Rows, TrainingRows

DOUBT = 0.7


@dataclass(frozen=True)
class Choice:
    """The best round."""

    best_round: int
    # first, f: (n,) f_0 and the best round's scores of the rows that were looked at
    first: Floats
    f: Floats
    scores: Floats  # of every round that was fitted (higher is better)


@dataclass(frozen=True)
class Gain:
    """By how much a correction lowers the mean loss of rows, and the standard error of that."""

    mean: float
    error: float

    def __str__(self) -> str:
        """Say what was found."""
        return f"the loss falls by {self.mean:.3g} with a standard error of {self.error:.2g}"

    @property
    def share(self) -> float:
        """The share of the correction to keep, from 0 to 1."""
        if self.mean <= DOUBT * self.error:
            return 0.0
        return float(1.0 - np.square(DOUBT * self.error / self.mean))


# Maps the scores f_t (n,) of the rows that are looked at to the score of a round.
Judge = Callable[[Floats], float]


def choose(
    stages: Iterator[Floats], judge: Judge, patience: int, told: str | None = None
) -> Choice:
    """Follow scores f_0, f_1, … and return the best round.

    Stops after ``patience`` rounds that are not better than the best before. With a name ``told``,
    a line is printed for every round.
    """
    scores: list[float] = []
    best, first, f_best = 0, np.empty(0), np.empty(0)
    for t, f in enumerate(stages):
        score = judge(f)
        if np.isnan(score):
            raise ValueError(f"scoring: round {t} has no score (NaN) on the held-out rows")
        scores.append(score)
        first = f if t == 0 else first
        if t == 0 or score > scores[best]:
            best, f_best = t, f
        if told is not None:
            print(f"{told}, round {t}: score {score:.6g} on rows held out, best round {best}")
        if t - best >= patience:
            break
    return Choice(best, first, f_best, np.array(scores))


def gain(loss: Loss, rows: Rows, before: Floats, after: Floats) -> Gain:
    """Return what rows gain by a change of their scores (n,).

    By the loss or by the cautious loss, whichever keeps less of the change: the cautious one alone
    would reward a change that makes correct predictions less certain.
    """
    shares, found = rows.weights_or_ones / rows.weights_or_ones.sum(), []
    for of_rows in (loss.cautious, loss.of_rows):
        gains = of_rows(rows.y, before) - of_rows(rows.y, after)
        mean = float((shares * gains).sum())
        found.append(Gain(mean, float(np.sqrt(np.square(shares * (gains - mean)).sum()))))
    return min(found, key=lambda gain: (gain.share, gain.mean))


def stack(loss: Loss, rows: Rows, f0: Floats, candidates: Sequence[Floats]) -> Floats:
    """Return the a ≥ 0 for which f_0 + Σ a_j (f_j − f_0) has the smallest mean loss on rows.

    candidates : the scores f_j (n,) of these rows by models that were not fitted to them.
    """
    moves = np.column_stack([f - f0 for f in candidates])
    shares = rows.weights_or_ones / rows.weights_or_ones.sum()
    scale = float((shares * loss.cautious(rows.y, f0)).sum()) or 1.0

    def mean_loss(a: Floats) -> tuple[float, Floats]:
        f = f0 + moves @ a
        slope = moves.T @ (shares * loss.cautious_slope(rows.y, f))
        return float((shares * loss.cautious(rows.y, f)).sum()) / scale, slope / scale

    start = np.full(len(candidates), 1.0 / len(candidates))
    bounds = [(0.0, None)] * len(candidates)
    return minimize(mean_loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x


def judge_of(
    scoring: Any,
    rows: TrainingRows,
    loss: Loss,
    classes: Any,
    seed: int,
    view: Callable[[Floats], Floats],
) -> Judge:
    """Return the judge of rows for a ``scoring`` of "loss", "mce" or a scorer.

    view : maps the trees' matrix, which may have missing cells, to what an audit is given.
    """
    if isinstance(scoring, str) and scoring == "loss":
        return lambda f: -rows.mean(loss.cautious(rows.y, f))
    if isinstance(scoring, str) and scoring == "mce":
        auditor = Auditor(view(rows.X), seed=seed)
        return lambda f: (
            -auditor.error(y=rows.y, prediction=loss.response(f), sample_weight=rows.weights)
        )
    scorer = check_scoring(_Snapshot(rows.y, loss, classes), scoring=scoring)
    takes = signature(getattr(scorer, "_score_func", scorer)).parameters
    weighted = rows.weights is not None and "sample_weight" in takes
    weights = {"sample_weight": rows.weights} if weighted else {}
    return lambda f: scorer(_Snapshot(f, loss, classes), rows.table, rows.labels, **weights)


class _Snapshot(BaseEstimator):  # type: ignore[misc]
    """A model that returns known predictions of some rows, for scorers."""

    def __init__(self, scores: Any, loss: Any, classes: Any) -> None:
        self.scores = scores
        self.loss = loss
        self.classes_ = self.classes = classes

    def _of_all(self, X: Any, values: Any) -> Any:
        """Return the values if X has as many rows; otherwise a scorer asks for some of them."""
        if len(X) != len(values):
            raise ValueError(f"scoring: must look at all {len(values)} held-out rows at once")
        return values

    def fit(self, X: Any, y: Any) -> Self:  # noqa: ARG002
        """Do nothing; scorers require the method."""
        return self

    def decision_function(self, X: Any) -> Floats:
        return self._of_all(X, self.scores)

    def predict_proba(self, X: Any) -> Floats:
        p = self.loss.response(self.scores)
        return self._of_all(X, np.column_stack([1.0 - p, p]))

    def predict(self, X: Any) -> Any:
        if self.classes is None:
            return self._of_all(X, self.loss.response(self.scores))
        return self._of_all(X, self.classes[(self.scores > 0).astype(int)])

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor" if self.classes is None else "classifier"
        return tags
