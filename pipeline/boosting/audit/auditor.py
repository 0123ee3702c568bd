"""Random-tree audits of predictors on fixed rows; see `estimates` for what is estimated."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ..arrays import Flags, Floats, Ints
from ..descriptions import described
from ..encoding import design_of
from ..frames import as_table, columns_of, numbers_of, outcomes_of, predictions_of
from .estimates import Leaves, Reading, error_of, mean_square, signed_root
from .significance import FLIPS, Drawn, Sums, flipped_squares, p_value, standard_error
from .trees import MAX_DEPTH, Columns, Labels, add_squares, draw_trees, ordered_keys

_MASK = (1 << 64) - 1
_KEPT_BYTES = 2**25  # of labels that an auditor keeps from one predictor to the next


@described
@dataclass(frozen=True)
class Assessment:
    """A multicalibration error with its noise floor, and how certain it is.

    Parameters
    ----------
    {assessment}
    """

    n: int
    mce: float
    floor: float
    debiased_square: float
    standard_error: float
    p_value: float
    leaves: Leaves = field(repr=False)

    @property
    def debiased(self) -> float:
        """The root of the debiased square, with its sign."""
        return signed_root(self.debiased_square)


@described
class Auditor:
    """Random-tree audits of predictors on fixed rows.

    Any number of predictors may be audited on these rows; the trees are the same up to what the
    predictions themselves, which are one of the features, change. Arguments are named, because
    outcomes and predictions are easily confused.

    Parameters
    ----------
    X : table or array of shape (n, d)
        Rows: numbers, flags, words; missing cells are a value of their own.
    {audit_trees}
    seed : int, default=0
        What the trees are drawn from.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.arange(8.0)[:, None], np.array([0.0, 0, 0, 0, 1, 1, 1, 1])
    >>> Auditor(X).error(y=y, prediction=y)
    0.0
    """

    def __init__(self, X: Any, *, n_trees: int = 100, depth: int = 3, seed: int = 0) -> None:
        if not 1 <= depth <= MAX_DEPTH:
            raise ValueError(f"depth={depth}: must be from 1 to {MAX_DEPTH}")
        if n_trees < 1:
            raise ValueError(f"n_trees={n_trees}: must be at least 1")
        X = as_table(X)
        if not isinstance(X, np.ndarray):
            X = design_of(columns_of(X))
        if X.ndim != 2 or len(X) == 0:
            raise ValueError(f"X: must have rows and columns; its shape is {X.shape}")
        _require_finite(X, "X")
        self._keys = np.empty(X.shape[::-1], np.int32)
        for column, keys in zip(X.T, self._keys, strict=True):
            keys[:] = ordered_keys(column)
        self._low, self._high = self._keys.min(axis=1), self._keys.max(axis=1)
        self._n_trees, self._depth = n_trees, depth
        self._seed = int(seed) & _MASK
        # The trees that do not use predictions are the same for all predictors. After the first:
        # each row's leaf (n_trees, n), and which trees these are (n_trees,).
        self._known: tuple[Labels, Flags] | None = None

    @property
    def n(self) -> int:
        """The number of rows."""
        return self._keys.shape[1]

    def leaves(self, *, prediction: Floats, residual: Floats, squares: bool = False) -> Leaves:
        """Sum residuals in the leaves of the random trees.

        Parameters
        ----------
        prediction : array of shape (n,)
            What the trees are drawn for.
        residual : array of shape (n,)
            What is summed.
        squares : bool, default=False
            Whether to sum its squares, too.

        Returns
        -------
        Leaves
            The sums.
        """
        for name, values in (("prediction", prediction), ("residual", residual)):
            _require_rows(values, self.n, name)
        labels = self._empty_labels() if squares else None
        sums, counts = self._draw_trees(prediction, residual, labels)
        if labels is None:
            return Leaves(sums, counts, self.n, self._seed)
        of_squares = np.zeros_like(sums)
        add_squares(labels, residual, of_squares)
        return Leaves(sums, counts, self.n, self._seed, of_squares)

    def error(
        self,
        *,
        y: Floats,
        prediction: Floats,
        sample_weight: Floats | None = None,
        reading: Reading = "leaf_indicators",
    ) -> float:
        """Return the plug-in error of predictions.

        Parameters
        ----------
        {audited}
        reading : {"leaf_indicators", "random_leaf_values", "fitted_leaf_values"}
            What a tree's weak learners are.

        Returns
        -------
        float
            The root of the mean over the trees of the sum of squared mean residuals.
        """
        _require_rows(y, self.n, "y")
        if sample_weight is None:
            return error_of(self.leaves(prediction=prediction, residual=y - prediction), reading)
        if reading != "leaf_indicators":
            raise ValueError(f"reading={reading!r}: weights are for leaf_indicators alone")
        found = self.assess(y=y, prediction=prediction, sample_weight=sample_weight, n_flips=0)
        return found.mce

    def assess(
        self,
        *,
        y: Floats,
        prediction: Floats,
        sample_weight: Floats | None = None,
        clusters: Any = None,
        n_flips: int = FLIPS,
        symmetric: bool = False,
    ) -> Assessment:
        """Return error, floor, debiased square, standard error and p-value on held-out rows.

        Leaf indicators are the weak learners; ``.leaves`` has what the other readings need.

        Parameters
        ----------
        {audited}
        clusters : array of shape (n,), optional
            Rows with the same label may depend on each other (visits of one patient, days of one
            shop); rows with different labels must not. Without it all rows are taken to be
            independent: where they are not, p-value and standard error are too small.
        n_flips : int, default=99
            How many draws the p-value is made of; with 0 there is neither p-value nor standard
            error (NaN). Beyond half a million rows the p-value uses some of the trees only.
        symmetric : bool, default=False
            Make the p-value of random signs alone, which takes the residuals of a calibrated model
            to be symmetric.

        Returns
        -------
        Assessment
            The error, and how certain it is.
        """
        _require_rows(y, self.n, "y")
        _require_rows(prediction, self.n, "prediction")
        weight = np.ones(self.n) if sample_weight is None else _weights(sample_weight, self.n)
        codes = None if clusters is None else cluster_codes(clusters, self.n)
        residual = weight * (y - prediction)
        labels = self._empty_labels()
        sums, counts = self._draw_trees(prediction, residual, labels)
        found = Sums(labels, sums, residual, codes)
        own = found.own_squares()
        # In the letters of `estimates`:
        T, Q, W = mean_square(sums), float(own.sum()), float(weight.sum())
        per_cluster = weight if codes is None else np.bincount(codes, weight)
        pairs = W**2 - float(np.square(per_cluster).sum())
        p, error = np.nan, np.nan
        if n_flips and pairs > 0:
            flipped = flipped_squares(found, self._seed, n_flips)
            error = standard_error(found, own, flipped, pairs)
            known = codes is None and is_binary(y, prediction)
            drawn = Drawn.outcomes(prediction, weight) if known else None
            p = p_value(found, flipped, drawn, self._seed, symmetric=symmetric)
        return Assessment(
            n=self.n,
            mce=float(np.sqrt(T)) / W,
            floor=float(np.sqrt(Q)) / W,
            debiased_square=(T - Q) / pairs if pairs > 0 else np.nan,
            standard_error=error,
            p_value=p,
            leaves=Leaves(sums, counts, W, self._seed),
        )

    def _empty_labels(self) -> Labels:
        return np.empty((self._n_trees, self.n), np.uint8)

    def _draw_trees(
        self, f: Floats, residual: Floats, labels: Labels | None
    ) -> tuple[Floats, Floats]:
        """Return sums and counts of the leaves, (n_trees, 2 ** depth) each; fill ``labels``.

        The first time, trees that do not use f are kept.
        """
        keeping = self._known is None and self._n_trees * self.n <= _KEPT_BYTES
        if keeping and labels is None:
            labels = self._empty_labels()
        none = np.empty((0, 0), np.uint8)
        f_keys = ordered_keys(f)
        low, high = np.append(self._low, f_keys.min()), np.append(self._high, f_keys.max())
        sums, counts = np.zeros((2, self._n_trees, 1 << self._depth))
        uses_f = np.zeros(self._n_trees, np.bool_)
        draw_trees(
            Columns(self._keys, f_keys, low, high),
            np.ascontiguousarray(residual),
            self._depth,
            np.uint64(self._seed),
            sums,
            counts,
            none if labels is None else labels,
            self._known or (none, np.zeros(self._n_trees, np.bool_)),
            uses_f,
        )
        if keeping and labels is not None:
            self._known = labels.copy(), ~uses_f
        return sums, counts


@described
def multicalibration_error(
    X: Any,
    y: Any,
    f: Any,
    *,
    sample_weight: Floats | None = None,
    reading: Reading = "leaf_indicators",
    n_trees: int = 100,
    depth: int = 3,
    seed: int = 0,
) -> float:
    """Return the plug-in multicalibration error of predictions.

    It is positive even for a perfect predictor: see `audit_predictions` for the error without its
    floor.

    Parameters
    ----------
    X : table or array of shape (n, d)
        Rows that the model was not fitted to.
    y : array of shape (n,)
        Their outcomes; or labels of two classes, of which the second in order counts as 1.
    f : array of shape (n,) or (n, 2)
        Predictions; or probabilities of the second class, or of both.
    sample_weight : array of shape (n,), optional
        The weights of the rows.
    reading : {"leaf_indicators", "random_leaf_values", "fitted_leaf_values"}
        What a tree's weak learners are.
    {audit_trees}
    seed : int, default=0
        What the trees are drawn from.

    Returns
    -------
    float
        The error.

    Examples
    --------
    >>> from mcgb import multicalibration_error
    >>> multicalibration_error([[0.0], [1.0]], ["no", "yes"], [0.0, 1.0])
    0.0
    """
    auditor = Auditor(X, n_trees=n_trees, depth=depth, seed=seed)
    return auditor.error(
        y=outcomes_of(y), prediction=predictions_of(f), sample_weight=sample_weight, reading=reading
    )


def is_binary(y: Floats, prediction: Floats) -> bool:
    """Return whether outcomes are 0 and 1 and predictions may be their probabilities."""
    in_range = prediction.min() >= 0.0 and prediction.max() <= 1.0
    return bool(in_range and np.isin(y, (0.0, 1.0)).all())


def cluster_codes(clusters: Any, n: int) -> Ints:
    """Return clusters (n,), labels of any kind, as numbers from 0."""
    labels = np.asarray(clusters)
    if labels.shape != (n,):
        raise ValueError(f"clusters: have shape {labels.shape} instead of ({n},)")
    codes, levels = pd.factorize(labels, use_na_sentinel=False)
    if len(levels) < 2:
        raise ValueError("clusters: all rows have the same label; an audit needs two at least")
    return codes.astype(np.int64)


def _weights(sample_weight: Any, n: int) -> Floats:
    weight = numbers_of(sample_weight, "sample_weight")
    _require_rows(weight, n, "sample_weight")
    if (weight < 0).any() or not weight.any():
        raise ValueError("sample_weight: must not be negative, nor zero everywhere")
    return weight


def _require_rows(values: Floats, n: int, name: str) -> None:
    if values.shape != (n,):
        raise ValueError(f"{name}: has shape {values.shape} instead of ({n},)")
    _require_finite(values, name)


def _require_finite(values: Floats, name: str) -> None:
    if not np.isfinite(values).all():
        raise ValueError(f"{name}: holds NaN or infinity")
