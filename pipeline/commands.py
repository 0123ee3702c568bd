"""What each ``stage=`` does and prints."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from pipeline import grid, results
from pipeline.compose import load, load_grid
from pipeline.config import Config
from pipeline.errors import ConfigError
from pipeline.keys import initial_key, run_key
from pipeline.stages import boost
from pipeline.stages import fetch as fetch_stage
from pipeline.stages import preprocess as preprocess_stage
from pipeline.stages import table1 as table1_stage
from pipeline.stages.curves import STRATEGIES
from pipeline.store import CorruptRun, RunId, RunStore

log = logging.getLogger("pipeline")


def fetch(config: Config, _: Sequence[str] = ()) -> fetch_stage.RawTable:
    """``stage=fetch``: get the raw table and say what it is."""
    table = fetch_stage.fetch(config.dataset)
    print(
        f"{config.dataset.display}: {len(table.frame)} rows x {table.frame.shape[1]} columns from "
        f"{table.origin}, content sha256 {table.sha256[:16]}…"
    )
    return table


def preprocess(config: Config, _: Sequence[str] = ()) -> None:
    """``stage=preprocess``: build the design matrix and describe it."""
    table = fetch(config)
    design = preprocess_stage.preprocess(table, config.dataset)
    n, d = design.X.shape
    print(f"design matrix {n} x {d} from {len(design.covariates)} covariates")
    print(f"target {' + '.join(table.target)}: mean {design.y.mean():.6g}, sd {design.y.std():.6g}")
    features = pd.DataFrame(design.X, columns=list(design.feature_names))
    summary = features.agg(["min", "mean", "max"]).T
    summary["missing"] = features.isna().sum()
    print(summary.to_string(float_format=lambda v: f"{v:.5g}"))


def table1(_: Config, overrides: Sequence[str] = ()) -> None:
    """``stage=table1``: the paper's Table 1 beside ours, under any ``dataset.`` overrides."""
    settings = [line for line in overrides if line.startswith("dataset.")]
    datasets = {name: load([*settings, f"dataset={name}"]).dataset for name in table1_stage.PAPER}
    table = table1_stage.table1(datasets)
    print(table.drop(columns="why").to_string(index=False))
    for name, why in zip(table["dataset"], table["why"], strict=True):
        if why:
            print(f"\n{name}: {why}")


def run(config: Config, overrides: Sequence[str]) -> None:
    """``stage=run``: one run or a grid; what is in the store is not computed again."""
    store = RunStore(Path(config.output_dir) / config.experiment.name)
    if config.experiment.is_grid:
        _run_grid(config, overrides, store)
    else:
        _run_one(config, store)


def _run_grid(config: Config, overrides: Sequence[str], store: RunStore) -> None:
    summary = grid.run_grid(load_grid(overrides), config.experiment.seeds, store)
    if summary.computed:
        log.info(
            "%d runs computed in %.1f s (%.1f s inside runs), %d found; all are in %s",
            summary.computed,
            summary.seconds,
            summary.run_seconds,
            summary.found,
            store.root,
        )


def _require_reportable(config: Config) -> None:
    """Raise `ConfigError` before anything is computed that could not be reported on."""
    grid_, stage = config.experiment, f"stage={config.stage}"
    if not grid_.is_grid:
        raise ConfigError(f"{stage}: needs a grid, such as experiment=paper")
    if set(grid_.strategies) != set(STRATEGIES):
        raise ConfigError(f"{stage}: experiment.strategies must be {', '.join(STRATEGIES)}")
    if config.boosting.rounds < 6:
        raise ConfigError(f"{stage}: boosting.rounds={config.boosting.rounds}: must be at least 6")
    if config.dataset.target_scaling != "none" and grid_.name == "paper":
        raise ConfigError(
            f"{stage}: the paper's report is of raw targets and shows standardised ones beside "
            "them (make readings); choose another experiment.name for a report of its own"
        )


