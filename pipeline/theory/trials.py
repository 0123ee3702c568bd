"""The runs that several findings look at, each made once, when first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipeline.boosting.arrays import Floats
from pipeline.boosting.rescaling import Adaptive, Relaxed
from pipeline.theory.checks import Check
from pipeline.theory.checks.error import Groups, LogStep
from pipeline.theory.checks.hybrid import preconditioned_step
from pipeline.theory.checks.linear import class_difference, projector_difference
from pipeline.theory.dynamics import (
    Direction,
    LogTrajectory,
    Trajectory,
    best_log_loss_step,
    run,
    run_hybrid,
    run_log_loss,
)
from pipeline.theory.instances import KINDS, SMOOTH, Bank, Instance

SHARE = 0.7  # of the best step that an oracle with a relative error takes
LONG = 1000  # rounds

# What the oracle's error does, by name; of the first there is none.
ORACLES: Mapping[str, Direction | None] = {
    "exact oracle": None,
    "random errors": "random",
    "errors along the step": "along",
    "errors against the step": "against",
}


@dataclass(frozen=True)
class HybridRun:
    """A run of the appendix's hybrid algorithm: f (T + 1, n) and the classes B of its rounds.

    preconditioned : Lemma A.9 on a step with random matrices that commute.
    """

    instance: Instance
    strong: Floats
    f: Floats
    B: tuple[Floats, ...]
    eta: float
    gamma: float
    preconditioned: Check


@dataclass(frozen=True)
class Trials:
    """Runs on the instances of a bank."""

    bank: Bank

    @cached_property
    def unit(self) -> dict[str, list[Trajectory]]:
        """Unit, the theorem's step size, by oracle; errors decay with the rounds."""
        return {
            name: [unit_run(i, noise=0.05, decay=1, direction=d) for i in self.bank()]
            for name, d in ORACLES.items()
        }

    @cached_property
    def unit_any_step(self) -> dict[str, list[Trajectory]]:
        """Unit, any step size, by oracle."""
        return {
            name: [unit_run(i, half=False, noise=0.05, decay=1, direction=d) for i in self.bank()]
            for name, d in ORACLES.items()
        }

    @cached_property
    def log_loss(self) -> list[LogTrajectory]:
        """Log-loss runs whose step size meets the theorem's condition with their own m."""
        return list(_log_runs(self.bank))

    @cached_property
    def log_loss_any(self) -> dict[str, list[LogTrajectory]]:
        """Log-loss runs without that condition: classes that can be separated, or cannot."""
        return {
            "classes separable": list(_any_log_runs(self.bank, separable=True)),
            "not separable": list(_any_log_runs(self.bank, separable=False)),
            "not separable, relative error": list(
                _any_log_runs(self.bank, separable=False, share=SHARE)
            ),
        }

    @cached_property
    def log_steps(self) -> dict[str, list[LogStep]]:
        """Log-loss steps on groups and intervals of predictions, by oracle."""
        instances = list(self.bank.random(KINDS, self.bank.n))
        return {oracle: [_log_step(i, oracle) for i in instances] for oracle in STEPS}

    @cached_property
    def smooth(self) -> list[Instance]:
        """The instances with smooth classes."""
        return list(self.bank(SMOOTH))

    @cached_property
    def projector_differences(self) -> list[tuple[Check, Check]]:
        """Two predictions close to each other: the paper's bound and the sharper one."""
        return [
            projector_difference(
                i.learners(i.f0), i.learners(i.f0 + 1e-3 * i.generator().normal(size=len(i.y)))
            )
            for i in self.smooth
        ]

    @cached_property
    def class_differences(self) -> list[tuple[Check, Check]]:
        """Two predictions: the paper's bound and the sharper one."""
        return [
            class_difference(i.learners, i.f0, i.f0 + i.generator().normal(size=len(i.y)))
            for i in self.smooth
        ]

    @cached_property
    def relaxed(self) -> list[Trajectory]:
        """Relaxed weights."""
        return [run(i.y, i.f0, i.learners, i.eta, 25, Relaxed()) for i in self.bank()]

    @cached_property
    def adaptive(self) -> list[Trajectory]:
        """Adaptive weights."""
        return [run(i.y, i.f0, i.learners, i.eta, 60, Adaptive()) for i in self.bank()]

    @cached_property
    def adaptive_long(self) -> dict[str, list[Trajectory]]:
        """A thousand rounds of adaptive weights, by class."""
        return {
            kind: [
                run(i.y, i.f0, i.learners, max(i.eta, 0.3), LONG, Adaptive())
                for i in self.bank.few((kind,))
            ]
            for kind in KINDS
        }

    @cached_property
    def hybrid(self) -> list[HybridRun]:
        """The hybrid algorithm within the paper's range of step sizes."""
        return [_hybrid_run(i) for i in self.bank()]


