"""The chapter on practice: does it help, against whom, when, and with which settings."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline import files
from pipeline.analysis.practice import figures, settings
from pipeline.analysis.practice import table as tables
from pipeline.analysis.practice.effects import (
    BASE,
    BEST_ROUND,
    by_situation,
    changes,
    mean_change,
    other_measures,
    overall,
    ranks,
    with_bounds,
)
from pipeline.analysis.practice.statements import Evidence, Statement, judge_all, percent
from pipeline.analysis.style import plain, save, styled
from pipeline.boosting.peers.algorithm import estimator_defaults
from pipeline.report.picture import Picture
from pipeline.runs.practice.run import CAUTIOUS, LAST

log = logging.getLogger("pipeline")

NAME, TUNED = "practice", "practice_tuned"
SETTINGS, DEFAULTS = "practice_settings", "practice_defaults"
SHOWN = (NAME, TUNED, SETTINGS, DEFAULTS)  # experiments that the chapter is made from
CHANGES_FILE = "practice_changes.csv"
TONES = {"holds": "good", "partly": "partly", "does not hold": "bad"}
METHODS_HEAD = (
    "Method", "Mean change, %", "Worst cell, %", "Surely better", "Surely worse", "MCE² left",
    "Calibration² left", "Miscalibrated", "Worst group", "Worst segment", "Rounds or trees",
    "CPU s", "MB",
)  # fmt: skip


@dataclass(frozen=True)
class DatasetTable:
    """A dataset's changes by method and situation, as text."""

    title: str
    note: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Situations:
    """Situations by how much our defaults gain there, and what a new model would."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class SettingsPart:
    """What the study of settings shows.

    ends : the change of the loss by how rounds end.  spread : by how much the levels of other
    settings differ in rounds that are stopped.  own_rows : the loss by where predictions of
    the model's own rows come from, against in-sample ones.  pairs : interactions that count.
    defaults : what the rule chose; ``kept`` if the estimators have them.
    """

    figure: Picture
    ends: str
    spread: str
    own_rows: str
    pairs: str
    n_runs: int
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    chosen: str
    kept: bool
    chosen_on: str


@dataclass(frozen=True)
class PracticeChapter:
    """All that the chapter shows."""

    n_runs: int
    n_cells: int
    n_seeds: int
    failed: int
    statements: Sequence[tuple[Statement, str]]
    figures: Sequence[Picture]
    critical: str
    situations: Situations
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    datasets: Sequence[DatasetTable]
    paper: Sequence[Sequence[str]]
    settings: SettingsPart | None
    tuned: Sequence[Sequence[str]]
    tuned_note: str


def write_changes(runs: pd.DataFrame, folder: Path) -> None:
    """The change of every method in every cell, with its interval, beside the table."""
    with files.replacing(folder / CHANGES_FILE) as scratch:
        changes(with_bounds(runs)).to_csv(scratch, index=False, float_format="%.6g")


def make_chapter(beside: Path, report: Path) -> PracticeChapter | None:
    """From the experiments' tables in the folder ``beside``; None if the first is not there."""
    found = _read(beside / NAME)
    if found is None or not _is_whole(found[0]):
        return None
    runs, labels = found
    others = {name: _read(beside / name) for name in (TUNED, SETTINGS, DEFAULTS)}
    defaults = others[DEFAULTS]
    chosen_on = [] if defaults is None else list(defaults[0]["dataset"].drop_duplicates())
    evidence = Evidence.of(runs, [str(name) for name in chosen_on], labels.tables)
    names = _names(labels)
    folder = report / "figures"
    ranked = evidence.changed[~evidence.changed["method"].str.endswith(BEST_ROUND)]
    with styled():
        drawn = figures.draw_effects(evidence.changed, plain(names), plain(labels.situations))
        save(drawn, folder, figures.EFFECTS)
        save(figures.draw_ranks(ranked, plain(names)), folder, figures.RANKS)
    write_changes(runs, report)
    failed = int((runs["failed"] != "").sum())
    _, critical = ranks(ranked)
    tuned, tuned_note = _tuned(others[TUNED], runs)
    return PracticeChapter(
        n_runs=len(runs[["dataset", "situation", "method", "seed"]].drop_duplicates()),
        n_cells=len(runs[["dataset", "situation"]].drop_duplicates()),
        n_seeds=runs["seed"].nunique(),
        failed=failed,
        statements=[(s, TONES[s.verdict]) for s in judge_all(evidence)],
        figures=[Picture.of(folder, name) for name in (figures.EFFECTS, figures.RANKS)],
        critical=f"{critical:.1f}",
        situations=_situations(evidence.changed, labels),
        head=METHODS_HEAD,
        rows=_method_rows(runs, evidence.changed, names),
        datasets=[_dataset_table(evidence.changed, runs, labels, d) for d in labels.datasets],
        paper=_papers(evidence.changed, runs, labels),
        settings=_settings(others[SETTINGS], defaults, folder),
        tuned=tuned,
        tuned_note=tuned_note,
    )


