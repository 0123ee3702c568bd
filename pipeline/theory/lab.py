"""The theory scorecard: every statement tried on many random instances.

A statement *holds* if it holds on all of them as printed. If it does not, but does under a further
condition, it *holds in a narrower regime*; otherwise it *fails as stated*, and a corrected form may
have been checked beside it. Verdicts are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from pipeline.boosting.rescaling import Adaptive, Relaxed
from pipeline.theory import counterexamples as counter
from pipeline.theory import statements as s
from pipeline.theory.dynamics import (
    Trajectory,
    best_log_loss_step,
    run,
    run_hybrid,
    run_log_loss,
)
from pipeline.theory.learners import (
    Factorised,
    Floats,
    bins,
    linear,
    project,
    rbf,
    sigmoid,
    soft_tree,
)

Verdict = Literal["holds", "holds in a narrower regime", "fails as stated"]

N_INSTANCES = 40  # per class of learners
SMOOTH = ("rbf", "sigmoid", "linear", "soft tree")
KINDS = (*SMOOTH, "hard bins")


@dataclass(frozen=True)
class Finding:
    """A statement and what became of it.

    stated : checks of the statement as printed;  narrower : of the same under the condition in
    ``correction``;  corrected : of another form, given there.
    limit : the checks' bounds are tolerances on something that tends to zero.
    """

    id: str
    where: str
    text: str
    stated: Sequence[s.Check]
    correction: str = ""
    narrower: Sequence[s.Check] = field(default_factory=tuple)
    corrected: Sequence[s.Check] = field(default_factory=tuple)
    remark: str = ""
    limit: bool = False

    @property
    def ours(self) -> bool:
        """Whether it is not the paper's."""
        return self.where.startswith("ours")

    @property
    def verdict(self) -> Verdict:
        """Computed from the checks."""
        if all(c.holds for c in self.stated):
            return "holds"
        if self.narrower and all(c.holds for c in self.narrower):
            return "holds in a narrower regime"
        return "fails as stated"

    @property
    def evidence(self) -> str:
        """How many checks held, and how much of the bound was used at most."""
        good = sum(c.holds for c in self.stated)
        text = f"{good} of {len(self.stated)} checks hold"
        ratios = [c.ratio for c in self.stated if c.bound > s.ROUNDING and np.isfinite(c.ratio)]
        if good == len(self.stated) and ratios and not self.limit:
            text += f"; at most {max(ratios):.2g} of the bound is used"
        for name, checks in (("narrower", self.narrower), ("corrected", self.corrected)):
            if checks:
                text += f"; {name} form: {sum(c.holds for c in checks)} of {len(checks)}"
        return text

    def record(self) -> dict[str, Any]:
        """JSON-ready."""
        raw = asdict(self)
        del raw["stated"], raw["narrower"], raw["corrected"], raw["limit"]
        return raw | {"ours": self.ours, "verdict": self.verdict, "evidence": self.evidence}


@dataclass(frozen=True)
class Instance:
    """A random problem: targets, start and a class of weak learners."""

    kind: str
    y: Floats
    f0: Floats
    learners: Factorised
    eta: float
    seed: int

    def generator(self) -> np.random.Generator:
        """Random numbers for what a statement needs beside the instance, always the same."""
        return np.random.default_rng([KINDS.index(self.kind), self.seed, 1])


