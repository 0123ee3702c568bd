"""Where is a model wrong? Segments of rows, found on one half and tested on the other.

A segment is a conjunction of at most three conditions on columns or on the prediction itself, such
as "age ≤ 32 and region = North". The search is greedy with a beam: among all conditions, the
segments with the largest t² = (Σ r)² / Σ r² are extended by a further condition, which has to be
worth its price; the best is kept, its mean residual is subtracted from its rows, and the search
goes on for the next one.

What was searched for looks worse than it is. So the rows are cut into two halves; segments found
on one are measured on the other alone (bias, interval, p-value), and the other way round, and all
of it again with another cut. The rank of a segment in its search tells how promising it is, so the
chance of a false alarm, 5 % in all, is shared out by 1 / rank (weighted Bonferroni over all
tests, valid because the rank does not depend on the rows that test). The chance that any segment of
a calibrated model has a p-value below 5 % is at most 5 % if the tests of `bias_tests` are exact,
which they are for independent outcomes 0 and 1 with equal weights. For other outcomes no test of a
mean has a size that holds for every law; with 300 and 2,000 rows of independent Gaussian, t₂,
exponential, lognormal (σ up to 1.5) and Poisson (mean 0.05) residuals, Pareto weights and clusters
of ten it was 0 to 5 % (`tests/boosting/test_bias_tests.py`; `make simulations`). The 95 % intervals
are for each segment on its own. Of segments that are nearly the same the first is shown, with its
own numbers and the smallest p-value among them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numba import njit
from numpy.typing import NDArray

from .arrays import Flags, Floats, Ints
from .bias_tests import Moments, bias_test
from .caching import ENTRY
from .frames import Column, Levels, Numbers
from .rows import PredictedRows

COLUMNS = ["rule", "rows", "prediction", "outcome", "bias", "low", "high", "p_value"]
PREDICTION = "prediction"

PRICES = (0.0, 5.0, 14.0)  # of one, two and three conditions, in units of t²
BEAM = 10
CUTS = 2  # how often the rows are cut into halves
MAX_BINS = 24  # of a column of numbers
MAX_CODES = 255
MAX_SEARCHED = 50_000  # rows; more would find the same segments, but take longer
PRIOR_ROWS = 20.0  # rows added with the mean square, so that a few equal residuals prove nothing
SAME = 0.5  # segments that share more than this of their rows count as the same


@dataclass(frozen=True)
class Binned:
    """A column cut into bins, and how ranges of bins are described."""

    name: str
    codes: NDArray[np.uint8]  # (n,) the bin of each row
    n_bins: int
    # Of a column of numbers, the upper ends of all bins but the last; else None
    edges: Floats | None = None
    levels: tuple[str, ...] | None = None  # of a column of categories, their names; else None
    missing: int = -1  # the bin of missing numbers, or −1

    def condition(self, first: int, last: int) -> str:
        """Return, in words, that the bin lies from ``first`` to ``last``."""
        if self.levels is not None:
            return f"{self.name} = {self.levels[first]}"
        if first == self.missing:
            return f"{self.name} is missing"
        assert self.edges is not None
        top = len(self.edges)
        if first == 0:
            return f"{self.name} ≤ {self.edges[last]:.4g}"
        if last == top:
            return f"{self.name} > {self.edges[first - 1]:.4g}"
        return f"{self.name} in ({self.edges[first - 1]:.4g}, {self.edges[last]:.4g}]"


@dataclass(frozen=True)
class Segment:
    """Conditions by column: the first and the last bin; ``score`` is t² where it was found."""

    conditions: dict[int, tuple[int, int]] = field(default_factory=dict)
    score: float = 0.0

    def rows(self, codes: NDArray[np.uint8]) -> Flags:
        """Return which rows of ``codes`` (n, d) belong to it."""
        inside = np.ones(len(codes), np.bool_)
        for j, (first, last) in self.conditions.items():
            inside &= (codes[:, j] >= first) & (codes[:, j] <= last)
        return inside

    def rule(self, columns: Sequence[Binned]) -> str:
        """Return the conditions in words; that on the prediction comes last."""
        conditions = sorted(self.conditions.items())
        return " and ".join(columns[j].condition(*bins) for j, bins in conditions)


def bin_columns(columns: Sequence[Column], prediction: Floats) -> list[Binned]:
    """Cut all columns and the prediction into bins; leave out columns of one bin."""
    binned = []
    for column in (*columns, Numbers(PREDICTION, prediction)):
        cut = _bin_numbers(column) if isinstance(column, Numbers) else _bin_levels(column)
        if cut.n_bins > 1:
            binned.append(cut)
    return binned


def find_segments(
    columns: Sequence[Binned],
    rows: PredictedRows,
    n_segments: int,
    min_rows: int,
    seed: int,
    cuts: int = CUTS,
) -> pd.DataFrame:
    """Return the worst segments, each found on one half of the rows and tested on the other.

    min_rows : of a segment, on the half that tests it.
    """
    if not columns:
        return pd.DataFrame(columns=COLUMNS)
    codes = np.column_stack([c.codes for c in columns])
    tested = list(_tests(columns, codes, rows, -(-n_segments // 2), min_rows, seed, cuts))
    if not tested:
        return pd.DataFrame(columns=COLUMNS)
    kept = _distinct(tested, codes[:MAX_SEARCHED], n_segments)
    return _ranked(pd.DataFrame(kept, columns=COLUMNS))


def _tests(
    columns: Sequence[Binned],
    codes: NDArray[np.uint8],
    rows: PredictedRows,
    n_segments: int,
    min_rows: int,
    seed: int,
    cuts: int,
) -> Iterator[tuple[int, Segment, dict[str, Any]]]:
    """Yield the rank, the segment and its line of the table; p-values are adjusted."""
    rng = np.random.default_rng(seed)
    n_tests = np.sum(1.0 / np.arange(1, n_segments + 1)) * 2 * cuts  # weighted by 1 / rank
    for _ in range(cuts):
        halves = _halves(rows, rng)
        for here, there in (halves, halves[::-1]):
            searched = here[:MAX_SEARCHED]
            least = max(min_rows * len(searched) // max(len(there), 1), 2)
            found = _search(columns, codes[searched], rows.residual[searched], n_segments, least)
            held_out, moments = codes[there], Moments.of(rows.take(there))
            for rank, segment in enumerate(found, start=1):
                inside = there[segment.rows(held_out)]
                if len(inside) >= min_rows:
                    line = measure(segment.rule(columns), rows, inside, moments)
                    line["p_value"] = min(line["p_value"] * n_tests * rank, 1.0)
                    yield rank, segment, line


def _halves(rows: PredictedRows, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return the rows in two random halves; a cluster lies in one of them."""
    if rows.clusters is None:
        order = rng.permutation(len(rows))
        return order[: len(order) // 2], order[len(order) // 2 :]
    in_first = np.zeros(int(rows.clusters.max()) + 1, np.bool_)
    some = rng.permutation(len(in_first))[: len(in_first) // 2]
    in_first[some] = True
    first = in_first[rows.clusters]
    return rng.permutation(np.flatnonzero(first)), rng.permutation(np.flatnonzero(~first))


def measure(rule: str, rows: PredictedRows, inside: Ints, moments: Moments) -> dict[str, Any]:
    """Return a line of the table for the rows ``inside``; the p-value is not adjusted."""
    some = rows.take(inside)
    outcome, prediction = some.mean(some.y), some.mean(some.f)
    test = bias_test(some, moments)
    bias = outcome - prediction
    low, high = min(test.low, bias), max(test.high, bias)  # they may meet, but for rounding
    values = [rule, len(inside), prediction, outcome, bias, low, high, test.p_value]
    return dict(zip(COLUMNS, values, strict=True))


def holm(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with Holm's adjusted p-values, ranked."""
    p = table["p_value"].to_numpy(np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return _ranked(table.assign(p_value=adjusted))


def _ranked(table: pd.DataFrame) -> pd.DataFrame:
    """Sort by p-value and, where these are equal, by bias relative to the interval's width."""
    width = (table["high"] - table["low"]).clip(lower=1e-300)
    order = np.lexsort([-(table["bias"].abs() / width), table["p_value"]])
    return table.iloc[order].reset_index(drop=True)


# --- bins ----------------------------------------------------------------------------------------


def _bin_numbers(column: Numbers) -> Binned:
    values = column.cells
    missing = np.isnan(values)
    present = values[~missing]
    distinct = np.unique(present)
    if len(distinct) == 2 and not missing.any():  # a flag: "= 1" is clearer than "> 0"
        levels = tuple(f"{v:.4g}" for v in distinct)
        codes = (values == distinct[1]).astype(np.uint8)
        return Binned(column.name, codes, 2, levels=levels)
    if len(distinct) > MAX_BINS:
        distinct = np.quantile(present, np.linspace(0, 1, MAX_BINS + 1)[1:-1], method="lower")
        edges = np.unique([float(f"{v:.4g}") for v in distinct])
        edges = edges[edges < present.max()]
    else:
        edges = distinct[:-1]
    codes = np.searchsorted(edges, values).astype(np.uint8)  # an edge belongs to the lower bin
    n_bins = len(edges) + 1
    if missing.any():
        codes[missing] = n_bins
        return Binned(column.name, codes, n_bins + 1, edges, missing=n_bins)
    return Binned(column.name, codes, n_bins, edges)


def _bin_levels(column: Levels) -> Binned:
    """Return the codes as they are; of very many levels, the most frequent ones."""
    codes, levels = column.codes, column.levels
    if len(levels) > MAX_CODES:
        common = np.sort(np.argsort(-np.bincount(codes, minlength=len(levels)))[: MAX_CODES - 1])
        rank = np.full(len(levels), MAX_CODES - 1)
        rank[common] = np.arange(len(common))
        codes, levels = rank[codes], (*(levels[k] for k in common), "any other")
    return Binned(column.name, codes.astype(np.uint8), len(levels), levels=levels)


# --- search --------------------------------------------------------------------------------------


def _search(
    columns: Sequence[Binned],
    codes: NDArray[np.uint8],
    residual: Floats,
    n_segments: int,
    min_rows: int,
) -> Iterator[Segment]:
    """Yield segments of ``residual`` (n,), the best first; each is removed before the next."""
    left = residual.copy()
    for _ in range(n_segments):
        best = _best_segment(columns, codes, left, min_rows)
        if best is None:
            return
        inside = best.rows(codes)
        left[inside] -= left[inside].mean()
        yield best


def _best_segment(
    columns: Sequence[Binned], codes: NDArray[np.uint8], residual: Floats, min_rows: int
) -> Segment | None:
    if not residual.any():
        return None
    everything = np.arange(len(residual))
    prior = PRIOR_ROWS * float(np.square(residual).mean())
    beam: list[Segment] = [Segment()]
    best: Segment | None = None
    best_value = -np.inf
    for price in PRICES:
        found: dict[frozenset[tuple[int, tuple[int, int]]], Segment] = {}
        for parent in beam:
            rows = everything[parent.rows(codes)] if parent.conditions else everything
            for child in _children(parent, columns, codes, rows, residual, min_rows, prior):
                found[frozenset(child.conditions.items())] = child
        beam = sorted(found.values(), key=lambda s: -s.score)[:BEAM]
        if not beam:
            break
        if best is None or beam[0].score - price > best_value:
            best, best_value = beam[0], beam[0].score - price
    return best


def _children(
    parent: Segment,
    columns: Sequence[Binned],
    codes: NDArray[np.uint8],
    rows: Ints,
    residual: Floats,
    min_rows: int,
    prior: float,
) -> Iterator[Segment]:
    """Yield the best extension of a segment by each column."""
    sums = np.zeros((len(columns), MAX_CODES + 1, 3))
    _histograms(codes, rows, residual, sums)
    for j, column in enumerate(columns):
        ranges, sums_of = _ranges(column, sums[j, : column.n_bins], parent.conditions.get(j))
        if not ranges:
            continue
        n, s, q = sums_of.T
        score = np.where((n >= min_rows) & (n < len(rows)), np.square(s) / (q + prior), -1.0)
        k = int(score.argmax())
        if score[k] > parent.score:
            yield Segment(parent.conditions | {j: ranges[k]}, float(score[k]))


def _ranges(
    column: Binned, sums: Floats, within: tuple[int, int] | None
) -> tuple[list[tuple[int, int]], Floats]:
    """Return the ranges of bins that a condition may name, and their (rows, sum, squares)."""
    if column.levels is not None:
        if within is not None:
            return [], np.empty((0, 3))
        known = [k for k in range(column.n_bins) if column.levels[k] != "any other"]
        return [(k, k) for k in known], sums[known]
    assert column.edges is not None
    top = len(column.edges)
    first, last = within if within is not None else (0, top)
    if first == column.missing:
        return [], np.empty((0, 3))
    running = np.cumsum(sums[first : last + 1], axis=0)
    ranges = [(first, k) for k in range(first, last)] + [
        (k, last) for k in range(first + 1, last + 1)
    ]
    values = [running[:-1], running[-1] - running[:-1]]
    if within is None and column.missing >= 0:
        ranges.append((column.missing, column.missing))
        values.append(sums[column.missing : column.missing + 1])
    return ranges, np.concatenate(values)


@njit(**ENTRY)
def _histograms(codes, rows, residual, sums):
    """Add up rows, residuals and squared residuals in every bin of every column."""
    for i in rows:
        r = residual[i]
        for j in range(codes.shape[1]):
            cell = sums[j, codes[i, j]]
            cell[0] += 1.0
            cell[1] += r
            cell[2] += r * r


def _distinct(
    tested: Sequence[tuple[int, Segment, dict[str, Any]]], codes: NDArray[np.uint8], most: int
) -> list[dict[str, Any]]:
    """Return the lines of the first ``most`` segments, without those that are nearly the same.

    Of nearly equal segments the one of the best rank stays (of equal ranks, the simpler one), with
    the smallest of their p-values. Which ones stay does not depend on the tests, so their intervals
    remain valid.
    """
    kept: list[dict[str, Any]] = []
    masks: list[Flags] = []
    for _, segment, line in sorted(tested, key=lambda t: (t[0], len(t[1].conditions))):
        mask = segment.rows(codes)
        same = [k for k, m in enumerate(masks) if (mask & m).sum() > SAME * (mask | m).sum()]
        for k in same:
            kept[k]["p_value"] = min(kept[k]["p_value"], line["p_value"])
        if not same and len(kept) < most:
            kept.append(line)
            masks.append(mask)
    return kept
