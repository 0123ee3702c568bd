"""Splits of rows into some to fit to and others to validate on."""

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, check_cv

from .arrays import Ints
from .rows import TrainingRows


def fold_numbers(
    rows: TrainingRows, cv: Any, is_classifier: bool, seed: int, name: str
) -> Ints | None:
    """Return the fold that each row is held out in, (n,); None if there are too few rows.

    A number of folds is drawn at random, with groups kept together if there are any, and classes in
    equal shares; there are fewer folds if there are fewer rows.
    name : of the parameter ``cv``, for a splitter that does not hold out every row once.
    """
    if isinstance(cv, Integral):
        n_folds = min(int(cv), _most_folds(rows, is_classifier))
        if n_folds < 2:
            return None
        ungrouped = StratifiedKFold if is_classifier else KFold
        kind = ungrouped if rows.groups is None else GroupKFold
        splitter = kind(n_folds, shuffle=True, random_state=seed)
    else:
        splitter = check_cv(cv, rows.labels, classifier=is_classifier)
    splits = list(splitter.split(rows.X, rows.labels, rows.groups))
    if not splits:
        return None
    times, fold = np.zeros(len(rows), int), np.zeros(len(rows), int)
    for k, (_, test) in enumerate(splits):
        times[test] += 1
        fold[test] = k
    if not (times == 1).all():
        raise ValueError(
            f"{name}={cv!r}: every row must be held out once, as by KFold; "
            f"{(times != 1).sum()} of {len(rows)} are not"
        )
    if rows.weights is not None:
        weights = np.bincount(fold, rows.weights)
        if weights.max() == weights.sum():  # all of it in one fold: none is left to fit to
            return None
    return fold


def _most_folds(rows: TrainingRows, is_classifier: bool) -> int:
    if rows.groups is not None:
        return len(np.unique(rows.groups))
    if is_classifier:
        return int(np.unique(rows.y, return_counts=True)[1].min())
    return len(rows) // 2
