"""The multicalibration error by the gap."""

from __future__ import annotations

from dataclasses import replace

from pipeline.theory import counterexamples as counter
from pipeline.theory.checks import Check, labelled
from pipeline.theory.checks import error as c
from pipeline.theory.dynamics import run
from pipeline.theory.findings.registry import Tried, finding
from pipeline.theory.findings.unit import by_regime
from pipeline.theory.trials import STEPS, Trials

EXACT = STEPS[0]


@finding(
    "M1",
    level="result",
    where="Eq. (6), Lemma A.1",
    text="‖Ê(f_t)‖ ≤ (‖B‖/n)(gap/η + √(2ε_t)) for Unit.",
)
def _(trials: Trials) -> Tried:
    unbounded = counter.unbounded_learner(30)
    return Tried(
        stated=by_regime(trials.unit_any_step, c.error_by_gap),
        measured="That Ê tends to 0 with the gap needs sup‖B(f_t)‖ < ∞ besides: for one point and "
        f"b(u) = 1/(y − u)², η = ½, the gap of round 30 is {unbounded.gaps[-1]:.1g} and Ê is "
        f"{unbounded.errors[-1]:.1g}.",
    )


@finding(
    "M2",
    level="proof",
    where="proof of Lemma A.1",
    text="‖Bᵀ(y − f_{t+1})‖ ≤ ‖B‖√(2ε_t) for every η.",
    correction="It is Bᵀ(y − f_t − h_t) that is small, which is Bᵀ(y − f_{t+1}) for η = 1 only; "
    "the bound M1 follows from Bᵀr_t = Bᵀh_t + Bᵀ(r_t − h_t).",
)
def _(trials: Trials) -> Tried:
    runs = {name: [t for t in some if t.eta < 1] for name, some in trials.unit_any_step.items()}
    return Tried(
        stated=by_regime(runs, c.step_in_its_proof),
        narrower=[
            c.step_in_its_proof(run(i.y, i.f0, i.learners, 1.0, 1, error=lambda _: 0.01))
            for i in trials.bank()
        ],
    )


@finding(
    "M3",
    level="result",
    where="Lemma A.2",
    text="Log-loss: α ≤ (2/√(1 − L)) C_T √(loss decrease).",
)
def _(trials: Trials) -> Tried:
    return Tried(stated=[c.alpha_by_descent(s) for s in trials.log_steps[EXACT]])


@finding(
    "M4",
    level="result",
    where="Proposition A.3",
    text="Log-loss: α ≤ (2/√(1 − L)) C_T √(φ_T + ε_T).",
    remark="The appendix writes f_{T+1} without η. Read with η < 1, ε_T as defined there includes "
    "what the shorter step leaves undone, at most φ_T((1 − η)/η)² with an exact oracle (M8).",
)
def _(trials: Trials) -> Tried:
    return Tried(stated=by_regime(trials.log_steps, c.alpha_by_gap))


@finding(
    "M5",
    level="proof",
    where="proof of Proposition A.3",
    text="The loss decrease of a step is at most φ_T.",
    correction="It is for η = 1 and an exact oracle, and fails for a shorter step as for an "
    "inexact one: by convexity the first-order term exceeds the decrease. The proposition stands "
    "(M8).",
)
def _(trials: Trials) -> Tried:
    steps = trials.log_steps
    short = [replace(s, eta=0.1 * s.eta) for s in steps[EXACT]]
    inexact = [replace(s, eta=1.0) for s in steps[STEPS[1]]]
    return Tried(
        stated=[
            *labelled("η < 1, exact oracle", map(c.decrease_by_gap, short)),
            *labelled("η = 1, inexact oracle", map(c.decrease_by_gap, inexact)),
        ],
        narrower=[c.decrease_by_gap(replace(s, eta=1.0)) for s in steps[EXACT]],
    )


@finding(
    "M6",
    level="display",
    where="Appendix A.3, note on the squared loss",
    text="The best step along an indicator 1 lowers the loss by ½E_n[(Y − f)²1]/E_n[1].",
    correction="By ½E_n[(Y − f)1]²/E_n[1]: the square is outside the mean. The bound with √2 that "
    "follows stands (M8 with L = 1).",
)
def _(trials: Trials) -> Tried:
    pairs = []
    for i in trials.bank():
        b = (i.generator().random(len(i.y)) < 0.5).astype(float)
        b[0] = 1.0
        pairs.append(c.squared_loss_decrease(i.y - i.f0, b))
    return Tried(stated=[printed for printed, _ in pairs], corrected=[right for _, right in pairs])


@finding(
    "M7",
    level="proof",
    where="proof of Lemma A.2",
    text="By Cauchy–Schwarz E_n[hg κ(Y − φ)]² ≤ E_n[(hg)²κ² Var(Y | X)].",
    correction="It is no case of Cauchy–Schwarz, and false: the left-hand side knows the outcomes, "
    "the right-hand side only predictions. It is not needed: Δ² ≤ 2L E_n[hg] D gives the lemma "
    "(M8). That both inner products in the step before are equal needs κ ≡ 1.",
    remark="One row with prediction 0.02 and outcome 1: 0.96 against 0.0196.",
)
def _(trials: Trials) -> Tried:
    one = Check((1 - 0.02) ** 2, 0.02 * (1 - 0.02))
    steps = [c.cauchy_schwarz_line(s) for s in trials.log_steps[EXACT]]
    return Tried(stated=[*labelled("one row", [one]), *labelled("random steps", steps)])


@finding(
    "M8",
    level="ours",
    where="ours",
    text="For every L: α ≤ √(2L) C_T √D with D the largest possible decrease, √D ≤ √φ_T + √ε_T, "
    "and √D ≤ √φ_T/η + √ε with (A3)'s ε. Lemma A.2 and Proposition A.3 follow, with √(2L) (0.71 "
    "for the log-loss) in the place of 2/√(1 − L) (2.3).",
)
def _(trials: Trials) -> Tried:
    return Tried(
        stated=[
            check
            for name, steps in trials.log_steps.items()
            for s in steps
            for check in labelled(name, c.alpha_repaired(s))
        ]
    )
