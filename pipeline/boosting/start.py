"""Where boosting starts: the initial predictor f_0 and its scores on the training rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from pipeline.boosting.arrays import Floats
from pipeline.boosting.folds import folds
from pipeline.boosting.rows import Rows


@dataclass(frozen=True)
class Started:
    """A fitted initial predictor (None: scores come from elsewhere) and the rows' scores (n,)."""

    init: Any
    f0: Floats


@dataclass(frozen=True)
class Start:
    """How a fit starts.

    init : the initial predictor, not fitted unless ``cv`` is "prefit".
    cv : how training rows get their scores: None, by the predictor fitted to them; a number of
        folds or a splitter, by predictors of the other folds; "oob", by a forest's trees that did
        not draw them; "prefit", by a predictor that is fitted already.
    view : what the predictor sees of the trees' matrix; None: it sees the table as it came.
    seed : for folds.
    predict : (predictor, table) → its predictions as scores (n,).
    out_of_bag : a fitted forest → its out-of-bag predictions as scores (n,).
    """

    init: Any
    cv: Any
    view: Callable[[Floats], Floats] | None
    is_classifier: bool
    seed: int
    predict: Callable[[Any, Any], Floats]
    out_of_bag: Callable[[Any], Floats]

    @property
    def is_prefit(self) -> bool:
        """Whether the predictor is used as it is."""
        return isinstance(self.cv, str) and self.cv == "prefit"

    def check(self) -> None:
        """Refuse a predictor that is not fitted, or say that it is fitted again."""
        fitted = _is_fitted(self.init)
        if self.is_prefit and fitted is False:
            raise ValueError(
                f"init={self.init!r}: is not fitted, but init_cv='prefit' (clones, as in "
                "cross_val_score, are fitted only if they are of a FrozenEstimator)"
            )
        if self.cv is None and fitted and not isinstance(self.init, FrozenEstimator):
            warnings.warn(
                "init is fitted already and is now fitted again, to these rows; to use it as it "
                "is, pass init_cv='prefit'",
                stacklevel=4,
            )

    def fit(self, rows: Rows) -> Started:
        """The initial predictor, and the scores of the rows."""
        if rows.given is not None:
            return Started(None, rows.given)
        if self.is_prefit:
            return Started(self.init, self.predict(self.init, self.table(rows)))
        if isinstance(self.cv, str):  # "oob"
            init = self._with_all_out_of_bag(rows)
            return Started(init, self.out_of_bag(init))
        init = self._fitted(rows)
        if self.cv is None:
            return Started(init, self.predict(init, self.table(rows)))
        return Started(init, self._out_of_fold(rows))

    def _out_of_fold(self, rows: Rows) -> Floats:
        f0, times = np.empty(len(rows)), np.zeros(len(rows), int)
        parts = folds(rows, self.cv, self.is_classifier, self.seed)
        if not parts:
            raise ValueError(
                f"init_cv={self.cv!r}: {len(rows)} rows are too few, or those of a class or group"
            )
        for train, test in parts:
            part = rows.take(test)
            f0[test] = self.predict(self._fitted(rows.take(train)), self.table(part))
            times[test] += 1
        if not (times == 1).all():
            raise ValueError(
                f"init_cv={self.cv!r}: every row must be held out once, as by KFold; "
                f"{(times != 1).sum()} of {len(rows)} are not"
            )
        return f0

    def _with_all_out_of_bag(self, rows: Rows) -> Any:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*(OOB|out-of-bag)")
            try:
                return self._fitted(rows)
            except UserWarning:
                raise ValueError(
                    "init_cv='oob': some rows are in the sample of every tree and have no "
                    "out-of-bag prediction; more trees would give them one"
                ) from None

    def scores(self, started: Started, rows: Rows) -> Floats:
        """f_0 of rows that were not fitted."""
        if rows.given is not None:
            return rows.given
        return self.predict(started.init, self.table(rows))

    def table(self, rows: Rows) -> Any:
        """What the predictor sees of rows."""
        return rows.table if self.view is None else self.view(rows.X)

    def _fitted(self, rows: Rows) -> Any:
        init = clone(self.init)
        if rows.weights is None:
            return init.fit(self.table(rows), rows.labels)
        if has_fit_parameter(init, "sample_weight"):
            return init.fit(self.table(rows), rows.labels, sample_weight=rows.weights)
        warnings.warn(
            f"{type(init).__name__}.fit takes no sample_weight: the initial predictor is fitted "
            "without",
            stacklevel=6,
        )
        return init.fit(self.table(rows), rows.labels)


def _is_fitted(model: Any) -> bool | None:
    """None if the model does not follow scikit-learn's conventions."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    except (AttributeError, TypeError):
        return None
    return True
