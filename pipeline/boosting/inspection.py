"""An audit of predictions: how wrong they are, how certain that is, and where."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from .arrays import Floats
from .audit import Assessment, Auditor
from .audit.auditor import cluster_codes, is_binary
from .bias_tests import Moments
from .descriptions import described
from .encoding import check_levels, design_of
from .frames import (
    Column,
    Levels,
    as_table,
    columns_of,
    numbers_of,
    outcomes_of,
    predictions_of,
    word,
)
from .parameters import seed_of
from .rows import PredictedRows
from .segments import COLUMNS, bin_columns, find_segments, holm, measure

MANY_FLIPS, FEW_FLIPS = 999, 99
MANY_UP_TO = 20_000  # rows


@described
@dataclass(frozen=True)
class AuditResult(Assessment):
    """The result of an audit of predictions.

    Parameters
    ----------
    {assessment}
    segments : DataFrame
        The worst segments found, ranked: rule, rows, prediction, outcome, bias, low, high,
        p_value. All numbers come from a half of the rows that the segment was not searched on;
        95 % intervals are of each on its own. The p-value is adjusted for all segments tested and
        is the smallest of up to four tests of (nearly) the same segment on other halves, so it may
        differ from what the interval of the one half shown suggests.
    groups : DataFrame
        The same for the named groups and their intersections, on all rows; p-values are adjusted
        for all groups tested (Holm).
    classes : mapping of label to AuditResult
        Of more than two classes, the audit of each one's probability; the other fields then tell
        of the top label: how often the most probable class is right, and its probability.

    Notes
    -----
    The overall test and the segments can differ: a small bias everywhere shows in the one before
    it shows in any segment, a large bias of few rows in a segment before it shows overall. Looking
    at both is looking twice: to raise an alarm if either p-value is small, halve the level.
    """

    segments: pd.DataFrame
    groups: pd.DataFrame
    classes: Mapping[Any, AuditResult] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return a summary for a terminal."""
        lines = [
            f"{self.n} rows: multicalibration error {self.mce:.4g}; a perfect model would show "
            f"{self.floor:.4g}",
            f"without that floor {self.debiased:.4g} (the root of the difference of squares); "
            f"p-value {self.p_value:.3g} if there were no miscalibration (one test of all rows)",
        ]
        if self.classes:
            lines.insert(0, "The most probable class (top label):")
        adjusted = "p-values adjusted for all of them, 95 % intervals of each on its own"
        halves = f"found on one half of the rows, measured on another; {adjusted}"
        for title, table in (
            (f"segments ({halves}):", self.segments),
            (f"groups (all rows; {adjusted}):", self.groups),
        ):
            if len(table):
                lines += ["", title, shown(table).to_string(index=False)]
        if self.classes:
            table = self.class_table().map("{:.3g}".format)
            lines += ["", "each class (p-values of one test each):", table.to_string()]
        return "\n".join(lines)

    def class_table(self) -> pd.DataFrame:
        """Return the audits of all classes as a table.

        Returns
        -------
        DataFrame
            A row for each class: mce, floor, debiased, p_value.
        """
        names = ["mce", "floor", "debiased", "p_value"]
        return pd.DataFrame(
            {label: [getattr(one, name) for name in names] for label, one in self.classes.items()},
            index=names,
        ).T


