"""Practice: does correcting a model help, against what, when, and with which settings?"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline.analysis.style import plain
from pipeline.boosting.peers.algorithm import estimator_defaults
from pipeline.chapters.base import Chapter, Context, Section, write_table
from pipeline.chapters.practice import figures, settings
from pipeline.chapters.practice import table as tables
from pipeline.chapters.practice.effects import (
    BASE,
    BEST_ROUND,
    CELL,
    by_situation,
    changes,
    mean_change,
    other_measures,
    overall,
    ranks,
    with_bounds,
)
from pipeline.chapters.practice.findings import Compared, finding
from pipeline.report.place import report_folder
from pipeline.report.render import changed, percent, share
from pipeline.runs.kinds.corrections.run import ORACLE
from pipeline.runs.plan import Plan

log = logging.getLogger("pipeline")

# The experiments that the chapter is made from.
NAME, EXTERNAL, TUNED = "practice", "practice_external", "practice_tuned"
DEFAULTS = "practice_defaults"
CHANGES_FILE = "practice_changes.csv"

Found = tuple[pd.DataFrame, tables.Labels]


class Practice(Chapter):
    """Corrections of a model compared on held-out rows."""

    title = "Does it help in practice?"
    part = "Should I use it, and how?"
    order = 70
    curated = {
        f"paper/{CHANGES_FILE}": CHANGES_FILE,
        **{f"{e}/{tables.FILE}": f"{e}.parquet" for e in (NAME, EXTERNAL, TUNED, DEFAULTS)},
        **{
            f"paper/figures/{name}.{kind}": f"figures/{name}.{kind}"
            for name in (figures.EFFECTS, figures.RANKS)
            for kind in ("png", "pdf")
        },
    }

    def measure(self, plan: Plan) -> str:
        runs, folder = tables.collect(plan), report_folder(plan)
        file = tables.write(runs, folder, tables.Labels.of(plan))
        if BASE in set(runs["method"]):
            _write_changes(runs, folder)
        return f"{_summary(plan, runs)}table: {file}"

    def section(self, context: Context) -> Section | None:
        if not context.scope.is_replication:
            return None
        found = self._stored(context, NAME)
        if found is None or not _is_whole(found[0]):
            return None
        runs, labels = found
        external, tuned, defaults = (
            self._stored(context, name) for name in (EXTERNAL, TUNED, DEFAULTS)
        )
        compared = Compared.of(runs, labels)
        changed, names, folder = compared.changed, _names(labels), context.folder / "figures"
        ranked = changed[~changed["method"].str.endswith(BEST_ROUND)]
        printed, situations = plain(names), plain(labels.situations)
        drawn = [
            self.draw(
                lambda: figures.draw_effects(changed, printed, situations), folder, figures.EFFECTS
            ),
            self.draw(lambda: figures.draw_ranks(ranked, printed), folder, figures.RANKS),
        ]
        _write_changes(runs, context.folder)
        content: dict[str, Any] = {
            "n_runs": len(runs[["dataset", "situation", "method", "seed"]].drop_duplicates()),
            "n_cells": len(runs[["dataset", "situation"]].drop_duplicates()),
            "n_seeds": runs["seed"].nunique(),
            "failed": int((runs["failed"] != "").sum()),
            "critical": f"{ranks(ranked)[1]:.1f}",
            "situations": _situations(changed, labels),
            "methods": _methods(runs, changed, names),
            "datasets": [_dataset(changed, runs, labels, d) for d in labels.datasets],
            "paper": _papers_forest(changed, runs, labels),
            "external": _external(external),
            "defaults": _defaults(defaults),
            "tuned": _tuned(tuned, runs),
        }
        facts = _facts(compared, "paper")
        if external is not None:
            facts |= _facts(Compared.of(*external), "external")
        judged = finding.judge_all(compared)
        verdicts = {j.id: j.verdict for j in judged}
        facts |= {"overfits": verdicts.get("P1", ""), "stops": verdicts.get("P2", "")}
        return Section(content, judged, drawn, facts=facts)

    def _stored(self, context: Context, name: str) -> Found | None:
        file = self.result(context, f"{name}/{tables.FILE}")
        found = tables.read(file)
        if found is None and file.is_file():
            log.warning("%s cannot be read: stage=reproduce makes it anew", file)
        return found


CHAPTER = Practice()


def _facts(e: Compared, name: str) -> dict[str, str]:
    """What sentences say of the methods that matter, of a set of tables."""
    found = {
        "cells": str(len(e.table[CELL].drop_duplicates())),
        "splits": str(e.table["seed"].nunique()),
    }
    unit = e.cells("unit")
    for kind, is_log in (("squared", False), ("log", True)):
        some = unit[unit["dataset"].isin(e.classes) == is_log]
        if len(some):
            found |= {
                f"{kind}_cells": str(len(some)),
                f"{kind}_worse": share((some["low"] > 0).mean(), 0),
                f"{kind}_better": share((some["high"] < 0).mean(), 0),
                f"{kind}_n_worse": str((some["low"] > 0).sum()),
                f"{kind}_n_better": str((some["high"] < 0).sum()),
                f"{kind}_mean": changed(mean_change(some)),
            }
    for method, row in overall(e.changed).items():
        found |= {f"{method}_mean": percent(row.change), f"{method}_worst": percent(row.worst)}
    return {f"{name}_{key}": value for key, value in found.items()}


def _summary(plan: Plan, runs: pd.DataFrame) -> str:
    """For a terminal: the defaults that were tried, or methods by what they gain."""
    options = [name for name in estimator_defaults() if name in runs]
    if options:
        return f"{settings.candidates(runs, options).to_string(index=False)}\n"
    if plan.config.experiment.further or BASE not in set(runs["method"]):
        return ""
    labels = tables.Labels.of(plan)
    found = sorted(overall(changes(with_bounds(runs))).items(), key=lambda item: item[1].change)
    lines = [
        f"  {labels.method(name):<32} {percent(row.change):>9}   worst "
        f"{percent(row.worst):>9} ({labels.cell(*row.worst_cell)})"
        + (f", {row.failed} runs failed" if row.failed else "")
        for name, row in found
    ]
    head = "change of the mean test loss against the model as it is, over all cells"
    return "\n".join([head, *lines, ""])


def _write_changes(runs: pd.DataFrame, folder: Path) -> None:
    """The change of every method in every cell, with its interval."""
    write_table(folder / CHANGES_FILE, changes(with_bounds(runs)), float_format="%.6g")


def _is_whole(runs: pd.DataFrame) -> bool:
    """Whether there is a model as it is to hold others against."""
    if BASE in set(runs["method"]):
        return True
    log.warning("a table of corrections without method=%s has no chapter", BASE)
    return False


def _names(labels: tables.Labels) -> dict[str, str]:
    """Names of methods, with those of best rounds."""
    best = {f"{m}, {BEST_ROUND}": f"{t}, {BEST_ROUND}" for m, t in labels.methods.items()}
    return {**labels.methods, **best}


def _situations(changed: pd.DataFrame, labels: tables.Labels) -> pd.DataFrame:
    """What helps where, from the situation in which our defaults gain most."""
    grid = by_situation(changed)
    wanted = ("ours", "mcgrad", "residual", "lightgbm", "group_shift", "unit_stopped", "unit")
    shown = [m for m in wanted if m in grid.index]
    table = grid.T.sort_values("ours") if "ours" in grid.index else grid.T
    table = table[shown].rename(columns=dict(labels.methods), index=dict(labels.situations))
    return table.map(percent).rename_axis("Situation").reset_index()


def _methods(runs: pd.DataFrame, changed: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    measures = other_measures(with_bounds(runs))
    rows = []
    for name, row in sorted(overall(changed).items(), key=lambda item: item[1].change):
        more = measures.loc[[name]].iloc[0].astype(float).to_dict()
        bound = name.endswith(BEST_ROUND)
        rows.append(
            {
                "Method": names.get(name, name) + (f" ({row.failed} failed)" if row.failed else ""),
                "Change": percent(row.change),
                "Worst": percent(row.worst),
                "Better": share(row.helped, 0),
                "Worse": share(row.harmed, 0),
                "MCE² left": f"{more['mce']:.2f}",
                "Calibration² left": f"{more['calibration']:.2f}",
                "Miscalibrated": share(more["significant"], 0),
                "Worst group": f"{more['group_bias']:.3f}",
                "Worst segment": f"{more['segment_bias']:.3f}",
                "Rounds or trees": f"{more['rounds']:.3g}",
                "CPU s": "" if bound else f"{more['cpu_seconds']:.2g}",
                "MB": "" if bound else f"{more['peak_mb']:.0f}",
            }
        )
    return pd.DataFrame(rows)


def _dataset(
    changed: pd.DataFrame, runs: pd.DataFrame, labels: tables.Labels, dataset: str
) -> tuple[str, str, pd.DataFrame]:
    """A dataset's title, a note and its changes by method and situation."""
    cells = changed[(changed["dataset"] == dataset) & (changed["method"] != BASE)]
    sizes = runs[runs["dataset"] == dataset].iloc[0]
    texts = cells.assign(
        text=[
            f"{percent(change)} [{100 * low:.1f}, {100 * high:.1f}]".replace("-", "−")
            for change, low, high in zip(cells["change"], cells["low"], cells["high"], strict=True)
        ]
    )
    table = texts.pivot_table(
        index="method", columns="situation", values="text", aggfunc="first", sort=False
    )
    table = table[[s for s in labels.situations if s in table]]
    table = table.rename(index=_names(labels), columns=dict(labels.situations))
    note = (
        f"{int(sizes['n_correct'])} rows to correct on (of the first situation), "
        f"{int(sizes['n_validation'])} validation rows, {int(sizes['n_test'])} test rows."
    )
    return labels.datasets[dataset], note, table.rename_axis("Method").reset_index()


