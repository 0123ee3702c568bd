"""Trajectories f_0, f_1, … of Algorithm 1, fitted together, each to the rows outside of its fold.

The trees of a round are given a row's prediction as a feature. For a row that the rounds are fitted
to, f_t has seen y; for a new row it has not, so the trees learn from a feature that they will never
meet again. If there is one trajectory for each fold, fitted to the rows outside of it, a row's
*honest* f_t comes from the trajectory of its own fold, which was not fitted to its y. The same
predictions tell how good the trajectories are on new rows, whose prediction is their mean.

That is exact for f_0 and f_1. From the second renewal on, the feature of other rows comes from
trajectories that were fitted to this row, so a little of its y is handed back (on 300 rows of pure
noise, 10 rounds: a covariance of 0.03 with y, where in sample it is 0.6; none with f_0 as the
feature); see ``theory/proofs/feedback.tex``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from joblib import Parallel, delayed

from .algorithm import Round, Step, advance, boost, round_seed
from .arrays import Floats, Ints
from .engines import Engine
from .engines.nodes import Nodes, TreeEnsemble, follow
from .losses import Loss
from .rescaling import Rescaling
from .rows import Rows

# What the trees are given as a feature: f_t of the trajectory that has not seen the row's y, f_t of
# the trajectory that they belong to (the paper), f_0, or nothing.
FeedbackName = Literal["honest", "in_sample", "initial", "none"]
FEEDBACK: tuple[str, ...] = get_args(FeedbackName)
NO_FOLD = -1  # of a row that all trajectories are fitted to


@dataclass(frozen=True)
class BoostingSettings:
    """What the trajectories of a fit share."""

    loss: Loss
    engine: Engine
    eta: float
    rescaling: Rescaling
    seed: int
    feedback: str = "in_sample"
    from_constant: bool = False  # they start from the best constant instead of f_0


@dataclass(frozen=True)
class Trajectory:
    """A fitted trajectory."""

    rounds: tuple[Round, ...]
    eta: float
    feedback: str = "in_sample"
    start: float | None = None  # the score that it starts from; None is f_0
    share: float = 1.0  # of it in a model's correction

    def stages(self, X: Floats, f0: Floats) -> Iterator[Floats]:
        """Yield the scores after each round, (n,), of new rows with initial scores f0 (n,)."""
        f = f0 if self.start is None else np.full(len(f0), self.start)
        yield f
        for step in self.rounds:
            f = advance(f, X, step, self.eta, feature_of(self.feedback, f, f0))
            yield f

    @cached_property
    def compiled(self) -> Nodes | None:
        """The trees of all rounds, where they are LightGBM's or were read from a file."""
        found = [step.ensemble for step in self.rounds]
        trees = [ensemble.trees for ensemble in found if isinstance(ensemble, TreeEnsemble)]
        return Nodes.joined(trees) if trees and len(trees) == len(found) else None

    def end(self, X: Floats, f0: Floats) -> Floats:
        """Return the scores after the last round: the last of `stages`, to the bit."""
        first = self.rounds[0].ensemble if self.rounds else None
        if self.compiled is None or not isinstance(first, TreeEnsemble):
            *_, f = self.stages(X, f0)
            return f
        first.check_rows(X)
        f = f0.copy() if self.start is None else np.full(len(f0), self.start)
        weights = np.array([step.weight for step in self.rounds])
        feature = feature_of(self.feedback, f, f0)
        renewed = self.feedback in ("honest", "in_sample")
        follow(self.compiled, weights, self.eta, renewed, np.ascontiguousarray(X), feature, f)
        return f

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields: what is compiled from them is not stored."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def feature_of(feedback: str, f: Floats, f0: Floats) -> Floats:
    """Return what trees are given as a feature for new rows (n,), which no trajectory has seen."""
    if feedback == "none":
        return np.zeros(len(f))
    return f0 if feedback == "initial" else f


def corrected_stages(trajectories: Sequence[Trajectory], X: Floats, f0: Floats) -> Iterator[Floats]:
    """Yield f_0 and f_0 + Σ share (f_t − f_0), t = 1, 2, …, the sum being over trajectories."""
    if len(trajectories) == 1 and trajectories[0].share == 1.0:  # to the bit
        yield from trajectories[0].stages(X, f0)
        return
    yield f0
    running = [trajectory.stages(X, f0) for trajectory in trajectories]
    current = [next(stages) for stages in running]
    for _ in range(n_stages(trajectories)):
        current = [next(stages, f) for stages, f in zip(running, current, strict=True)]
        pairs = zip(trajectories, current, strict=True)
        yield f0 + sum(trajectory.share * (f - f0) for trajectory, f in pairs)


def corrected(trajectories: Sequence[Trajectory], X: Floats, f0: Floats) -> Floats:
    """Return the last of `corrected_stages`."""
    if len(trajectories) == 1 and trajectories[0].share == 1.0:
        return trajectories[0].end(X, f0)
    return f0 + sum((t.share * (t.end(X, f0) - f0) for t in trajectories), np.zeros(len(f0)))


