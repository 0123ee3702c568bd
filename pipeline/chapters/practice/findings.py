"""What follows from the corrections: sentences, each judged by a rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pipeline.chapters.practice.effects import (
    BEST_ROUND,
    PRACTICAL,
    by_situation,
    changes,
    mean_change,
    other_measures,
    overall,
    with_bounds,
)
from pipeline.chapters.practice.table import Labels, own_rows
from pipeline.judgement import Registry, Ruling, grade
from pipeline.report.render import percent, share

SMALL = 2000  # rows to correct on, at most
ROUNDS = ("unit", "relaxed", "adaptive")
HARM = 0.005  # of the mean test loss
WEAK, FEW = "weak model, many rows", "few rows"
OTHERS = ("level_sets", "patching", "auditor_ridge", "auditor_tree")


@dataclass(frozen=True)
class Compared:
    """What findings are judged by.

    table : all runs.  labels : what they are called.  changed : each method (and best rounds)
    against the model as it is, by cell.
    """

    table: pd.DataFrame
    labels: Labels
    changed: pd.DataFrame

    @classmethod
    def of(cls, table: pd.DataFrame, labels: Labels) -> Compared:
        """From a table of runs."""
        return cls(table, labels, changes(with_bounds(table)))

    def cells(self, *methods: str) -> pd.DataFrame:
        """The cells of some methods."""
        return self.changed[self.changed["method"].isin(methods)]

    def has(self, *methods: str) -> bool:
        """Whether all of some methods were run."""
        return set(methods) <= set(self.changed["method"])

    @property
    def classes(self) -> frozenset[str]:
        """The datasets whose loss is the log-loss."""
        other = self.table[(self.table["loss"] - self.table["mse"]).abs() > 0]
        return frozenset(str(name) for name in other["dataset"].unique())

    @property
    def small(self) -> frozenset[str]:
        """The tables with few rows."""
        rows = self.table["n_correct"].groupby(self.table["dataset"]).max()
        return frozenset(str(name) for name in rows.index[rows < SMALL])


finding: Registry[Compared] = Registry()


def _finding(id_: str, text: str, *methods: str) -> Callable[[Any], Any]:
    """Register a finding that is judged if some methods were run."""

    def register(judge: Callable[[Compared], Ruling | None]) -> Callable[[Compared], Ruling | None]:
        return finding(id_, text=text)(lambda e: judge(e) if e.has(*methods) else None)

    return register


@_finding(
    "P1",
    "Twenty rounds with the paper's settings more often make a model worse than better on "
    "held-out rows.",
    *ROUNDS,
)
def _twenty_rounds(e: Compared) -> Ruling:
    found = overall(e.cells(*ROUNDS))
    worse = [found[m].harmed > found[m].helped for m in ROUNDS]
    cells = e.cells("unit")
    parts = {
        "squared error": cells[~cells["dataset"].isin(e.classes)],
        "log-loss": cells[cells["dataset"].isin(e.classes)],
    }
    said = "; ".join(
        f"Unit, {kind}: {share((some['low'] > 0).mean(), 0)} of {len(some)} cells worse and "
        f"{share((some['high'] < 0).mean(), 0)} better beyond chance, "
        f"{percent(mean_change(some))} on average, median cell {percent(some['change'].median())}"
        for kind, some in parts.items()
        if len(some)
    )
    others = "; ".join(
        f"{m.capitalize()}: {share(found[m].harmed, 0)} worse, {share(found[m].helped, 0)} better"
        for m in ROUNDS[1:]
    )
    said += f". All cells, {others}"
    return Ruling(
        rule="more cells whose 95 % interval lies above 0 than below, for each strategy (partly: "
        "for some)",
        verdict=grade(worse),
        measured=said + ".",
    )


@_finding(
    "P2",
    "Stopped by the loss on validation rows, round 0 allowed, the same rounds help on average "
    "and rarely harm.",
    "unit",
    "unit_stopped",
)
def _stopping(e: Compared) -> Ruling:
    unit, stopped = (overall(e.cells(m))[m] for m in ("unit", "unit_stopped"))
    gain = stopped.change < min(0.0, unit.change)
    verdict = grade([gain, gain and stopped.harmed <= 0.1])
    return Ruling(
        rule="a mean change below 0 and below that of twenty rounds, and at most a tenth of the "
        "cells worse beyond chance (partly: more)",
        verdict=verdict,
        measured=f"{percent(stopped.change)} instead of {percent(unit.change)} on average; "
        f"{share(stopped.harmed, 0)} instead of {share(unit.harmed, 0)} of cells worse beyond "
        f"chance; the worst cell {percent(stopped.worst)} ({e.labels.cell(*stopped.worst_cell)}).",
    )


@_finding(
    "P3",
    "Trees that LightGBM adds to the model in one go, stopped early, do as well as Algorithm 1 "
    "with the paper's settings at its best round, which nobody can know.",
    *ROUNDS,
    "residual",
)
def _bound(e: Compared) -> Ruling:
    bounds = {m: overall(e.cells(f"{m}, {BEST_ROUND}")).popitem()[1].change for m in ROUNDS}
    trees = overall(e.cells("residual"))["residual"].change
    best = min(bounds.values())
    verdict = grade([trees <= best, trees <= best + PRACTICAL])
    return Ruling(
        rule="its mean change is no worse than the best strategy's (partly: by at most "
        f"{share(PRACTICAL, 0)})",
        verdict=verdict,
        measured=f"LightGBM from f {percent(trees)}; best rounds: "
        + ", ".join(f"{m.capitalize()} {percent(value)}" for m, value in bounds.items())
        + ".",
    )


@_finding(
    "P4",
    "Where rows are many and the model is weak, a new model is at least as good as a corrected "
    "one; where rows are few, correcting is better.",
    "lightgbm",
    "ours",
)
def _new_model(e: Compared) -> Ruling:
    against = changes(own_rows(e.table), base="ours")
    new = against[against["method"] == "lightgbm"]
    new = new[new["situation"] != "planted"]  # where the model is the truth but for a bias
    large = new[~new["dataset"].isin(e.small)]
    weak = large[large["situation"].isin(["forest", "linear", "blind"])]
    strong = large[~large["situation"].isin(["forest", "linear", "blind"])]
    few = new[new["dataset"].isin(e.small)]
    parts = {WEAK: weak, "strong or shifted model, many rows": strong, FEW: few}
    means = {name: mean_change(part) for name, part in parts.items() if len(part)}
    found = [means.get(WEAK, np.inf) <= 0, means.get(FEW, -np.inf) > 0]
    return Ruling(
        rule="mean change of the loss of a new LightGBM against our defaults at most 0 there and "
        "above 0 here, planted biases left out (partly: one of the two)",
        verdict=grade(found),
        measured="a new LightGBM against our defaults: "
        + "; ".join(f"{name} {percent(value)}" for name, value in means.items())
        + ".",
    )


@_finding(
    "P5",
    f"Our defaults make no model worse by more than {share(HARM)} of its mean test loss.",
    "ours",
)
def _no_harm(e: Compared) -> Ruling:
    cells = e.cells("ours")
    worst = cells.sort_values("change").iloc[-1]
    beyond = int((cells["low"] > 0).sum())
    none = int((cells["change"] == 0).sum())
    holds = worst["change"] <= HARM
    said = (
        f"worst cell {percent(worst['change'])} [{percent(worst['low'])}, {percent(worst['high'])}]"
        f" ({e.labels.cell(worst['dataset'], worst['situation'])}) of {len(cells)}; {beyond} "
        f"worse beyond chance; {percent(mean_change(cells))} on average"
    )
    return Ruling(
        rule=f"no cell's mean change above {share(HARM)} (partly: none whose interval lies above "
        "0)",
        verdict=grade([holds, holds or beyond == 0]),
        measured=said + (f"; in {none} cells nothing was changed." if none else "."),
    )


def _ahead(id_: str, peer: str, title: str) -> None:
    """Register the finding that our defaults are better than a peer."""

    @_finding(id_, f"On the same splits our defaults are better than {title}.", "ours", peer)
    def judge(e: Compared) -> Ruling:
        against = changes(own_rows(e.table), base=peer)
        ours = against[against["method"] == "ours"]
        situations = by_situation(ours).loc["ours"]
        behind = [e.labels.situations[str(s)] for s, value in situations.items() if value >= 0]
        better, worse = int((ours["high"] < 0).sum()), int((ours["low"] > 0).sum())
        lost = ours[ours["change"] > 0].sort_values("change", ascending=False)
        cells = "; ".join(
            e.labels.cell(r["dataset"], r["situation"]) for _, r in lost.head(5).iterrows()
        )
        by_loss = {
            "squared error": ours[~ours["dataset"].isin(e.classes)],
            "log-loss": ours[ours["dataset"].isin(e.classes)],
        }
        parts = [f"{k} {percent(mean_change(v))}" for k, v in by_loss.items() if len(v)]
        return Ruling(
            rule="a mean change below 0 in every situation, and no cell worse beyond chance "
            "(partly: a mean change below 0 over all cells)",
            verdict=grade([mean_change(ours) < 0, not behind and worse == 0]),
            details={
                "better": str((ours["change"] < 0).sum()),
                "of": str(len(ours)),
                "beyond": str(better),
            },
            measured=f"{percent(mean_change(ours))} on average ({', '.join(parts)}); better in "
            f"{int((ours['change'] < 0).sum())} of {len(ours)} cells, beyond chance in {better}; "
            f"worse beyond chance in {worse}"
            + (f"; worse on average in {cells}" if len(lost) else "")
            + (f"; not better on average in the situations {', '.join(behind)}" if behind else "")
            + ".",
        )


_ahead("P6a", "mcgrad", "MCGrad with its defaults")
_ahead("P6b", "residual", "trees that LightGBM adds to the model, stopped on validation rows")
_ahead("P6c", "residual_folds", "the same trees by five folds that are averaged")


@_finding(
    "P7",
    "Level-set boosting, iterative patching and boosting by auditors, as their authors run them, "
    "make models of small tables worse.",
    *OTHERS,
)
def _overfitting(e: Compared) -> Ruling | None:
    cells = e.cells(*OTHERS)
    cells = cells[cells["dataset"].isin(e.small)]
    if cells.empty:
        return None
    found = overall(cells)
    worse = [row.harmed > row.helped and row.change > 0 for row in found.values()]
    return Ruling(
        rule=f"on tables with fewer than {SMALL} rows to correct on, a mean change above 0 and "
        "more cells worse beyond chance than better, for each (partly: for some)",
        verdict=grade(worse),
        measured="; ".join(
            f"{e.labels.method(m)}: {percent(row.change)} on average, {share(row.harmed, 0)} "
            "worse beyond chance"
            for m, row in found.items()
        )
        + ".",
    )


@_finding(
    "P8",
    "Plain trees added to f leave no more multicalibration error than Algorithm 1 does.",
    "residual",
    "unit_stopped",
)
def _multicalibrated(e: Compared) -> Ruling:
    measures = other_measures(own_rows(e.table))
    sure, left = (measures[name].to_dict() for name in ("significant", "mce"))
    found = [
        sure["residual"] <= sure["unit_stopped"],
        left["residual"] <= max(left["unit_stopped"], 0.0),
    ]
    said = {
        "nothing": "the model as it is",
        "unit_stopped": "Algorithm 1, stopped,",
        "residual": "LightGBM from f",
    }
    return Ruling(
        rule="no larger share of runs with a p-value below 5 %, and no larger debiased error "
        "(partly: one of the two)",
        verdict=grade(found),
        measured="significant miscalibration on test rows: "
        + ", ".join(
            f"{name} {share(sure[m], 0)} of runs (median error {left[m]:.2g} of the squared "
            "noise floor)"
            for m, name in said.items()
        )
        + ".",
    )
