"""Writing an experiment's results: tables, verdicts, figures and the page."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from pipeline.analysis import claims, figures
from pipeline.analysis.claims import Claim
from pipeline.analysis.evidence import Evidence
from pipeline.analysis.noise import noise_table
from pipeline.analysis.readings import verdicts_by_reading
from pipeline.report.chapter import Chapter, make_chapter
from pipeline.report.page import make_page, render
from pipeline.report.picture import Picture
from pipeline.runs.plan import Plan
from pipeline.theory import figures as theory_figures
from pipeline.theory.study import Study


def publish(plan: Plan, evidence: Evidence, wall_seconds: float | None = None) -> list[Claim]:
    """Write everything below the experiment's folder; gives the claims with their verdicts."""
    root = plan.store.root
    judged = claims.judge_all(evidence)
    verdicts = verdicts_by_reading(plan, evidence)
    names = figures.draw_all(evidence, verdicts, root / "figures")
    evidence.rounds.to_parquet(root / "rounds.parquet", index=False)
    noise = noise_table(evidence)
    noise.to_csv(root / "noise.csv", index=False)
    evidence.table1.to_csv(root / "table1.csv", index=False)
    verdicts.to_csv(root / "verdicts_by_reading.csv")
    records = json.dumps(claims.as_records(judged), indent=2, ensure_ascii=False)
    (root / "claims.json").write_text(records, encoding="utf-8")
    page = make_page(
        evidence,
        judged,
        noise,
        [Picture.of(root / "figures", name) for name in names],
        _theory(theory_folder(plan), evidence),
        _again(plan),
        wall_seconds,
    )
    page_file(plan).write_text(render(page), encoding="utf-8")
    return judged


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
    names = theory_figures.draw_all(study, evidence, folder / "figures")
    return make_chapter(study, [Picture.of(folder / "figures", name) for name in names])


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
