"""From stored runs to an experiment's results: tables, verdicts, figures and the page.

Nothing is computed anew here; every number comes from the store.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pandas as pd

from pipeline.boosting.audit import READINGS
from pipeline.config import Config
from pipeline.errors import UserError
from pipeline.grid import Configs, runs_of
from pipeline.stages import claims, figures, report, table1
from pipeline.store import CorruptRun, RunId, RunStore
from pipeline.theory import chapter

SHORT_READINGS = {
    "leaf_indicators": "leaf\nindicators",
    "random_leaf_values": "random\nleaf values",
    "fitted_leaf_values": "fitted\nleaf values",
}


class MissingRunsError(UserError):
    """The store lacks runs of the experiment."""


@dataclass(frozen=True)
class Results:
    """An experiment's runs, all of them, as tables."""

    rounds: pd.DataFrame
    sizes: pd.DataFrame
    records: Sequence[Mapping[str, Any]]


def collect(store: RunStore, runs: Sequence[RunId]) -> Results:
    """Read all ``runs``; raises `MissingRunsError` if some are not there."""
    frames, sizes, records, missing = [], [], [], []
    for run in runs:
        try:
            stored = store.load(run)
        except CorruptRun:
            stored = None
        if stored is None:
            missing.append(str(run))
            continue
        frames.append(stored.rounds)
        records.append(stored.record)
        name = {"dataset": run.dataset, "strategy": run.strategy, "seed": run.seed}
        sizes.append(name | stored.record["sizes"])
    if missing:
        raise MissingRunsError(
            f"{len(missing)} of {len(runs)} runs are not in {store.root} (the first is "
            f"{missing[0]}); compute them with stage=run"
        )
    return Results(pd.concat(frames, ignore_index=True), pd.DataFrame(sizes), records)


def publish(
    store: RunStore,
    configs: Configs,
    seeds: Sequence[int],
    standardised: Configs,
    overrides: Sequence[str] = (),
    wall_seconds: float | None = None,
) -> list[claims.Statement]:
    """Write the experiment's tables, figures, verdicts and page; gives the verdicts."""
    results = collect(store, runs_of(configs, seeds))
    datasets = {config.dataset.label: config.dataset for config in configs.values()}
    titles = {name: dataset.display for name, dataset in datasets.items()}
    table = table1.table1(datasets)
    evidence = _evidence(results, configs, table, titles)
    statements = claims.judge(evidence)

    folder = store.root / "figures"
    names = figures.draw_all(evidence, folder)
    verdicts = _verdicts_by_reading(store, results, configs, seeds, standardised, table, titles)
    figures.save(figures.readings(verdicts), folder, "readings")

    results.rounds.to_parquet(store.root / "rounds.parquet", index=False)
    table.to_csv(store.root / "table1.csv", index=False)
    verdicts.to_csv(store.root / "verdicts_by_reading.csv")
    (store.root / "claims.json").write_text(
        json.dumps(claims.as_records(statements), indent=2, ensure_ascii=False), encoding="utf-8"
    )
    page = report.Page(
        title="Multicalibration gradient boosting: a replication",
        command=" ".join(["python -m pipeline", *_with_stage_report(overrides)]),
        statements=statements,
        figures=[*names, "readings"],
        figure_folder=folder,
        table1=table,
        records=results.records,
        n_runs=len(results.records),
        wall_seconds=wall_seconds,
        theory=chapter.render(
            store.root / "theory",
            results.rounds.merge(results.sizes[["dataset", "strategy", "seed", "n_train"]]),
            titles,
            evidence.eta,
        ),
    )
    (store.root / "report.html").write_text(report.render(page), encoding="utf-8")
    return statements


def _with_stage_report(overrides: Sequence[str]) -> list[str]:
    return [*(shlex.quote(o) for o in overrides if not o.startswith("stage=")), "stage=report"]


def scorecard(statements: Sequence[claims.Statement]) -> str:
    """The verdicts as a table for a terminal."""
    mark = {"replicated": "yes", "partly": "partly", "not replicated": "NO"}
    lines = [f"{'':<5}{'verdict':<9}statement"]
    for s in statements:
        lines.append(f"{s.id:<5}{mark[s.verdict]:<9}{s.text} (paper: {s.paper})")
        if s.explanation:
            lines.append(f"{'':<14}{s.explanation}")
    counts = pd.Series([s.verdict for s in statements]).value_counts()
    tally = ", ".join(f"{counts.get(v, 0)} {v}" for v in mark)
    return "\n".join([*lines, f"{len(statements)} statements: {tally}"])


def _evidence(
    results: Results, configs: Configs, table: pd.DataFrame, titles: Mapping[str, str]
) -> claims.Evidence:
    eta = next(iter(configs.values())).boosting.eta
    return claims.Evidence(results.rounds, titles, results.sizes, eta, table)


def _verdicts_by_reading(
    store: RunStore,
    raw: Results,
    configs: Configs,
    seeds: Sequence[int],
    standardised: Configs,
    table: pd.DataFrame,
    titles: Mapping[str, str],
) -> pd.DataFrame:
    """Statements × (target scaling, reading of the MCE); standardised targets if they were run."""
    main: Config = next(iter(configs.values()))
    scaled = main.dataset.target_scaling == "standardise"
    variants = {"standardised" if scaled else "raw": raw}
    if not scaled:
        with suppress(MissingRunsError):  # `make readings` adds them
            variants["standardised"] = collect(store, runs_of(standardised, seeds))
    columns = {}
    for scaling, results in variants.items():
        for reading in READINGS:
            rounds = results.rounds
            if reading != main.audit.reading:
                if reading not in main.audit.also:
                    continue
                rounds = rounds.assign(
                    mce_train=rounds[f"mce_train_{reading}"], mce_test=rounds[f"mce_test_{reading}"]
                )
            evidence = _evidence(
                Results(rounds, results.sizes, results.records), configs, table, titles
            )
            column = {s.id: s.verdict for s in claims.judge(evidence)}
            columns[f"{scaling}\n{SHORT_READINGS[reading]}"] = column
    return pd.DataFrame(columns).drop(index="11", errors="ignore")
