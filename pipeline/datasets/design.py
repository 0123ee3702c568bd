"""A canonical table becomes a design matrix, a target, and train/test splits.

One-hot levels are the table's vocabulary and come from all rows; whatever is estimated
(imputation means, the target's mean and standard deviation) comes from the training rows alone.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from pipeline.boosting.arrays import Floats, Ints
from pipeline.boosting.encoding import Encoding
from pipeline.boosting.frames import MISSING, columns_of, levels_of
from pipeline.config.schema import Dataset
from pipeline.datasets.canonical import MISSING_LEVEL, is_number
from pipeline.datasets.sources import RawTable
from pipeline.errors import DataError

log = logging.getLogger("pipeline")

FEWEST_ROWS = 2  # to train on
MANY_LEVELS, MOSTLY_DIFFERENT = 24, 0.5  # words that tell rows apart rather than kinds of rows
LARGEST = float(np.finfo(np.float32).max)  # trees compare in single precision


@dataclass(frozen=True)
class Design:
    """All rows of a dataset, before a split; missing numbers are still NaN."""

    X: Floats  # (n, d) design matrix
    y: Floats  # (n,) target in raw units
    feature_names: tuple[str, ...]  # d names
    covariates: tuple[str, ...]
    data_sha256: str
    encoding: Encoding  # how covariates became columns of X
    weights: Floats | None = None  # (n,) of the rows, if they have any

    def features_of(self, covariate: str) -> Ints:
        """The columns of X that a covariate became: itself, or the indicators of its levels."""
        own = [f"{name}=".startswith(f"{covariate}=") for name in self.feature_names]
        return np.flatnonzero(own)


@dataclass(frozen=True)
class NativeRows:
    """X_train and X_test with a column per covariate: missing cells are NaN, levels are numbers."""

    train: Floats
    test: Floats
    categorical: tuple[int, ...]  # the columns of levels


@dataclass(frozen=True)
class Split:
    """A train/test split, imputed and scaled: (n_train, d), (n_test, d), (n_train,), (n_test,)."""

    X_train: Floats
    X_test: Floats
    y_train: Floats
    y_test: Floats
    # X as it is for trees that know missing cells and categories, where it was asked for
    native: NativeRows | None = None
    w_train: Floats | None = None  # weights of the rows, if they have any
    w_test: Floats | None = None


def preprocess(table: RawTable, dataset: Dataset) -> Design:
    """The design matrix, target and feature names of a raw table."""
    frame = table.frame
    weight = () if dataset.weight is None else (dataset.weight,)
    left_out = (*table.target, *dataset.drop, *weight)
    _require_columns(frame, left_out, dataset)
    y = _target(frame, table.target, dataset.positive)
    covariates = [c for c in frame.columns if c not in left_out]
    if not covariates:
        raise DataError(f"{dataset.label}: no covariate is left besides the target")
    X, encoding = encode(frame, covariates, dataset)
    weights = _weights(frame[weight[0]]) if weight else None
    return Design(X, y, encoding.names, tuple(covariates), table.sha256, encoding, weights)


def encode(
    frame: pd.DataFrame, columns: Sequence[str], dataset: Dataset
) -> tuple[Floats, Encoding]:
    """Some columns of a canonical table as a matrix: numbers as they are, levels one-hot."""
    for name in columns:
        _check_column(frame[name], dataset)
    table = columns_of(frame[list(columns)])
    encoding = Encoding.learn(table, fill=False, drop_first=dataset.drop_first)
    X, names = encoding.encode(table), encoding.names
    if dataset.missing == "reject" and np.isnan(X).any():
        bad = names[int(np.isnan(X).any(axis=0).argmax())]
        raise DataError(
            f"{dataset.label}: column {bad!r} has missing cells and dataset.missing=reject"
        )
    return X, encoding


def split(design: Design, dataset: Dataset, seed: int, *, native: bool = False) -> Split:
    """The seed's random split (no stratification), imputed and scaled by its training rows."""
    n = len(design.y)
    n_test = math.ceil(n * dataset.test_size)
    if n - n_test < FEWEST_ROWS:
        raise DataError(
            f"{dataset.label}: dataset.test_size={dataset.test_size:g} leaves {n - n_test} of {n} "
            f"rows to train on; at least {FEWEST_ROWS} are needed"
        )
    return split_at(design, dataset, *split_rows(n, dataset, seed), native=native)


def split_at(
    design: Design, dataset: Dataset, train: Ints, test: Ints, *, native: bool = False
) -> Split:
    """The split into given rows, imputed and scaled by the training rows."""
    X_train, X_test = design.X[train], design.X[test]
    y_train, y_test = design.y[train], design.y[test]
    compact = None
    if native:
        (rows_train, levels), (rows_test, _) = map(design.encoding.compacted, (X_train, X_test))
        compact = NativeRows(rows_train, rows_test, levels)
    means = _column_means(X_train)
    X_train, X_test = (np.where(np.isnan(X), means, X) for X in (X_train, X_test))
    if dataset.target_scaling == "standardise":
        centre, scale = y_train.mean(), y_train.std() or 1.0
        y_train, y_test = (y_train - centre) / scale, (y_test - centre) / scale
    weights = (None, None) if (w := design.weights) is None else (w[train], w[test])
    return Split(X_train, X_test, y_train, y_test, compact, *weights)


