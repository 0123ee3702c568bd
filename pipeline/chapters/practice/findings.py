"""What follows from the corrections: sentences, each judged by a rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pipeline.chapters.practice.effects import (
    BEST_ROUND,
    PRACTICAL,
    changes,
    mean_change,
    other_measures,
    overall,
    with_bounds,
)
from pipeline.chapters.practice.table import own_rows
from pipeline.judgement import Registry, Ruling, grade
from pipeline.report.render import percent

SMALL = 2000  # rows to correct on, at most
ROUNDS = ("unit", "relaxed", "adaptive")
WEAK, FEW = "weak model, many rows", "few rows"
OTHERS = ("level_sets", "patching", "auditor_ridge", "auditor_tree")


@dataclass(frozen=True)
class Compared:
    """What findings are judged by.

    table : all runs.  changed : each method (and best rounds) against the model as it is, by cell.
    chosen_on : the datasets on which the estimators' defaults were chosen.  same_rows : those that
    share their rows with one of these, but have another target.
    """

    table: pd.DataFrame
    changed: pd.DataFrame
    chosen_on: frozenset[str]
    same_rows: frozenset[str]

    @classmethod
    def of(
        cls,
        table: pd.DataFrame,
        chosen_on: Sequence[str] = (),
        tables: Mapping[str, str] | None = None,
    ) -> Compared:
        """From a table of runs; ``tables`` are those that datasets are made from."""
        made_from = tables or {}
        seen = {made_from.get(name, name) for name in chosen_on}
        same = {d for d in made_from if d not in chosen_on and made_from[d] in seen}
        changed = changes(with_bounds(table))
        return cls(table, changed, frozenset(chosen_on), frozenset(same))

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
    said = "; ".join(
        f"{m.capitalize()}: {found[m].harmed:.0%} of cells surely worse, "
        f"{found[m].helped:.0%} surely better, {percent(found[m].change)} on average"
        for m in ROUNDS
    )
    unit = e.cells("unit")
    classes = unit["dataset"].isin(e.classes)
    kinds = {"squared error": ~classes, "log-loss": classes}
    parts = [f"{k} {percent(mean_change(unit[v]))}" for k, v in kinds.items() if v.any()]
    said += f". Unit by loss: {', '.join(parts)}; median cell {percent(unit['change'].median())}"
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
        "cells surely worse (partly: more)",
        verdict=verdict,
        measured=f"{percent(stopped.change)} instead of {percent(unit.change)} on average; "
        f"{stopped.harmed:.0%} instead of {unit.harmed:.0%} of cells surely worse; the worst "
        f"cell {percent(stopped.worst)} ({stopped.worst_cell}).",
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
        f"{PRACTICAL:.0%})",
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
    f"Our defaults never make a model worse by more than {PRACTICAL:.0%} in mean test loss.",
    "ours",
)
def _no_harm(e: Compared) -> Ruling:
    cells = e.cells("ours")
    worst = cells.sort_values("change").iloc[-1]
    others = {
        "on tables that took no part in choosing them": e.chosen_on | e.same_rows,
        "on other targets of tables that did": set(_names(cells)) - e.same_rows,
    }
    parts = [
        f"worst cell {percent(worst['change'])} ({worst['dataset']}, {worst['situation']}) of "
        f"{len(cells)}; {percent(mean_change(cells))} on average"
    ]
    for words, left_out in others.items() if e.chosen_on else ():
        some = cells[~cells["dataset"].isin(list(left_out))]
        if len(some):
            last = some.sort_values("change").iloc[-1]
            parts.append(
                f"{words} ({', '.join(_names(some))}): worst {percent(last['change'])} "
                f"({last['dataset']}, {last['situation']}), {percent(mean_change(some))} on average"
            )
    surely = int((cells["low"] > PRACTICAL).sum())
    holds = worst["change"] <= PRACTICAL
    return Ruling(
        rule=f"no cell's mean change above {PRACTICAL:.0%} (partly: none whose interval lies "
        "above it)",
        verdict=grade([holds, holds or surely == 0]),
        measured="; ".join(parts) + ".",
    )


@_finding(
    "P6",
    "On the same splits our defaults are better than MCGrad's.",
    "ours",
    "mcgrad",
)
def _mcgrad(e: Compared) -> Ruling:
    against = changes(own_rows(e.table), base="mcgrad")
    ours = against[against["method"] == "ours"]
    better, worse = float((ours["high"] < 0).mean()), float((ours["low"] > 0).mean())
    mean = mean_change(ours)
    theirs = overall(e.cells("mcgrad"))["mcgrad"]
    best = ours.sort_values("change").iloc[0]
    last = ours.sort_values("change").iloc[-1]
    return Ruling(
        rule="a mean change below 0 against MCGrad and more cells surely better than worse "
        "(partly: one of the two)",
        verdict=grade([mean < 0, better > worse]),
        measured=f"{percent(mean)} on average; {better:.0%} of cells surely better, {worse:.0%} "
        f"surely worse (from {percent(best['change'])} on {best['dataset']}, {best['situation']}, "
        f"to {percent(last['change'])} on {last['dataset']}, {last['situation']}). MCGrad against "
        f"the model as it is: {percent(theirs.change)} on average, worst "
        f"{percent(theirs.worst)} ({theirs.worst_cell}).",
    )


@_finding(
    "P7",
    "Level-set boosting, iterative patching and boosting by auditors, with their authors' "
    "defaults, overfit small tables.",
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
        "more cells surely worse than better, for each (partly: for some)",
        verdict=grade(worse),
        measured="; ".join(
            f"{m}: {percent(row.change)} on average, {row.harmed:.0%} surely worse"
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
            f"{name} {sure[m]:.0%} of runs (median error {left[m]:.2g} squared floors)"
            for m, name in said.items()
        )
        + ".",
    )


def _names(cells: pd.DataFrame) -> list[str]:
    return [str(name) for name in cells["dataset"].drop_duplicates()]