def instance(kind: str, seed: int) -> Instance:
    """The random instance of a kind and a seed; 15 to 40 points."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    n = int(rng.integers(15, 41))
    X = rng.normal(size=(n, 3))
    y = rng.uniform(0.5, 3) * rng.normal(size=n) + rng.normal()
    learners = learners_of(kind, X, 0.0, 1.0)
    return Instance(kind, y, rng.normal(size=n), learners, float(rng.uniform(0.05, 1.0)), seed)


def learners_of(kind: str, X: Floats, centre: float, width: float) -> Factorised:
    """A class of weak learners on the first two columns of X, for predictions centre ± width."""
    H = np.column_stack([np.ones(len(X)), X[:, :2]])

    def at(*places: float) -> Floats:
        return centre + width * np.array(places)

    tree = soft_tree(X, np.array([0.0, 0.2]), 0.5)
    return {
        "rbf": lambda: rbf(H, at(-1, 1), width),
        "sigmoid": lambda: sigmoid(H, at(-0.5, 0.5), 0.7 * width),
        "linear": lambda: linear(H),
        "soft tree": lambda: sigmoid(tree, at(0), 0.6 * width),
        "hard bins": lambda: bins(H, at(-1, 0, 1)),
    }[kind]()


@dataclass(frozen=True)
class Bank:
    """Where statements are tried: ``n`` random instances of each kind, and real ones."""

    n: int = N_INSTANCES
    real: Sequence[Instance] = ()

    def __call__(self, kinds: Sequence[str] = KINDS, times: int = 1) -> Iterator[Instance]:
        """The instances of some kinds, ``times`` as many random ones; always the same."""
        yield from self.random(kinds, times * self.n)
        yield from (i for i in self.real if i.kind in kinds)

    def few(self, kinds: Sequence[str] = KINDS) -> Iterator[Instance]:
        """Some random instances, for long runs."""
        return self.random(kinds, max(self.n // 5, 2))

    def random(self, kinds: Sequence[str], n: int) -> Iterator[Instance]:
        """``n`` random instances of each of some kinds."""
        return (instance(kind, seed) for kind in kinds for seed in range(n))


def findings(bank: Bank) -> list[Finding]:
    """All findings, in the paper's order."""
    return [finding for chapter in CHAPTERS for finding in chapter(bank)]


def _unit(
    i: Instance, n_rounds: int = 25, *, half: bool = True, noise: float = 0.0, decay: float = 0.0
) -> Trajectory:
    """A Unit run; with the theorem's step size, η ≤ 1/2, unless told otherwise.

    The oracle's error is ε_t = noise · V(f_0) / (t + 1)^decay.
    """
    eta = min(i.eta, 0.5) if half else i.eta
    size = noise * 0.5 * float(np.square(i.y - i.f0).sum())
    return run(i.y, i.f0, i.learners, eta, n_rounds, error=lambda t: size / (t + 1) ** decay)


def no_rescaling(bank: Bank) -> Iterator[Finding]:
    """Theorem 4.1."""
    exact = [_unit(i) for i in bank()]
    noisy = [_unit(i, noise=0.05, decay=1) for i in bank()]
    any_step = [_unit(i, half=False) for i in bank()]
    both = [*exact, *noisy]
    where = "Theorem 4.1"
    yield Finding("T1", where, "The loss rises by at most the oracle's error.",
                  [s.loss_is_almost_monotone(t) for t in both])  # fmt: skip
    yield Finding(
        "T2", where, "The average squared gap is at most 4η(V(f₀) + ηΣε)/T.",
        [s.average_gap(t) for t in both],
        remark="With an exact oracle Σ gap² = η/(1 − η/2)·(V(f₀) − V(f_T)) for every η in (0, 1]: "
        "at most a third of the bound at η = 1/2, and no condition on η (see T4).",
    )  # fmt: skip
    yield Finding("T3", where, "The smallest gap is at most √(4ηV(f₀)/T) + 2η√(mean ε).",
                  [s.smallest_gap(t) for t in both])  # fmt: skip
    yield Finding("T4", "ours", "Exact oracle: Σ gap² = η/(1 − η/2)·(V(f₀) − V(f_T)), any η.",
                  [s.sum_of_gaps_is_known(t) for t in any_step]
                  + [s.smallest_gap_sharp(t) for t in any_step])  # fmt: skip
    dominoes = [(counter.domino(k, 0.5), k) for k in range(2, 42)]
    yield Finding(
        "T5", "ours (left open by the paper)",
        "1/√T is the right order: for every T there are n = T points and one hard learner whose "
        "gaps are all η‖y − f₀‖/√T.",
        [s.Check(abs(t.gaps.min() * np.sqrt(k) / (0.5 * np.linalg.norm(t.r[0])) - 1), 1e-5)
         for t, k in dominoes],
        limit=True,
        remark="On one instance Σ gap² is finite, so its smallest gap is o(1/√T).",
    )  # fmt: skip
    constant = [_unit(i, 150, noise=0.05) for i in bank.few()]
    floors = [s.Check(float(t.gaps.min()), s.gap_bound(t.eta, t.loss[0], 150)) for t in constant]
    yield Finding(
        "T6", where, "Under a constant error ε the smallest gap is at most c/√T + 2η√ε.",
        [s.smallest_gap(t) for t in constant],
        remark=f"Without the floor 2η√ε {sum(c.holds for c in floors)} of {len(floors)} would.",
    )  # fmt: skip
    summable = [_unit(i, 200, noise=0.1, decay=3) for i in bank.few(SMOOTH)]
    yield Finding(
        "T7", where, "If Σε_t is finite, the gap tends to 0 (below 1 % after 200 rounds).",
        [s.Check(float(t.gaps[-1]), 0.01 * float(t.gaps[0])) for t in summable], limit=True,
    )  # fmt: skip
    logs = list(_log_runs(bank))
    yield Finding(
        "T8", where, "The same for the log-loss, where η ≤ m/(2L) can be met: loss and gaps.",
        [check for t in logs for check in s.log_loss_bounds(t)],
    )  # fmt: skip


