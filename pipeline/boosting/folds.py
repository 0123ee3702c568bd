"""Splits of rows into some to fit to and others to validate on."""

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
from pipeline.boosting.rows import TrainingRows

Splits = list[tuple[Ints, Ints]]


def folds(rows: TrainingRows, cv: Any, is_classifier: bool, seed: int) -> Splits:
    """Return the splits of a number of folds or of a splitter; none if two folds need more rows.

    A number of folds is drawn at random, with groups kept together if there are any, and classes in
    equal shares. There are fewer folds if there are fewer rows.
    """
    if not isinstance(cv, Integral):
        splitter = check_cv(cv, rows.labels, classifier=is_classifier)
        return list(splitter.split(rows.X, rows.labels, rows.groups))
    n_folds = min(int(cv), _most_folds(rows, is_classifier))
    if n_folds < 2:
        return []
    ungrouped = StratifiedKFold if is_classifier else KFold
    kind = ungrouped if rows.groups is None else GroupKFold
    splitter = kind(n_folds, shuffle=True, random_state=seed)
    return list(splitter.split(rows.X, rows.labels, rows.groups))


def single_split(rows: TrainingRows, fraction: float, is_classifier: bool, seed: int) -> Splits:
    """Return one split that holds out a fraction of the rows; none if there are too few rows."""
    if _most_folds(rows, is_classifier) < 2:
        return []
    ungrouped = StratifiedShuffleSplit if is_classifier else ShuffleSplit
    kind = ungrouped if rows.groups is None else GroupShuffleSplit
    splitter = kind(1, test_size=fraction, random_state=seed)
    return list(splitter.split(rows.X, rows.labels, rows.groups))


def _most_folds(rows: TrainingRows, is_classifier: bool) -> int:
    """Return the largest possible number of folds."""
    if rows.groups is not None:
        return len(np.unique(rows.groups))
    if is_classifier:
        return int(np.unique(rows.y, return_counts=True)[1].min())
    return len(rows) // 2
