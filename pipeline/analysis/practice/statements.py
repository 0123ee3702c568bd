"""What follows from the runs of ``stage=practice``: sentences, each judged by a rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pipeline.analysis.practice.effects import (
    BEST_ROUND,
    PRACTICAL,
    changes,
    mean_change,
    other_measures,
    overall,
    with_bounds,
)
from pipeline.analysis.practice.table import own_rows

HOLDS, PARTLY, FAILS = "holds", "partly", "does not hold"
SMALL = 2000  # rows to correct on, at most
ROUNDS = ("unit", "relaxed", "adaptive")
WEAK, FEW = "weak model, many rows", "few rows"
OTHERS = ("level_sets", "patching", "auditor_ridge", "auditor_tree")


@dataclass(frozen=True)
class Statement:
    """A sentence, the rule that judges it, and what was measured."""

    id: str
    text: str
    rule: str
    verdict: str
    measured: str


@dataclass(frozen=True)
class Evidence:
    """What statements are judged by.

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
    ) -> Evidence:
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


Judge = Callable[[Evidence], Statement | None]


def judge_all(evidence: Evidence) -> list[Statement]:
    """Every statement whose methods were run, in order."""
    found = [judge(evidence) for needs, judge in STATEMENTS if evidence.has(*needs)]
    return [statement for statement in found if statement is not None]


def _twenty_rounds(evidence: Evidence) -> Statement:
    found = overall(evidence.cells(*ROUNDS))
    worse = [found[m].harmed > found[m].helped for m in ROUNDS]
    said = "; ".join(
        f"{m.capitalize()}: {found[m].harmed:.0%} of cells surely worse, "
        f"{found[m].helped:.0%} surely better, {percent(found[m].change)} on average"
        for m in ROUNDS
    )
    unit = evidence.cells("unit")
    kinds = {"squared error": ~unit["dataset"].isin(evidence.classes),
             "log-loss": unit["dataset"].isin(evidence.classes)}  # fmt: skip
    parts = [f"{k} {percent(mean_change(unit[v]))}" for k, v in kinds.items() if v.any()]
    said += f". Unit by loss: {', '.join(parts)}; median cell {percent(unit['change'].median())}"
    return Statement(
        "P1",
        "Twenty rounds with the paper's settings more often make a model worse than better on "
        "held-out rows.",
        "more cells whose 95 % interval lies above 0 than below, for each strategy (partly: for "
        "some)",
        _of_share(worse),
        said + ".",
    )


def _stopping(evidence: Evidence) -> Statement:
    unit, stopped = (overall(evidence.cells(m))[m] for m in ("unit", "unit_stopped"))
    gain = stopped.change < min(0.0, unit.change)
    verdict = HOLDS if gain and stopped.harmed <= 0.1 else PARTLY if gain else FAILS
    return Statement(
        "P2",
        "Stopped by the loss on validation rows, round 0 allowed, the same rounds help on average "
        "and rarely harm.",
        "a mean change below 0 and below that of twenty rounds, and at most a tenth of the cells "
        "surely worse (partly: more)",
        verdict,
        f"{percent(stopped.change)} instead of {percent(unit.change)} on average; "
        f"{stopped.harmed:.0%} instead of {unit.harmed:.0%} of cells surely worse; the worst "
        f"cell {percent(stopped.worst)} ({stopped.worst_cell}).",
    )


def _bound(evidence: Evidence) -> Statement:
    bounds = {m: overall(evidence.cells(f"{m}, {BEST_ROUND}")).popitem()[1].change for m in ROUNDS}
    trees = overall(evidence.cells("residual"))["residual"].change
    best = min(bounds.values())
    verdict = HOLDS if trees <= best else PARTLY if trees <= best + PRACTICAL else FAILS
    return Statement(
        "P3",
        "Trees that LightGBM adds to the model in one go, stopped early, do as well as Algorithm 1 "
        "with the paper's settings at its best round, which nobody can know.",
        "its mean change is no worse than the best strategy's (partly: by at most "
        f"{PRACTICAL:.0%})",
        verdict,
        f"LightGBM from f {percent(trees)}; best rounds: "
        + ", ".join(f"{m.capitalize()} {percent(value)}" for m, value in bounds.items())
        + ".",
    )


def _new_model(evidence: Evidence) -> Statement:
    against = changes(own_rows(evidence.table), base="ours")
    new = against[against["method"] == "lightgbm"]
    new = new[new["situation"] != "planted"]  # where the model is the truth but for a bias
    large = new[~new["dataset"].isin(evidence.small)]
    weak = large[large["situation"].isin(["forest", "linear", "blind"])]
    strong = large[~large["situation"].isin(["forest", "linear", "blind"])]
    few = new[new["dataset"].isin(evidence.small)]
    parts = {WEAK: weak, "strong or shifted model, many rows": strong, FEW: few}
    means = {name: mean_change(part) for name, part in parts.items() if len(part)}
    found = [means.get(WEAK, np.inf) <= 0, means.get(FEW, -np.inf) > 0]
    return Statement(
        "P4",
        "Where rows are many and the model is weak, a new model is at least as good as a corrected "
        "one; where rows are few, correcting is better.",
        "mean change of the loss of a new LightGBM against our defaults at most 0 there and above "
        "0 here, planted biases left out (partly: one of the two)",
        _of_share(found),
        "a new LightGBM against our defaults: "
        + "; ".join(f"{name} {percent(value)}" for name, value in means.items())
        + ".",
    )


