"""Full-length parity: all rounds of all strategies, exact against scikit-learn (half an hour).

Prints, per dataset and strategy, the largest difference of training predictions over all rounds and
rows in units of the target's standard deviation; fails above 1e-9. Also, over several splits and
seeds, how far held-out predictions of one round are from scikit-learn's, against scikit-learn
reseeded; fails above 1.3.
"""

from __future__ import annotations

import sys
from itertools import combinations

import numpy as np

from pipeline.analysis.style import STRATEGIES
from pipeline.boosting import MulticalibrationBoostingRegressor
from pipeline.boosting.engines import TreeSettings, make_engine
from pipeline.config.compose import load
from pipeline.datasets.design import split
from pipeline.datasets.library import Library
from pipeline.runs.run import fit_initial

SPLITS = {"diabetes": 20, "german": 20, "crime": 10, "california": 8, "adult": 10}
RESEEDED = 3  # fits of each engine per split, for all pairs between them


def trajectory(name: str) -> float:
    config = load([f"dataset={name}"])
    data = split(Library().design(config.dataset), config.dataset, 0)
    f0 = fit_initial(config, data).train
    worst = 0.0
    for strategy in STRATEGIES:
        ours, reference = (
            MulticalibrationBoostingRegressor(20, rescaling=strategy, engine=e, random_state=0).fit(
                data.X_train, data.y_train, initial_prediction=f0
            )
            for e in ("exact", "sklearn")
        )
        pairs = zip(ours.steps_, reference.steps_, strict=True)
        distance = max(np.abs(a.f - b.f).max() for a, b in pairs) / data.y_train.std()
        print(f"{name:<12}{strategy:<10}20 rounds: {distance:.1e} sd", flush=True)
        worst = float(np.maximum(worst, distance))  # a NaN stays
    return worst


def held_out(name: str) -> float:
    config = load([f"dataset={name}"])
    design = Library().design(config.dataset)
    ours, theirs = [], []
    for seed in range(SPLITS[name]):
        data = split(design, config.dataset, seed)
        initial = fit_initial(config, data)
        residual = data.y_train - initial.train
        sklearn, exact = (
            [
                make_engine(engine, TreeSettings())
                .bind(data.X_train)
                .fit(initial.train, residual, random_state)[0]
                .predict(data.X_test, initial.test)
                for random_state in range(RESEEDED)
            ]
            for engine in ("sklearn", "exact")
        )
        ours.append(np.mean([np.abs(a - b).mean() for a in exact for b in sklearn]))
        theirs.append(np.mean([np.abs(a - b).mean() for a, b in combinations(sklearn, 2)]))
    ratio = float(np.mean(ours) / np.mean(theirs))
    print(
        f"{name:<12}held out, {len(ours)} splits: {ratio:.2f} times scikit-learn reseeded",
        flush=True,
    )
    return ratio


def main() -> int:
    names = sys.argv[1:] or list(SPLITS)
    worst = np.max([trajectory(name) for name in names])
    ratio = np.max([held_out(name) for name in names])
    return int(not (worst <= 1e-9 and ratio <= 1.3))


if __name__ == "__main__":
    sys.exit(main())
