"""Does post-processing a fitted model make it worse? The estimators' defaults on twelve tables.

Per table and split, a LightGBM model and a linear (logistic) one are fitted to 40 % of the rows
(extra: bench), corrected on another 40 % and judged on the rest: mean squared error or log-loss
before and after, means over the splits. With --peers also MCGrad's defaults, on the same rows
(extra: peers). The planted tables shift the predictions of a group. The defaults were chosen on
splits 0 to 9; the numbers of others are the ones to believe.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

from pipeline.boosting import (
    MulticalibrationBoostingClassifier,
    MulticalibrationBoostingRegressor,
)
from pipeline.boosting.arrays import Floats, Ints
from pipeline.boosting.encoding import Encoding
from pipeline.boosting.logloss import logit, mean_log_loss, sigmoid
from pipeline.config.compose import load
from pipeline.datasets.library import Library

PAPER = ("diabetes", "german", "crime", "california", "adult")


@dataclass(frozen=True)
class Table:
    """X, y (n,) and how much the group's predictions are shifted, (n,) (in logits, for classes)."""

    X: pd.DataFrame
    y: Floats
    is_binary: bool
    shift: Floats | float = 0.0


@dataclass(frozen=True)
class Part:
    """Rows with a model's predictions."""

    X: pd.DataFrame
    y: Floats
    prediction: Floats


def of_paper(name: str) -> Table:
    dataset = load([f"dataset={name}"]).dataset
    design = Library().design(dataset)
    return Table(pd.DataFrame(design.X, columns=design.feature_names), design.y, False)


def with_label(name: str, label: str, positive: str) -> Table:
    dataset = load([f"dataset={name}"]).dataset
    frame = Library().table(dataset).frame
    y = np.asarray(frame[label] == positive, dtype=np.float64)
    return Table(frame.drop(columns=[label, *dataset.drop]), y, True)


def of_sklearn(loader: Callable[..., Any], positive: int) -> Table:
    X, y = loader(return_X_y=True, as_frame=True)
    return Table(X, np.asarray(y == positive, dtype=np.float64), True)


def planted(seed: int, is_binary: bool) -> Table:
    """A smooth signal; the predictions of one group, 3 to 16 % of the rows, are shifted."""
    rng = np.random.default_rng(seed)
    n = 6000
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=[f"x{j}" for j in range(4)])
    X["region"] = rng.choice(["north", "south", "east", "west"], n)
    X["member"] = rng.random(n) < 0.3
    signal = (X["x0"] + 0.5 * X["x1"] ** 2).to_numpy()
    group = (X["region"] == "south") & X["member"] if seed < 3 else X["x2"] > 1
    inside: Floats = np.asarray(group, dtype=np.float64)
    if is_binary:
        y = (rng.random(n) < sigmoid(signal - 0.5)).astype(float)
        return Table(X, y, True, 1.2 * inside)
    return Table(X, signal + rng.normal(size=n), False, inside)


TABLES: dict[str, Callable[[], Table]] = {
    **{name: (lambda name=name: of_paper(name)) for name in PAPER},  # type: ignore[misc]
    "adult income": lambda: with_label("adult", "income", ">50K"),
    "german class": lambda: with_label("german", "class", "2"),
    "breast cancer": lambda: of_sklearn(load_breast_cancer, 1),
    "wine": lambda: of_sklearn(load_wine, 1),
    "planted, mean": lambda: planted(1, False),
    "planted, pair": lambda: planted(2, True),
    "planted, range": lambda: planted(3, True),
}


def split(table: Table, seed: int) -> Iterator[Ints]:
    """Rows to fit a model to, to correct it on, and to judge both on."""
    strata = table.y if table.is_binary else None
    fit, others = train_test_split(
        np.arange(len(table.y)), train_size=0.4, random_state=seed, stratify=strata
    )
    strata = table.y[others] if table.is_binary else None
    yield fit
    yield from train_test_split(others, train_size=2 / 3, random_state=seed, stratify=strata)


def boosted_model(is_binary: bool, seed: int) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor  # the extra 'bench'

    kind = LGBMClassifier if is_binary else LGBMRegressor
    return kind(verbose=-1, random_state=seed, n_jobs=1)


def linear_model(is_binary: bool, seed: int) -> Any:  # noqa: ARG001
    linear = LogisticRegression(max_iter=1000) if is_binary else Ridge()
    return make_pipeline(StandardScaler(), linear)


