"""Algorithm 1 as one of the methods, with the paper's settings or the estimators' defaults."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from .. import stopping
from ..arrays import Floats
from ..audit import Auditor
from ..classifier import MulticalibrationBoostingClassifier
from ..engines import TreeSettings, make_engine
from ..engines.hybrid import HybridEngine
from ..estimator import PAPER
from ..folds import fold_numbers
from ..losses import LogLoss, Loss, SquaredLoss
from ..regressor import MulticalibrationBoostingRegressor
from ..rescaling import Unit
from ..rows import Rows, TrainingRows
from ..trajectories import (
    NO_FOLD,
    BoostingSettings,
    CrossFit,
    FeedbackName,
    Trajectory,
    corrected_stages,
)
from .base import Corrected, Method, Sample

FIXED = {
    name: PAPER[name]
    for name in (
        "feedback", "init_cv", "max_leaf_nodes", "l2_regularization", "early_stopping", "engine",
    )
}  # fmt: skip
GAMMAS = (0.0, 0.1, 0.25, 0.5, 1.0)  # of the hybrid algorithm
SMALLEST = 1e-3  # probability of a method that fits probabilities by least squares


@dataclass(frozen=True)
class Algorithm(Method):
    """Algorithm 1 with a fixed number of rounds; the defaults are the paper's."""

    name = "algorithm"
    validates_by = "stopped"
    cost = 4.0

    rounds: int = 20
    eta: float = 0.5
    rescaling: str = "unit"
    trees: int = 100
    depth: int = 3
    learning_rate: float = 0.1
    leaf: float = 1  # the smallest number of rows of a leaf; below 1, their share of all rows
    # The round with the smallest loss on the validation rows is used (it may be round 0) instead of
    # the last
    stopped: bool = False

    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:
        leaf = self.leaf if self.leaf >= 1 else max(1.0, self.leaf * len(sample))
        model = _kind(sample)(
            self.rounds,
            eta=self.eta,
            rescaling=self.rescaling,
            n_trees=self.trees,
            max_depth=self.depth,
            learning_rate=self.learning_rate,
            min_samples_leaf=int(leaf),
            random_state=seed,
            **FIXED,
        )
        model.fit(sample.X, sample.y, initial_prediction=sample.f)

        last = _corrected(model, self.rounds)
        if not self.stopped or last.stages is None:
            return last
        losses = [validation.loss(f) for f in last.stages(validation)]
        return _corrected(model, int(np.argmin(losses)))


@dataclass(frozen=True)
class Feedback(Method):
    """Algorithm 1 as trajectories of folds that are averaged, which differ in the trees' feature.

    With η = 1 the trees are the same boosting, whatever `every` is, but for the feature.
    """

    name = "feedback"
    cost = 8.0

    feedback: FeedbackName = "in_sample"  # the feature, see `pipeline.boosting.trajectories`
    every: int = 100  # the trees of a round, after which the feature is renewed
    total: int = 1000  # the trees of a trajectory
    eta: float = 1.0
    depth: int = 3
    learning_rate: float = 0.05
    folds: int = 5

    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:
        loss: Loss = LogLoss() if sample.binary else SquaredLoss()
        engine = make_engine("exact", TreeSettings(self.every, self.depth, self.learning_rate))
        settings = BoostingSettings(loss, engine, self.eta, Unit(), seed, self.feedback)
        table = TrainingRows(table=sample.X, X=sample.X, labels=sample.y, y=sample.y)
        fold = fold_numbers(table, self.folds, sample.binary, seed, "folds")
        if fold is None:
            raise ValueError(f"folds={self.folds}: {len(sample)} rows are too few")
        starts, n_rounds = [loss.score(sample.f)] * (int(fold.max()) + 1), self.total // self.every
        fit = CrossFit(settings, table, sample.X, starts, fold, n_rounds)
        for _ in fit.stages():
            pass
        trajectories = fit.trajectories(n_rounds, 1.0)

        def stages(rows: Sample) -> Iterator[Floats]:
            return map(loss.response, corrected_stages(trajectories, rows.X, loss.score(rows.f)))

        def predict(rows: Sample) -> Floats:
            *_, last = stages(rows)
            return last

        return Corrected(predict, n_rounds, stages, self._training(fit, sample, seed))

    def _training(self, fit: CrossFit, sample: Sample, seed: int) -> dict[str, float]:
        """Return what the theory bounds: the first trajectory's own rows, last round over first."""
        own, rounds, loss = fit.fold != 0, fit.rounds[0], fit.settings.loss
        auditor = Auditor(sample.X[own], seed=seed)
        before, after = (
            auditor.error(y=sample.y[own], prediction=loss.response(f))
            for f in (fit.starts[0][own], fit.scores[0])
        )
        return {
            "loss_train": fit.losses[-1] / fit.losses[0],
            "gap_train": rounds[-1].gap / (rounds[0].gap or 1.0),
            "mce_train": after / (before or 1.0),
        }


