"""``stage=report``: tables, verdicts, figures and the page, from stored runs."""

import json
from collections.abc import Sequence
from functools import partial
from itertools import groupby

from pipeline import files
from pipeline.analysis import portable
from pipeline.analysis.evidence import collect
from pipeline.analysis.scope import scope_of
from pipeline.analysis.summaries import summary_table
from pipeline.chapters import chapter_named, chapters
from pipeline.chapters.base import PARTS, Chapter, Context, Section
from pipeline.errors import ConfigError
from pipeline.judgement import Judgement
from pipeline.processes import forked
from pipeline.report.place import command_of, report_folder, write_settings
from pipeline.report.render import render
from pipeline.report.scorecards import of_summary, scorecard
from pipeline.runs.plan import Plan
from pipeline.runs.store import clear_errors

FEWEST_ROUNDS = 6  # for a line through the second half
FACTS = "facts.json"  # numbers and verdicts that sentences quote, by chapter


def main(plan: Plan) -> None:
    """Write the report, or an experiment's chapters."""
    require_reportable(plan)
    names = plan.config.experiment.chapters
    with clear_errors(plan.store.root):
        for name in names:
            print(chapter_named(name).measure(plan))
            print("stage=report of experiment=paper shows it")
        if not names:
            _publish(plan)


def require_reportable(plan: Plan) -> None:
    """Raise `ConfigError` before anything is computed that could not be reported on."""
    config, stage = plan.config, f"stage={plan.config.stage}"
    if not plan.is_grid:
        raise ConfigError(f"{stage}: needs a grid, such as experiment=paper")
    for name in config.experiment.chapters:
        chapter_named(name).check(plan)
    if config.experiment.chapters:
        return
    others = [key for key in config.experiment.further if not key.startswith("strategy.")]
    if others:
        raise ConfigError(
            f"{stage}: a report is of one setting but for strategies, and this grid varies "
            f"{', '.join(others)}; stage=compare sets several side by side"
        )
    if config.dataset.test_size == 0:
        raise ConfigError(f"{stage}: dataset.test_size=0: a report is of held-out rows, too")
    if config.boosting.rounds < FEWEST_ROUNDS:
        raise ConfigError(
            f"{stage}: boosting.rounds={config.boosting.rounds}: must be at least {FEWEST_ROUNDS}"
        )


def _publish(plan: Plan) -> None:
    context = Context(plan, collect(plan), scope_of(plan), report_folder(plan))
    folder, scope = context.folder, context.scope
    with files.replacing(folder / portable.FILE) as scratch:
        portable.as_table(context.evidence).to_parquet(scratch, index=False)
    known = chapters()
    made = forked([partial(chapter.section, context) for chapter in known])
    sections = [(c, section) for c, section in zip(known, made, strict=True) if section is not None]
    judged = [j for _, section in sections for j in section.judgements]
    files.write_text(folder / FACTS, json.dumps(_facts(sections), indent=1, ensure_ascii=False))
    files.write_text(folder / "report.html", _page(context, sections, judged))
    write_settings(plan, folder)  # last: it says of what the page is
    print(scorecard(judged) if judged else of_summary(summary_table(context.evidence)))
    for line in scope.banner:
        print(line)
    print(f"report: {folder / 'report.html'}")


def _facts(sections: Sequence[tuple[Chapter, Section]]) -> dict[str, str]:
    """What sentences quote: ``chapter.fact``, and ``claim.verdict`` with further details."""
    found = {f"{c.name}.{key}": text for c, s in sections for key, text in s.facts.items()}
    for judged in (j for _, section in sections for j in section.judgements):
        quoted = {"verdict": judged.verdict, **judged.details}
        found |= {f"{judged.id}.{key}": text for key, text in quoted.items()}
    return found


def _page(
    context: Context,
    sections: Sequence[tuple[Chapter, Section]],
    judged: Sequence[Judgement],
) -> str:
    plan, scope, records = context.plan, context.scope, context.evidence.records
    claims_of: dict[str | None, list[str]] = {}  # by the figure that shows them
    for judgement in judged:
        claims_of.setdefault(judgement.figure, []).append(judgement.id)
    key = [picture for _, section in sections for picture in section.figures if picture["key"]]
    page = {
        "title": scope.title,
        "claims": [j for c, section in sections if c.part == PARTS[0] for j in section.judgements],
        "key": key[0] if key else None,
        "banner": scope.banner,
        "n_runs": len(records),
        "boosting": records[0]["config"]["boosting"],
        "again": _again(plan),
    }
    return render(
        "page.html",
        page=page,
        sections=sections,
        parts=[(part, list(some)) for part, some in groupby(sections, lambda pair: pair[0].part)],
        replication=scope.is_replication,
        claims_of=claims_of,
        context=context,
    )


def _again(plan: Plan) -> str:
    """The commands behind a report: all of it, and one of its runs."""
    experiment = plan.config.experiment
    kept = [o for o in plan.overrides if not o.lstrip("+").startswith(("experiment", "stage="))]
    given = plan.configs[0].strategy.model_dump()
    varied = [key for key in experiment.further if key.partition(".")[2] in given]
    one = [
        *kept,
        *(f"{group}={experiment.axis(group)[0]}" for group in plan.kind.axes),
        f"seed={plan.seeds[0]}",
        *(f"{key}={given[key.partition('.')[2]]}" for key in varied),
        f"experiment.name={plan.store.root.name}",
    ]
    return (
        f"# this page, from the stored runs\n{command_of(plan.overrides, 'report')}\n"
        f"# one of its runs\n{command_of(one)}"
    )
