"""How fast is the exact engine? CPU seconds side by side in one run.

    python scripts/bench.py rounds    a round's 100 trees on the paper's datasets, against
                                      scikit-learn, LightGBM and XGBoost
    python scripts/bench.py weights   the same with sample weights, against scikit-learn
    python scripts/bench.py forest    the initial forest, against scikit-learn's
    python scripts/bench.py growth    over rows, columns, depth and trees, with a figure; memory
    python scripts/bench.py engines   large tables, against LightGBM's two threads (wall-clock)
    python scripts/bench.py grid      whole runs (f_0, 20 rounds, audits) of one seed, both engines
    python scripts/bench.py audit     error, floor, p-value and segments of 10^4 to 10^6 rows

One thread but for `engines`; only ratios within one run mean anything. A ratio is that of the best
repetitions, with that of the medians in brackets. LightGBM has a bin for every value (so that it
may choose every split that scikit-learn may; up to its limit of 65535 bins), XGBoost its exact
greedy method; both grow trees of scikit-learn's shape.

A round is what Algorithm 1 asks for: new values of f, then trees. The exact engine lays X out once
per split ("prepare", apart, for the 60 rounds of three strategies); the others take the whole table
each time, because f is one of its columns. The study of growth, of one round, counts all of it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

from pipeline.analysis.style import STRATEGIES
from pipeline.boosting import ExactRandomForestRegressor, audit_predictions
from pipeline.boosting.arrays import Floats
from pipeline.boosting.audit import Auditor
from pipeline.boosting.engines import Fitter, TreeSettings, make_engine
from pipeline.boosting.initial import paper_forest
from pipeline.config.compose import load, load_all
from pipeline.datasets.design import split
from pipeline.datasets.library import Library
from pipeline.runs.compilation import compile_kernels
from pipeline.runs.kinds.rounds import CommonGround, run
from pipeline.runs.provenance import cpu_model

NAMES = ("diabetes", "german", "crime", "california", "adult")
SETTINGS = TreeSettings(100, 3, 0.1)


@dataclass(frozen=True)
class Seconds:
    """Of one work: the best of its repetitions and their median."""

    best: float
    median: float

    def over(self, other: Seconds) -> str:
        """How many times as long as another, by the best and (by the median)."""
        return f"{self.best / other.best:.1f} ({self.median / other.median:.1f})"


def cpu_seconds(
    work: Callable[[], object],
    budget: float = 4.0,
    at_most: int = 500,
    at_least: int = 3,
    clock: Callable[[], float] = time.process_time,
) -> Seconds:
    """The CPU time of ``work`` over as many repetitions as fit the budget."""
    taken: list[float] = []
    while len(taken) < at_most and (sum(taken) <= budget or len(taken) < at_least):
        before = clock()
        work()
        taken.append(clock() - before)
    return Seconds(float(np.min(taken)), float(np.median(taken)))


Rival = Callable[[Floats, Floats, Floats, TreeSettings], Callable[[], object]]


def with_exact(X: Floats, f: Floats, y: Floats, settings: TreeSettings) -> Callable[[], object]:
    fitter = preparing(X, settings)()
    fitter.fit(f, y, 0)  # compiled code is loaded
    return lambda: fitter.fit(f, y, 0)


def preparing(X: Floats, settings: TreeSettings = SETTINGS) -> Callable[[], Fitter]:
    return lambda: make_engine("exact", settings).bind(X)


def with_exact_from_scratch(
    X: Floats, f: Floats, y: Floats, settings: TreeSettings
) -> Callable[[], object]:
    return lambda: preparing(X, settings)().fit(f, y, 0)


def with_sklearn(X: Floats, f: Floats, y: Floats, settings: TreeSettings) -> Callable[[], object]:
    Z = np.column_stack([X, f])
    size = {"n_estimators": settings.n_trees, "max_depth": settings.max_depth}
    rate = settings.learning_rate
    return lambda: GradientBoostingRegressor(**size, learning_rate=rate, random_state=0).fit(Z, y)


def with_lightgbm(X: Floats, f: Floats, y: Floats, settings: TreeSettings) -> Callable[[], object]:
    import lightgbm  # the extra 'bench'

    Z = np.column_stack([X, f])
    parameters = {
        "objective": "regression",
        "num_leaves": 2**settings.max_depth,
        "max_depth": settings.max_depth,
        "learning_rate": settings.learning_rate,
        "max_bin": 65535,
        "min_data_in_bin": 1,
        "min_data_in_leaf": 1,
        "min_sum_hessian_in_leaf": 0,
        "bin_construct_sample_cnt": len(y),
        "feature_pre_filter": False,
        "num_threads": 1,
        "verbose": -1,
    }
    return lambda: lightgbm.train(parameters, lightgbm.Dataset(Z, y), settings.n_trees)


def with_xgboost(X: Floats, f: Floats, y: Floats, settings: TreeSettings) -> Callable[[], object]:
    import xgboost  # the extra 'bench'

    Z = np.column_stack([X, f])
    parameters = {
        "tree_method": "exact",
        "max_depth": settings.max_depth,
        "eta": settings.learning_rate,
        "lambda": 0,
        "min_child_weight": 1,
        "base_score": float(y.mean()),
        "nthread": 1,
    }
    return lambda: xgboost.train(parameters, xgboost.DMatrix(Z, y), settings.n_trees)


def rounds(names: Sequence[str]) -> None:
    print(f"CPU seconds of one round (100 trees of depth 3), one thread, {cpu_model()}")
    print(
        f"{'dataset':<12}{'rows':>7}{'cols':>5}{'prepare':>9}{'exact':>9}   "
        f"{'times slower: scikit-learn':<28}{'LightGBM':<16}{'XGBoost':<16}{'audit ms':>8}"
    )
    for name in names:
        X, y, _ = training_rows(name)
        f = paper_forest(0).fit(X, y).predict(X)
        ours, *theirs = (
            cpu_seconds(rival(X, f, y - f, SETTINGS))
            for rival in (with_exact, with_sklearn, with_lightgbm, with_xgboost)
        )
        auditor = Auditor(X)
        audited = cpu_seconds(lambda a=auditor, f=f, r=y - f: a.leaves(prediction=f, residual=r))  # type: ignore[misc]
        ratios = [rival.over(ours) for rival in theirs]
        print(
            f"{name:<12}{X.shape[0]:>7}{X.shape[1]:>5}{cpu_seconds(preparing(X)).best:>9.4f}"
            f"{ours.best:>9.4f}   {ratios[0]:<28}{ratios[1]:<16}{ratios[2]:<16}"
            f"{audited.best * 1e3:>8.1f}",
            flush=True,
        )


def weights(names: Sequence[str]) -> None:
    print(f"CPU seconds of one round with sample weights, {cpu_model()}")
    for name in names:
        X, y, _ = training_rows(name)
        rng = np.random.default_rng(0)
        f, weight = y + y.std() * rng.normal(size=len(y)), rng.lognormal(size=len(y))
        fitter = make_engine("exact", SETTINGS).bind(X, weight)
        fitter.fit(f, y - f, 0)  # compiled code is loaded
        ours = cpu_seconds(lambda t=fitter, f=f, r=y - f: t.fit(f, r, 0))  # type: ignore[misc]
        model, Z = GradientBoostingRegressor(random_state=0), np.column_stack([X, f])
        theirs = cpu_seconds(lambda Z=Z, r=y - f, w=weight, m=model: m.fit(Z, r, sample_weight=w))  # type: ignore[misc]
        print(
            f"{name:<12}exact {ours.best:8.4f} s   scikit-learn {theirs.best:7.2f} s   "
            f"{theirs.over(ours)} times",
            flush=True,
        )


def training_rows(name: str) -> tuple[Floats, Floats, Floats]:
    """X, y and the test rows of a dataset's first split."""
    dataset = load([f"dataset={name}"]).dataset
    data = split(Library().design(dataset), dataset, 0)
    return data.X_train, data.y_train, data.X_test


