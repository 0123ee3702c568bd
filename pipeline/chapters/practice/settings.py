"""The estimators' defaults: what was tried on tables of their own, and what a rule chose."""

from typing import Any

import pandas as pd

from pipeline.chapters.practice.effects import CELL, mean_change
from pipeline.runs.kinds.corrections.run import OWN, START

NO_HARM = 0.005  # of a cell's mean loss: what defaults may cost where nothing is to be gained


def candidates(table: pd.DataFrame, options: list[str]) -> pd.DataFrame:
    """The defaults that were tried: ``mean`` change of the loss over cells and the ``worst``."""
    losses = {
        rule: table[table["rule"] == rule].groupby([*options, *CELL])["loss"].mean()
        for rule in (START, OWN)
    }
    change = (losses[OWN] / losses[START] - 1).rename("change").reset_index()
    by_options = change.groupby(options, sort=False)
    mean = by_options[["change"]].apply(mean_change).rename("mean")
    worst = by_options["change"].max().rename("worst")
    return pd.concat([mean, worst], axis=1).reset_index().sort_values("mean", ignore_index=True)


def chosen(tried: pd.DataFrame, options: list[str]) -> dict[str, Any]:
    """The best on average of those that cost no cell more than `NO_HARM`, or of all."""
    safe = tried[tried["worst"] <= NO_HARM]
    best = (tried if safe.empty else safe).sort_values("mean").iloc[0]
    return {name: best[name] for name in options}
