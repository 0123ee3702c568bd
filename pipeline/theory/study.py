"""All that ``stage=theory`` measures, and the folder it is written to."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from pipeline import files
from pipeline.analysis.bounds import gap_bound, sharp_gap_bound
from pipeline.boosting.algorithm import advance, boost
from pipeline.boosting.rescaling import Unit
from pipeline.config.schema import Config
from pipeline.runs.kinds.rounds import KIND, CommonGround
from pipeline.runs.plan import Plan
from pipeline.runs.strategies import rescaling_of
from pipeline.runs.tasks import Task
from pipeline.theory import curves
from pipeline.theory.dynamics import run
from pipeline.theory.findings import REGISTRY, record
from pipeline.theory.instances import N_INSTANCES, Bank, Instance
from pipeline.theory.rows import oracle_error, real_instances
from pipeline.theory.trials import Trials

log = logging.getLogger("pipeline")

EXACT_ROUNDS = 60
EXACT_KIND = "rbf"


@dataclass(frozen=True)
class Study:
    """What was measured."""

    findings: Sequence[Mapping[str, Any]]  # their records
    curves: pd.DataFrame  # of the chapter's figures
    # exact, gbdt: rounds on the datasets, with an exact oracle and with the paper's GBDT
    exact: pd.DataFrame
    gbdt: pd.DataFrame

    @property
    def widths(self) -> dict[str, float]:
        """The width of each dataset's target range, which no residual is taken to exceed."""
        return dict(self.gbdt.groupby("dataset")["range"].first())

    @property
    def largest(self) -> dict[str, float]:
        """The largest residual on test rows of each dataset's Unit run."""
        return dict(self.gbdt.groupby("dataset")["largest"].max())

    TABLES: ClassVar[Mapping[str, str]] = {
        "curves": "curves.csv",
        "exact": "exact_rounds.csv",
        "gbdt": "gbdt_rounds.csv",
    }
    FINDINGS: ClassVar[str] = "findings.json"
    FILES: ClassVar[Sequence[str]] = (FINDINGS, *TABLES.values())

    def write(self, folder: Path) -> None:
        """Keep it in ``folder``, in the place of an earlier one."""
        text = json.dumps(self.findings, indent=2, ensure_ascii=False)
        files.write_text(folder / self.FINDINGS, text)
        for name, file in self.TABLES.items():
            files.write_text(folder / file, getattr(self, name).to_csv(index=False))

    @classmethod
    def read(cls, folder: Path) -> Study | None:
        """What `write` kept; None if there is nothing, or something incomplete."""
        missing = [file for file in cls.FILES if not (folder / file).exists()]
        if len(missing) == len(cls.FILES):
            return None
        try:
            if missing:
                raise ValueError(f"it lacks {', '.join(missing)}")
            tables = {
                name: pd.read_csv(folder / file, keep_default_na=name != "curves")
                for name, file in cls.TABLES.items()
            }
            findings = json.loads((folder / cls.FINDINGS).read_text(encoding="utf-8"))
            if "range" not in tables["gbdt"] or not all("level" in f for f in findings):
                raise ValueError("it is of an earlier edition")
        except ValueError as error:
            log.warning("%s cannot be read (%s): stage=theory makes it anew", folder, error)
            return None
        return cls(findings=findings, **tables)


def conduct(plan: Plan, n: int = N_INSTANCES) -> Study:
    """Measure everything; ``n`` random instances of each kind."""
    of_dataset: dict[str, list[Config]] = {}
    for config in plan.configs:
        of_dataset.setdefault(config.dataset.label, []).append(config)
    real: list[Instance] = []
    exact: list[pd.DataFrame] = []
    gbdt: list[dict[str, Any]] = []
    for configs in of_dataset.values():
        log.info("theory: rows of %s ...", configs[0].dataset.display)
        task = Task(KIND, tuple(configs), plan.library.sha256(configs[0].dataset))
        initial = plan.store.load_initial(task.dataset, task.seed, task.initial_key)
        ground = CommonGround(configs[0], plan.library.design(configs[0].dataset), initial)
        instances = real_instances(ground.split.X_train, ground.split.y_train)
        real += instances
        of_strategy = {config.strategy.label: config for config in configs}
        exact += [exact_rounds(config, instances) for config in of_strategy.values()]
        gbdt += gbdt_rounds(configs[0], ground)
    log.info("theory: statements on random instances ...")
    return Study(
        findings=[record(finding) for finding in REGISTRY.judge_all(Trials(Bank(n, real)))],
        curves=curves.measure(),
        exact=pd.concat(exact, ignore_index=True),
        gbdt=pd.DataFrame(gbdt),
    )


def exact_rounds(config: Config, instances: Sequence[Instance]) -> pd.DataFrame:
    """Gaps of the exact oracle on a dataset's rows, and Unit's bounds on the smallest one."""
    i = next(i for i in instances if i.kind == EXACT_KIND)
    t = run(i.y, i.f0, i.learners, i.eta, EXACT_ROUNDS, rescaling_of(config.strategy))
    columns = {
        "dataset": config.dataset.label,
        "strategy": config.strategy.label,
        "round": t.counts,
        "gap": t.gaps,
        "paper": [gap_bound(t.eta, t.loss[0], k) for k in t.counts],
        "sharp": [sharp_gap_bound(t.eta, t.loss[0], k) for k in t.counts],
    }
    return pd.DataFrame(columns)


def gbdt_rounds(config: Config, ground: CommonGround) -> Iterator[dict[str, Any]]:
    """ε_t of the rounds of a Unit run with the paper's GBDT, and f_t's values per row.

    ε_t and the gap are in units of the target, √(2ε_t/n) and ‖Δ_t‖/(η√n), as they enter the bound.
    ``largest`` is that of |y − f_t| and |y − f_{t+1}| on the test rows, ``range`` the width of the
    target's range.
    """
    X, y, f = ground.split.X_train, ground.split.y_train, ground.initial.train
    y_test, f_test = ground.split.y_test, ground.initial.test
    eta, n = config.boosting.eta, len(y)
    for step in boost(y, f, config.boosting.rounds, eta, Unit(), ground.fit_round):
        low, high = oracle_error(X, f, y - f, (step.f - f) / eta)
        after = advance(f_test, ground.split.X_test, step, eta)
        yield {
            "dataset": config.dataset.label,
            "round": step.t,
            "distinct": len(np.unique(f.astype(np.float32))) / n,
            "gap": step.gap / eta / np.sqrt(n),
            "epsilon_low": np.sqrt(2 * low / n),
            "epsilon_high": np.sqrt(2 * high / n),
            "mce": ground.auditor_train.error(y=y, prediction=f),
            "largest": max(np.abs(y_test - f_test).max(), np.abs(y_test - after).max()),
            "range": np.ptp(np.concatenate([y, y_test])),
        }
        f, f_test = step.f, after