def forest(names: Sequence[str]) -> None:
    print(f"CPU seconds of f_0 (100 trees of depth 5) and its predictions, {cpu_model()}")
    for name in names:
        X, y, X_test = training_rows(name)

        def work(kind: Any, X: Floats = X, y: Floats = y, X_test: Floats = X_test) -> object:
            model = kind(100, max_depth=5, random_state=0).fit(X, y)
            return model.predict(X), model.predict(X_test)

        work(ExactRandomForestRegressor)  # compiled code is loaded
        ours = cpu_seconds(lambda w=work: w(ExactRandomForestRegressor))  # type: ignore[misc]
        theirs = cpu_seconds(lambda w=work: w(RandomForestRegressor))  # type: ignore[misc]
        print(
            f"{name:<12}exact {ours.best:8.4f} s   scikit-learn {theirs.best:7.2f} s   "
            f"{theirs.over(ours)} times",
            flush=True,
        )


def made_up(n: int, d: int, *, noise: bool = False) -> tuple[Floats, Floats, Floats]:
    """X (n, d), f and y − f (n,): a smooth target and a noisy f, or nothing but noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    if noise:
        return X, rng.normal(size=n), rng.normal(size=n)
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + rng.normal(size=n)
    f = y + rng.normal(size=n)
    return X, f, y - f


@dataclass(frozen=True)
class Sweep:
    """One axis of the study of growth: (rows, columns, depth, trees) of its fits.

    slow : up to which value of the axis scikit-learn is measured.
    """

    axis: str
    fits: Sequence[tuple[int, int, int, int]]
    at: int  # the place of the axis in a fit
    slow: int


SWEEPS = (
    Sweep("rows", [(10**k, 20, 3, 100) for k in range(3, 7)] + [(10**7, 20, 3, 10)], 0, 10**4),
    Sweep("columns", [(10**4, d, 3, 20) for d in (5, 20, 100, 500)], 1, 100),
    Sweep("depth", [(10**4, 20, depth, 20) for depth in range(1, 9)], 2, 8),
    Sweep("trees", [(10**4, 20, 3, trees) for trees in (10, 100, 1000)], 3, 100),
)


def growth(figure: Path) -> None:
    """CPU seconds of a round from scratch, per tree, over each axis."""
    print(f"CPU seconds of a round from scratch, {cpu_model()}")
    rivals = {"exact": with_exact_from_scratch, "LightGBM": with_lightgbm}
    curves: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for sweep in SWEEPS:
        for fit in sweep.fits:
            n, d, depth, trees = fit
            settings = TreeSettings(trees, depth, 0.1)
            X, f, residual = made_up(n, d)
            slow = {"scikit-learn": with_sklearn} if fit[sweep.at] <= sweep.slow else {}
            seconds = {}
            for name, rival in (rivals | slow).items():
                repetitions = 1 if n > 10**6 or name == "scikit-learn" else 3
                work = rival(X, f, residual, settings)
                seconds[name] = cpu_seconds(work, 2.0, 5, repetitions)
                points = curves.setdefault(sweep.axis, {}).setdefault(name, [])
                points.append((fit[sweep.at], seconds[name].best / trees))
            print(
                f"{n:>9} rows x {d:>3}, depth {depth}, {trees:>4} trees: exact "
                f"{seconds['exact'].best:8.3f} s; times slower: "
                + ", ".join(
                    f"{name} {took.over(seconds['exact'])}"
                    for name, took in seconds.items()
                    if name != "exact"
                ),
                flush=True,
            )
    draw_growth(curves, figure)
    memory()


def draw_growth(curves: dict[str, dict[str, list[tuple[int, float]]]], path: Path) -> None:
    drawing = Figure(figsize=(10, 3.2), layout="constrained")
    panels = drawing.subplots(1, len(curves))
    for axes, (axis, by_name) in zip(panels, curves.items(), strict=True):
        for name, points in by_name.items():
            axes.loglog(*zip(*points, strict=True), "o-", label=name, markersize=4)
        if axis == "depth":
            axes.set_xscale("linear")
        axes.set_xlabel(axis)
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("CPU seconds per tree")
    handles, labels = panels[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    drawing.savefig(path, dpi=150)
    print(f"figure: {path}")


def memory() -> None:
    """The most memory that a fit of 10^6 rows takes beyond its table, in a process of its own."""
    for name in ("exact", "lightgbm"):
        command = [sys.executable, __file__, "peak", "--engine", name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        print(f"{10**6:>9} rows x  20: {name} takes {done.stdout.strip()} MB beyond the table")


def peak(engine: str) -> None:
    X, f, residual = made_up(10**6, 20)
    rival = {"exact": with_exact_from_scratch, "lightgbm": with_lightgbm}[engine]
    few = TreeSettings(5, 3, 0.1)
    rival(X[:1000], f[:1000], residual[:1000], few)()  # what has to be loaded is loaded
    before = most_memory()
    rival(X, f, residual, few)()
    print(round(most_memory() - before))


def most_memory() -> float:
    """The most memory that this process had, in MB (Linux; what getrusage says is inherited)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line) / 1024