def _papers_forest(
    changed: pd.DataFrame, runs: pd.DataFrame, labels: tables.Labels
) -> pd.DataFrame:
    """The paper's forest on each table: twenty rounds, the best round, stopped, a new model."""
    cells = changed[changed["situation"] == "forest"]
    wanted = {
        "unit": "Unit, 20 rounds",
        f"unit, {BEST_ROUND}": "Unit, best round",
        "unit_stopped": "Unit, stopped",
        "ours": "Our defaults",
        "lightgbm": "New LightGBM",
    }
    best = runs[(runs["situation"] == "forest") & (runs["method"] == "unit")]
    best = best[best["rule"] == ORACLE]
    rows = []
    for dataset, title in labels.datasets.items():
        one = cells[cells["dataset"] == dataset].set_index("method")["change"].to_dict()
        rounds = best.loc[best["dataset"] == dataset, "rounds"]
        if set(wanted) <= set(one) and not rounds.empty:
            gains = {head: percent(float(one[m])) for m, head in wanted.items()}
            rows.append({"Table": title, **gains, "Median best round": f"{rounds.median():g}"})
    return pd.DataFrame(rows)


def _external(found: Found | None) -> dict[str, Any] | None:
    """The same comparison on tables that took no part in any choice."""
    if found is None or not _is_whole(found[0]):
        return None
    runs, labels = found
    compared = Compared.of(runs, labels)
    return {
        "n_cells": len(runs[CELL].drop_duplicates()),
        "n_seeds": runs["seed"].nunique(),
        "methods": _methods(runs, compared.changed, _names(labels)),
        "judged": finding.judge_all(compared),
        "datasets": [_dataset(compared.changed, runs, labels, d) for d in labels.datasets],
    }


