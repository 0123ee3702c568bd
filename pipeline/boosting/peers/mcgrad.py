"""MCGrad, the authors' own production library, with its defaults (extra: peers)."""

import logging
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..arrays import Floats
from .base import Corrected, Method, Sample


@dataclass(frozen=True)
class Mcgrad(Method):
    """MCGrad for classes, RegressionMCGrad for numbers; it chooses its rounds by itself."""

    name = "mcgrad"
    validates_by = "in_sample"
    needs = "mcgrad"
    cost = 8.0

    # learning_rate, num_leaves: of its LightGBM rounds; None is MCGrad's default
    learning_rate: float | None = None
    num_leaves: int | None = None
    # The model was fitted to these rows, so the validation rows are used instead of MCGrad's folds
    in_sample: bool = False

    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:
        from mcgrad.methods import MCGrad, RegressionMCGrad  # the extra 'peers'

        logging.getLogger("mcgrad").setLevel(logging.ERROR)  # it logs every round
        given = {"learning_rate": self.learning_rate, "num_leaves": self.num_leaves}
        settings = {k: v for k, v in given.items() if v is not None} | {"num_threads": 1}
        model = (MCGrad if sample.binary else RegressionMCGrad)(
            random_state=seed,
            lightgbm_params=settings,
            early_stopping_use_crossvalidation=False if self.in_sample else None,
        )
        columns: dict[str, Any] = {
            "categorical_feature_column_names": [],
            "numerical_feature_column_names": [f"x{j}" for j in range(sample.X.shape[1])],
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(
                _frame(sample).assign(label=sample.y),
                prediction_column_name="score",
                label_column_name="label",
                **columns,
                df_val=_frame(validation).assign(label=validation.y) if self.in_sample else None,
            )

        def predict(rows: Sample) -> Floats:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = model.predict(_frame(rows), "score", **columns)
            return np.asarray(found, dtype=np.float64)

        return Corrected(predict, len(model.mr))


def _frame(rows: Sample) -> pd.DataFrame:
    names = [f"x{j}" for j in range(rows.X.shape[1])]
    return pd.DataFrame(rows.X, columns=names).assign(score=rows.f)
