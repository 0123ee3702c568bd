"""What is said about each figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.analysis.paper import LOWEST_R2
from pipeline.theory.rows import N_ROWS


@dataclass(frozen=True)
class Caption:
    """A figure's title and text; ``wide`` if it needs the page's whole width.

    paper : which figure of the paper it is, if one.
    """

    title: str
    text: str
    wide: bool = True
    paper: str | None = None


CAPTIONS: Mapping[str, Caption] = {
    "practice": Caption(
        "What corrections do to a model",
        "Change of the mean loss on test rows against the model as it is: mean over the tables "
        "(of ratios' logarithms) for each situation, over all cells, and the worst cell. Blue is "
        "better. From ×2 on, the factor. A best round is chosen on the test rows: a bound.",
    ),
    "practice_ranks": Caption(
        "Ranks",
        "Mean rank of each method's mean test loss over all cells; shaded, what is not told apart "
        "from the best by Nemenyi's test with tables as blocks.",
    ),
    "practice_settings": Caption(
        "Settings of Algorithm 1",
        "Change of the test loss against the model as it is, by level of a setting, adjusted for "
        "the others; bars are two standard errors with tables as clusters. Above, all twenty "
        "rounds; below, rounds stopped by the loss on validation rows.",
    ),
    "gap": Caption(
        "Prediction gap",
        "How far a round moves the training predictions (of the paper's three strategies, under "
        "Unit). Below, the same on a logarithmic scale, with the least-squares line of the second "
        "half of the rounds and its R². Mean over seeds, band of one standard deviation.",
        paper="Figure 1",
    ),
    "training": Caption(
        "Training error",
        "Mean squared error above, multicalibration error below, on logarithmic scales. Weights "
        "below 1 (the paper's Relaxed begins with 7/8) pull predictions towards zero, which costs "
        "both errors at first.",
        paper="Figure 2",
    ),
    "generalization": Caption(
        "Held-out multicalibration error",
        "On the test rows of each split; a star marks the round with the smallest mean (where "
        "several would cover each other they are stacked). Logarithmic scale.",
        paper="Figure 3",
    ),
    "tail": Caption(
        "Where does the tail begin?",
        "R² of the line for every possible first round: of the mean curve, and shaded the middle "
        "80 % of single runs, cut off where the axis ends (over the last few rounds a single run's "
        f"R² may be anything). Dashed: the choice made here; dotted: the paper's smallest R², "
        f"{LOWEST_R2}. Right: the factor by which the gap shrinks per round of the tail.",
    ),
    "best_rounds": Caption(
        "How stable is a best round?",
        "Share of bootstrap samples of the seeds in which a round has the smallest mean test MCE. "
        "The triangle is the best round of all seeds.",
    ),
    "test_errors": Caption(
        "Does the best round for one error suit the other?",
        "Test MSE and test MCE relative to the initial predictor, means over seeds, stars at the "
        "minima.",
    ),
    "debiased": Caption(
        "Held-out multicalibration error without its noise floor",
        "The square of the test MCE, less what a perfect predictor with the same squared residuals "
        "would show (the floor, dotted), in units of the initial forest's floor; logarithmic above "
        "1, linear below. Mean over splits, band of one standard error that respects overlapping "
        "splits. Where a curve stays within the band around 0 there is nothing to calibrate that "
        "these samples could show, and the plug-in error follows the floor, that is, the test MSE.",
    ),
    "oracle": Caption(
        "Trees per round, the factor of the gaps, and held-out errors",
        "Unit, means over seeds. Above, the factor gap_{t+1}/gap_t of the second half of the "
        "rounds against the trees of a round; dotted, 1 − η. Below, what twenty rounds make of the "
        "initial forest's test MSE and test MCE (plug-in; dashed: debiased, as a signed root, in "
        "units of the forest's plug-in error).",
    ),
    "oracle_rows": Caption(
        "The factor over trees per row",
        "The same factors at η = 1/2 against the trees of a round per training row, with 20 % and "
        "5 % of the rows of the two large tables beside all of them (dashed).",
        wide=False,
    ),
    "theory_rate": Caption(
        "The 1/√T rate, its bounds, and an instance that attains it",
        "Smallest gap after T rounds with η = 1/2. Left, a random smooth instance: the paper's "
        "bound, the sharper one (T4), and the measured gap, which decays geometrically. Middle, "
        "two points and one learner: a spiral made for each T reaches the sharper bound, and one "
        "spiral for all T stays within a logarithm of it. Right, the residual's way on the first "
        "kind, whose steps are all of the same length.",
    ),
    "theory_contraction": Caption(
        "When is the linear rate in force?",
        "Left, start f₀ = y − ρ(y − f_b): measured largest factor gap_t / gap_{t−1} against the "
        "theorem's κ with L_A measured along the trajectory (η = 1/2). κ is below 1 only close to "
        "the targets, and the factor tends to 1 − η there. Right, hard bins: the factor is exactly "
        "1 − η while no point changes its cell, and jumps when one does.",
    ),
    "theory_datasets": Caption(
        "The exact oracle on the datasets",
        f"Smallest gap after T rounds on {N_ROWS} training rows of each dataset (f₀ the paper's "
        "forest, target divided by its standard deviation, η = 1/2, radial functions of f times "
        "the two leading directions of x), beside the paper's and the sharper bound for Unit.",
    ),
    "theory_noise": Caption(
        "Noise floor",
        "Smallest gap of 200 rounds under a constant oracle error ε, against the theorem's bound "
        "and its floor 2η√ε.",
        wide=False,
    ),
    "theory_weights": Caption(
        "Adaptive weights",
        "|ω_t − 1| of ten random smooth instances, which tends to 0.",
        wide=False,
    ),
    "theory_quadratic": Caption(
        "No quadratic rate",
        "‖r₁‖/‖r₀‖ over the size of the first residual under Adaptive with η = 1. A quadratic rate "
        "means a line that falls with ε: so it is where the learners span all that is orthogonal "
        "to y (dashed), and not for A = e₁e₁ᵀ, y = (1, 1, 0), f₀ = y − εe₃, nor for radial "
        "functions of f.",
        wide=False,
    ),
    "theory_error": Caption(
        "The multicalibration bound on real runs",
        "Training MCE of the stored Unit runs against (gap/η + √(2ε_t))/√n, the bound for the "
        "leaves of one tree, and its two parts. ε_t is at most the loss after a full step, "
        "V(f_t + h_t), dotted. The band brackets it on seed 0: rows with equal (x, f) cannot be "
        "told apart, rows with different f can. The error term dominates from the first rounds on, "
        "so the bound says little about these runs.",
    ),
    "theory_certificate": Caption(
        "What held-out rows certify",
        "Test MCE of the stored Unit runs, means over splits: plug-in, its noise floor, debiased, "
        "and the certificate C1, below which the error without the noise of the outcomes lies with "
        "probability 95 %, for all rounds of a split at once.",
    ),
    "income": Caption(
        "The log-loss at work: Adult's income label",
        "MulticalibrationBoostingClassifier on one split: prediction gap, log-loss and "
        "multicalibration error of the probabilities over rounds (solid: training, dotted: test).",
    ),
}