def _defaults(found: Found | None) -> dict[str, Any] | None:
    """The defaults that were tried on development tables, and what the rule chose of them."""
    if found is None:
        return None
    runs, labels = found
    options = [name for name in estimator_defaults() if name in runs]
    tried = settings.candidates(runs, options)
    best = settings.chosen(tried, options)
    ours = estimator_defaults()
    own = tried[(tried[options] == pd.Series({n: ours[n] for n in options})).all(axis=1)]
    return {
        "ours": " and ".join(percent(own[c].iloc[0]) for c in ("mean", "worst") if len(own)),
        "tried": tried[options].assign(
            **{"mean change": tried["mean"].map(percent), "worst cell": tried["worst"].map(percent)}
        ),
        "chosen": ", ".join(f"{name} = {value}" for name, value in best.items()),
        "kept": all(ours[name] == value for name, value in best.items()),
        "tables": ", ".join(labels.datasets.values()),
        "seeds": ", ".join(str(seed) for seed in sorted(runs["seed"].unique())),
        "no_harm": share(settings.NO_HARM),
    }


def _tuned(found: Found | None, runs: pd.DataFrame) -> dict[str, Any] | None:
    """Each tuned method and its defaults, on the same cells and seeds."""
    if found is None:
        return None
    tuned, labels = found
    case = ["dataset", "situation", "seed"]
    cells = pd.MultiIndex.from_frame(tuned[case].drop_duplicates())
    same = tables.own_rows(runs[pd.MultiIndex.from_frame(runs[case]).isin(cells)])
    with_defaults = changes(same)
    rows = []
    for name, row in overall(changes(tables.own_rows(tuned))).items():
        if name == BASE:
            continue
        base = {"unit_tuned": "unit_stopped"}.get(name, name.removesuffix("_tuned"))
        before = with_defaults[with_defaults["method"] == base]
        rows.append(
            {
                "Method": labels.method(name).removesuffix(", tuned"),
                "Defaults": percent(mean_change(before)) if len(before) else "",
                "Tuned": percent(row.change),
                "Tuned, worst cell": f"{percent(row.worst)} ({labels.cell(*row.worst_cell)})",
            }
        )
    note = (
        f"{len(labels.datasets)} tables, {len(labels.situations)} situations "
        f"({', '.join(labels.situations.values())}), {tuned['seed'].nunique()} seeds"
    )
    return {"table": pd.DataFrame(rows), "note": note}