def _no_harm(evidence: Evidence) -> Statement:
    cells = evidence.cells("ours")
    worst = cells.sort_values("change").iloc[-1]
    others = {
        "on tables that took no part in choosing them": evidence.chosen_on | evidence.same_rows,
        "on other targets of tables that did": set(_names(cells)) - evidence.same_rows,
    }
    parts = [
        f"worst cell {percent(worst['change'])} ({worst['dataset']}, {worst['situation']}) of "
        f"{len(cells)}; {percent(mean_change(cells))} on average"
    ]
    for words, left_out in others.items() if evidence.chosen_on else ():
        some = cells[~cells["dataset"].isin(list(left_out))]
        if len(some):
            last = some.sort_values("change").iloc[-1]
            parts.append(
                f"{words} ({', '.join(_names(some))}): worst {percent(last['change'])} "
                f"({last['dataset']}, {last['situation']}), {percent(mean_change(some))} on average"
            )
    surely = int((cells["low"] > PRACTICAL).sum())
    holds = worst["change"] <= PRACTICAL
    return Statement(
        "P5",
        f"Our defaults never make a model worse by more than {PRACTICAL:.0%} in mean test loss.",
        f"no cell's mean change above {PRACTICAL:.0%} (partly: none whose interval lies above it)",
        HOLDS if holds else PARTLY if surely == 0 else FAILS,
        "; ".join(parts) + ".",
    )


def _mcgrad(evidence: Evidence) -> Statement:
    against = changes(own_rows(evidence.table), base="mcgrad")
    ours = against[against["method"] == "ours"]
    better, worse = float((ours["high"] < 0).mean()), float((ours["low"] > 0).mean())
    mean = mean_change(ours)
    theirs = overall(evidence.cells("mcgrad"))["mcgrad"]
    best = ours.sort_values("change").iloc[0]
    last = ours.sort_values("change").iloc[-1]
    return Statement(
        "P6",
        "On the same splits our defaults are better than MCGrad's.",
        "a mean change below 0 against MCGrad and more cells surely better than worse (partly: one "
        "of the two)",
        _of_share([mean < 0, better > worse]),
        f"{percent(mean)} on average; {better:.0%} of cells surely better, {worse:.0%} surely "
        f"worse (from {percent(best['change'])} on {best['dataset']}, {best['situation']}, to "
        f"{percent(last['change'])} on {last['dataset']}, {last['situation']}). MCGrad against the "
        f"model as it is: {percent(theirs.change)} on average, worst "
        f"{percent(theirs.worst)} ({theirs.worst_cell}).",
    )


def _overfitting(evidence: Evidence) -> Statement | None:
    cells = evidence.cells(*OTHERS)
    cells = cells[cells["dataset"].isin(evidence.small)]
    if cells.empty:
        return None
    found = overall(cells)
    worse = [row.harmed > row.helped and row.change > 0 for row in found.values()]
    return Statement(
        "P7",
        "Level-set boosting, iterative patching and boosting by auditors, with their authors' "
        "defaults, overfit small tables.",
        f"on tables with fewer than {SMALL} rows to correct on, a mean change above 0 and more "
        "cells surely worse than better, for each (partly: for some)",
        _of_share(worse),
        "; ".join(
            f"{m}: {percent(row.change)} on average, {row.harmed:.0%} surely worse"
            for m, row in found.items()
        )
        + ".",
    )


def _multicalibrated(evidence: Evidence) -> Statement:
    measures = other_measures(own_rows(evidence.table))
    sure, left = (measures[name].to_dict() for name in ("significant", "mce"))
    found = [
        sure["residual"] <= sure["unit_stopped"],
        left["residual"] <= max(left["unit_stopped"], 0.0),
    ]
    said = {"nothing": "the model as it is", "unit_stopped": "Algorithm 1, stopped,",
            "residual": "LightGBM from f"}  # fmt: skip
    return Statement(
        "P8",
        "Plain trees added to f leave no more multicalibration error than Algorithm 1 does.",
        "no larger share of runs with a p-value below 5 %, and no larger debiased error (partly: "
        "one of the two)",
        _of_share(found),
        "significant miscalibration on test rows: "
        + ", ".join(
            f"{name} {sure[m]:.0%} of runs (median error {left[m]:.2g} squared floors)"
            for m, name in said.items()
        )
        + ".",
    )


STATEMENTS: Sequence[tuple[tuple[str, ...], Judge]] = (
    (ROUNDS, _twenty_rounds),
    (("unit", "unit_stopped"), _stopping),
    ((*ROUNDS, "residual"), _bound),
    (("lightgbm", "ours"), _new_model),
    (("ours",), _no_harm),
    (("ours", "mcgrad"), _mcgrad),
    (OTHERS, _overfitting),
    (("residual", "unit_stopped"), _multicalibrated),
)


def percent(change: float) -> str:
    """``−3.2 %``."""
    return f"{100 * change:+.1f} %".replace("-", "−").replace("+0.0", "0.0").replace("−0.0", "0.0")


def _of_share(found: Sequence[bool]) -> str:
    return HOLDS if all(found) else PARTLY if any(found) else FAILS


def _names(cells: pd.DataFrame) -> list[str]:
    return [str(name) for name in cells["dataset"].drop_duplicates()]