@dataclass(frozen=True)
class HybridRounds(Method):
    """The hybrid algorithm of the paper's appendix; validation rows choose γ and the round."""

    name = "hybrid"
    validates_by = True
    cost = 12.0

    rounds: int = 20
    eta: float = 0.5
    trees: int = 100
    depth: int = 3
    learning_rate: float = 0.1

    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:
        weak = make_engine("exact", TreeSettings(self.trees, self.depth, self.learning_rate))
        rows, nowhere = Rows(y=sample.y), np.full(len(sample), NO_FOLD)
        found: list[tuple[float, Trajectory]] = []
        for gamma in GAMMAS:
            engine = HybridEngine(weak, gamma) if gamma else weak
            settings = BoostingSettings(SquaredLoss(), engine, self.eta, Unit(), seed)
            fit = CrossFit(settings, rows, sample.X, [sample.f], nowhere, self.rounds)
            for _ in fit.stages():
                pass
            (trajectory,) = fit.trajectories(self.rounds, 1.0)
            losses = [
                validation.loss(_within(validation, f))
                for f in trajectory.stages(validation.X, validation.f)
            ]
            rounds = trajectory.rounds[: int(np.argmin(losses))]
            found.append((min(losses), replace(trajectory, rounds=rounds)))
        _, best = min(found, key=lambda one: one[0])
        return Corrected(lambda r: _within(r, best.end(r.X, r.f)), len(best.rounds))


def _within(rows: Sample, f: Floats) -> Floats:
    return np.clip(f, SMALLEST, 1.0 - SMALLEST) if rows.binary else f


@dataclass(frozen=True)
class Estimator(Method):
    """Algorithm 1 as this library's estimators run it, with their defaults.

    The options but for the last are parameters of the estimators; None is their default.
    """

    name = "estimator"
    validates_by = "in_sample"
    cost = 3.0

    feedback: str | None = None
    n_trees: int | None = None
    max_leaf_nodes: int | None = None
    l2_regularization: float | None = None
    learning_rate: float | None = None
    stack: bool | None = None
    # The model was fitted to these rows, so it looks better on them than on others; what is kept is
    # then judged on the validation rows, which the model has not seen
    in_sample: bool = False

    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "in_sample"}
        chosen = {name: value for name, value in given.items() if value is not None}
        model, held_out = _kind(sample)(random_state=seed, **chosen), {}
        if self.validates:
            held_out = {
                "X_val": validation.X,
                "y_val": validation.y,
                "initial_prediction_val": validation.f,
            }
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "no correction is kept")
            model.fit(sample.X, sample.y, initial_prediction=sample.f, **held_out)
        return _corrected(model, int(model.best_round_))


def _corrected(model: Any, best: int) -> Corrected:
    """Return the correction by the first ``best`` rounds of a fitted estimator."""

    def stages(rows: Sample) -> Iterator[Floats]:
        if rows.binary:
            return (p[:, 1] for p in model.staged_predict_proba(rows.X, rows.f))
        return model.staged_predict(rows.X, rows.f)

    def predict(rows: Sample) -> Floats:
        if rows.binary:
            return model.predict_proba(rows.X, rows.f, n_rounds=best)[:, 1]
        return model.predict(rows.X, rows.f, n_rounds=best)

    return Corrected(predict, best, stages)


def estimator_defaults() -> dict[str, Any]:
    """Return the defaults of the estimators that their predictions depend on."""
    known = MulticalibrationBoostingRegressor().get_params()
    others = {"init", "init_cv", "n_jobs", "random_state", "verbose"}
    return {k: v for k, v in known.items() if k not in others} | {
        "doubt": stopping.DOUBT,
        "gain": "of the loss and of the cautious loss",
    }


def _kind(sample: Sample) -> Any:
    if sample.binary:
        return MulticalibrationBoostingClassifier
    return MulticalibrationBoostingRegressor