def unit_run(
    i: Instance,
    n_rounds: int = 25,
    *,
    half: bool = True,
    noise: float = 0.0,
    decay: float = 0.0,
    direction: Direction | None = "random",
) -> Trajectory:
    """A Unit run; with the theorem's step size, η ≤ 1/2, unless told otherwise.

    The oracle's error is ε_t = noise · V(f_0) / (t + 1)^decay; without a direction it has none.
    """
    eta = min(i.eta, 0.5) if half else i.eta
    if direction is None:
        return run(i.y, i.f0, i.learners, eta, n_rounds)
    size = noise * 0.5 * float(np.square(i.y - i.f0).sum())
    return run(
        i.y, i.f0, i.learners, eta, n_rounds,
        error=lambda t: size / (t + 1) ** decay, direction=direction,
    )  # fmt: skip


def near_target(i: Instance, rho: float) -> Instance:
    """The same instance started at y − ρ(y − f_0)."""
    return Instance(i.kind, i.y, i.y - rho * (i.y - i.f0), i.learners, i.eta, i.seed)


def _log_runs(bank: Bank) -> Iterator[LogTrajectory]:
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


def _any_log_runs(bank: Bank, *, separable: bool, share: float = 1.0) -> Iterator[LogTrajectory]:
    """Any η. Separable classes are those of a linear function of h(x), which the class holds."""
    for i in bank.random(("sigmoid",), bank.n):
        score = i.learners.H @ i.generator().normal(size=i.learners.H.shape[1])
        score = score if separable else score + 2 * i.generator().normal(size=len(i.y))
        y = (score > np.median(score)).astype(float)
        learners = i.learners if separable else lambda f, i=i: i.learners(f)[:, :3]
        yield run_log_loss(y, 0.3 * i.f0, learners, i.eta, 12, share)


STEPS = ("exact oracle", "a share of the best step", "a step with random errors")


def _log_step(i: Instance, oracle: str) -> LogStep:
    """Outcomes that follow predictions with a bias, overlapping random groups, quantiles of f."""
    rng = i.generator()
    n = len(i.y)
    f = rng.choice([0.3, 1.0, 3.0]) * (i.f0 - np.median(i.f0))
    y = (rng.random(n) < 1 / (1 + np.exp(-(f + rng.normal())))).astype(float)
    members = rng.random((int(rng.integers(1, 5)), n)) < 0.5
    members[:, 0] = True  # a group has members
    cuts = np.quantile(f, np.linspace(0, 1, int(rng.integers(2, 5)))[1:-1])
    cell = np.searchsorted(cuts, f)
    groups = Groups(
        np.vstack([np.ones(n), members]).astype(float),
        np.array([cell == k for k in range(len(cuts) + 1)], float),
    )
    best = best_log_loss_step(y, f, groups.learners())
    h = best
    if oracle == STEPS[1]:
        h = float(rng.uniform(0.2, 1)) * best
    elif oracle == STEPS[2]:
        B = groups.learners()
        h = best + B @ (0.3 * np.abs(best).max() * rng.normal(size=B.shape[1]))
    return LogStep(y, f, groups, best, h, i.eta)


def _hybrid_run(i: Instance) -> HybridRun:
    rng = i.generator()
    gamma = float(rng.uniform(0.05, 1))
    eta = float(rng.uniform(0.02, 0.98)) * 2 * gamma / (1 + gamma) ** 2
    strong = i.y + 0.3 * rng.normal(size=len(i.y))
    f, B = run_hybrid(i.y, i.f0, i.learners, strong, eta, gamma, 10)
    basis = np.linalg.qr(rng.normal(size=(len(i.y), len(i.y))))[0]
    P, Q = ((basis * rng.uniform(0.3, 2, len(i.y))) @ basis.T for _ in range(2))
    noise = 0.1 * rng.normal(size=len(i.y))
    step = preconditioned_step(i.f0, i.y, P, Q, noise, float(rng.uniform(0.02, 0.98)))
    return HybridRun(i, strong, f, B, eta, gamma, step)
