"""Parts of rows to fit to and parts to look at."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    check_cv,
)

from pipeline.boosting.arrays import Ints
from pipeline.boosting.rows import Rows

Parts = list[tuple[Ints, Ints]]


def folds(rows: Rows, cv: Any, is_classifier: bool, seed: int) -> Parts:
    """Of a number of folds or a splitter; none if there are too few rows for two folds.

    Folds of a number are drawn at random, keep groups together where there are any, and have
    classes in equal shares. There are fewer of them where there are fewer rows.
    """
    if not isinstance(cv, Integral):
        splitter = check_cv(cv, rows.labels, classifier=is_classifier)
        return list(splitter.split(rows.X, rows.labels, rows.groups))
    n_folds = min(int(cv), _fewest(rows, is_classifier))
    if n_folds < 2:
        return []
    alone = StratifiedKFold if is_classifier else KFold
    kind = alone if rows.groups is None else GroupKFold
    splitter = kind(n_folds, shuffle=True, random_state=seed)
    return list(splitter.split(rows.X, rows.labels, rows.groups))


def one_part(rows: Rows, fraction: float, is_classifier: bool, seed: int) -> Parts:
    """A share of the rows to look at; none if there are too few."""
    if _fewest(rows, is_classifier) < 2:
        return []
    alone = StratifiedShuffleSplit if is_classifier else ShuffleSplit
    kind = alone if rows.groups is None else GroupShuffleSplit
    splitter = kind(1, test_size=fraction, random_state=seed)
    return list(splitter.split(rows.X, rows.labels, rows.groups))


def _fewest(rows: Rows, is_classifier: bool) -> int:
    """How many folds there can be at most."""
    if rows.groups is not None:
        return len(np.unique(rows.groups))
    if is_classifier:
        return int(np.unique(rows.y, return_counts=True)[1].min())
    return len(rows) // 2