def report(config: Config, overrides: Sequence[str], started: float | None = None) -> None:
    """``stage=report``: figures, verdicts and the page, from stored runs."""
    _require_reportable(config)
    store = RunStore(Path(config.output_dir) / config.experiment.name)
    configs = load_grid(overrides)
    standardised = {
        pair: c.model_copy(
            update={"dataset": c.dataset.model_copy(update={"target_scaling": "standardise"})}
        )
        for pair, c in configs.items()
    }
    wall = None if started is None else time.monotonic() - started
    statements = results.publish(
        store, configs, config.experiment.seeds, standardised, overrides, wall
    )
    print(results.scorecard(statements))
    _say_if_reduced(config)
    print(f"report: {store.root / 'report.html'}")


def _say_if_reduced(config: Config) -> None:
    grid_, full = config.experiment, load(["experiment=paper"]).experiment
    if len(grid_.datasets) < len(full.datasets) or len(grid_.seeds) < len(full.seeds):
        print(
            f"a reduced grid ({len(grid_.datasets)} datasets, {len(grid_.seeds)} seeds): its "
            "verdicts say little; those of experiment=paper count"
        )


def reproduce(config: Config, overrides: Sequence[str]) -> None:
    """``stage=reproduce``: the grid's missing runs, then the report."""
    started = time.monotonic()
    _require_reportable(config)
    run(config, overrides)
    report(config, overrides, started)
    minutes, seconds = divmod(round(time.monotonic() - started), 60)
    print(f"elapsed: {minutes} min {seconds} s")


def theory(config: Config, overrides: Sequence[str]) -> None:
    """``stage=theory``: every statement of the paper's theory, on random and on real data."""
    from pipeline.stages import laboratory

    _require_reportable(config)
    boost.compile_kernels()
    log.info("checking the paper's statements (about a minute) ...")
    folder = Path(config.output_dir) / config.experiment.name / "theory"
    print(laboratory.study(folder, load_grid(overrides)))
    print(f"findings: {folder / 'findings.json'}; stage=report shows them")


def _run_one(config: Config, store: RunStore) -> None:
    table = fetch_stage.fetch(config.dataset)
    run_id = RunId(
        config.dataset.label, config.strategy.name, config.seed, run_key(config, table.sha256)
    )
    try:
        stored = store.load(run_id)
    except CorruptRun as error:
        log.warning("%s; computing it again", error)
        stored = None
    if stored is not None:
        _print_header(stored.rounds)
        for _, row in stored.rounds.iterrows():
            print(_line(dict(row)))
        print(f"already computed: {store.runs / run_id.folder}")
        return
    why = store.why_missing(run_id)
    if why:
        log.info("a stored run of %s differs: %s", run_id, why)
    store.check_writable()
    rounds = _compute(config, store, table)
    print(f"stored in {store.save(run_id, rounds.rounds, rounds.record)}")


def _compute(config: Config, store: RunStore, table: fetch_stage.RawTable) -> boost.Run:
    design = preprocess_stage.preprocess(table, config.dataset)
    key = initial_key(config, table.sha256)
    initial = store.load_initial(config.dataset.label, config.seed, key)
    boost.compile_kernels()
    log.info("preparing the split%s ...", "" if initial else " and the initial forest")
    bench = boost.Workbench(config, design, initial)
    if initial is None:
        store.save_initial(config.dataset.label, config.seed, key, bench.initial)
    with tqdm(
        total=config.boosting.rounds + 1,
        unit="round",
        leave=False,
        disable=not sys.stderr.isatty(),
    ) as bar:

        def show(row: boost.Row) -> None:
            if row["round"] == 0:
                _print_header(pd.DataFrame([row]))
            tqdm.write(_line(row))
            bar.update()

        return boost.run(config, bench, show)


_COLUMNS = ("round", "mse_train", "mse_test", "mce_train", "mce_test", "gap", "weight")


def _print_header(rounds: pd.DataFrame) -> None:
    first = rounds.iloc[0]
    print(f"{first['dataset']} / {first['strategy']} / seed {first['seed']}")
    print("".join(f"{name:>12}" for name in _COLUMNS))


def _line(row: boost.Row) -> str:
    cells = [f"{int(row['round']):>12}"]
    for name in _COLUMNS[1:]:
        value = float(row[name])
        cells.append(f"{'':>12}" if value != value else f"{value:>12.6g}")
    return "".join(cells)