def _log_runs(bank: Bank) -> Iterator[Any]:
    """Log-loss runs whose step size meets the theorem's condition with their own m."""
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


def error_bounds(bank: Bank) -> Iterator[Finding]:
    """The multicalibration error by the gap."""
    trajectories = [
        _unit(i, half=False, noise=noise, decay=1) for i in bank() for noise in (0.0, 0.05)
    ]
    yield Finding(
        "M1", "Eq. (6), Lemma A.1", "‖Ê(f_t)‖ ≤ (‖B‖/n)(gap/η + √(2ε_t)) for Unit.",
        [s.error_by_gap(t) for t in trajectories],
    )  # fmt: skip
    below = [t for t in trajectories if t.eta < 1]
    yield Finding(
        "M2", "proof of Lemma A.1", "‖Bᵀ(y − f_{t+1})‖ ≤ ‖B‖√(2ε_t) for every η.",
        [s.step_in_its_proof(t) for t in below],
        correction="It is Bᵀ(y − f_t − h_t) that is small, which is y − f_{t+1} for η = 1 only; "
        "the bound M1 follows from Bᵀr_t = Bᵀh_t + Bᵀ(r_t − h_t).",
        narrower=[s.step_in_its_proof(run(i.y, i.f0, i.learners, 1.0, 1, error=lambda _: 0.01))
                  for i in bank()],
    )  # fmt: skip
    lemma, proposition, steps, full_steps = [], [], [], []
    for i in bank(("rbf",), 2):
        y = (i.generator().random(len(i.y)) < 0.5).astype(float)
        f = 0.8 * (i.f0 - np.median(i.f0))
        upper = i.y > np.median(i.y)
        groups = s.Groups(
            np.array([np.ones(len(y)), upper, ~upper], float), np.array([f < 0, f >= 0], float)
        )
        h, _ = best_log_loss_step(y, f, groups.learners())
        lemma.append(s.alpha_by_descent(y, f, groups, h))
        proposition.append(s.alpha_by_gap(y, f, groups, h, i.eta))
        steps.append(s.decrease_by_gap(y, f, h, 0.1 * i.eta))
        full_steps.append(s.decrease_by_gap(y, f, h, 1.0))
    yield Finding("M3", "Lemma A.2", "Log-loss: α ≤ (2/√(1 − L)) C_T √(loss decrease).", lemma)
    yield Finding(
        "M4", "Proposition A.3", "Log-loss: α ≤ (2/√(1 − L)) C_T √(φ_T + ε_T).", proposition,
        remark="ε_T, by its definition there, includes what a step size below 1 leaves undone, so "
        "it does not vanish with the round's number of trees as the text after it suggests: with "
        "an exact oracle and (A3)'s ε = 0 the right-hand side would tend to 0 with η.",
    )  # fmt: skip
    yield Finding(
        "M5", "proof of Proposition A.3", "The loss decrease of a step is at most φ_T.", steps,
        correction="It is for η = 1 and an exact oracle. In general the first-order term exceeds "
        "the decrease, by convexity, and not the other way round; the proposition's constant has "
        "room enough (M4).",
        narrower=full_steps,
    )  # fmt: skip


