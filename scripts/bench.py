"""How fast is the exact engine? CPU seconds of one round's 100 trees, side by side in one run.

    python scripts/bench.py rounds    the paper's datasets, against scikit-learn, LightGBM, XGBoost
    python scripts/bench.py scaling   10^3 to 10^6 rows x 20 columns, with a figure
    python scripts/bench.py grid      whole runs (f_0, 20 rounds, audits) of one seed, both engines
    python scripts/bench.py audit     error, floor, p-value and segments of 10^4 to 10^6 rows

One thread; the best of several repetitions; only ratios within one run mean anything. LightGBM has
a bin for every value (so that it may choose every split that scikit-learn may; up to its limit of
65535 bins), XGBoost its exact greedy method; both grow trees of scikit-learn's shape.

A round is what Algorithm 1 asks for: new values of f, then trees. The exact engine lays X out once
per split ("prepare", apart, for the 60 rounds of three strategies); the others take the whole table
each time, because f is one of its columns. The scaling study, of a single round, counts everything.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.ensemble import GradientBoostingRegressor

from pipeline.analysis.style import STRATEGIES
from pipeline.boosting import audit_predictions
from pipeline.boosting.arrays import Floats
from pipeline.boosting.audit import Auditor
from pipeline.boosting.engines import Fitter, TreeSettings, make_engine
from pipeline.boosting.initial import paper_forest
from pipeline.config.compose import load, load_all
from pipeline.datasets.design import split
from pipeline.datasets.library import Library
from pipeline.runs.compilation import compile_kernels
from pipeline.runs.provenance import cpu_model
from pipeline.runs.run import CommonGround, run

NAMES = ("diabetes", "german", "crime", "california", "adult")
N_TREES, DEPTH, RATE = 100, 3, 0.1


def cpu_seconds(
    work: Callable[[], object], budget: float = 4.0, at_most: int = 500, at_least: int = 3
) -> float:
    """The least CPU time of ``work`` over as many repetitions as fit the budget."""
    best, spent = np.inf, 0.0
    for repetition in range(at_most):
        before = time.process_time()
        work()
        took = time.process_time() - before
        best, spent = min(best, took), spent + took
        if spent > budget and repetition + 1 >= at_least:
            break
    return best


def with_exact(X: Floats, f: Floats, y: Floats) -> Callable[[], object]:
    fitter = preparing(X)()
    fitter.fit(f, y, 0)  # compiled code is loaded
    return lambda: fitter.fit(f, y, 0)


def preparing(X: Floats) -> Callable[[], Fitter]:
    return lambda: make_engine("exact", TreeSettings(N_TREES, DEPTH, RATE)).bind(X)


def with_exact_from_scratch(X: Floats, f: Floats, y: Floats) -> Callable[[], object]:
    return lambda: preparing(X)().fit(f, y, 0)


def with_sklearn(X: Floats, f: Floats, y: Floats) -> Callable[[], object]:
    Z = np.column_stack([X, f])

    def fit() -> object:
        model = GradientBoostingRegressor(
            n_estimators=N_TREES, max_depth=DEPTH, learning_rate=RATE, random_state=0
        )
        return model.fit(Z, y)

    return fit


def with_lightgbm(X: Floats, f: Floats, y: Floats) -> Callable[[], object]:
    import lightgbm  # the extra 'bench'

    Z = np.column_stack([X, f])
    parameters = {
        "objective": "regression",
        "num_leaves": 2**DEPTH,
        "max_depth": DEPTH,
        "learning_rate": RATE,
        "max_bin": 65535,
        "min_data_in_bin": 1,
        "min_data_in_leaf": 1,
        "min_sum_hessian_in_leaf": 0,
        "bin_construct_sample_cnt": len(y),
        "feature_pre_filter": False,
        "num_threads": 1,
        "verbose": -1,
    }
    return lambda: lightgbm.train(parameters, lightgbm.Dataset(Z, y), N_TREES)


def with_xgboost(X: Floats, f: Floats, y: Floats) -> Callable[[], object]:
    import xgboost  # the extra 'bench'

    Z = np.column_stack([X, f])
    parameters = {
        "tree_method": "exact",
        "max_depth": DEPTH,
        "eta": RATE,
        "lambda": 0,
        "min_child_weight": 1,
        "base_score": float(y.mean()),
        "nthread": 1,
    }
    return lambda: xgboost.train(parameters, xgboost.DMatrix(Z, y), N_TREES)


def rounds(names: Sequence[str]) -> None:
    print(f"CPU seconds of one round (100 trees of depth 3), one thread, {cpu_model()}")
    print(
        f"{'dataset':<12}{'rows':>7}{'cols':>5}{'prepare':>9}{'exact':>9}{'sklearn':>9}{'lightgbm':>9}"
        f"{'xgboost':>9}   times slower: {'sklearn':>8}{'lightgbm':>9}{'xgboost':>8}"
        f"   {'audit ms':>8}"
    )
    for name in names:
        dataset = load([f"dataset={name}"]).dataset
        data = split(Library().design(dataset), dataset, 0)
        X, y = data.X_train, data.y_train
        f = paper_forest(0).fit(X, y).predict(X)
        seconds = {
            rival.__name__: cpu_seconds(rival(X, f, y - f))
            for rival in (with_exact, with_sklearn, with_lightgbm, with_xgboost)
        }
        ours = seconds.pop("with_exact")
        auditor = Auditor(X)
        audited = cpu_seconds(lambda a=auditor, f=f, r=y - f: a.leaves(prediction=f, residual=r))  # type: ignore[misc]
        print(
            f"{name:<12}{X.shape[0]:>7}{X.shape[1]:>5}{cpu_seconds(preparing(X)):>9.4f}{ours:>9.4f}"
            + "".join(f"{s:>9.3f}" for s in seconds.values())
            + f"{'':>17}"
            + "".join(f"{s / ours:>8.1f}" for s in seconds.values())
            + f"{audited * 1e3:>12.1f}",
            flush=True,
        )


def scaling(figure: Path) -> None:
    sizes = [1_000, 10_000, 100_000, 1_000_000]
    rivals = {"exact": with_exact_from_scratch, "LightGBM, up to 65535 bins": with_lightgbm}
    curves: dict[str, list[tuple[int, float]]] = {}
    rng = np.random.default_rng(0)
    for n in sizes:
        X = rng.normal(size=(n, 20))
        y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + rng.normal(size=n)
        f = y + rng.normal(size=n)
        in_reach = rivals | ({"scikit-learn": with_sklearn} if n <= 100_000 else {})
        for name, rival in in_reach.items():
            seconds = cpu_seconds(rival(X, f, y - f), budget=3.0, at_most=5, at_least=1)
            curves.setdefault(name, []).append((n, seconds))
            print(f"{n:>9} rows x 20  {name:<28}{seconds:>9.3f} s", flush=True)
    draw_scaling(curves, figure)


def draw_scaling(curves: dict[str, list[tuple[int, float]]], path: Path) -> None:
    figure = Figure(figsize=(5, 3.6), layout="constrained")
    axes = figure.subplots()
    for name, points in curves.items():
        axes.loglog(*zip(*points, strict=True), "o-", label=name)
    axes.set(xlabel="rows (20 columns)", ylabel="CPU seconds of a round")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=8.5)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"figure: {path}")


def grid(names: Sequence[str]) -> None:
    print(f"CPU seconds of a seed's three runs (f_0, 20 rounds each, audits), {cpu_model()}")
    compile_kernels()
    total = dict.fromkeys(("exact", "sklearn"), 0.0)
    for name in names:
        seconds = {}
        for engine in total:
            overrides = [f"dataset={name}", f"engine={engine}"]
            configs = load_all([[*overrides, f"strategy={s}"] for s in STRATEGIES])
            design = Library().design(configs[0].dataset)
            before = time.process_time()
            ground = CommonGround(configs[0], design)
            for config in configs:
                run(config, ground)
            seconds[engine] = time.process_time() - before
            total[engine] += seconds[engine]
        print(f"{name:<12}" + _against(seconds), flush=True)
    print(f"{'all':<12}" + _against(total))


def audit() -> None:
    print(f"CPU seconds of an audit, 20 columns, 100 trees, {cpu_model()}")
    print(f"{'rows':>9}{'error alone':>13}{'with p-value':>14}{'and 20 segments':>17}")
    rng = np.random.default_rng(0)
    for n in (10_000, 100_000, 1_000_000):
        X = rng.normal(size=(n, 20))
        f = rng.normal(size=n)
        y = f + rng.normal(size=n) + 0.3 * ((X[:, 1] > 1) & (X[:, 2] < 0))
        frame = pd.DataFrame(X)
        works: list[Callable[[], object]] = [
            lambda: Auditor(X).error(y=y, prediction=f),  # noqa: B023
            lambda: Auditor(X).assess(y=y, prediction=f),  # noqa: B023
            lambda: audit_predictions(frame, y, f),  # noqa: B023
        ]
        seconds = [cpu_seconds(work, budget=1.0, at_least=2) for work in works]
        print(f"{n:>9}{seconds[0]:>13.2f}{seconds[1]:>14.2f}{seconds[2]:>17.2f}", flush=True)


def _against(seconds: dict[str, float]) -> str:
    exact, sklearn = seconds["exact"], seconds["sklearn"]
    return f"exact {exact:8.2f} s   scikit-learn {sklearn:8.1f} s   {sklearn / exact:6.1f} times"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=["rounds", "scaling", "grid", "audit"])
    parser.add_argument("--datasets", nargs="*", choices=NAMES, default=NAMES)
    parser.add_argument("--figure", type=Path, default=Path("outputs/bench/scaling.png"))
    arguments = parser.parse_args()
    if arguments.what == "rounds":
        rounds(arguments.datasets)
    elif arguments.what == "grid":
        grid(arguments.datasets)
    elif arguments.what == "audit":
        audit()
    else:
        scaling(arguments.figure)


if __name__ == "__main__":
    main()
