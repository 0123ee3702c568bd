"""Theorem 4.6, its lemmas and the quadratic rate: adaptive weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.boosting.arrays import Floats
from pipeline.theory.checks.check import ROUNDING, Check, identity, worst_prefix
from pipeline.theory.dynamics import Trajectory


def loss_is_monotone(t: Trajectory) -> Check:
    """V(f_{t+1}) ≤ V(f_t), relative to V(f_0)."""
    return Check(float(np.diff(t.loss).max()) / t.loss[0], ROUNDING)


def weights_are_not_negative(t: Trajectory, first: int = 1) -> Check:
    """ω_t ≥ 0 from round ``first`` on; the paper states it for all t, its proof for t ≥ 1."""
    return Check(float(-t.w[first:].min()), 0.0)


def adaptive_identity(t: Trajectory) -> Check:
    """Sharper: ‖r_t‖² − ‖r_{t+1}‖² = η(2 − η)‖A r_t‖² + (ω_t − 1)²‖φ_t‖²."""
    squares = np.square(np.linalg.norm(t.r, axis=1))
    right = t.eta * (2 - t.eta) * np.square(t.projected) + (t.w - 1) ** 2 * np.square(t.phi).sum(
        axis=1
    )
    return identity(-np.diff(squares), right, scale=float(squares[0]))


def smallest_gap_adaptive(t: Trajectory) -> Check:
    """Ours: min ‖Δ_t‖ ≤ √(2/(2 − η)) ‖y − f_0‖/√T, from the identity above; the worst T."""
    rounds = 1 + np.arange(t.n_rounds)
    return worst_prefix(t.gaps, np.sqrt(2 / ((2 - t.eta) * rounds)) * np.linalg.norm(t.r[0]))


def projection_by_update(t: Trajectory) -> Check:
    """For t ≥ 1, η‖A r_t‖² ≤ ‖φ_t‖‖r_t‖: φ_t = 0 only if A r_t = 0. The round that uses most."""
    left = t.eta * np.square(t.projected[1:])
    right = np.linalg.norm(t.phi[1:], axis=1) * np.linalg.norm(t.r[1:-1], axis=1)
    k = int((left / right).argmax())
    return Check(float(left[k]), float(right[k]))


def eigenvalues(A: Floats, v: Floats, eta: float) -> Check:
    """The spectrum of ηA + (I − ηA)vvᵀ: 1, η‖(I − A)v‖², η (rank − 1 times), and zeros."""
    n, rank = len(v), round(float(np.trace(A)))
    measured = np.sort(np.linalg.eigvals(eta * A + (np.eye(n) - eta * A) @ np.outer(v, v)).real)
    rest = eta * float(np.square(v - A @ v).sum())
    stated = np.sort(np.concatenate([[1.0, rest], np.full(rank - 1, eta), np.zeros(n - rank - 1)]))
    # Eigenvalues of a matrix that is not symmetric are accurate to the root of rounding only.
    return Check(float(np.abs(measured - stated).max()), 1e-7)


@dataclass(frozen=True)
class NextResidual:
    """A step of Adaptive: the next residual, what Lemma A.8 says of it, and what is true."""

    actual: Floats
    stated: Floats
    true: Floats


def next_residual(y: Floats, f: Floats, A: Floats, eta: float = 1.0) -> NextResidual:
    """With φ = f + ηA(y − f): r_{t+1} = (I − φφᵀ/‖φ‖²)(I − ηA) r_t, for every η."""
    r = y - f
    phi = f + eta * (A @ r)
    left = r - eta * (A @ r)
    return NextResidual(
        actual=y - (y @ phi) / (phi @ phi) * phi,
        stated=(y @ (A @ r)) / np.square(y - left).sum() * left,
        true=left - (phi @ left) / (phi @ phi) * phi,
    )