def linear_rate(bank: Bank) -> Iterator[Finding]:
    """Theorem 4.2 and its lemmas."""
    smooth = list(bank(SMOOTH))
    yield Finding(
        "L1", "Theorem 4.2", "gap_t ≤ κ gap_{t−1} with κ = 1 − η + η L_A‖y − f₀‖.",
        [s.linear_rate(_unit(i, half=False)) for i in smooth],
        remark="L_A is measured along the trajectory. κ < 1 needs L_A‖y − f₀‖ < 1, a start close "
        "to the targets; the factor tends to 1 − η as f₀ → y.",
    )  # fmt: skip
    pairs = [
        s.projector_difference(
            i.learners(i.f0), i.learners(i.f0 + 1e-3 * i.generator().normal(size=len(i.y)))
        )
        for i in smooth
    ]
    yield Finding("L2", "Lemmas 4.3, A.4", "L_A ≤ (2/δ)(1 + cM²/δ²) L_B.", [p for p, _ in pairs])
    yield Finding("L3", "ours (a known bound)", "L_A ≤ L_B/δ.", [q for _, q in pairs])
    differences = [
        s.class_difference(i.learners, i.f0, i.f0 + i.generator().normal(size=len(i.y)))
        for i in smooth
    ]
    yield Finding("L4", "Lemma 4.4", "L_B ≤ max‖h‖ √k L_G.", [p for p, _ in differences])
    yield Finding("L5", "ours", "L_B ≤ max‖h‖ sup‖g′‖.", [q for _, q in differences])
    apart = [counter.discontinuous_projector(10.0**-k) for k in range(2, 9)]
    yield Finding(
        "L6", "Lemma 4.4", "If every g is Lipschitz, so is the projector A(f).",
        [s.Check(difference, 10 * distance) for distance, difference in apart],
        correction="It is where the smallest singular value δ of B(f) stays away from 0, the "
        "condition of Lemma 4.3 (L2, L3). L_B needs no such condition (L4).",
        narrower=[q for _, q in pairs],
        remark="g(u) = u near f = 0: predictions 1e-8 apart have projectors at distance 1.",
    )  # fmt: skip


def relaxed(bank: Bank) -> Iterator[Finding]:
    """Theorem 4.5."""
    trajectories = [run(i.y, i.f0, i.learners, i.eta, 25, Relaxed()) for i in bank()]
    where = "proof of Theorem 4.5"
    yield Finding("R1", "Lemma A.5", "The identity for ‖r_t‖² − ‖r_{t+1}‖².",
                  [s.residual_identity(t) for t in trajectories])  # fmt: skip
    yield Finding("R2", "after Theorem 4.5", "‖y − f_t‖ ≤ ρ_t‖y − f₀‖ + (1 − ρ_t)‖y‖.",
                  [s.residual_stays_between(t) for t in trajectories])  # fmt: skip
    both = [s.lyapunov(t) for t in trajectories]
    yield Finding("R3", where, "The Lyapunov function falls as stated and is never negative.",
                  [c for pair in both for c in pair])  # fmt: skip
    yield Finding("R4", "Theorem 4.5", "The smallest gap is ≤ √(K/T) ≤ (√η‖y − f₀‖ + γ)/√T.",
                  [s.smallest_gap_relaxed(t) for t in trajectories])  # fmt: skip
    at_optimum = [run(i.y, i.y, i.learners, i.eta, 5, Relaxed()) for i in bank()]
    yield Finding(
        "R5", "Section 5", "Under relaxed weights the training loss does not increase.",
        [s.Check(float(np.diff(t.loss).max()), 0.0) for t in at_optimum],
        correction="The text after Theorem 4.5 says that this is not guaranteed; Section 5 cites "
        "the theorem for it. R2 is what holds.",
        corrected=[s.residual_stays_between(t) for t in trajectories],
        remark="Started at f₀ = y, the first weight 7/8 raises the loss; claim 3 of the "
        "experiments shows it on real data.",
    )  # fmt: skip
    yield Finding(
        "R6", where, "Ê(f_t) = ((1 − w_t)Bᵀf_t + BᵀΔ_t)/(ηw_t n), which tends to 0 with the gap.",
        [s.relaxed_error(t) for t in trajectories],
    )  # fmt: skip
    starts = [(i.eta, float(np.linalg.norm(i.y - i.f0))) for i in bank()]
    ratios = [np.sqrt(eta) * r / s.gap_bound(eta, r**2 / 2, 1) for eta, r in starts]
    yield Finding(
        "R7", "after Theorem 4.5", "For w ≡ 1, γ = 0 and the bound is that of Theorem 4.1.",
        [s.identity(ratio, 1.0) for ratio in ratios],
        correction="It is smaller, by √2: the proof of Theorem 4.5 is the sharper one there.",
        corrected=[s.identity(ratio, np.sqrt(0.5)) for ratio in ratios],
    )  # fmt: skip