def n_stages(trajectories: Sequence[Trajectory]) -> int:
    """Return the number of rounds of the longest trajectory; at least 1 if there is one."""
    return max((max(1, len(trajectory.rounds)) for trajectory in trajectories), default=0)


@dataclass
class CrossFit:
    """Trajectories that are fitted together, round by round, as `stages` is iterated.

    rounds : those of each trajectory so far.  scores : f_t of each one's own rows.
    """

    settings: BoostingSettings
    rows: Rows
    X: Floats
    starts: Sequence[Floats]  # (k, n) f_0 of all rows in each of k trajectories
    fold: Ints  # (n,) the trajectory that is not fitted to a row, or `NO_FOLD`
    n_rounds: int
    n_jobs: int = 1
    losses: list[float] = field(default_factory=list)  # their mean loss at f_0, f_1, …

    def __post_init__(self) -> None:
        """Start all trajectories."""
        self.rounds: list[list[Round]] = [[] for _ in self.starts]
        self._own = [np.flatnonzero(self.fold != k) for k in range(len(self.starts))]
        self._held_out = [self.fold == k for k in range(len(self.starts))]
        rows = Rows(y=self.rows.y, weights=self.rows.weights)
        self._rows = [rows.take(own) for own in self._own]
        self.constants = [self._constant(some) for some in self._rows]
        self._current = self.starts[0].copy()
        starts = [self._start(k) for k in range(len(self.starts))]
        for held_out, f in zip(self._held_out, starts, strict=True):
            self._current[held_out] = f[held_out]  # of the trajectory of the row's fold
        self._record([f[own] for f, own in zip(starts, self._own, strict=True)])

    def stages(self) -> Iterator[Floats]:
        """Fit the rounds; yield the honest scores (n,) of the rows at f_0, f_1, …."""
        yield self._current
        if self.n_rounds == 0:
            return
        running = [self._steps(k) for k in range(len(self.starts))]
        with Parallel(self.n_jobs, require="sharedmem") as parallel:
            for _ in range(self.n_rounds):
                steps: list[Step] = parallel(delayed(next)(trajectory) for trajectory in running)
                self._advance(steps)
                yield self._current

    def trajectories(self, n_rounds: int, share: float) -> list[Trajectory]:
        """Return the first rounds as fitted trajectories, which have equal parts of a share.

        There are none if they would not change f_0.
        """
        settings, each = self.settings, share / len(self.starts)
        if share == 0 or (n_rounds == 0 and not settings.from_constant):
            return []
        return [
            Trajectory(tuple(rounds[:n_rounds]), settings.eta, settings.feedback, start, each)
            for rounds, start in zip(self.rounds, self.constants, strict=True)
        ]

    def _constant(self, rows: Rows) -> float | None:
        """Return the best constant score of a trajectory's rows, if it starts from that."""
        if not self.settings.from_constant:
            return None
        return float(self.settings.loss.score(np.array([rows.mean(rows.y)]))[0])

    def _start(self, k: int) -> Floats:
        constant = self.constants[k]
        return self.starts[k] if constant is None else np.full(len(self.rows), constant)

    def _steps(self, k: int) -> Iterator[Step]:
        settings, own = self.settings, self._own[k]
        y, weights = self._rows[k].y, self._rows[k].weights
        fitter = settings.engine.bind(self.X[own], weights)
        return boost(
            y,
            self._start(k)[own],
            self.n_rounds,
            settings.eta,
            settings.rescaling,
            lambda t, f, _: settings.loss.fit(
                fitter, y, f, self._feature(k, f), round_seed(settings.seed, t), weights
            ),
            weights,
        )

    def _feature(self, k: int, f: Floats) -> Floats:
        """Return the feature of a trajectory's own rows, whose scores in it are f."""
        if self.settings.feedback == "honest":
            return self._current[self._own[k]]
        return feature_of(self.settings.feedback, f, self.starts[k][self._own[k]])

    def _advance(self, steps: Sequence[Step]) -> None:
        """Move the rows of each fold by its trajectory's new round."""
        settings, following = self.settings, self._current.copy()
        for k, step in enumerate(steps):
            self.rounds[k].append(Round(step.ensemble, step.weight, step.gap))
            held_out = self._held_out[k]
            if held_out.any():
                f, f0 = self._current[held_out], self.starts[k][held_out]
                feature = feature_of(settings.feedback, f, f0)
                following[held_out] = advance(f, self.X[held_out], step, settings.eta, feature)
        self._current = following
        self._record([step.f for step in steps])

    def _record(self, scores: Sequence[Floats]) -> None:
        """Note the scores of the trajectories' own rows, and their mean loss."""
        self.scores, of_rows = scores, self.settings.loss.of_rows
        pairs = zip(self._rows, scores, strict=True)
        self.losses.append(float(np.mean([rows.mean(of_rows(rows.y, f)) for rows, f in pairs])))