def _read(folder: Path) -> tuple[pd.DataFrame, tables.Labels] | None:
    runs, labels = tables.read(folder / tables.FILE), tables.Labels.read(folder)
    if runs is None or labels is None:
        if (folder / tables.FILE).is_file():
            log.warning("%s cannot be read: stage=practice makes it anew", folder / tables.FILE)
        return None
    return runs, labels


def _is_whole(runs: pd.DataFrame) -> bool:
    """Whether there is a model as it is to hold others against."""
    if BASE in set(runs["method"]):
        return True
    log.warning("a table of stage=practice without method=%s has no chapter", BASE)
    return False


def _names(labels: tables.Labels) -> dict[str, str]:
    """Names of methods, with those of best rounds."""
    return {
        **labels.methods,
        **{f"{m}, {BEST_ROUND}": f"{title}, {BEST_ROUND}" for m, title in labels.methods.items()},
    }


def _situations(changed: pd.DataFrame, labels: tables.Labels) -> Situations:
    """What helps where, from the situation in which our defaults gain most."""
    grid = by_situation(changed)
    shown = ["ours", "mcgrad", "residual", "lightgbm", "group_shift", "unit_stopped", "unit"]
    shown = [m for m in shown if m in grid.index]
    order = grid.columns
    if "ours" in grid.index:
        order = grid.T.sort_values("ours").index
    values = {m: grid.T[m].to_dict() for m in shown}
    rows = [
        [labels.situations.get(str(s), str(s)), *(percent(float(values[m][s])) for m in shown)]
        for s in order
    ]
    return Situations(["Situation", *(labels.methods.get(m, m) for m in shown)], rows)


def _method_rows(
    runs: pd.DataFrame, changed: pd.DataFrame, names: Mapping[str, str]
) -> list[list[str]]:
    found = overall(changed)
    measures = other_measures(with_bounds(runs))
    rows = []
    for name, row in sorted(found.items(), key=lambda item: item[1].change):
        more = measures.loc[[name]].iloc[0].astype(float).to_dict()
        bound = name.endswith(BEST_ROUND)
        rows.append(
            [
                names.get(name, name) + (f" ({row.failed} failed)" if row.failed else ""),
                percent(row.change).removesuffix(" %"),
                percent(row.worst).removesuffix(" %"),
                f"{row.helped:.0%}",
                f"{row.harmed:.0%}",
                f"{more['mce']:.2f}",
                f"{more['calibration']:.2f}",
                f"{more['significant']:.0%}",
                f"{more['group_bias']:.3f}",
                f"{more['segment_bias']:.3f}",
                f"{more['rounds']:.3g}",
                "" if bound else f"{more['cpu_seconds']:.2g}",
                "" if bound else f"{more['peak_mb']:.0f}",
            ]
        )
    return rows


def _dataset_table(
    changed: pd.DataFrame, runs: pd.DataFrame, labels: tables.Labels, dataset: str
) -> DatasetTable:
    cells = changed[changed["dataset"] == dataset]
    sizes = runs[runs["dataset"] == dataset].iloc[0]
    situations = [s for s in labels.situations if s in set(cells["situation"])]
    names = _names(labels)
    by_cell = {(str(c["method"]), str(c["situation"])): c for _, c in cells.iterrows()}
    rows = []
    for method in cells["method"].drop_duplicates():
        if method == BASE:
            continue
        texts = []
        for s in situations:
            c = by_cell[str(method), s]
            texts.append(
                f"{percent(float(c['change']))} [{100 * c['low']:.1f}, {100 * c['high']:.1f}]"
                .replace("-", "−")
            )  # fmt: skip
        rows.append([names.get(str(method), str(method)), *texts])
    note = (
        f"{int(sizes['n_correct'])} rows to correct on (of the first situation), "
        f"{int(sizes['n_validation'])} validation rows, {int(sizes['n_test'])} test rows."
    )
    head = ["Method", *(labels.situations[s] for s in situations)]
    return DatasetTable(labels.datasets[dataset], note, head, rows)


def _papers(changed: pd.DataFrame, runs: pd.DataFrame, labels: tables.Labels) -> list[list[str]]:
    """The paper's forest on each table: twenty rounds, the best round, stopped, a new model."""
    cells = changed[changed["situation"] == "forest"]
    wanted = ["unit", f"unit, {BEST_ROUND}", "unit_stopped", "ours", "lightgbm"]
    best = runs[(runs["situation"] == "forest") & (runs["method"] == "unit")]
    best = best[best["rule"] == "oracle"]
    rows = []
    for dataset, title in labels.datasets.items():
        one = cells[cells["dataset"] == dataset].set_index("method")["change"].to_dict()
        rounds = best.loc[best["dataset"] == dataset, "rounds"]
        if not set(wanted) <= set(one) or rounds.empty:
            continue
        rows.append([title, *(percent(float(one[m])) for m in wanted), f"{rounds.median():g}"])
    return rows