def adaptive(bank: Bank) -> Iterator[Finding]:
    """Theorem 4.6, the eigenvalue lemma, and the quadratic rate."""
    trajectories = [run(i.y, i.f0, i.learners, i.eta, 60, Adaptive()) for i in bank()]
    where = "Theorem 4.6"
    yield Finding("W1", where, "The loss does not increase.",
                  [s.loss_is_monotone(t) for t in trajectories])  # fmt: skip
    yield Finding(
        "W2", where, "ω_t ≥ 0 for every t.",
        [s.Check(-counter.negative_first_weight(), 0.0)],
        correction="It holds from t = 1 on, which is what the proof shows.",
        narrower=[s.weights_are_not_negative(t) for t in trajectories],
        remark="ω₀ = −1/3 for f₀ = −3y and learners that do not see y.",
    )  # fmt: skip
    long = [run(i.y, i.f0, i.learners, max(i.eta, 0.3), 1000, Adaptive()) for i in bank.few(SMOOTH)]
    yield Finding(
        "W3", f"proof of {where}", "ω_t → 1 (after 1000 rounds, within 0.003).",
        [s.Check(abs(t.w[-1] - 1), 3e-3) for t in long], limit=True,
        remark="The proof assumes that A(f) is continuous, which the theorem does not; W4 needs no "
        "such assumption.",
    )  # fmt: skip
    yield Finding(
        "W9", where, "The multicalibration error tends to 0 (‖A r_t‖ below 1 % after 1000 rounds).",
        [s.Check(float(t.projected[-1]), 0.01 * float(np.linalg.norm(t.r[0]))) for t in long],
        limit=True,
    )  # fmt: skip
    yield Finding("W4", "ours", "‖r_t‖² − ‖r_{t+1}‖² = η(2 − η)‖A r_t‖² + (ω_t − 1)²‖φ_t‖².",
                  [s.adaptive_identity(t) for t in trajectories])  # fmt: skip
    yield Finding(
        "W5", "ours",
        "The smallest gap is at most √2‖y − f₀‖/√T, and ‖A r_t‖ at most ‖y − f₀‖/√(η(2 − η)T).",
        [s.smallest_gap_adaptive(t) for t in trajectories]
        + [s.smallest_projection_adaptive(t) for t in trajectories],
        remark="From W4: a rate that the paper does not give, and multicalibration without "
        "continuity of A(f).",
    )  # fmt: skip
    spectra = []
    for i in bank():
        v = i.generator().normal(size=len(i.y))
        A = project(i.learners(i.f0)).matrix()
        spectra.append(s.eigenvalues(A, v / np.linalg.norm(v), i.eta))
    yield Finding("W6", "Lemma A.6", "The eigenvalues of ηA + (I − ηA)vvᵀ.", spectra, limit=True)
    residuals = [s.residual_lemma(i.y, i.f0, project(i.learners(i.f0)).matrix()) for i in bank()]
    yield Finding(
        "W7", "Lemma A.8",
        "η = 1: r_{t+1} = yᵀA r_t/‖y − (I − A)r_t‖² · (I − A)r_t.",
        [s.identity(actual, stated) for actual, stated, _ in residuals],
        correction="With q = (I − A)r_t and φ = y − q, r_{t+1} = ((yᵀφ)q − (qᵀφ)y)/‖φ‖²; the "
        "proof takes an outer product for an inner one.",
        corrected=[s.identity(actual, right) for actual, _, right in residuals],
    )  # fmt: skip
    ratios = [(10.0**-k, *counter.not_quadratic(10.0**-k)) for k in range(2, 8)]
    yield Finding(
        "W8", "Theorem A.7", "η = 1: ‖r_{t+1}‖ ≤ C‖r_t‖² once the residual is small.",
        [s.Check(actual, 10 * epsilon) for epsilon, actual, _ in ratios],
        correction="To first order r_{t+1} = (I − ŷŷᵀ)(I − A)r_t with ŷ = y/‖y‖: what is "
        "orthogonal to y and to all learners does not shrink at all. Only ‖r_{t+1}‖ ≤ ‖r_t‖ holds.",
        corrected=[s.Check(actual, 1.0) for _, actual, _ in ratios],
        remark="A = e₁e₁ᵀ, y = (1, 1, 0), f₀ = y − εe₃: ‖r₁‖/‖r₀‖ → 1, while the lemma has r₁ = 0.",
    )  # fmt: skip


