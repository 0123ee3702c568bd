"""The rounds of a fit, and the choice of their number on rows that they were not fitted to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pipeline.boosting.algorithm import Round, Step, advance, boost, round_seed
from pipeline.boosting.arrays import Floats
from pipeline.boosting.engines import Engine
from pipeline.boosting.initial_predictor import FittedInitial
from pipeline.boosting.losses import Loss
from pipeline.boosting.rescaling import Rescaling
from pipeline.boosting.rows import TrainingRows


@dataclass(frozen=True)
class BoostingSettings:
    """What all fits of one call of an estimator's ``fit`` share."""

    loss: Loss
    engine: Engine
    eta: float
    rescaling: Rescaling
    seed: int


@dataclass
class BoostingFit:
    """Rounds that are fitted to rows one by one, as `steps` is iterated."""

    settings: BoostingSettings
    rows: TrainingRows
    initial: FittedInitial
    n_rounds: int
    rounds: list[Round] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Start with the loss of f_0."""
        self.losses = [self._mean_loss(self.initial.f0)]

    def steps(self) -> Iterator[Step]:
        """Fit the rounds and yield them; `rounds` and `losses` grow with each."""
        if self.n_rounds == 0:
            return
        settings, rows = self.settings, self.rows
        fitter = settings.engine.bind(rows.X, rows.weights)
        for step in boost(
            rows.y,
            self.initial.f0,
            self.n_rounds,
            settings.eta,
            settings.rescaling,
            lambda t, f, _: settings.loss.fit(
                fitter, rows.y, f, round_seed(settings.seed, t), rows.weights
            ),
            rows.weights,
        ):
            self.rounds.append(Round(step.ensemble, step.weight, step.gap))
            self.losses.append(self._mean_loss(step.f))
            yield step

    def _mean_loss(self, f: Floats) -> float:
        return self.rows.mean(self.settings.loss.of_rows(self.rows.y, f))


@dataclass(frozen=True)
class Trial:
    """A fit with held-out rows to validate it on, and their initial scores (n,)."""

    fit: BoostingFit
    held_out: TrainingRows
    f0: Floats


def held_out_stages(trials: Sequence[Trial]) -> Iterator[Sequence[Floats]]:
    """Fit all trials together; yield the scores f_0, f_1, … of each one's held-out rows."""
    current = [trial.f0 for trial in trials]
    yield current
    for steps in zip(*(trial.fit.steps() for trial in trials), strict=True):
        current = [
            advance(f, trial.held_out.X, step, trial.fit.settings.eta)
            for f, trial, step in zip(current, trials, steps, strict=True)
        ]
        yield current
