"""Writing an experiment's results: tables, verdicts, figures and the page."""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from pipeline import files
from pipeline.analysis import claims, figures, oracle
from pipeline.analysis.certificates import certificate_table
from pipeline.analysis.claims import Claim
from pipeline.analysis.evidence import Evidence
from pipeline.analysis.noise import noise_table
from pipeline.analysis.readings import verdicts_by_reading
from pipeline.analysis.style import plain, save, styled
from pipeline.report import errata
from pipeline.report.chapter import Chapter, make_chapter
from pipeline.report.oracle import OracleChapter
from pipeline.report.page import make_page, render
from pipeline.report.picture import Picture
from pipeline.runs.plan import Plan
from pipeline.theory import figures as theory_figures
from pipeline.theory.study import Study

log = logging.getLogger("pipeline")

LEAVES = "leaf_indicators"


def publish(plan: Plan, evidence: Evidence, wall_seconds: float | None = None) -> list[Claim]:
    """Write everything below the experiment's folder; gives the claims with their verdicts."""
    root = plan.store.root
    judged = claims.judge_all(evidence)
    verdicts = verdicts_by_reading(plan, evidence)
    names = figures.draw_all(evidence, verdicts, root / "figures")
    with files.replacing(root / "rounds.parquet") as scratch:
        evidence.rounds.to_parquet(scratch, index=False)
    noise = noise_table(evidence)
    _write_table(root / "noise.csv", noise)
    _write_table(root / "table1.csv", evidence.table1)
    _write_table(root / "verdicts_by_reading.csv", verdicts, index=True)
    records = json.dumps(claims.as_records(judged), indent=2, ensure_ascii=False)
    files.write_text(root / "claims.json", records)
    page = make_page(
        evidence,
        judged,
        noise,
        [Picture.of(root / "figures", name) for name in names],
        _theory(theory_folder(plan), evidence),
        _oracle(plan),
        _again(plan),
        wall_seconds,
    )
    files.write_text(page_file(plan), render(page))
    return judged


def _write_table(path: Path, table: pd.DataFrame, *, index: bool = False) -> None:
    with files.replacing(path) as scratch:
        table.to_csv(scratch, index=index)


def page_file(plan: Plan) -> Path:
    """Where an experiment's page is."""
    return plan.store.root / "report.html"


def theory_folder(plan: Plan) -> Path:
    """Where ``stage=theory`` keeps its study, beside the experiment's runs."""
    return plan.store.root / "theory"


def _theory(folder: Path, evidence: Evidence) -> Chapter | None:
    study = Study.read(folder)
    if study is None:
        return None
    if not set(evidence.datasets) <= set(study.widths):
        log.warning("%s is of other datasets: stage=theory makes it anew", folder)
        return None
    leaves = _of_leaf_indicators(evidence)
    names = theory_figures.draw_all(study, evidence, leaves, folder / "figures")
    points = errata.make_errata(study.findings)
    files.write_text(folder / "errata.html", errata.as_html(points))
    files.write_text(folder / "errata.md", errata.as_markdown(points))
    certificates = pd.DataFrame()
    if leaves is not None:
        certificates = certificate_table(leaves, study.widths, study.largest)
        _write_table(folder / "certificates.csv", certificates)
    pictures = [Picture.of(folder / "figures", name) for name in names]
    return make_chapter(study, pictures, certificates, sum(n for _, n in points.tally))


def _of_leaf_indicators(evidence: Evidence) -> Evidence | None:
    """The runs with the one reading that can be certified, if they recorded it."""
    reading = evidence.records[0]["config"]["audit"]["reading"]
    if reading == LEAVES:
        return evidence
    return evidence.under(LEAVES) if f"mce_test_{LEAVES}" in evidence.rounds else None


def _oracle(plan: Plan) -> OracleChapter | None:
    """The experiments on trees per round, if they are beside this one."""
    beside = plan.store.root.parent
    full, fewer = (oracle.table_file(beside / name) for name in (oracle.NAME, oracle.BY_ROWS))
    runs, reduced = (_runs_of(file, plan) for file in (full, fewer))
    if runs is None:
        return None
    folder = plan.store.root / "figures"
    names, titles = [oracle.NAME], plain(plan.titles)
    with styled():
        save(oracle.draw(runs, titles), folder, oracle.NAME)
        if reduced is not None:
            both = pd.concat([runs, reduced])
            save(oracle.draw_by_rows(both, titles), folder, oracle.BY_ROWS)
            names.append(oracle.BY_ROWS)
    pictures = [Picture.of(folder, name) for name in names]
    return OracleChapter.of(runs, reduced, plan.titles, pictures)


def _runs_of(file: Path, plan: Plan) -> pd.DataFrame | None:
    """The rows of an experiment's table that are of this plan's datasets, if there are any."""
    if not file.is_file():
        return None
    try:
        runs = pd.read_csv(file)
        runs = runs[runs["dataset"].isin(list(plan.titles))]
        return None if runs.empty or not set(oracle.AXES) <= set(runs) else runs
    except (ValueError, KeyError) as error:
        log.warning("%s cannot be read (%s): stage=oracle makes it anew", file, error)
        return None


def _again(plan: Plan) -> str:
    """The commands behind a figure: all of it, and one of its runs."""
    dataset, strategy = list(plan.pairs)[-1]
    kept = [o for o in plan.overrides if not o.lstrip("+").startswith(("experiment", "stage="))]
    name = plan.config.experiment.name
    one = [*kept, f"dataset={dataset}", f"strategy={strategy}", f"seed={plan.seeds[-1]}"]
    return (
        f"# redraw from the stored runs\n{command_of(plan.overrides, 'report')}\n"
        "# one curve of a panel, for any dataset, strategy and seed\n"
        f"{command_of([*one, f'experiment.name={name}'])}"
    )


def command_of(overrides: Sequence[str], stage: str | None = None) -> str:
    """The command line with these ``overrides``, for another ``stage`` if one is given."""
    kept = [o for o in overrides if stage is None or o.lstrip("+").partition("=")[0] != "stage"]
    lines = [*kept, *([f"stage={stage}"] if stage else [])]
    return " ".join(["python -m pipeline", *map(shlex.quote, lines)])