def engines() -> None:
    print(
        f"wall-clock seconds of a round (100 trees of depth 3) whose X is laid out, {cpu_model()}"
    )
    for n in (2**16, 200_000, 10**6):
        for noise in (False, True):
            X, f, residual = made_up(n, 20, noise=noise)
            fitters = [make_engine(name, SETTINGS, 2).bind(X) for name in ("exact", "lightgbm")]
            ours, theirs = (
                cpu_seconds(lambda t=fitter: t.fit(f, residual, 0), 8.0, 30, 1, time.perf_counter)  # type: ignore[misc] # noqa: B023
                for fitter in fitters
            )
            print(
                f"{n:>9} rows x 20, {'noise' if noise else 'signal'}: exact {ours.best:7.3f} s, "
                f"LightGBM {theirs.best:7.3f} s ({theirs.over(ours)} times)",
                flush=True,
            )


def grid(names: Sequence[str], settings: Sequence[str]) -> None:
    print(f"CPU seconds of a seed's three runs (f_0, 20 rounds each, audits), {cpu_model()}")
    compile_kernels()
    total = dict.fromkeys(("exact", "sklearn"), 0.0)
    for name in names:
        seconds = {}
        for engine in total:
            overrides = [
                f"dataset={name}",
                f"engine={engine}",
                f"initial.engine={engine}",
                *settings,
            ]
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
        seconds = [cpu_seconds(work, budget=1.0, at_least=2).best for work in works]
        print(f"{n:>9}{seconds[0]:>13.2f}{seconds[1]:>14.2f}{seconds[2]:>17.2f}", flush=True)


def _against(seconds: dict[str, float]) -> str:
    exact, sklearn = seconds["exact"], seconds["sklearn"]
    return f"exact {exact:8.2f} s   scikit-learn {sklearn:8.1f} s   {sklearn / exact:6.1f} times"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    works: dict[str, Callable[[argparse.Namespace], None]] = {
        "rounds": lambda a: rounds(a.datasets),
        "weights": lambda a: weights(a.datasets),
        "forest": lambda a: forest(a.datasets),
        "growth": lambda a: growth(a.figure),
        "engines": lambda _: engines(),
        "grid": lambda a: grid(a.datasets, a.settings),
        "audit": lambda _: audit(),
        "peak": lambda a: peak(a.engine),
    }
    parser.add_argument(
        "what", choices=list(works), metavar="{rounds,weights,forest,growth,engines,grid,audit}"
    )
    parser.add_argument("--datasets", nargs="*", choices=NAMES, default=NAMES)
    parser.add_argument("--settings", nargs="*", default=(), help="overrides for grid")
    parser.add_argument("--figure", type=Path, default=Path("outputs/bench/growth.png"))
    parser.add_argument("--engine", choices=["exact", "lightgbm"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    works[arguments.what](arguments)


if __name__ == "__main__":
    main()
