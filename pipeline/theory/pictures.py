"""Figures of the theory chapter: measured values beside the paper's bounds and sharper ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from pipeline.boosting.rescaling import Adaptive
from pipeline.stages.curves import Curves
from pipeline.stages.figures import LABELS, RC, STYLES, save
from pipeline.theory import counterexamples as counter
from pipeline.theory import statements as s
from pipeline.theory.dynamics import run
from pipeline.theory.lab import SMOOTH, instance
from pipeline.theory.learners import Floats, bins

BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"

CAPTIONS: Mapping[str, tuple[str, str]] = {
    "theory_rate": (
        "The 1/√T rate, its bounds, and an instance that attains it",
        "Smallest gap after T rounds with η = 1/2. Left, a random smooth instance: the paper's "
        "bound, the sharper one that follows from the exact identity, and the measured gap, which "
        "decays geometrically. Right, the domino instance (a new one for every T): its gap stays "
        "within a constant of the bounds, so no better rate holds in general.",
    ),
    "theory_contraction": (
        "When is the linear rate in force?",
        "Left, start f₀ = y − ρ(y − f_b): measured largest factor gap_t / gap_{t−1} against the "
        "theorem's κ with L_A measured along the trajectory (η = 1/2). κ is below 1 only close to "
        "the targets, and the factor tends to 1 − η there. Right, hard bins: the factor is exactly "
        "1 − η while no point changes its cell, and jumps when one does.",
    ),
    "theory_datasets": (
        "The exact oracle on the datasets",
        "Smallest gap after T rounds on 300 training rows of each dataset (f₀ the paper's forest, "
        "target divided by its standard deviation, η = 1/2, radial functions of f times the two "
        "leading directions of x), beside the paper's and the sharper bound for Unit.",
    ),
    "theory_noise": (
        "Noise floor",
        "Smallest gap of 200 rounds under a constant oracle error ε, against the theorem's bound "
        "and its floor 2η√ε.",
    ),
    "theory_weights": (
        "Adaptive weights",
        "|ω_t − 1| of ten random smooth instances, which tends to 0.",
    ),
    "theory_quadratic": (
        "No quadratic rate",
        "‖r₁‖/‖r₀‖ for A = e₁e₁ᵀ, y = (1, 1, 0), f₀ = y − εe₃ under Adaptive with η = 1. A "
        "quadratic rate would follow the dashed line; the lemma behind it predicts r₁ = 0.",
    ),
    "income": (
        "The log-loss at work: Adult's income label",
        "`MulticalibrationBoostingClassifier` on one 80/20 split: prediction gap, log-loss and "
        "multicalibration error of the probabilities over rounds (solid: training, dotted: test).",
    ),
    "theory_error": (
        "The multicalibration bound on real runs",
        "Training MCE of the stored Unit runs against (gap/η + √(2ε_t))/√n, the bound for the "
        "leaves of one tree, and its two parts. ε_t is at most the loss after a full step, "
        "V(f_t + h_t), dotted. The band brackets it on seed 0: rows with equal (x, f) cannot be "
        "told apart, rows with different f can. The error term soon dominates.",
    ),
}


def draw_all(
    folder: Path,
    exact: pd.DataFrame,
    gbdt: pd.DataFrame,
    rounds: pd.DataFrame | None,
    titles: Mapping[str, str],
    eta: float,
) -> list[str]:
    """Write the chapter's figures; the last one needs stored runs. Gives their names.

    exact, gbdt : what `stages.laboratory` measured on the datasets.
    """
    drawn: dict[str, Callable[[], Figure]] = {
        "theory_rate": rate,
        "theory_datasets": lambda: datasets(exact, titles),
        "theory_contraction": contraction,
        "theory_noise": noise,
        "theory_weights": weights,
        "theory_quadratic": quadratic,
    }
    with mpl.rc_context(RC):
        for name, draw in drawn.items():
            save(draw(), folder, name)
        names = list(drawn)
        if rounds is not None:
            save(error(rounds, gbdt, titles, eta), folder, "theory_error")
            names.append("theory_error")
    return names


def rate() -> Figure:
    """Smallest gap against T."""
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    i = instance("rbf", 3)
    t = run(i.y, i.f0, i.learners, 0.5, 60)
    rounds = np.arange(1, 61)
    _bounds(left, rounds, t.loss[0])
    left.loglog(rounds, np.minimum.accumulate(t.gaps), color=BLUE, label="measured")
    left.set(title="a smooth class", xlabel="T", ylabel="smallest gap")
    left.set_ylim(bottom=1e-6)
    lengths = np.array([1, 2, 4, 8, 16, 32, 48])
    gaps = [counter.domino(int(k), 0.5).gaps.min() / np.sqrt(k) for k in lengths]
    _bounds(right, lengths, 0.5)  # ‖y − f₀‖ scaled to 1
    right.loglog(lengths, gaps, "o-", color=BLUE, label="measured (domino)")
    right.set(title="domino, ‖y − f₀‖ = 1", xlabel="T")
    for axes in (left, right):
        axes.legend(frameon=False, fontsize=8.5)
    return figure


def _bounds(axes: mpl.axes.Axes, rounds: np.ndarray, loss: float) -> None:
    axes.loglog(
        rounds, np.sqrt(4 * 0.5 * loss / rounds), color=ORANGE, linestyle="--", label="paper"
    )
    sharp = np.sqrt(0.5 / 0.75 * loss / rounds)
    axes.loglog(rounds, sharp, color=GREEN, linestyle="-.", label="sharper")


def datasets(exact: pd.DataFrame, titles: Mapping[str, str]) -> Figure:
    """Smallest gap on rows of the datasets, exact oracle, beside Unit's bounds."""
    shown = [d for d in titles if (exact["dataset"] == d).any()]
    figure, panels = _row_of_panels(len(shown))
    for axes, dataset in zip(panels, shown, strict=True):
        runs = exact[exact["dataset"] == dataset]
        one = runs[runs["strategy"] == runs["strategy"].iloc[0]]
        axes.loglog(one["round"], one["paper"], color="black", linestyle="--", label="paper (Unit)")
        axes.loglog(one["round"], one["sharp"], color="black", linestyle="-.", label="sharper")
        for strategy, group in runs.groupby("strategy", sort=False):
            style = dict(STYLES[str(strategy)]) | {"markevery": 0.12}
            axes.loglog(group["round"], group["gap"].cummin(), label=LABELS[str(strategy)], **style)
        axes.set(title=titles[dataset], xlabel="T", ylim=(1e-7, None))
    panels[0].set_ylabel("smallest gap")
    _legend_below(figure, panels[0])
    return figure


