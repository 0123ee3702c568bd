"""How long does a corrected model take in production? Beside MCGrad (extra: peers) and LightGBM.

    python -m scripts.deployment

A model of Adult's income is corrected by this library's defaults, by those without the stack, and
by MCGrad; LightGBM has as many trees of 31 leaves as the first. Milliseconds of wall-clock time on
one thread, the median of repetitions, without the initial model's own time: what is passed is its
probability. Only ratios within one run mean anything.
"""

import logging
import pickle
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd

from pipeline.boosting.arrays import Floats
from pipeline.boosting.classifier import MulticalibrationBoostingClassifier
from pipeline.boosting.initial import classifier_forest
from pipeline.config.compose import load
from pipeline.datasets.library import Library

ROWS = (1, 1000, 1_000_000)  # the first call, of one row, compiles or loads what was compiled
Predictor = Callable[[Any, Floats], Any]  # (X, p) → probabilities


def median_ms(work: Callable[[], object], budget: float = 3.0) -> float:
    taken: list[float] = []
    while not taken or (sum(taken) < budget and len(taken) < 300):
        before = time.perf_counter()
        work()
        taken.append(time.perf_counter() - before)
    return 1000 * float(np.median(taken))


def ours(X: pd.DataFrame, y: Floats, p: Floats, stack: bool) -> tuple[Predictor, int, int]:
    model = MulticalibrationBoostingClassifier(stack=stack, random_state=0)
    model.fit(X, y, initial_prediction=p)
    trees = sum(len(t.compiled.roots) for t in model.trajectories_ if t.compiled is not None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        model.save(path)
        size = path.stat().st_size
    return model.predict_proba, trees, size


def theirs(X: pd.DataFrame, y: Floats, p: Floats) -> tuple[Predictor, int, int]:
    from mcgrad.methods import MCGrad  # the extra 'peers'

    logging.getLogger("mcgrad").setLevel(logging.ERROR)
    columns = {"categorical_feature_column_names": [], "numerical_feature_column_names": [*X]}
    model = MCGrad(random_state=0, lightgbm_params={"num_threads": 1})
    model.fit(X.assign(p=p, y=y), "p", "y", **columns)
    trees = sum(booster.num_trees() for booster in model.mr)
    return lambda X, p: model.predict(X.assign(p=p), "p", **columns), trees, len(model.serialize())


def plain_lightgbm(X: pd.DataFrame, y: Floats, n_trees: int) -> tuple[Predictor, int, int]:
    settings = {"objective": "binary", "num_leaves": 31, "verbose": -1, "num_threads": 1}
    booster = lightgbm.train(settings, lightgbm.Dataset(X, y), n_trees)
    return lambda X, _: booster.predict(X, num_threads=1), n_trees, len(pickle.dumps(booster))


def main() -> None:
    design = Library().design(load(["dataset=adult_income"]).dataset)
    half = len(design.y) // 2
    forest = classifier_forest(0).fit(design.X[:half], design.y[:half])
    names = [f"x{j}" for j in range(design.X.shape[1])]
    X, y = pd.DataFrame(design.X[half:], columns=names), design.y[half:]
    p = forest.predict_proba(design.X[half:])[:, 1]
    models: dict[str, tuple[Predictor, int, int]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models["ours"] = ours(X, y, p, stack=True)
        models["ours, no stack"] = ours(X, y, p, stack=False)
        try:
            models["MCGrad"] = theirs(X, y, p)
        except ImportError:
            print("MCGrad: not installed (extra peers)")
    models["LightGBM"] = plain_lightgbm(X, y, models["ours"][1])
    lines = {}
    for name, (predict, trees, size) in models.items():
        row: dict[str, Any] = {"trees": trees, "stored KB": size // 1000}
        for n in ROWS:
            some = np.resize(np.arange(len(X)), n)
            rows, given = X.iloc[some].reset_index(drop=True), p[some]
            row[f"{n:,} rows, ms"] = round(median_ms(partial(predict, rows, given)), 2)
        lines[name] = row
    print(pd.DataFrame(lines).T.to_string())


if __name__ == "__main__":
    main()
