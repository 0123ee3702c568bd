"""What the trees' feature does to held-out and training errors.

All trajectories are fitted to the rows outside of their folds and averaged, so that they differ in
the feature alone. Losses are compared with the corrected model's on the same rows: the change of a
cell, a (dataset, situation), is that of its mean log-ratio over seeds.
"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from pipeline.analysis.style import BLUE, GREEN, ORANGE, RED, legend_below
from pipeline.judgement import Measured, Registry, Ruling, grade
from pipeline.report.render import changed, percent, share
from pipeline.runs.kinds.corrections.run import ORACLE, OWN, START

AXES = ["feedback", "every"]
CELL = ["dataset", "situation"]
COLUMNS = [*CELL, "seed", "log_loss", *AXES, "last", "best", "mce", "loss_train", "mce_train"]
TITLES = {
    "in_sample": "f_t in sample (the paper)",
    "honest": "f_t out of fold",
    "initial": "f_0",
    "none": "no feature",
}
LOOKS = {
    "in_sample": (RED, "o", "-"),
    "honest": (BLUE, "s", "-"),
    "initial": (GREEN, "^", "--"),
    "none": (ORANGE, "x", ":"),
}
SAME = 0.005  # a change of the loss that does not count

judge: Registry[pd.DataFrame] = Registry()


def measure(table: pd.DataFrame) -> pd.DataFrame:
    """A row per run.

    last, best : log-ratio of the test loss after the last round, and after the best one, to the
    start's.  mce : the debiased square of the multicalibration error at the end, in units of the
    start's squared floor.  loss_train, mce_train : of rows that were fitted to, end over start.
    """
    keys = [*CELL, "seed", *AXES]
    ends = {rule: table[table["rule"] == rule].set_index(keys) for rule in (START, OWN, ORACLE)}
    own, start = ends[OWN], ends[START]
    found = own[["loss_train", "mce_train"]].assign(
        last=np.log(own["loss"] / start["loss"]),
        best=np.log(ends[ORACLE]["loss"] / start["loss"]),
        mce=own["mce2_debiased"] / np.square(start["mce_floor"]),
        mce_start=start["mce2_debiased"] / np.square(start["mce_floor"]),
        log_loss=(own["loss"] - own["mse"]).abs() > 0,
    )
    return found.reset_index()


def by_cell(runs: pd.DataFrame, measure: str = "last") -> pd.DataFrame:
    """Cells × (feature, trees of a round): means over seeds."""
    return runs.pivot_table(index=CELL, columns=AXES, values=measure, sort=False)


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """The mean change over cells, by feature and trees of a round, of every measure."""
    measures = ["last", "best", "mce", "mce_start", "loss_train", "mce_train"]
    cells = runs.groupby([*AXES, *CELL], sort=False)[measures].mean()
    means = cells.groupby(level=AXES, sort=False).mean()
    return means.assign(last=np.expm1(means["last"]), best=np.expm1(means["best"]))


def shown(runs: pd.DataFrame) -> pd.DataFrame:
    """`summary` in words; ratios are of the last round to the start."""
    found = summary(runs).reset_index()
    return pd.DataFrame(
        {
            "Feature": found["feedback"].map(TITLES),
            "Renewed every": found["every"].map("{:g} trees".format),
            "Test loss, last": found["last"].map(percent),
            "Test loss, best": found["best"].map(percent),
            "Test MCE² / floor²": found["mce"].map("{:.2f}".format).str.replace("-", "−"),
            "Training loss ratio": found["loss_train"].map("{:.2f}".format),
            "Training MCE ratio": found["mce_train"].map("{:.2f}".format),
        }
    )


def facts(runs: pd.DataFrame, name: str) -> dict[str, str]:
    """The mean change of the test loss after the last round, and the error left, by feature."""
    often = runs["every"].min()
    found = {
        "start": f"{summary(runs)['mce_start'].mean():.1f}",
        "splits": str(runs["seed"].nunique()),
    }
    for kind, some in (("squared", runs[~runs["log_loss"]]), ("log", runs[runs["log_loss"]])):
        means = summary(some)
        for feature in TITLES:
            found[f"{kind}_{feature}"] = changed(float(means["last"][feature, often]))
            found[f"{kind}_{feature}_best"] = changed(float(means["best"][feature, often]))
    for feature in TITLES:
        left = summary(runs)["mce"][feature]
        found[f"mce_{feature}"] = f"{left.min():.1f} to {left.max():.1f}".replace("-", "−")
    return {f"{name}_{key}": value for key, value in found.items()}


def draw(runs: pd.DataFrame) -> Figure:
    """The mean change of the test loss over how often the feature is renewed, for both losses."""
    kinds = {"squared error": runs[~runs["log_loss"]], "log-loss": runs[runs["log_loss"]]}
    panels = {name: some for name, some in kinds.items() if len(some)}
    figure = Figure(figsize=(4.0 * len(panels), 3.6), layout="constrained")
    for axes, (name, some) in zip(
        np.ravel(figure.subplots(1, len(panels))), panels.items(), strict=True
    ):
        means = summary(some)
        for feedback, (colour, marker, line) in LOOKS.items():
            of_feature = means.loc[feedback].sort_index()
            axes.plot(
                of_feature.index, 100 * of_feature["last"], line, color=colour, marker=marker,
                label=TITLES[feedback].replace("f_t", "$f_t$").replace("f_0", "$f_0$"),
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_xticks(
            means.index.unique("every"), [f"{k:g}" for k in means.index.unique("every")]
        )
        axes.minorticks_off()
        axes.axhline(0.0, color="black", linewidth=0.8)
        axes.set(title=name, xlabel="trees between two renewals of the feature")
        axes.set_ylabel("change of the test loss, %")
    legend_below(figure, figure.axes[0])
    return figure


@judge(
    "B1",
    text="In sample, the feature f_t of the paper's algorithm makes held-out predictions worse "
    "than f_t out of fold, f_0 or no feature do.",
)
def _harm(runs: pd.DataFrame) -> Ruling:
    means, cells = summary(runs)["last"], by_cell(runs)
    often = int(runs["every"].min())
    worse = {f: bool((means["in_sample"] > means[f]).all()) for f in TITLES if f != "in_sample"}
    rows = {
        TITLES[f]: (
            percent(float(means[f][often])),
            f"{int((cells['in_sample'][often] > cells[f][often]).sum())} of {len(cells)}",
        )
        for f in worse
    }
    rows = {TITLES["in_sample"]: (percent(float(means["in_sample"][often])), ""), **rows}
    head = (f"test loss, renewed every {often} trees", "cells in which f_t in sample is worse")
    return Ruling(
        rule="a larger mean change of the test loss after the last round than with each of the "
        "three others, however often the feature is renewed (partly: than with some)",
        verdict=grade(worse.values()),
        measured=Measured.of("feature", head, rows),
    )


@judge("B2", text="On the rows that are fitted to, the same feature makes the loss fall furthest.")
def _training(runs: pd.DataFrame) -> Ruling:
    means = summary(runs)["loss_train"]
    often = int(runs["every"].min())
    lower = [bool((means["in_sample"] <= means[f]).all()) for f in TITLES if f != "in_sample"]
    return Ruling(
        rule="the smallest mean ratio of the training loss, end over start, however often the "
        "feature is renewed (partly: smaller than with some of the others)",
        verdict=grade(lower),
        measured=Measured.of(
            "feature",
            f"training loss, end over start, renewed every {often} trees",
            {TITLES[f]: f"{means[f][often]:.2f}" for f in TITLES},
        ),
    )


@judge(
    "B3",
    text="On average, the more often the feature is renewed in sample, the larger the harm; out of "
    "fold, renewing it does none.",
)
def _renewal(runs: pd.DataFrame) -> Ruling:
    means = summary(runs)["last"]
    often, seldom = int(runs["every"].min()), int(runs["every"].max())
    moved = {f: float(means[f][often] - means[f][seldom]) for f in ("in_sample", "honest")}
    return Ruling(
        rule=f"the mean change of the test loss is larger by more than {share(SAME)} of the loss "
        f"when renewed every {often} trees than every {seldom} in sample, and not out of fold "
        "(partly: one of the two)",
        verdict=grade([moved["in_sample"] > SAME, moved["honest"] <= SAME]),
        measured=Measured.of(
            "feature",
            (f"every {often} trees", f"every {seldom}"),
            {TITLES[f]: tuple(percent(float(means[f][k])) for k in (often, seldom)) for f in moved},
        ),
    )


@judge(
    "B4",
    text="On average, the multicalibration error of held-out rows is no larger without feedback.",
)
def _multicalibration(runs: pd.DataFrame) -> Ruling:
    means, cells = summary(runs)["mce"], by_cell(runs, "mce")
    start, renewals = float(summary(runs)["mce_start"].mean()), sorted(runs["every"].unique())
    others = ("initial", "none")
    found = [means[f][k] <= means["in_sample"][k] for f in others for k in renewals]
    rows = {}
    for f in TITLES:
        values = [f"{means[f][k]:.2f}".replace("-", "−") for k in renewals]
        counts = [int((cells[f][k] <= cells["in_sample"][k]).sum()) for k in renewals]
        words = f"{min(counts)} to {max(counts)} of {len(cells)}" if f != "in_sample" else ""
        rows[TITLES[f]] = (", ".join(values), words)
    head = (
        f"mean squared error over squared noise floor ({start:.2f} at the start), renewed every "
        f"{', '.join(f'{k:g}' for k in renewals)} trees",
        "cells in which it is no larger than with f_t in sample",
    )
    return Ruling(
        rule="the mean debiased square of the test multicalibration error with f_0, and without a "
        "feature, is no larger than with f_t in sample, however often that is renewed (partly: in "
        "some cases)",
        verdict=grade(found),
        measured=Measured.of("feature", head, rows),
    )