def contraction() -> Figure:
    """κ and the measured factor over ρ; and the factor of a hard class over rounds."""
    figure = Figure(figsize=(9, 3.3), layout="constrained")
    axes, hard = figure.subplots(1, 2)
    rhos = np.geomspace(1e-3, 1, 13)
    for kind, colour in zip(SMOOTH, (BLUE, ORANGE, GREEN, RED), strict=True):
        i = instance(kind, 1)
        checks = [
            s.linear_rate(run(i.y, i.y - rho * (i.y - i.f0), i.learners, 0.5, 20)) for rho in rhos
        ]
        axes.loglog(rhos, [c.bound for c in checks], color=colour, linestyle="--")
        axes.loglog(rhos, [c.measured for c in checks], color=colour, marker="o", label=kind)
    axes.axhline(0.5, color="black", linewidth=0.8, linestyle=":")
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set(title="smooth classes", xlabel="ρ (distance of the start)", ylabel="factor per round")
    axes.plot([], [], color="black", linestyle="--", label="κ")
    axes.legend(frameon=False, fontsize=8.5, ncols=2)
    _hard_factors(hard)
    return figure


def _hard_factors(axes: mpl.axes.Axes) -> None:
    i = instance("hard bins", 3)
    learners = bins(i.learners.H[:, :1], np.linspace(-2, 2, 6))
    t = run(i.y, i.f0, learners, 0.5, 25)
    factors = t.gaps[1:] / t.gaps[:-1]
    cells = [learners.g(f) for f in t.f]
    changed = np.array([(cells[k] != cells[k + 1]).any() for k in range(len(factors))])
    k = np.arange(1, len(factors) + 1)
    axes.plot(k, factors, color=BLUE, zorder=1)
    axes.scatter(k[~changed], factors[~changed], color=BLUE, label="no point changes cell")
    axes.scatter(k[changed], factors[changed], color=RED, marker="x", label="some point does")
    axes.axhline(0.5, color="black", linewidth=0.8, linestyle=":")
    axes.set(title="hard bins", xlabel="round")
    axes.legend(frameon=False, fontsize=8.5)


def _constant(value: float) -> Callable[[int], float]:
    return lambda _: value


