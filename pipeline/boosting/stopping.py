"""How many rounds to keep: as many as are best on rows that they were not fitted to.

Round 0, the initial predictor, is a candidate like all others, and a later round must be better by
more than chance: where a predictor needs no correction, the best of several rounds would otherwise
often be a later one, which is worse on other rows. On the held-out rows, the round that is kept is
never worse than the initial predictor.
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
from pipeline.boosting.rows import TrainingRows

# The number of standard errors by which a later round must be better than round 0: where every row
# is held out in one fold, and where one part of the rows is, so that a few odd rows matter more.
CAUTION, CAUTION_OF_ONE = 1.0, 1.64


@dataclass(frozen=True)
class Choice:
    """The round to keep, and the score of every round that was fitted (higher is better)."""

    best_round: int
    scores: Floats


# Maps the scores f_t of each held-out part to a score of the round, and to what each row
# contributes to a more cautious score (None if that is not known); see `Loss.cautious`.
Judge = Callable[[Sequence[Floats]], tuple[float, Floats | None]]


def choose(
    stages: Iterator[Sequence[Floats]],
    judge: Judge,
    patience: int,
    tol: float,
    caution: float = CAUTION,
) -> Choice:
    """Follow the scores f_0, f_1, … of held-out parts and return the best round.

    Stops after ``patience`` rounds that are not better by more than ``tol`` than the best before.
    """
    scores: list[float] = []
    best, best_value, of_first, of_best = 0, -np.inf, None, None
    for t, parts in enumerate(stages):
        score, of_rows = judge(parts)
        if np.isnan(score):
            raise ValueError(f"scoring: round {t} has no score (NaN) on the held-out rows")
        scores.append(score)
        value = score if of_rows is None else float(of_rows.sum())
        if t == 0:
            best_value, of_first, of_best = value, of_rows, of_rows
        elif value > best_value + tol:
            best, best_value, of_best = t, value, of_rows
        if t - best >= patience:
            break
    if best > 0 and (scores[best] < scores[0] or not _is_significant(of_first, of_best, caution)):
        best = 0
    return Choice(best, np.array(scores))


def _is_significant(of_first: Floats | None, of_best: Floats | None, caution: float) -> bool:
    """Return whether rows improve by more than ``caution`` standard errors."""
    if of_first is None or of_best is None:
        return True
    gain = of_best - of_first
    return bool(gain.sum() > caution * np.sqrt(np.square(gain - gain.mean()).sum()))


def judge_of(
    scoring: Any,
    parts: Sequence[TrainingRows],
    loss: Loss,
    classes: Any,
    seed: int,
    view: Callable[[Floats], Floats],
) -> Judge:
    """Return the judge of held-out parts for a ``scoring`` of "loss", "mce" or a scorer.

    view : maps the trees' matrix, which may have missing cells, to what an audit is given.
    """
    if isinstance(scoring, str) and scoring == "loss":
        return _by_loss(parts, loss)
    if isinstance(scoring, str) and scoring == "mce":
        return _by_error(parts, loss, seed, view)
    return _by_scorer(scoring, parts, loss, classes)


def _by_loss(parts: Sequence[TrainingRows], loss: Loss) -> Judge:
    y = np.concatenate([part.y for part in parts])
    weights = np.concatenate([part.weights_or_ones for part in parts])
    shares = weights / weights.sum()

    def judge(scores: Sequence[Floats]) -> tuple[float, Floats]:
        f = np.concatenate(scores)
        return -float((shares * loss.of_rows(y, f)).sum()), -shares * loss.cautious(y, f)

    return judge


def _by_error(
    parts: Sequence[TrainingRows], loss: Loss, seed: int, view: Callable[[Floats], Floats]
) -> Judge:
    auditors = [Auditor(view(part.X), seed=seed) for part in parts]
    sizes = [part.weights_or_ones.sum() for part in parts]

    def judge(scores: Sequence[Floats]) -> tuple[float, None]:
        errors = [
            auditor.error(y=part.y, prediction=loss.response(f), sample_weight=part.weights)
            for auditor, part, f in zip(auditors, parts, scores, strict=True)
        ]
        return -float(np.average(errors, weights=sizes)), None

    return judge


def _by_scorer(scoring: Any, parts: Sequence[TrainingRows], loss: Loss, classes: Any) -> Judge:
    scorer = check_scoring(_snapshot(parts[0].y, loss, classes), scoring=scoring)
    takes = signature(getattr(scorer, "_score_func", scorer)).parameters
    sizes = [part.weights_or_ones.sum() for part in parts]

    def judge(scores: Sequence[Floats]) -> tuple[float, None]:
        values = []
        for part, f in zip(parts, scores, strict=True):
            weighted = part.weights is not None and "sample_weight" in takes
            weights = {"sample_weight": part.weights} if weighted else {}
            model = _snapshot(f, loss, classes)
            values.append(scorer(model, part.table, part.labels, **weights))
        return float(np.average(values, weights=sizes)), None

    return judge


class _Predictions(BaseEstimator):  # type: ignore[misc]
    """A model that returns known predictions of some rows, for scorers."""

    def __init__(self, scores: Any, loss: Any) -> None:
        self.scores = scores
        self.loss = loss

    def of_all(self, X: Any, values: Any) -> Any:
        """Return the values if X has as many rows; otherwise a scorer asks for some of them."""
        if len(X) != len(values):
            raise ValueError(f"scoring: must look at all {len(values)} held-out rows at once")
        return values

    def fit(self, X: Any, y: Any) -> _Predictions:  # noqa: ARG002
        """Do nothing; scorers require the method."""
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