MODELS: dict[str, Callable[[bool, int], Any]] = {"LightGBM": boosted_model, "linear": linear_model}


def parts(table: Table, X: Floats, model: Any, seed: int) -> tuple[Part, Part]:
    """The rows to correct a model on, and those to judge it on."""
    fit, correct, judge = split(table, seed)
    model.fit(X[fit], table.y[fit])
    if table.is_binary:
        predicted = sigmoid(logit(model.predict_proba(X)[:, 1]) + table.shift)
    else:
        predicted = model.predict(X) + table.shift
    return tuple(  # type: ignore[return-value]
        Part(table.X.iloc[rows], table.y[rows], predicted[rows]) for rows in (correct, judge)
    )


def ours(correct: Part, judge: Part, is_binary: bool, seed: int) -> tuple[Floats, int]:
    """Corrected predictions, and the rounds that were kept."""
    kind = MulticalibrationBoostingClassifier if is_binary else MulticalibrationBoostingRegressor
    model = kind(random_state=seed)
    model.fit(correct.X, correct.y, initial_prediction=correct.prediction)
    if is_binary:
        return model.predict_proba(judge.X, judge.prediction)[:, 1], model.best_round_
    return model.predict(judge.X, judge.prediction), model.best_round_


def mcgrads(correct: Part, judge: Part, is_binary: bool, seed: int) -> Floats:
    from mcgrad.methods import MCGrad, RegressionMCGrad  # the extra 'peers'

    words = [c for c in correct.X if not pd.api.types.is_numeric_dtype(correct.X[c])]
    columns = {
        "categorical_feature_column_names": words,
        "numerical_feature_column_names": [c for c in correct.X if c not in words],
    }
    frame = correct.X.assign(score=correct.prediction, label=correct.y)
    model = (MCGrad if is_binary else RegressionMCGrad)(random_state=seed)
    model.fit(frame, prediction_column_name="score", label_column_name="label", **columns)
    found = model.predict(judge.X.assign(score=judge.prediction), "score", **columns)
    return np.asarray(found, dtype=np.float64)


def loss(y: Floats, prediction: Floats, is_binary: bool) -> float:
    if is_binary:
        return mean_log_loss(y, logit(prediction))
    return float(np.square(y - prediction).mean())


def study(names: list[str], models: list[str], seeds: range, peers: bool) -> pd.DataFrame:
    lines = []
    for name in tqdm(names, "tables"):
        table = TABLES[name]()
        X = Encoding.learn(table.X).encode(table.X)
        for seed in seeds:
            for which in models:
                model = MODELS[which](table.is_binary, seed)
                correct, judge = parts(table, X, model, seed)
                predicted, rounds = ours(correct, judge, table.is_binary, seed)
                line = {
                    "table": name,
                    "rows": len(correct.y),
                    "model": which,
                    "split": seed,
                    "rounds": rounds,
                    "start": loss(judge.y, judge.prediction, table.is_binary),
                    "ours": loss(judge.y, predicted, table.is_binary),
                }
                if peers:
                    theirs = mcgrads(correct, judge, table.is_binary, seed)
                    line["mcgrad"] = loss(judge.y, theirs, table.is_binary)
                lines.append(line)
    return pd.DataFrame(lines)


def summary(lines: pd.DataFrame) -> pd.DataFrame:
    """Mean losses over the splits, and their changes in percent."""
    found = lines.groupby(["table", "rows", "model"], sort=False)
    means = found[[c for c in ("start", "ours", "mcgrad") if c in lines]].mean()
    for name in means.columns.drop("start"):
        means[name] = 100 * (means[name] / means["start"] - 1)
    return means.assign(rounds=found["rounds"].median()).reset_index()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tables", nargs="*", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--models", nargs="*", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--first", type=int, default=10, help="the first split's number")
    parser.add_argument("--peers", action="store_true", help="also MCGrad (extra: peers)")
    parser.add_argument("--out", type=Path, help="a csv file for the losses of every split")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds = range(arguments.first, arguments.first + arguments.splits)
    lines = study(arguments.tables, arguments.models, seeds, arguments.peers)
    if arguments.out is not None:
        lines.to_csv(arguments.out, index=False, float_format="%.6g")
    print("mean loss on held-out rows at the start, and its change in percent")
    print(summary(lines).to_string(index=False, float_format=lambda v: f"{v:.4g}"))


if __name__ == "__main__":
    main()