def split_rows(n: int, dataset: Dataset, seed: int) -> tuple[Ints, Ints]:
    """The rows of the seed's training and test side: train_test_split's, literally.

    With test_size 0 both sides are all rows.
    """
    if dataset.test_size == 0:
        return np.arange(n), np.arange(n)
    train, test = train_test_split(np.arange(n), test_size=dataset.test_size, random_state=seed)
    return train, test


def _target(frame: pd.DataFrame, columns: tuple[str, ...], positive: str | None) -> Floats:
    if positive is not None:
        return _flags(frame[columns[0]], positive)
    for name in columns:
        if not is_number(frame[name]):
            raise DataError(f"dataset.target={name}: must be a numeric column; it holds text")
    y, said = frame[list(columns)].to_numpy(np.float64).sum(axis=1), "+".join(columns)
    bad = int((~np.isfinite(y)).sum())
    if bad:
        raise DataError(
            f"dataset.target={said}: {bad} of {len(y)} rows have a missing or infinite target; "
            "dataset.missing_target=drop leaves out those without one"
        )
    _check_scale(y, said)
    return y


def _flags(column: pd.Series[Any], positive: str) -> Floats:
    """1 where a column holds a value, as it is written, and 0 elsewhere."""
    found = levels_of(column)
    levels, codes = found.levels, found.codes
    if {MISSING, MISSING_LEVEL} & {*levels}:
        raise DataError(
            f"dataset.target={column.name}: some rows have no target; dataset.missing_target=drop "
            "leaves them out"
        )
    if positive not in levels or len(levels) < 2:
        have = ", ".join(levels[:12]) + (", …" if len(levels) > 12 else "")
        raise DataError(
            f"dataset.positive={positive}: must be one of several values of {column.name}, which "
            f"has {have}"
        )
    return (codes == levels.index(positive)).astype(np.float64)


def _weights(column: pd.Series[Any]) -> Floats:
    weights = column.to_numpy(np.float64) if is_number(column) else np.full(1, np.nan)
    if not (np.isfinite(weights).all() and weights.min() >= 0 and weights.max() > 0):
        raise DataError(
            f"dataset.weight={column.name}: must hold numbers from 0, not all of them 0"
        )
    return weights


def _check_scale(y: Floats, name: str) -> None:
    """Squares of the target must neither overflow nor vanish."""
    with np.errstate(over="ignore", under="ignore"):
        largest, spread = np.abs(y).max(), float(np.square(y - y.mean()).sum())
        fits = np.isfinite(spread) and np.isfinite(np.square(y).sum())
    if not fits or (spread == 0 and np.ptp(y) > 0):
        raise DataError(
            f"dataset.target={name}: values of size {largest:.1g} are too "
            f"{'small' if fits else 'large'} to be squared; use other units"
        )


def _check_column(column: pd.Series[Any], dataset: Dataset) -> None:
    if is_number(column):
        values = np.abs(column.to_numpy(np.float64))
        if (values > LARGEST).any():
            what = "infinite values" if np.isinf(values).any() else f"values beyond {LARGEST:.1g}"
            raise DataError(f"{dataset.label}: column {column.name!r} holds {what}")
        return
    levels = column.nunique()
    if levels > dataset.max_levels:
        raise DataError(
            f"{dataset.label}: column {column.name!r} has {levels} levels, more than "
            f"dataset.max_levels={dataset.max_levels}; leave it out with "
            f"dataset.drop=[{column.name}] or raise the limit"
        )
    if levels >= MANY_LEVELS and levels > len(column) * MOSTLY_DIFFERENT:
        log.warning(
            "%s: column %r becomes %d columns, because its %d cells hold so many different words; "
            "a name or a number of each row is left out with 'dataset.drop=[%s]'",
            dataset.label, column.name, levels - dataset.drop_first, len(column), column.name,
        )  # fmt: skip


def _column_means(X: Floats) -> Floats:
    """Means of the present cells of each column; 0 for a column with none."""
    present = ~np.isnan(X)
    return np.where(present, X, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)


def _require_columns(frame: pd.DataFrame, names: tuple[str, ...], dataset: Dataset) -> None:
    for name in names:
        if name not in frame.columns:
            n = len(frame.columns)
            have = ", ".join(map(str, frame.columns[:12])) + (f", … ({n} in all)" if n > 12 else "")
            key = "dataset.drop" if name in dataset.drop else "dataset.target"
            key = "dataset.weight" if name == dataset.weight else key
            raise DataError(f"{key}={name}: {dataset.label} has no such column; it has {have}")
