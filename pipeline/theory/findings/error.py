"""Lemmas A.1 and A.2, Proposition A.3: the multicalibration error by the gap."""

from dataclasses import replace

import numpy as np

from pipeline.boosting.arrays import Floats
from pipeline.boosting.logloss import sigmoid as mu
from pipeline.theory.checks import Check, by_regime, check_runs, identity, norm, worst
from pipeline.theory.dynamics import Trajectory, run
from pipeline.theory.instances import Instance
from pipeline.theory.logloss import SMOOTHNESS, LogStep, mean_decrease
from pipeline.theory.trials import EXACT, PARTIAL, Trials
from pipeline.theory.verdicts import Tried, tries, tries_on

PAPERS = 2 / float(np.sqrt(1 - SMOOTHNESS))  # the constant of Lemma A.2 and Proposition A.3
OURS = float(np.sqrt(2 * SMOOTHNESS))  # the constant of M8
UNBOUNDED_ROUNDS = 30
ONE_ROW = 0.02  # the prediction of M7's smallest example, whose outcome is 1


def error_by_gap(t: Trajectory) -> Check:
    """‖Ê(f_t)‖ ≤ (‖B‖/n)(‖Δ_t‖/η + √(2ε_t)) for Unit; the round that uses most of it."""
    errors, gaps = t.errors, t.gaps
    sizes = np.array([A.largest for A in t.A]) / len(t.y)
    bounds = sizes * (gaps / t.eta + np.sqrt(2 * t.epsilon))
    # Both sides are rounding from the first gap on that is.
    end = int(np.append(gaps < 1e-9 * gaps[0], True).argmax())
    return worst(errors[:end], bounds[:end])


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


def _shorter_steps(trials: Trials) -> dict[str, list[Trajectory]]:
    return {name: [t for t in runs if t.eta < 1] for name, runs in trials.unit_any_step.items()}


def _full_steps(trials: Trials) -> list[Trajectory]:
    return [run(i.y, i.f0, i.learners, 1.0, 1, error=lambda _: 0.01) for i in trials.bank()]


@tries_on("M2", _shorter_steps, narrower=_full_steps)
def step_in_its_proof(t: Trajectory) -> Check:
    """The proof's claim ‖Bᵀ(y − f_{t+1})‖ ≤ ‖B‖√(2ε_t), at t = 0; it needs η = 1."""
    return Check(norm(t.B[0].T @ t.r[1]), t.A[0].largest * np.sqrt(2 * t.epsilon[0]))


# --- the log-loss on groups ----------------------------------------------------------------------


@tries_on("M3", lambda trials: trials.log_steps[EXACT])
def alpha_by_descent(s: LogStep) -> Check:
    """Lemma A.2: α ≤ 2/√(1 − L) · C_T · √D."""
    return Check(s.worst[0], PAPERS * s.constant * np.sqrt(s.left(0)))


@tries_on("M4", lambda trials: trials.log_steps)
def alpha_by_gap(s: LogStep) -> Check:
    """Proposition A.3: α ≤ 2/√(1 − L) · C_T · √(φ_T + ε_T)."""
    return Check(s.worst[0], PAPERS * s.constant * np.sqrt(s.phi + s.left(s.eta)))


def _full_log_steps(trials: Trials, oracle: str = EXACT) -> list[LogStep]:
    return [replace(s, eta=1.0) for s in trials.log_steps[oracle]]


def _inferior_log_steps(trials: Trials) -> dict[str, list[LogStep]]:
    short = [replace(s, eta=0.1 * s.eta) for s in trials.log_steps[EXACT]]
    inexact = _full_log_steps(trials, PARTIAL)
    return {"η < 1, exact oracle": short, "η = 1, inexact oracle": inexact}


@tries_on("M5", _inferior_log_steps, narrower=_full_log_steps)
def decrease_by_gap(s: LogStep) -> Check:
    """A step in the proposition's proof: the loss decreases by at most φ_T."""
    return Check(mean_decrease(s.y, s.f, s.f + s.eta * s.h), s.phi)


def squared_loss_decrease(residual: Floats, b: Floats) -> tuple[Check, Check]:
    """Appendix A.3's note on the squared loss: the decrease of the best step along b (zeros, ones).

    As printed, ½E_n[r²b]/E_n[b]; and right, ½E_n[r b]²/E_n[b].
    """
    share, mean = b.mean(), (residual * b).mean()
    squares, after = np.square(residual), residual - mean / share * b
    decrease = 0.5 * (squares - np.square(after)).mean()
    printed, right = 0.5 * (squares * b).mean() / share, 0.5 * mean**2 / share
    return identity(decrease, printed, squares.mean()), identity(decrease, right, squares.mean())


@tries_on("M6", lambda trials: trials.bank(), corrected=True)
def _(i: Instance) -> tuple[Check, Check]:
    b = (i.generator().random(len(i.y)) < 0.5).astype(float)
    b[0] = 1.0
    return squared_loss_decrease(i.y - i.f0, b)


def cauchy_schwarz_line(s: LogStep) -> Check:
    """A line in the lemma's proof, κ ≡ 1: E_n[b(Y − φ)]² ≤ E_n[b Var], b the worst group's."""
    _, b = s.worst
    return Check((b * (s.y - mu(s.f))).mean() ** 2, (b * s.variance).mean())


@tries("M7")
def _(trials: Trials) -> Tried:
    one_row = Check((1 - ONE_ROW) ** 2, ONE_ROW * (1 - ONE_ROW))
    random = map(cauchy_schwarz_line, trials.log_steps[EXACT])
    return Tried(stated=by_regime({"one row": [one_row], "random steps": random}))


@tries_on("M8", lambda trials: trials.log_steps)
def alpha_repaired(s: LogStep) -> tuple[Check, ...]:
    """Ours: α ≤ √(2L) C_T √D, √D ≤ √φ_T + √ε_T, and √D ≤ √φ_T/η + √ε with (A3)'s ε."""
    root, gap = np.sqrt(s.left(0)), np.sqrt(s.phi)
    return (
        Check(s.worst[0], OURS * s.constant * root),
        Check(root, gap + np.sqrt(s.left(s.eta))),
        Check(root, gap / s.eta + np.sqrt(s.left(1))),
    )
