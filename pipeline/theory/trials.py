"""The runs that several findings look at, each made once, when first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from pipeline.boosting.arrays import Floats
from pipeline.boosting.rescaling import Adaptive, Relaxed
from pipeline.theory import checks as c
from pipeline.theory.dynamics import (
    LogTrajectory,
    Trajectory,
    best_log_loss_step,
    run,
    run_hybrid,
    run_log_loss,
)
from pipeline.theory.instances import SMOOTH, Bank, Instance


@dataclass(frozen=True)
class LogStep:
    """A best log-loss step h from predictions f, with groups to be multicalibrated on."""

    y: Floats
    f: Floats
    groups: c.Groups
    h: Floats
    eta: float


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
    preconditioned: c.Check


@dataclass(frozen=True)
class Trials:
    """Runs on the instances of a bank.

    gbdt : rounds of the paper's GBDT on the datasets (see `study`), where they were measured.
    """

    bank: Bank
    gbdt: pd.DataFrame | None = None

    @cached_property
    def unit_exact(self) -> list[Trajectory]:
        """Unit, exact oracle, the theorem's step size."""
        return [unit_run(i) for i in self.bank()]

    @cached_property
    def unit(self) -> list[Trajectory]:
        """The same, and with an oracle whose error decays."""
        return [*self.unit_exact, *(unit_run(i, noise=0.05, decay=1) for i in self.bank())]

    @cached_property
    def unit_any_step(self) -> list[Trajectory]:
        """Unit, exact oracle, any step size."""
        return [unit_run(i, half=False) for i in self.bank()]

    @cached_property
    def unit_any_oracle(self) -> list[Trajectory]:
        """Unit, any step size, with and without an oracle's error."""
        return [
            unit_run(i, half=False, noise=noise, decay=1)
            for i in self.bank()
            for noise in (0.0, 0.05)
        ]

    @cached_property
    def log_loss(self) -> list[LogTrajectory]:
        """Log-loss runs whose step size meets the theorem's condition with their own m."""
        return list(_log_runs(self.bank))

    @cached_property
    def log_steps(self) -> list[LogStep]:
        """Best steps of the log-loss on two groups and two intervals of predictions."""
        return [_log_step(i) for i in self.bank(("rbf",), 2)]

    @cached_property
    def smooth(self) -> list[Instance]:
        """The instances with smooth classes."""
        return list(self.bank(SMOOTH))

    @cached_property
    def projector_differences(self) -> list[tuple[c.Check, c.Check]]:
        """Two predictions close to each other: the paper's bound and the sharper one."""
        return [
            c.projector_difference(
                i.learners(i.f0), i.learners(i.f0 + 1e-3 * i.generator().normal(size=len(i.y)))
            )
            for i in self.smooth
        ]

    @cached_property
    def class_differences(self) -> list[tuple[c.Check, c.Check]]:
        """Two predictions: the paper's bound and the sharper one."""
        return [
            c.class_difference(i.learners, i.f0, i.f0 + i.generator().normal(size=len(i.y)))
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
    def adaptive_long(self) -> list[Trajectory]:
        """A thousand rounds of adaptive weights."""
        return [
            run(i.y, i.f0, i.learners, max(i.eta, 0.3), 1000, Adaptive())
            for i in self.bank.few(SMOOTH)
        ]

    @cached_property
    def hybrid(self) -> list[HybridRun]:
        """The hybrid algorithm within its range of step sizes."""
        return [_hybrid_run(i) for i in self.bank()]


def unit_run(
    i: Instance, n_rounds: int = 25, *, half: bool = True, noise: float = 0.0, decay: float = 0.0
) -> Trajectory:
    """A Unit run; with the theorem's step size, η ≤ 1/2, unless told otherwise.

    The oracle's error is ε_t = noise · V(f_0) / (t + 1)^decay.
    """
    eta = min(i.eta, 0.5) if half else i.eta
    size = noise * 0.5 * float(np.square(i.y - i.f0).sum())
    return run(i.y, i.f0, i.learners, eta, n_rounds, error=lambda t: size / (t + 1) ** decay)


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


def _log_step(i: Instance) -> LogStep:
    y = (i.generator().random(len(i.y)) < 0.5).astype(float)
    f = 0.8 * (i.f0 - np.median(i.f0))
    upper = i.y > np.median(i.y)
    groups = c.Groups(
        np.array([np.ones(len(y)), upper, ~upper], float), np.array([f < 0, f >= 0], float)
    )
    h, _ = best_log_loss_step(y, f, groups.learners())
    return LogStep(y, f, groups, h, i.eta)


def _hybrid_run(i: Instance) -> HybridRun:
    rng = i.generator()
    gamma = float(rng.uniform(0.05, 1))
    eta = float(rng.uniform(0.02, 0.98)) * 2 * gamma / (1 + gamma) ** 2
    strong = i.y + 0.3 * rng.normal(size=len(i.y))
    f, B = run_hybrid(i.y, i.f0, i.learners, strong, eta, gamma, 10)
    basis = np.linalg.qr(rng.normal(size=(len(i.y), len(i.y))))[0]
    P, Q = ((basis * rng.uniform(0.3, 2, len(i.y))) @ basis.T for _ in range(2))
    noise = 0.1 * rng.normal(size=len(i.y))
    step = c.preconditioned_step(i.f0, i.y, P, Q, noise, 0.1 * eta)
    return HybridRun(i, strong, f, B, eta, gamma, step)