@described
def audit_predictions(
    X: Any,
    y: Any,
    prediction: Any,
    sample_weight: Any = None,
    groups: Sequence[str] | Mapping[str, Any] | pd.DataFrame | None = None,
    random_state: int | np.random.RandomState | None = 0,
    *,
    n_segments: int = 20,
    min_rows: int | None = None,
    n_trees: int = 100,
    depth: int = 3,
    clusters: Any = None,
    classes: Any = None,
) -> AuditResult:
    """Audit predictions on rows that the model was not fitted to.

    Segments are found on one half of the rows and tested on the other, and the other way round; see
    the module ``segments``. Rows with a sample weight of 0 are left out.

    Parameters
    ----------
    X : table or array of shape (n, d)
        Rows: numbers, flags, words, missing cells.
    y : array of shape (n,)
        Their outcomes, or labels of classes; of two, the second in order counts as 1.
    prediction : array of shape (n,) or (n, classes)
        Expected values, or probabilities of 1; or the probabilities of all classes, in their order.
    sample_weight : array of shape (n,), optional
        The weights of the rows.
    groups : sequence of str, mapping or DataFrame, optional
        Names of columns of X, or named groups of flags or categories (n,). Levels and pairs of
        levels with enough rows are tested.
    random_state : int, RandomState or None, default=0
        The seed of the trees, of the halves and of the tests.
    n_segments : int, default=20
        The largest number of segments.
    min_rows : int, optional
        The smallest number of rows of a segment; by default 1 % of them, and at least 30.
    {audit_trees}
    clusters : array of shape (n,), optional
        Labels, if rows depend on each other: those with the same label may (visits of one patient,
        weeks of one shop), those with different labels must not. A cluster counts as one row in
        every test and lies in one half. Without it all rows are taken to be independent; p-values
        of rows that are not are too small.
    classes : array of shape (classes,), optional
        The labels of the columns of ``prediction``, if there are more than two; by default those
        that y has, sorted.

    Returns
    -------
    AuditResult
        The error, how certain it is, and where it lies. Of more than two classes, of the top label
        and, as its ``classes``, of each class.

    Examples
    --------
    >>> import numpy as np
    >>> from mcgb import audit_predictions
    >>> x = np.random.default_rng(0).uniform(size=1000)
    >>> result = audit_predictions(x[:, None], (x > 0.5) * 1.0, np.full(1000, 0.5))
    >>> result.p_value < 0.01
    True
    >>> result.segments.rule[0].startswith("x0")
    True
    """
    options: dict[str, Any] = {
        "sample_weight": sample_weight, "groups": groups, "random_state": random_state,
        "n_segments": n_segments, "min_rows": min_rows, "n_trees": n_trees, "depth": depth,
        "clusters": clusters,
    }  # fmt: skip
    shape = np.shape(prediction)
    if len(shape) == 2 and shape[1] > 2:
        return _audit_classes(X, y, prediction, classes, options)
    columns = columns_of(X)
    check_levels(columns)
    outcome, predicted = outcomes_of(y), predictions_of(prediction)
    n = len(outcome)
    weight = np.ones(n) if sample_weight is None else numbers_of(sample_weight, "sample_weight")
    _check_lengths(columns, n, prediction=predicted, sample_weight=weight)
    named = groups_of(groups, columns, n)
    if (weight < 0).any() or (weight > 0).sum() < 2:
        raise ValueError("sample_weight: must not be negative, and positive for two rows at least")
    if set(np.unique(outcome)) <= {0.0, 1.0} and not is_binary(outcome, predicted):
        warnings.warn(
            "prediction: lies outside of [0, 1] while y holds 0 and 1; probabilities are expected, "
            "not logits or percent",
            stacklevel=2,
        )
    rows = PredictedRows(
        y=outcome,
        f=predicted,
        weights=weight,
        binary=is_binary(outcome, predicted),
        clusters=None if clusters is None else cluster_codes(clusters, n),
    )
    if not weight.all():
        some = np.flatnonzero(weight)
        columns, named = ([_taken(c, some) for c in table] for table in (columns, named))
        rows, n = rows.take(some), len(some)
        if rows.clusters is not None:  # some may have no rows left
            rows = replace(rows, clusters=cluster_codes(rows.clusters, n))
    seed = seed_of(random_state)
    auditor = Auditor(design_of(columns), n_trees=n_trees, depth=depth, seed=seed)
    assessment = auditor.assess(
        y=rows.y,
        prediction=rows.f,
        sample_weight=rows.weights,
        clusters=rows.clusters,
        n_flips=MANY_FLIPS if n <= MANY_UP_TO else FEW_FLIPS,
    )
    least = max(n // 100, 30) if min_rows is None else min_rows
    segments = find_segments(
        bin_columns(columns, rows.f), rows, n_segments, max(least // 2, 2), seed
    )
    tested = _test_groups(named, rows, least)
    return AuditResult(**vars(assessment), segments=segments, groups=tested)


def _audit_classes(
    X: Any, y: Any, prediction: Any, classes: Any, options: dict[str, Any]
) -> AuditResult:
    """Audit the top label and each class; prediction (n, classes)."""
    labels, proba = np.asarray(y), np.asarray(prediction, np.float64)
    known = np.unique(labels) if classes is None else np.asarray(classes)
    if known.shape != proba.shape[1:] or len(labels) != len(proba):
        raise ValueError(
            f"prediction: has shape {proba.shape}; y has {len(labels)} rows and {len(known)} "
            "classes (classes= names those of the columns)"
        )
    unknown = ~np.isin(labels, known)
    if unknown.any():
        raise ValueError(f"y: has the label {labels[unknown].tolist()[0]!r}, which classes has not")
    right = (labels == known[proba.argmax(axis=1)]).astype(np.float64)
    top = audit_predictions(X, right, proba.max(axis=1), **options)
    each = {
        label: audit_predictions(X, (labels == label).astype(np.float64), p, **options)
        for label, p in zip(known.tolist(), proba.T, strict=True)
    }
    return replace(top, classes=each)


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of segments with numbers rounded for display."""
    numbers = ["prediction", "outcome", "bias", "low", "high"]
    return table.assign(
        **{name: table[name].map(lambda v: f"{v:.4g}") for name in numbers},
        p_value=table["p_value"].map(lambda p: f"{p:.2g}" if p >= 1e-4 else "<0.0001"),
    )


def _test_groups(named: Sequence[Levels], rows: PredictedRows, min_rows: int) -> pd.DataFrame:
    """Test every level of every group, and every pair of levels of two groups."""
    alone = [
        (f"{g.name} = {level}", g.codes == k)
        for g in named
        for k, level in enumerate(g.levels)
        if len(g.levels) > 1
    ]
    if not named:
        return pd.DataFrame(columns=COLUMNS)
    pairs = []
    for a, b in combinations(named, 2):
        both, counts = np.unique(np.column_stack([a.codes, b.codes]), axis=0, return_counts=True)
        for i, j in both[counts >= min_rows]:  # there may be far too many others
            rule = f"{a.name} = {a.levels[i]} and {b.name} = {b.levels[j]}"
            pairs.append((rule, (a.codes == i) & (b.codes == j)))
    moments = Moments.of(rows)
    lines = [
        measure(rule, rows, np.flatnonzero(inside), moments)
        for rule, inside in [*alone, *pairs]
        if inside.sum() >= max(min_rows, 2)
    ]
    return holm(pd.DataFrame(lines, columns=COLUMNS))


def groups_of(groups: Any, columns: Sequence[Column], n: int) -> list[Levels]:
    """Return named groups (see `audit_predictions`) as columns of levels."""
    if groups is None:
        return []
    groups = as_table(groups)
    if isinstance(groups, pd.DataFrame | Mapping):
        listed = {str(name): np.asarray(groups[name]) for name in groups}
        for name, labels in listed.items():
            if labels.shape != (n,):
                raise ValueError(f"groups: {name!r} has shape {labels.shape}, not ({n},)")
        found = columns_of(pd.DataFrame(listed))
    else:
        by_name, names = {c.name: c for c in columns}, [c.name for c in columns]
        if not isinstance(groups, str | Sequence | np.ndarray):
            raise ValueError(f"groups={groups!r}: must be names of columns of X, or named groups")
        wanted = list(dict.fromkeys([groups] if isinstance(groups, str) else groups))
        unknown = [g for g in wanted if g not in by_name]
        if unknown:
            raise ValueError(f"groups={unknown}: not columns of X, which has {', '.join(by_name)}")
        twice = [g for g in wanted if names.count(g) > 1]
        if twice:
            raise ValueError(f"groups={twice}: X has several columns of that name")
        found = [by_name[g] for g in wanted]
    return [_as_levels(c) for c in found]


def _as_levels(column: Column) -> Levels:
    if isinstance(column, Levels):
        return column
    values, codes = np.unique(column.cells, return_inverse=True)
    if len(values) > 20:
        raise ValueError(
            f"groups: {column.name!r} has {len(values)} different numbers; cut it into ranges first"
        )
    return Levels(column.name, codes, tuple(word(v) for v in values))


def _taken(column: Any, rows: Any) -> Any:
    if isinstance(column, Levels):
        return Levels(column.name, column.codes[rows], column.levels)
    return type(column)(column.name, column.cells[rows])


def _check_lengths(columns: Sequence[Column], n: int, **others: Floats) -> None:
    first = columns[0]
    rows = len(first.codes if isinstance(first, Levels) else first.cells)
    if rows < 2:
        raise ValueError(f"X: has {rows} rows; an audit needs at least 2")
    for name, length in {"y": n, **{k: len(v) for k, v in others.items()}}.items():
        if length != rows:
            raise ValueError(f"{name}: has {length} rows instead of X's {rows}")
