"""The log-loss classifier on Adult's income label: gap, loss and multicalibration error by round.

Writes outputs/paper/theory/income.csv and outputs/paper/theory/figures/income.png.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure
from sklearn.model_selection import train_test_split

from pipeline.boosting import Auditor, MulticalibrationBoostingClassifier
from pipeline.boosting.engines.base import Floats
from pipeline.boosting.logloss import mean_log_loss, sigmoid
from pipeline.compose import load
from pipeline.keys import audit_seed
from pipeline.stages.fetch import fetch
from pipeline.stages.figures import LABELS, RC, STYLES, save
from pipeline.stages.preprocess import preprocess

FOLDER = Path("outputs/paper/theory")
SEED = 0


def main() -> None:
    # All columns but the label are covariates; education-num says what education says in words.
    dataset = load(["dataset=adult"]).dataset.model_copy(update={"drop": ("education", "income")})
    table = fetch(dataset)
    design = preprocess(table, dataset)
    hours = table.frame[["education-num", "hours-per-week"]].to_numpy()
    X = pd.DataFrame(design.X).join(pd.DataFrame(hours, columns=[-1, -2])).to_numpy()
    y = (table.frame["income"] == ">50K").to_numpy(int)
    parts = train_test_split(X, y, test_size=0.2, random_state=SEED)
    rows = [row for strategy in STYLES for row in curves(strategy, *parts)]
    frame = pd.DataFrame(rows)
    FOLDER.mkdir(parents=True, exist_ok=True)
    frame.to_csv(FOLDER / "income.csv", index=False)
    with mpl.rc_context(RC):
        save(draw(frame), FOLDER / "figures", "income")
    print(
        f"{FOLDER}/income.csv and {FOLDER}/figures/income.png; make figures adds it to the report"
    )


def curves(
    strategy: str, X_train: Floats, X_test: Floats, y_train: Floats, y_test: Floats
) -> Iterator[dict[str, Any]]:
    model = MulticalibrationBoostingClassifier(rescaling=strategy, random_state=SEED)
    model.fit(X_train, y_train)
    sides = {"train": (X_train, y_train), "test": (X_test, y_test)}
    stages = {side: list(model.staged_decision_function(X)) for side, (X, _) in sides.items()}
    seed = audit_seed("adult-income", SEED)
    auditors = {side: Auditor(X, seed=seed) for side, (X, _) in sides.items()}
    for t in range(model.n_rounds + 1):
        row: dict[str, Any] = {"strategy": strategy, "round": t}
        row["gap"] = model.gaps_[t - 1] if t else None
        for side, (_, labels) in sides.items():
            f = stages[side][t]
            row[f"loss_{side}"] = mean_log_loss(labels, f)
            row[f"mce_{side}"] = auditors[side].error(f, labels - sigmoid(f))
        yield row
    print(
        f"{strategy}: log-loss {row['loss_train']:.4f} on training, {row['loss_test']:.4f} on test "
        f"rows, MCE {row['mce_train']:.1e} and {row['mce_test']:.1e}",
        flush=True,
    )


def draw(frame: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    panels = figure.subplots(1, 3)
    titles = ("gap of the logits", "log-loss", "multicalibration error")
    for axes, name, title in zip(panels, ("gap", "loss", "mce"), titles, strict=True):
        for strategy, group in frame.groupby("strategy", sort=False):
            style = dict(STYLES[str(strategy)])
            if name == "gap":
                axes.semilogy(group["round"], group["gap"], label=LABELS[str(strategy)], **style)
                continue
            axes.plot(group["round"], group[f"{name}_train"], **style)
            axes.plot(group["round"], group[f"{name}_test"], **(style | {"linestyle": ":"}))
        axes.set(title=title, xlabel="round")
    panels[2].set_yscale("log")
    for linestyle, label in (("-", "training"), (":", "test")):
        panels[0].plot([], [], color="black", linestyle=linestyle, label=label)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


if __name__ == "__main__":
    main()
