"""``stage=theory``: the theory's statements on random instances and on the five datasets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipeline.boosting.algorithm import boost
from pipeline.boosting.rescaling import Rescaling, Unit
from pipeline.config import Config
from pipeline.stages.boost import Workbench, rescaling_of
from pipeline.stages.fetch import fetch
from pipeline.stages.preprocess import preprocess
from pipeline.theory import chapter
from pipeline.theory import statements as s
from pipeline.theory.dynamics import run
from pipeline.theory.lab import N_INSTANCES, Bank, Finding, Instance, findings
from pipeline.theory.real import oracle_error, real_instances

EXACT_ROUNDS = 60
EXACT_KIND = "rbf"


def study(folder: Path, configs: Mapping[tuple[str, str], Config], n: int = N_INSTANCES) -> str:
    """Check everything, write it to ``folder``, and give the scorecard as text.

    configs : one for every (dataset, strategy), as in a grid;  n : random instances of each kind.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rescalings = {name: rescaling_of(c.strategy) for (_, name), c in configs.items()}
    real: list[Instance] = []
    exact: list[dict[str, Any]] = []
    gbdt: list[dict[str, Any]] = []
    for config in {dataset: c for (dataset, _), c in configs.items()}.values():
        bench = Workbench(config, preprocess(fetch(config.dataset), config.dataset))
        instances = real_instances(bench.split.X_train, bench.split.y_train)
        real += instances
        exact += exact_rounds(config.dataset.label, instances, rescalings)
        gbdt += gbdt_rounds(config, bench)
    pd.DataFrame(exact).to_csv(folder / chapter.EXACT, index=False)
    measured = pd.DataFrame(gbdt)
    measured.to_csv(folder / chapter.GBDT, index=False)
    return chapter.write(folder, [*findings(Bank(n, real)), error_of_gbdt_rounds(measured)])


def exact_rounds(
    dataset: str, instances: Sequence[Instance], rescalings: Mapping[str, Rescaling]
) -> Iterator[dict[str, Any]]:
    """Gaps of the exact oracle on a dataset's rows, and Unit's bounds on the smallest one."""
    i = next(i for i in instances if i.kind == EXACT_KIND)
    for strategy, rescaling in rescalings.items():
        t = run(i.y, i.f0, i.learners, i.eta, EXACT_ROUNDS, rescaling)
        for k, gap in enumerate(t.gaps, start=1):
            yield {
                "dataset": dataset,
                "strategy": strategy,
                "round": k,
                "gap": gap,
                "paper": s.gap_bound(t.eta, t.loss[0], k),
                "sharp": s.sharp_gap_bound(t.eta, t.loss[0], k),
            }


def gbdt_rounds(config: Config, bench: Workbench) -> Iterator[dict[str, Any]]:
    """ε_t of the rounds of a Unit run with the paper's GBDT, and f_t's values per row.

    ε_t and the gap are in units of the target, √(2ε_t/n) and ‖Δ_t‖/(η√n), as they enter the bound.
    """
    X, y, f = bench.split.X_train, bench.split.y_train, bench.initial.train
    eta, n = config.boosting.eta, len(bench.split.y_train)
    for step in boost(y, f, config.boosting.rounds, eta, Unit(), bench.fit_round):
        epsilon = oracle_error(X, f, y - f, (step.f - f) / eta)
        yield {
            "dataset": config.dataset.label,
            "round": step.t,
            "distinct": len(np.unique(f.astype(np.float32))) / n,
            "gap": step.gap / eta / np.sqrt(n),
            "epsilon_low": np.sqrt(2 * epsilon.low / n),
            "epsilon_high": np.sqrt(2 * epsilon.high / n),
            "mce": bench.auditor_train.error(f, y - f),
        }
        f = step.f


def error_of_gbdt_rounds(measured: pd.DataFrame) -> Finding:
    """The bound of the multicalibration error by the gap, on `gbdt_rounds`."""
    bound = measured["gap"] + measured["epsilon_high"]
    dominated = measured["epsilon_low"] > measured["gap"]
    since = measured[~dominated].groupby("dataset")["round"].max() + 1
    last = measured["round"].max()
    rounds = [
        f"{name} {since.get(name, 0) if since.get(name, 0) <= last else 'none'}"
        for name in measured["dataset"].unique()
    ]
    return Finding(
        "G1",
        "Eq. (6), on GBDTs",
        "The training MCE of the paper's GBDT rounds is at most (gap/η + √(2ε_t))/√n.",
        [s.Check(mce, b) for mce, b in zip(measured["mce"], bound, strict=True)],
        remark="Unit, seed 0, leaves of one tree, ε_t bracketed. The round from which √(2ε_t) is "
        f"larger than gap/η: {', '.join(rounds)}.",
    )