def hybrid(bank: Bank) -> Iterator[Finding]:
    """The hybrid algorithm of the appendix."""
    rates, sums, printed, corrected, steps = [], [], [], [], []
    for i in bank():
        rng = i.generator()
        gamma = float(rng.uniform(0.05, 1))
        eta = float(rng.uniform(0.02, 0.98)) * 2 * gamma / (1 + gamma) ** 2
        strong = i.y + 0.3 * rng.normal(size=len(i.y))
        f, B = run_hybrid(i.y, i.f0, i.learners, strong, eta, gamma, 10)
        rates.append(s.hybrid_rate(i.y, f, strong, eta, gamma))
        sums.append(s.hybrid_distance(i.y, f, strong, eta, gamma))
        a, b = s.hybrid_error(i.y, f, B, strong, eta, gamma)
        printed.append(a)
        corrected.append(b)
        basis = np.linalg.qr(rng.normal(size=(len(i.y), len(i.y))))[0]
        P, Q = ((basis * rng.uniform(0.3, 2, len(i.y))) @ basis.T for _ in range(2))
        noise = 0.1 * rng.normal(size=len(i.y))
        steps.append(s.preconditioned_step(i.f0, i.y, P, Q, noise, 0.1 * eta))
    yield Finding("H1", "Lemma A.9",
                  "‖f* − f_{t+1}‖ ≤ κ‖f* − f_t‖ + η‖ξ_t‖.", steps)  # fmt: skip
    yield Finding(
        "H2", "Proposition A.10",
        "‖y − f_{t+1}‖ ≤ κ‖y − f_t‖ + ηγ‖y − ŷ‖, and ‖y − f_t‖ ≤ κᵗ‖y − f₀‖ + ηγ/(1 − κ)‖y − ŷ‖.",
        [*rates, *sums],
    )  # fmt: skip
    yield Finding(
        "H3", "Appendix A.10", "Ê(f_t) = γBᵀ(y − ŷ)/n + BᵀΔ_t/(ηn).", printed,
        correction="The right-hand side needs a factor 1/(1 + γ).", corrected=corrected,
    )  # fmt: skip
    expansions = []
    for c in np.linspace(0.05, 0.95, 19):
        gamma = 1e-3
        kappa = s.hybrid_kappa(c * gamma, gamma)
        expansions.append(s.Check(abs((1 - kappa) / (c * (1 - c / 2) * gamma**2) - 1), 0.01))
        expansions.append(s.Check(abs(c * gamma**2 / (1 - kappa) * (2 - c) / 2 - 1), 0.01))
    yield Finding(
        "H4", "Appendix A.10", "For η = cγ: κ ≈ 1 − c(1 − c/2)γ² and ηγ/(1 − κ) ≈ 2/(2 − c).",
        expansions, limit=True,
    )  # fmt: skip


CHAPTERS: tuple[Callable[[Bank], Iterator[Finding]], ...] = (
    no_rescaling,
    error_bounds,
    linear_rate,
    relaxed,
    adaptive,
    hybrid,
)