def noise() -> Figure:
    """Smallest gap over ε."""
    figure = Figure(figsize=(5, 3.2), layout="constrained")
    axes = figure.subplots()
    i = instance("sigmoid", 2)
    epsilons = np.geomspace(1e-6, 1, 13)
    checks = [
        s.smallest_gap(run(i.y, i.f0, i.learners, 0.5, 200, error=_constant(e))) for e in epsilons
    ]
    axes.loglog(epsilons, [c.bound for c in checks], color=ORANGE, linestyle="--", label="bound")
    axes.loglog(epsilons, np.sqrt(epsilons), color="black", linestyle=":", label="floor 2η√ε")
    axes.loglog(epsilons, [c.measured for c in checks], "o-", color=BLUE, label="measured")
    axes.set(xlabel="ε", ylabel="smallest gap of 200 rounds")
    axes.legend(frameon=False)
    return figure


def weights() -> Figure:
    """|ω_t − 1| over rounds."""
    figure = Figure(figsize=(5, 3.2), layout="constrained")
    axes = figure.subplots()
    for k in range(10):
        i = instance(SMOOTH[k % 4], 20 + k)
        t = run(i.y, i.f0, i.learners, 0.5, 200, Adaptive())
        axes.loglog(np.arange(1, 201), np.abs(t.w - 1), color=GREEN, alpha=0.6)
    axes.set(xlabel="round", ylabel="|ω_t − 1|")
    axes.set_ylim(bottom=1e-15)
    return figure


def quadratic() -> Figure:
    """The counterexample's ratio over ε."""
    figure = Figure(figsize=(5, 3.2), layout="constrained")
    axes = figure.subplots()
    epsilons = np.geomspace(1e-6, 1, 25)
    ratios = [counter.not_quadratic(e)[0] for e in epsilons]
    axes.loglog(epsilons, ratios, color=RED, label="measured")
    axes.loglog(epsilons, epsilons, color="black", linestyle="--", label="quadratic")
    axes.set(xlabel="‖r₀‖ = ε", ylabel="‖r₁‖ / ‖r₀‖")
    axes.legend(frameon=False)
    return figure


def error_parts(mse: Floats, gap: Floats, n: int, eta: float) -> tuple[Floats, Floats]:
    """From a Unit run's curves: gap/η and √(2ε_t), each over √n, for rounds 0 … T − 1.

    mse : (T + 1,);  gap : (T + 1,), the first empty. With V = ½ n mse, h = Δ/η and
    ⟨r, h⟩ = (V_t − V_{t+1} + ½ gap²)/η, the loss after a full step is V_t − ⟨r, h⟩ + ½‖h‖².
    """
    v, step = 0.5 * n * mse, gap[1:] / eta
    inner = (v[:-1] - v[1:] + 0.5 * gap[1:] ** 2) / eta
    full = np.maximum(v[:-1] - inner + 0.5 * step**2, 0.0)
    return step / np.sqrt(n), np.sqrt(2 * full) / np.sqrt(n)


def error(
    rounds: pd.DataFrame, gbdt: pd.DataFrame, titles: Mapping[str, str], eta: float
) -> Figure:
    """Training MCE and its bound on the datasets."""
    shown = [d for d in titles if (rounds["dataset"] == d).any()]
    bundles = Curves(rounds)
    figure, panels = _row_of_panels(len(shown))
    for axes, dataset in zip(panels, shown, strict=True):
        curves = {
            c: bundles(dataset, "unit", c) for c in ("mse_train", "gap", "mce_train", "n_train")
        }
        parts = [
            error_parts(mse, gap, int(n[0]), eta)
            for mse, gap, n in zip(
                curves["mse_train"], curves["gap"], curves["n_train"], strict=True
            )
        ]
        move, oracle = (np.mean([p[k] for p in parts], axis=0) for k in (0, 1))
        t = np.arange(len(move))
        axes.semilogy(t, move + oracle, color="black", label="bound")
        axes.semilogy(t, move, color=ORANGE, linestyle="--", label="gap part")
        axes.semilogy(t, oracle, color=RED, linestyle=":", label="ε part")
        one = gbdt[gbdt["dataset"] == dataset]
        axes.fill_between(
            one["round"], one["epsilon_low"], one["epsilon_high"], color=RED, alpha=0.25, lw=2,
            label="ε part, bracketed",
        )  # fmt: skip
        measured = curves["mce_train"].mean(axis=0)[:-1]
        axes.semilogy(t, measured, color=BLUE, label="training MCE")
        axes.set(title=titles[dataset], xlabel="round")
    _legend_below(figure, panels[0])
    return figure


def _row_of_panels(n: int) -> tuple[Figure, list[mpl.axes.Axes]]:
    figure = Figure(figsize=(2.35 * n, 2.9), layout="constrained")
    return figure, list(figure.subplots(1, n, squeeze=False)[0])


def _legend_below(figure: Figure, axes: mpl.axes.Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
