"""Which settings of Algorithm 1 matter: effects of options and of how rounds end.

Every run of the settings' experiment has one of some combinations of options, drawn at random once,
on one (dataset, situation, seed); what is explained is log(loss / loss of the model as it is).
Effects are least squares with a level for every (dataset, situation, seed), so that they compare
runs of the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from pipeline.runs.kinds.corrections.run import CAUTIOUS, LAST, OWN, START, VALIDATED

FACTORS = ("rule", "eta", "trees", "depth", "leaf", "rescaling")
TITLES = {
    "rule": "how rounds end",
    "eta": "step size η",
    "trees": "trees per round",
    "depth": "depth",
    "leaf": "rows of a leaf",
    "rescaling": "weights",
}
CASE = ["dataset", "situation", "seed"]
ENDS = {LAST: "after 20 rounds", VALIDATED: "by validation loss", CAUTIOUS: "with caution"}


@dataclass(frozen=True)
class Effects:
    """levels : factor, level, effect (mean log ratio, adjusted), low, high.  interactions : pairs
    of factors by the variance that they explain beyond their own, as a share of what is explained.
    """

    levels: pd.DataFrame
    interactions: pd.DataFrame


def ratios(table: pd.DataFrame) -> pd.DataFrame:
    """A row per run and way to end, with ``log``: log(loss / loss at the start)."""
    axes = [f for f in FACTORS if f != "rule"]
    keys = [*CASE, *axes]
    start = table[table["rule"] == START].set_index(keys)["loss"]
    ends = table[table["rule"].isin(ENDS)].copy()
    first = start.reindex(pd.MultiIndex.from_frame(ends[keys]))
    return ends.assign(log=np.log(ends["loss"].to_numpy() / first.to_numpy()))


def effects(runs: pd.DataFrame, factors: Sequence[str] = FACTORS) -> Effects:
    """Main effects of all factors, and what pairs of them add."""
    case = runs.groupby(CASE, sort=False)["log"].transform("mean")
    y = (runs["log"] - case).to_numpy()
    middle = float(runs["log"].mean())
    blocks = {f: _indicators(runs[f], runs) for f in factors}
    main = np.column_stack(list(blocks.values()))
    fitted, solution, spread = _least_squares(main, y, runs)
    rows, at = [], 0
    for name, block in blocks.items():
        levels = _levels(runs[name])
        width = block.shape[1]
        values = np.append(solution[at : at + width], -solution[at : at + width].sum())
        own = spread[at : at + width, at : at + width]
        half = 2 * np.sqrt(np.maximum(np.append(np.diag(own), own.sum()), 0.0))
        at += width
        for level, value, h in zip(levels, values, half, strict=True):
            rows.append({"factor": name, "level": level, "effect": middle + value,
                         "low": middle + value - h, "high": middle + value + h})  # fmt: skip
    explained = float(np.square(fitted).sum())
    pairs = []
    for a, b in combinations(factors, 2):
        product = np.column_stack([u * v for u in blocks[a].T for v in blocks[b].T])
        more, _, _ = _least_squares(np.column_stack([main, product]), y, runs)
        share = (float(np.square(more).sum()) - explained) / explained
        pairs.append({"first": a, "second": b, "share": share})
    table = pd.DataFrame(pairs).sort_values("share", ascending=False, ignore_index=True)
    return Effects(pd.DataFrame(rows), table)


def _indicators(values: pd.Series[Any], runs: pd.DataFrame) -> np.ndarray:
    """Columns of a factor whose effects add up to 0, without the means of the cases, (n, k − 1)."""
    levels = _levels(values)
    flags = np.column_stack([(values == level).to_numpy(float) for level in levels])
    columns = flags[:, :-1] - flags[:, -1:]
    places = runs.groupby(CASE, sort=False).ngroup().to_numpy()
    counts = np.bincount(places)[:, None]
    sums = np.stack([np.bincount(places, column) for column in columns.T], axis=1)
    return columns - (sums / counts)[places]


def _levels(values: pd.Series[Any]) -> list[Any]:
    """The levels of a factor in order: counts before shares, words as people list them."""
    found = list(pd.unique(values))
    words = {w: k for k, w in enumerate((*ENDS, "unit", "relaxed", "adaptive"))}
    if any(isinstance(v, str) for v in found):
        return sorted(found, key=lambda v: (words.get(v, len(words)), str(v)))
    counts = max(found) > 1  # a share of rows among numbers of rows comes last
    return sorted(found, key=lambda v: (counts and v < 1, v))


def _least_squares(
    X: np.ndarray, y: np.ndarray, runs: pd.DataFrame
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fitted values, coefficients, and their covariances with tables as clusters.

    Runs of one table are not independent of each other, so that errors come from what the tables'
    residuals add up to.
    """
    solution, *_ = np.linalg.lstsq(X, y, rcond=None)
    fitted = X @ solution
    inverse = np.linalg.pinv(X.T @ X)
    tables = runs["dataset"].unique()
    scores = np.stack([X[m].T @ (y - fitted)[m] for t in tables for m in [runs["dataset"] == t]])
    k = len(tables)
    spread = inverse @ (scores.T @ scores) @ inverse * (k / max(k - 1, 1))
    return fitted, solution, spread


# --- the estimators' defaults --------------------------------------------------------------------

OPTIONS = ("eta", "n_trees", "max_depth", "n_iter_no_change")
NO_HARM = 0.005  # of a cell's mean loss: what defaults may cost where nothing is to be gained
AS_GOOD = 0.0025  # of the mean change over cells


def candidates(table: pd.DataFrame) -> pd.DataFrame:
    """The defaults that were tried: ``mean`` change of the loss over cells and the ``worst``."""
    cell = ["dataset", "situation"]
    losses = {
        rule: table[table["rule"] == rule].groupby([*OPTIONS, *cell])["loss"].mean()
        for rule in (START, OWN)
    }
    change = losses[OWN] / losses[START] - 1
    found = change.groupby(list(OPTIONS)).agg(["mean", "max"])
    return found.rename(columns={"max": "worst"}).reset_index()


def chosen(tried: pd.DataFrame) -> dict[str, float]:
    """The defaults by rule.

    Of those that cost no cell more than `NO_HARM` and are as good on average as the best of these
    but for `AS_GOOD`: the deepest, which large tables may need, then the least patient, then the
    best.
    """
    safe = tried[tried["worst"] <= NO_HARM]
    safe = tried if safe.empty else safe
    good = safe[safe["mean"] <= safe["mean"].min() + AS_GOOD]
    best = good.sort_values(
        ["max_depth", "n_iter_no_change", "mean"], ascending=[False, True, True]
    ).iloc[0]
    return {name: float(best[name]) for name in OPTIONS}
