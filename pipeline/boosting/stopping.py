"""How many rounds to keep: those that are best on rows that they were not fitted to.

Round 0, the initial predictor, is a candidate like all others, and what is kept instead must be
better by more than chance: on rows of a predictor that needs no correction, the best of several
rounds would else often be a later one, which is worse on other rows. On the rows that are looked at
what is kept is never worse than the initial predictor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring

from pipeline.boosting.arrays import Floats
from pipeline.boosting.audit import Auditor
from pipeline.boosting.losses import Loss
from pipeline.boosting.rows import Rows

# Standard errors by which a later round must be better than the first: on all rows, each in a fold,
# or on one part of them, where chance and a few odd rows count for more.
CAUTION, CAUTION_OF_ONE = 1.0, 1.64


@dataclass(frozen=True)
class Choice:
    """The round to keep, and the score of every round that was tried (higher is better)."""

    best_round: int
    scores: Floats


# From the parts' scores f_t: how good they are, and (or None) what each row adds to how good they
# may be taken to be; see `Loss.doubted`.
Judge = Callable[[Sequence[Floats]], tuple[float, Floats | None]]


def choose(
    stages: Iterator[Sequence[Floats]],
    judge: Judge,
    patience: int,
    tol: float,
    caution: float = CAUTION,
) -> Choice:
    """Follow the scores f_0, f_1, … of held-out parts until they get no better.

    Stops after ``patience`` rounds that are not better than the best before by more than ``tol``.
    """
    scores: list[float] = []
    best, most, first, kept = 0, -np.inf, None, None
    for t, parts in enumerate(stages):
        score, of_rows = judge(parts)
        if np.isnan(score):
            raise ValueError(f"scoring: round {t} has no score (NaN) on the held-out rows")
        scores.append(score)
        worth = score if of_rows is None else float(of_rows.sum())
        if t == 0:
            most, first, kept = worth, of_rows, of_rows
        elif worth > most + tol:
            best, most, kept = t, worth, of_rows
        if t - best >= patience:
            break
    if best > 0 and (scores[best] < scores[0] or not _is_sure(first, kept, caution)):
        best = 0
    return Choice(best, np.array(scores))


def _is_sure(first: Floats | None, kept: Floats | None, caution: float) -> bool:
    """Whether rows are better off by more than ``caution`` standard errors."""
    if first is None or kept is None:
        return True
    gain = kept - first
    return bool(gain.sum() > caution * np.sqrt(np.square(gain - gain.mean()).sum()))


def judge_of(
    scoring: Any,
    parts: Sequence[Rows],
    loss: Loss,
    classes: Any,
    seed: int,
    view: Callable[[Floats], Floats],
) -> Judge:
    """The judge of some held-out parts, for "loss", "mce" or a scorer.

    view : what an audit sees of the trees' matrix, which may have missing cells.
    """
    if isinstance(scoring, str) and scoring == "loss":
        return _by_loss(parts, loss)
    if isinstance(scoring, str) and scoring == "mce":
        return _by_error(parts, loss, seed, view)
    return _by_scorer(scoring, parts, loss, classes)


def _by_loss(parts: Sequence[Rows], loss: Loss) -> Judge:
    y = np.concatenate([part.y for part in parts])
    weights = np.concatenate([_weights(part) for part in parts])
    shares = weights / weights.sum()

    def judge(scores: Sequence[Floats]) -> tuple[float, Floats]:
        f = np.concatenate(scores)
        return -float((shares * loss.of_rows(y, f)).sum()), -shares * loss.doubted(y, f)

    return judge


def _by_error(
    parts: Sequence[Rows], loss: Loss, seed: int, view: Callable[[Floats], Floats]
) -> Judge:
    auditors = [Auditor(view(part.X), seed=seed) for part in parts]
    sizes = [_weights(part).sum() for part in parts]

    def judge(scores: Sequence[Floats]) -> tuple[float, None]:
        errors = [
            auditor.error(y=part.y, prediction=loss.response(f), sample_weight=part.weights)
            for auditor, part, f in zip(auditors, parts, scores, strict=True)
        ]
        return -float(np.average(errors, weights=sizes)), None

    return judge


def _by_scorer(scoring: Any, parts: Sequence[Rows], loss: Loss, classes: Any) -> Judge:
    scorer = check_scoring(_snapshot(parts[0].y, loss, classes), scoring=scoring)
    takes = signature(getattr(scorer, "_score_func", scorer)).parameters
    sizes = [_weights(part).sum() for part in parts]

    def judge(scores: Sequence[Floats]) -> tuple[float, None]:
        values = []
        for part, f in zip(parts, scores, strict=True):
            weighted = part.weights is not None and "sample_weight" in takes
            weights = {"sample_weight": part.weights} if weighted else {}
            model = _snapshot(f, loss, classes)
            values.append(scorer(model, part.table, part.labels, **weights))
        return float(np.average(values, weights=sizes)), None

    return judge


def _weights(part: Rows) -> Floats:
    return np.ones(len(part)) if part.weights is None else part.weights


class _Predictions(BaseEstimator):  # type: ignore[misc]
    """Predictions of some rows in the clothes of a model, for scorers."""

    def __init__(self, scores: Any, loss: Any) -> None:
        self.scores = scores
        self.loss = loss

    def of_all(self, X: Any, values: Any) -> Any:
        """The values, if these are the rows that they belong to."""
        if len(X) != len(values):
            raise ValueError(f"scoring: must look at all {len(values)} held-out rows at once")
        return values

    def fit(self, X: Any, y: Any) -> _Predictions:  # noqa: ARG002
        """Scorers ask for it."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True


class _Values(RegressorMixin, _Predictions):  # type: ignore[misc]
    def predict(self, X: Any) -> Floats:
        return self.of_all(X, self.loss.response(self.scores))


class _Probabilities(ClassifierMixin, _Predictions):  # type: ignore[misc]
    classes_: Any

    def decision_function(self, X: Any) -> Floats:
        return self.of_all(X, self.scores)

    def predict_proba(self, X: Any) -> Floats:
        p = self.loss.response(self.scores)
        return self.of_all(X, np.column_stack([1.0 - p, p]))

    def predict(self, X: Any) -> Any:
        return self.of_all(X, self.classes_[(self.scores > 0).astype(int)])


def _snapshot(scores: Floats, loss: Loss, classes: Any) -> _Predictions:
    if classes is None:
        return _Values(scores, loss)
    model = _Probabilities(scores, loss)
    model.classes_ = classes
    return model
