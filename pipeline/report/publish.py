"""Writing an experiment's results: tables, verdicts, figures and the page."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from pipeline import files
from pipeline.analysis import claims, figures, oracle, portable, readings
from pipeline.analysis.certificates import certificate_table
from pipeline.analysis.claims import Claim
from pipeline.analysis.evidence import Evidence
from pipeline.analysis.noise import noise_table
from pipeline.analysis.scope import Scope, scope_of
from pipeline.analysis.style import STRATEGIES, plain, save, styled
from pipeline.analysis.summaries import summary_table
from pipeline.config.compose import varied
from pipeline.report import errata, practice, statements
from pipeline.report.chapter import Chapter, make_chapter
from pipeline.report.oracle import OracleChapter
from pipeline.report.page import Contents, make_page, render
from pipeline.report.picture import Picture
from pipeline.report.place import command_of, report_folder, write_settings
from pipeline.runs.plan import Plan
from pipeline.theory import figures as theory_figures
from pipeline.theory.study import Study

log = logging.getLogger("pipeline")

LEAVES = "leaf_indicators"
READINGS_FILE = "readings.csv"


@dataclass(frozen=True)
class Published:
    """What became of a report: where it is, of what, and what it says.

    claims : judged if the runs are a replication, else none.
    """

    folder: Path
    scope: Scope
    claims: Sequence[Claim]
    summary: pd.DataFrame


def publish(plan: Plan, evidence: Evidence, wall_seconds: float | None = None) -> Published:
    """Write tables, figures and page into the report's folder."""
    folder, scope = report_folder(plan), scope_of(plan)
    names = figures.draw_all(evidence, folder / "figures")
    noise, summary = noise_table(evidence), summary_table(evidence)
    with files.replacing(folder / portable.FILE) as scratch:
        portable.as_table(evidence).to_parquet(scratch, index=False)
    write_table(folder / "noise.csv", noise)
    write_table(folder / "summary.csv", summary)
    judged = _judge(plan, evidence, folder) if scope.is_replication else _Judged()
    # What may stand beside a report speaks of the paper's strategies.
    papers = set(STRATEGIES) <= set(evidence.strategies)
    contents = Contents(
        scope=scope,
        evidence=evidence,
        claims=judged.claims,
        noise=noise,
        summary=summary,
        figures=[_picture(folder, name) for name in names],
        again=_again(plan),
        readings=judged.readings,
        theory=_theory(folder / "theory", evidence) if papers else None,
        oracle=_oracle(plan, folder) if papers else None,
        practice=practice.make_chapter(plan.store.root.parent, folder) if judged.claims else None,
        wall_seconds=wall_seconds,
    )
    write_settings(plan, folder)
    files.write_text(folder / "report.html", render(make_page(contents)))
    return Published(folder, scope, judged.claims, summary)


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Put a table into a file, in the place of an earlier one."""
    with files.replacing(path) as scratch:
        table.to_csv(scratch, index=False)


def theory_folder(plan: Plan) -> Path:
    """Where ``stage=theory`` keeps its study, beside the report."""
    return report_folder(plan) / "theory"


@dataclass(frozen=True)
class _Judged:
    claims: Sequence[Claim] = ()
    readings: statements.ReadingsChapter | None = None


def _judge(plan: Plan, evidence: Evidence, folder: Path) -> _Judged:
    """The paper's claims on these runs, and under the readings whose runs are stored."""
    judged = claims.judge_all(evidence)
    verdicts = readings.verdicts(plan, evidence)
    write_table(folder / READINGS_FILE, verdicts)
    write_table(folder / "table1.csv", evidence.table1)
    records = json.dumps(claims.as_records(judged), indent=2, ensure_ascii=False)
    files.write_text(folder / "claims.json", records)
    return _Judged(judged, statements.make_chapter(verdicts, judged))


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
        write_table(folder / "certificates.csv", certificates)
    pictures = [Picture.of(folder / "figures", name) for name in names]
    return make_chapter(study, pictures, certificates, sum(n for _, n in points.tally))


def _of_leaf_indicators(evidence: Evidence) -> Evidence | None:
    """The runs with the one reading that can be certified, if they recorded it."""
    reading = evidence.records[0]["config"]["audit"]["reading"]
    if reading == LEAVES:
        return evidence
    return evidence.under(LEAVES) if f"mce_test_{LEAVES}" in evidence.rounds else None


def _oracle(plan: Plan, report: Path) -> OracleChapter | None:
    """The experiments on trees per round, if they are beside this one."""
    beside = plan.store.root.parent
    full, fewer = (oracle.table_file(beside / name) for name in (oracle.NAME, oracle.BY_ROWS))
    runs, reduced = (_runs_of(file, plan) for file in (full, fewer))
    if runs is None:
        return None
    folder = report / "figures"
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


def _picture(folder: Path, name: str) -> Picture:
    """A figure with the command that draws it alone, from the report's own table."""
    source = folder / portable.FILE
    again = command_of([f"figures.source={source}", f"figures.only=[{name}]"], "figures")
    return Picture.of(folder / "figures", name, again=again, linked=True)


def _again(plan: Plan) -> str:
    """The commands behind a report: all of it, and one of its runs."""
    (dataset, strategy), *_ = plan.pairs
    kept = [o for o in plan.overrides if not o.lstrip("+").startswith(("experiment", "stage="))]
    config = varied(plan.pairs[dataset, strategy])[0]
    given = config.strategy.model_dump()
    vary = [key for key in plan.config.experiment.further if key.partition(".")[2] in given]
    one = [
        *kept, f"dataset={dataset}", f"strategy={strategy}", f"seed={plan.seeds[0]}",
        *(f"{key}={given[key.partition('.')[2]]}" for key in vary),
    ]  # fmt: skip
    return (
        f"# this page, from the stored runs\n{command_of(plan.overrides, 'report')}\n"
        f"# one of its runs\n{command_of([*one, f'experiment.name={plan.store.root.name}'])}"
    )
