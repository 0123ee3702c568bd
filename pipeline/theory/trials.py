"""The runs that statements are tried on.

Those of several statements are made once, when first asked for, and kept; long ones of a single
statement are not kept.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pipeline.boosting.rescaling import Adaptive, Relaxed
from pipeline.theory.dynamics import Direction, HybridRun, Trajectory, run, run_hybrid
from pipeline.theory.instances import KINDS, SMOOTH, Bank, Instance
from pipeline.theory.learners import project
from pipeline.theory.logloss import LogStep, best_log_loss_step, run_log_loss

SHARE = 0.7  # of the best step that an oracle with a relative error takes
LONG, VERY_LONG = 200, 1000  # rounds
EXACT, PARTIAL = "exact oracle", "a share of the best step"
RELATIVE = "log-loss, relative error"
# Size and direction of the oracle's errors.
ORACLES: Mapping[str, tuple[float, Direction]] = {
    EXACT: (0.0, "random"),
    "random errors": (0.05, "random"),
    "errors along the step": (0.05, "along"),
    "errors against the step": (0.05, "against"),
}
LOG_ORACLES = (EXACT, PARTIAL, "a step with random errors")


@dataclass(frozen=True)
class HybridTrial:
    """A run of the appendix's hybrid algorithm, and what Lemma A.9 is tried on beside it."""

    instance: Instance
    run: HybridRun
    # Two (n, n) random matrices that commute, noise (n,), a share of the largest step size
    lemma: tuple[Any, ...]


@dataclass(frozen=True)
class Trials:
    """Runs on the instances of a bank."""

    bank: Bank

    @cached_property
    def unit(self) -> dict[str, list[Trajectory]]:
        """Unit, the theorem's step size, by oracle; errors decay with the rounds."""
        return self._unit(any_step=False)

    @cached_property
    def unit_any_step(self) -> dict[str, list[Trajectory]]:
        """The same with any step size."""
        return self._unit(any_step=True)

    def _unit(self, *, any_step: bool) -> dict[str, list[Trajectory]]:
        return {
            name: [
                unit_run(i, any_step=any_step, noise=noise, decay=1, direction=direction)
                for i in self.bank()
            ]
            for name, (noise, direction) in ORACLES.items()
        }

    @cached_property
    def log_loss(self) -> list[Trajectory]:
        """Log-loss runs whose step size meets the theorem's condition with their own m."""
        return list(_log_runs(self.bank))

    @cached_property
    def log_loss_any(self) -> dict[str, list[Trajectory]]:
        """Log-loss runs without that condition: classes that can be separated, or cannot.

        A relative error is that of an oracle which takes a `SHARE` of the best step.
        """
        regimes = {
            "log-loss, classes separable": (True, 1.0),
            "log-loss, not separable": (False, 1.0),
            RELATIVE: (False, SHARE),
        }
        instances = list(self.bank.random(("sigmoid",), self.bank.n))
        return {name: [_any_log_run(i, *how) for i in instances] for name, how in regimes.items()}

    @cached_property
    def log_steps(self) -> dict[str, list[LogStep]]:
        """Log-loss steps on groups and intervals of predictions, by oracle."""
        instances = list(self.bank.random(KINDS, self.bank.n))
        return {oracle: [_log_step(i, oracle) for i in instances] for oracle in LOG_ORACLES}

    @cached_property
    def smooth(self) -> list[Instance]:
        """The instances with smooth classes."""
        return list(self.bank(SMOOTH))

    @cached_property
    def relaxed(self) -> list[Trajectory]:
        """Relaxed weights."""
        return [run(i.y, i.f0, i.learners, i.eta, 25, Relaxed()) for i in self.bank()]

    @cached_property
    def adaptive(self) -> list[Trajectory]:
        """Adaptive weights."""
        return [run(i.y, i.f0, i.learners, i.eta, 60, Adaptive()) for i in self.bank()]

    @property
    def unit_long(self) -> dict[str, list[Trajectory]]:
        """Unit for `LONG` rounds, by kind of class; the sum of the errors is finite."""
        return self._by_kind(lambda i: unit_run(i, LONG, noise=0.1, decay=3))

    @property
    def relaxed_long(self) -> dict[str, list[Trajectory]]:
        """Relaxed weights for twice `LONG` rounds, by kind of class."""
        return self._by_kind(lambda i: run(i.y, i.f0, i.learners, i.eta, 2 * LONG, Relaxed()))

    @cached_property
    def adaptive_long(self) -> dict[str, list[Trajectory]]:
        """Adaptive weights for `VERY_LONG` rounds, by kind of class."""
        return self._by_kind(
            lambda i: run(i.y, i.f0, i.learners, max(i.eta, 0.3), VERY_LONG, Adaptive())
        )

    def _by_kind(self, run_of: Callable[[Instance], Trajectory]) -> dict[str, list[Trajectory]]:
        return {kind: [run_of(i) for i in self.bank.few((kind,))] for kind in KINDS}

    @cached_property
    def hybrid(self) -> list[HybridTrial]:
        """The hybrid algorithm within the paper's range of step sizes."""
        return [_hybrid_trial(i) for i in self.bank()]


