"""``stage=oracle``: what sets the rate of the gaps? Trees per round against the factor."""

from __future__ import annotations

import json
from dataclasses import asdict

import pandas as pd

from pipeline import files
from pipeline.analysis import oracle
from pipeline.analysis.style import plain, save, styled
from pipeline.errors import ConfigError
from pipeline.report.place import report_folder
from pipeline.runs.plan import Plan
from pipeline.runs.store import clear_errors
from pipeline.stages import run
from pipeline.stages.report import FEWEST_ROUNDS


def main(plan: Plan) -> None:
    """Compute what is missing, and write table, verdict and figure."""
    _require(plan)
    run.main(plan)
    runs = oracle.measure(plan)
    judged = oracle.judge(runs)
    with clear_errors(plan.store.root):
        _write(plan, runs, judged)
    print(_table(runs))
    print(f"{judged.verdict}: {judged.text}\n{judged.measured}\nrule: {judged.rule}")
    file = oracle.table_file(report_folder(plan))
    print(f"table: {file}; stage=report of experiment=paper shows it")


def _write(plan: Plan, runs: pd.DataFrame, judged: oracle.Judged) -> None:
    root = report_folder(plan)
    with files.replacing(oracle.table_file(root)) as scratch:
        runs.to_csv(scratch, index=False)
    text = json.dumps(asdict(judged), indent=2, ensure_ascii=False)
    files.write_text(root / f"{oracle.NAME}.json", text)
    several = runs.groupby("dataset")["rows"].nunique().max() > 1
    draw, name = (oracle.draw_by_rows, oracle.BY_ROWS) if several else (oracle.draw, oracle.NAME)
    with styled():
        save(draw(runs, plain(plan.titles)), root / "figures", name)


def _table(runs: pd.DataFrame) -> str:
    means = oracle.summary(runs)
    table = means.pivot_table(
        index=["dataset", "rows", "eta"], columns="trees", values="factor", sort=False
    )
    return "factor gap_{t+1}/gap_t, by trees per round\n" + table.round(3).to_string()


def _require(plan: Plan) -> None:
    experiment = plan.config.experiment
    if not {oracle.TREES, oracle.ETA} <= set(experiment.further) or experiment.strategies != (
        "unit",
    ):
        raise ConfigError(
            "stage=oracle: needs experiment=oracle, or a grid of strategy unit whose "
            f"experiment.vary has {oracle.TREES} and {oracle.ETA}"
        )
    if plan.config.boosting.rounds < FEWEST_ROUNDS:
        raise ConfigError(
            f"stage=oracle: boosting.rounds={plan.config.boosting.rounds}: must be at least "
            f"{FEWEST_ROUNDS}"
        )
