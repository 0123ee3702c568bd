"""The initial predictor f_0 of a fit, and its scores on the training rows."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from .arrays import Floats
from .folds import fold_numbers
from .rows import TrainingRows


@dataclass(frozen=True)
class FittedInitial:
    """A fitted initial predictor (None if the rows came with initial predictions) and the scores f0
    (n,) of the rows it was fitted to.
    """

    predictor: Any
    f0: Floats


@dataclass(frozen=True)
class InitialPredictor:
    """How the rows of a fit get their initial scores."""

    predictor: Any  # the initial predictor, not fitted unless ``cv`` is "prefit"
    # How training rows get their scores, as ``init_cv`` of the estimators; a number of folds if
    # there are rows enough
    cv: Any
    # Maps the trees' matrix to what the predictor is given; None: it is given the table as it was
    # passed to the estimator
    view: Callable[[Floats], Floats] | None
    is_classifier: bool
    seed: int  # of the folds
    # (predictor, table) → its predictions as scores (n,), or (n, classes) of many
    predict: Callable[[Any, Any], Floats]
    out_of_bag: Callable[[Any], Floats]  # a fitted forest → its out-of-bag predictions, likewise

    @property
    def is_prefit(self) -> bool:
        """Whether the predictor is used as it is."""
        return isinstance(self.cv, str) and self.cv == "prefit"

    def check(self, rows: TrainingRows) -> None:
        """Raise ValueError for a predictor that should be fitted; warn of surprises."""
        fitted = _is_fitted(self.predictor)
        if self.is_prefit and fitted is False:
            raise ValueError(
                f"init={self.predictor!r}: is not fitted, but init_cv='prefit' (clones, as in "
                "cross_val_score, are fitted only if they are of a FrozenEstimator)"
            )
        if not self.is_prefit and fitted and not isinstance(self.predictor, FrozenEstimator):
            warnings.warn(
                "init is fitted already and is now fitted again, to these rows; to use it as it "
                "is, pass init_cv='prefit'",
                stacklevel=3,
            )
        if rows.weights is not None and not self.is_prefit and not self._takes_weights:
            warnings.warn(
                f"{type(self.predictor).__name__}.fit takes no sample_weight: the initial "
                "predictor is fitted without",
                stacklevel=3,
            )

    def fit(self, rows: TrainingRows) -> FittedInitial:
        """Fit the predictor and return it with the scores of the rows."""
        if rows.given is not None:
            return FittedInitial(None, rows.given)
        if self.is_prefit:
            return FittedInitial(self.predictor, self.predict(self.predictor, self.table(rows)))
        if isinstance(self.cv, str):  # "oob"
            with warnings.catch_warnings():
                warnings.filterwarnings("error", message=".*(OOB|out-of-bag)")
                try:
                    forest = self._fitted(rows)
                except UserWarning:
                    raise ValueError(
                        "init_cv='oob': some rows are in the sample of every tree and have no "
                        "out-of-bag prediction; more trees would give them one"
                    ) from None
            return FittedInitial(forest, self.out_of_bag(forest))
        predictor = self._fitted(rows)
        fold = None
        if self.cv is not None:
            fold = fold_numbers(rows, self.cv, self.is_classifier, self.seed, "init_cv")
        if fold is None:  # in sample, as in the paper; or too few rows for anything else
            return FittedInitial(predictor, self.predict(predictor, self.table(rows)))
        found, order = [], []
        for k in np.unique(fold):
            order.append(np.flatnonzero(fold == k))
            other = self._fitted(rows.take(np.flatnonzero(fold != k)))
            found.append(self.predict(other, self.table(rows.take(order[-1]))))
        return FittedInitial(predictor, np.concatenate(found)[np.argsort(np.concatenate(order))])

    def scores(self, fitted: FittedInitial, rows: TrainingRows) -> Floats:
        """Return f_0 (n,) of rows that the predictor was not fitted to."""
        if rows.given is not None:
            return rows.given
        return self.predict(fitted.predictor, self.table(rows))

    def table(self, rows: TrainingRows) -> Any:
        """Return what the predictor is given of rows."""
        return rows.table if self.view is None else self.view(rows.X)

    def _fitted(self, rows: TrainingRows) -> Any:
        predictor, table = clone(self.predictor), self.table(rows)
        weighted = rows.weights is not None and self._takes_weights
        predictor.fit(table, rows.labels, **({"sample_weight": rows.weights} if weighted else {}))
        if self.view is not None:  # our forest: its threads would add its trees up in any order
            predictor.set_params(n_jobs=1)
        return predictor

    @property
    def _takes_weights(self) -> bool:
        return bool(has_fit_parameter(self.predictor, "sample_weight"))


def _is_fitted(model: Any) -> bool | None:
    """Return None if the model does not follow scikit-learn's conventions."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    except (AttributeError, TypeError):
        return None
    return True