def unit_run(
    i: Instance,
    n_rounds: int = 25,
    *,
    any_step: bool = False,
    noise: float = 0.0,
    decay: float = 0.0,
    direction: Direction = "random",
) -> Trajectory:
    """A Unit run, with the theorem's step size η ≤ 1/2 or with any.

    The oracle's error is ε_t = noise · V(f_0) / (t + 1)^decay.
    """
    eta = i.eta if any_step else min(i.eta, 0.5)
    size = noise * 0.5 * float(np.square(i.y - i.f0).sum())

    def error(t: int) -> float:
        return size / (t + 1) ** decay

    return run(i.y, i.f0, i.learners, eta, n_rounds, error=error, direction=direction)


def _log_runs(bank: Bank) -> Iterator[Trajectory]:
    """Runs with η ≤ m/(2L); η is lowered to the m of the run before until it meets that."""
    for i in bank(("sigmoid",), 4):
        y = (i.y > np.median(i.y)).astype(float)
        learners = lambda f, i=i: 0.3 * i.learners(f)[:, :4]  # noqa: E731
        eta = 0.5
        for _ in range(6):
            t = run_log_loss(y, 0.3 * i.f0, learners, eta, 12)
            if t.convexity < 1e-3:
                break  # the learners (almost) separate the classes: (A2) does not hold
            if eta <= 2 * t.convexity:
                yield t
                break
            eta = t.convexity


def _any_log_run(i: Instance, separable: bool, share: float) -> Trajectory:
    """Any η. Separable classes are those of a linear function of h(x), which the class holds."""
    score = i.learners.H @ i.generator().normal(size=i.learners.H.shape[1])
    score = score if separable else score + 2 * i.generator().normal(size=len(i.y))
    y = (score > np.median(score)).astype(float)
    learners = i.learners if separable else lambda f: i.learners(f)[:, :3]
    return run_log_loss(y, 0.3 * i.f0, learners, i.eta, 12, share)


def _log_step(i: Instance, oracle: str) -> LogStep:
    """Outcomes that follow predictions with a bias, overlapping random groups, quantiles of f."""
    rng = i.generator()
    n = len(i.y)
    f = rng.choice([0.3, 1.0, 3.0]) * (i.f0 - np.median(i.f0))
    y = (rng.random(n) < 1 / (1 + np.exp(-(f + rng.normal())))).astype(float)
    members = rng.random((int(rng.integers(1, 5)), n)) < 0.5
    members[:, 0] = True  # a group has members
    groups = np.vstack([np.ones(n), members])
    cuts = np.quantile(f, np.linspace(0, 1, int(rng.integers(2, 5)))[1:-1])
    intervals = np.searchsorted(cuts, f) == np.arange(len(cuts) + 1)[:, None]
    columns = groups[:, None, :] * intervals
    B = columns.reshape(-1, n).T
    best = h = best_log_loss_step(y, f, project(B))
    if oracle == PARTIAL:
        h = rng.uniform(0.2, 1) * best
    elif oracle != EXACT:
        h = best + B @ (0.3 * np.abs(best).max() * rng.normal(size=B.shape[1]))
    return LogStep(y, f, groups, columns, best, h, i.eta)


def _hybrid_trial(i: Instance) -> HybridTrial:
    rng, n = i.generator(), len(i.y)
    gamma = float(rng.uniform(0.05, 1))
    eta = float(rng.uniform(0.02, 0.98)) * 2 * gamma / (1 + gamma) ** 2
    strong = i.y + 0.3 * rng.normal(size=n)
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    P, Q = ((basis * rng.uniform(0.3, 2, n)) @ basis.T for _ in range(2))
    lemma = P, Q, 0.1 * rng.normal(size=n), float(rng.uniform(0.02, 0.98))
    return HybridTrial(i, run_hybrid(i.y, i.f0, i.learners, strong, eta, gamma, 10), lemma)