def _settings(
    found: tuple[pd.DataFrame, tables.Labels] | None,
    defaults: tuple[pd.DataFrame, tables.Labels] | None,
    folder: Path,
) -> SettingsPart | None:
    if found is None or defaults is None:
        return None
    runs, labels = found
    measured = settings.ratios(runs)
    with styled():
        save(figures.draw_settings(measured, settings.FACTORS), folder, figures.SETTINGS)
    ends = measured.groupby("rule")["log"].mean()
    said = [
        f"{title} {percent(float(np.expm1(ends[rule])))}" for rule, title in settings.ENDS.items()
    ]
    stopped = measured.loc[measured["rule"] == CAUTIOUS]
    pairs = settings.effects(measured).interactions.head(4)
    tried = settings.candidates(defaults[0])
    best = settings.chosen(tried)
    ours = estimator_defaults()
    rows = [
        [f"{row['eta']:g}", f"{row['n_trees']:g}", f"{row['max_depth']:g}",
         f"{row['n_iter_no_change']:g}", percent(float(row["mean"])), percent(float(row["worst"]))]
        for _, row in tried.iterrows()
    ]  # fmt: skip
    return SettingsPart(
        figure=Picture.of(folder, figures.SETTINGS),
        ends="; ".join(said),
        spread=_spread(measured.loc[measured["rule"] != LAST]),
        own_rows=_own_rows(stopped, labels),
        pairs=", ".join(
            f"{settings.TITLES[str(r['first'])]} × {settings.TITLES[str(r['second'])]} "
            f"({float(r['share']):.0%})"
            for _, r in pairs.iterrows()
        ),
        n_runs=len(runs) // runs["rule"].nunique(),
        head=["η", "Trees", "Depth", "Patience", "Mean change", "Worst cell"],
        rows=rows,
        chosen=", ".join(f"{name} = {value:g}" for name, value in best.items()),
        kept=all(ours[name] == value for name, value in best.items()),
        chosen_on=", ".join(defaults[1].datasets.values()),
    )


def _spread(stopped: pd.DataFrame) -> str:
    """By how much the levels of each setting differ, the largest first."""
    levels = settings.effects(stopped).levels
    ranges = {
        str(factor): 100 * float(np.ptp(np.expm1(part["effect"].to_numpy(float))))
        for factor, part in levels.groupby("factor", sort=False)
    }
    ordered = sorted(ranges.items(), key=lambda item: -item[1])
    return ", ".join(f"{settings.TITLES[name]} {value:.1f}" for name, value in ordered)


def _own_rows(stopped: pd.DataFrame, labels: tables.Labels) -> str:
    """Where the predictions of a forest's own rows come from, against in-sample ones."""
    forests = [s for s in labels.situations if s.startswith("forest")]
    means = {
        s: stopped.loc[stopped["situation"] == s].groupby("dataset")["log"].mean() for s in forests
    }
    parts = []
    for name in forests[1:]:
        change = float(np.expm1((means[name] - means[forests[0]]).mean()))
        parts.append(f"{labels.situations[name]} {percent(change)}")
    return ", ".join(parts)


def _tuned(
    found: tuple[pd.DataFrame, tables.Labels] | None, runs: pd.DataFrame
) -> tuple[list[list[str]], str]:
    """Each tuned method beside its defaults, on the same cells and seeds."""
    if found is None:
        return [], ""
    tuned, labels = found
    cells = pd.MultiIndex.from_frame(tuned[["dataset", "situation", "seed"]].drop_duplicates())
    keys = pd.MultiIndex.from_frame(runs[["dataset", "situation", "seed"]])
    same = tables.own_rows(runs[keys.isin(cells)])
    with_defaults = changes(same)
    rows = []
    for name, row in overall(changes(tables.own_rows(tuned))).items():
        if name == BASE:
            continue
        base = {"unit_tuned": "unit_stopped"}.get(name, name.removesuffix("_tuned"))
        before = with_defaults[with_defaults["method"] == base]
        rows.append(
            [
                labels.methods.get(name, name).removesuffix(", tuned"),
                percent(mean_change(before)) if len(before) else "",
                percent(row.change),
                f"{percent(row.worst)} ({row.worst_cell})",
            ]
        )
    note = (
        f"{len(labels.datasets)} tables, {len(labels.situations)} situations "
        f"({', '.join(labels.situations.values())}), {tuned['seed'].nunique()} seeds"
    )
    return rows, note
