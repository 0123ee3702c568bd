"""Lemmas A.1 and A.2, Proposition A.3: the multicalibration error by the gap."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeline.boosting.arrays import Floats
from pipeline.boosting.logloss import sigmoid as mu
from pipeline.theory.checks import Check, by_regime, check_runs, identity
from pipeline.theory.dynamics import Trajectory, run
from pipeline.theory.logloss import SMOOTHNESS, LogStep, mean_decrease
from pipeline.theory.trials import EXACT, Trials
from pipeline.theory.verdicts import Tried, tries, tries_on

PAPERS = 2 / float(np.sqrt(1 - SMOOTHNESS))  # the constant of Lemma A.2 and Proposition A.3
OURS = float(np.sqrt(2 * SMOOTHNESS))  # the constant of M8
UNBOUNDED_ROUNDS = 30
ONE_ROW = 0.02  # the prediction of M7's smallest example, whose outcome is 1


def error_by_gap(t: Trajectory) -> Check:
    """‖Ê(f_t)‖ ≤ (‖B‖/n)(‖Δ_t‖/η + √(2ε_t)) for Unit; the round that uses most of it."""
    checks = []
    n = len(t.y)
    for k in range(t.n_rounds):
        if t.gaps[k] < 1e-9 * t.gaps[0]:
            break  # both sides are rounding from here on
        measured = np.linalg.norm(t.B[k].T @ t.r[k]) / n
        bound = t.A[k].largest / n * (t.gaps[k] / t.eta + np.sqrt(2 * t.epsilon[k]))
        checks.append(Check(float(measured), float(bound)))
    return max(checks, key=lambda c: c.ratio)


def unbounded_learner(n_rounds: int) -> Trajectory:
    """One point, b(u) = 1/(y − u)²: the gap tends to 0, and Ê = 1/(y − f_t) does not."""
    y = np.array([1.0])
    return run(y, np.zeros(1), lambda f: (1 / np.square(y - f))[:, None], 0.5, n_rounds)


@tries("M1")
def _(trials: Trials) -> Tried:
    t = unbounded_learner(UNBOUNDED_ROUNDS)
    return Tried(
        stated=check_runs(error_by_gap, trials.unit_any_step),
        measured="That Ê tends to 0 with the gap needs sup‖B(f_t)‖ < ∞ besides: for one point and "
        f"b(u) = 1/(y − u)², η = ½, the gap of round {UNBOUNDED_ROUNDS} is {t.gaps[-1]:.1g} and Ê "
        f"is {t.errors[-1]:.1g}.",
    )


def step_in_its_proof(t: Trajectory) -> Check:
    """The proof's claim ‖Bᵀ(y − f_{t+1})‖ ≤ ‖B‖√(2ε_t), at t = 0; it needs η = 1."""
    measured = np.linalg.norm(t.B[0].T @ t.r[1])
    return Check(float(measured), float(t.A[0].largest * np.sqrt(2 * t.epsilon[0])))


@tries("M2")
def _(trials: Trials) -> Tried:
    shorter = {name: [t for t in runs if t.eta < 1] for name, runs in trials.unit_any_step.items()}
    full = (run(i.y, i.f0, i.learners, 1.0, 1, error=lambda _: 0.01) for i in trials.bank())
    return Tried(
        stated=check_runs(step_in_its_proof, shorter),
        narrower=[step_in_its_proof(t) for t in full],
    )


# --- the log-loss on groups ----------------------------------------------------------------------


@tries_on("M3", lambda trials: trials.log_steps[EXACT])
def alpha_by_descent(s: LogStep) -> Check:
    """Lemma A.2: α ≤ 2/√(1 − L) · C_T · √D."""
    return Check(s.alpha, PAPERS * s.constant * float(np.sqrt(s.possible)))


@tries_on("M4", lambda trials: trials.log_steps)
def alpha_by_gap(s: LogStep) -> Check:
    """Proposition A.3: α ≤ 2/√(1 − L) · C_T · √(φ_T + ε_T)."""
    return Check(s.alpha, PAPERS * s.constant * float(np.sqrt(s.phi + s.left)))


def decrease_by_gap(s: LogStep) -> Check:
    """A step in the proposition's proof: the loss decreases by at most φ_T."""
    return Check(mean_decrease(s.y, s.f, s.f + s.eta * s.h), s.phi)


@tries("M5")
def _(trials: Trials) -> Tried:
    exact, inexact = trials.log_steps[EXACT], trials.log_steps["a share of the best step"]
    return Tried(
        stated=check_runs(
            decrease_by_gap,
            {
                "η < 1, exact oracle": [replace(s, eta=0.1 * s.eta) for s in exact],
                "η = 1, inexact oracle": [replace(s, eta=1.0) for s in inexact],
            },
        ),
        narrower=[decrease_by_gap(replace(s, eta=1.0)) for s in exact],
    )


def squared_loss_decrease(residual: Floats, b: Floats) -> tuple[Check, Check]:
    """Appendix A.3's note on the squared loss: the decrease of the best step along b (zeros, ones).

    As printed, ½E_n[r²b]/E_n[b]; and right, ½E_n[r b]²/E_n[b].
    """
    share = b.mean()
    after = residual - (residual * b).mean() / share * b
    decrease = float(0.5 * (np.square(residual) - np.square(after)).mean())
    printed = float(0.5 * (np.square(residual) * b).mean() / share)
    right = float(0.5 * (residual * b).mean() ** 2 / share)
    scale = float(np.square(residual).mean())
    return identity(decrease, printed, scale), identity(decrease, right, scale)


@tries("M6")
def _(trials: Trials) -> Tried:
    pairs = []
    for i in trials.bank():
        b = (i.generator().random(len(i.y)) < 0.5).astype(float)
        b[0] = 1.0
        pairs.append(squared_loss_decrease(i.y - i.f0, b))
    return Tried(stated=[printed for printed, _ in pairs], corrected=[right for _, right in pairs])


def cauchy_schwarz_line(s: LogStep) -> Check:
    """A line in the lemma's proof, κ ≡ 1: E_n[b(Y − φ)]² ≤ E_n[b Var], b the worst group's."""
    p, b = mu(s.f), s.worst_group
    return Check(float((b * (s.y - p)).mean() ** 2), float((b * p * (1 - p)).mean()))


@tries("M7")
def _(trials: Trials) -> Tried:
    one_row = Check((1 - ONE_ROW) ** 2, ONE_ROW * (1 - ONE_ROW))
    random = map(cauchy_schwarz_line, trials.log_steps[EXACT])
    return Tried(stated=by_regime({"one row": [one_row], "random steps": random}))


@tries_on("M8", lambda trials: trials.log_steps)
def alpha_repaired(s: LogStep) -> tuple[Check, Check, Check]:
    """Ours: α ≤ √(2L) C_T √D, √D ≤ √φ_T + √ε_T, and √D ≤ √φ_T/η + √ε with (A3)'s ε."""
    root = float(np.sqrt(s.possible))
    return (
        Check(s.alpha, OURS * s.constant * root),
        Check(root, float(np.sqrt(s.phi) + np.sqrt(s.left))),
        Check(root, float(np.sqrt(s.phi) / s.eta + np.sqrt(s.oracle_error))),
    )
