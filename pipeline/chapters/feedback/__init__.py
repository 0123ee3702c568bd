"""Does it help to give the trees their own predictions as a feature?"""

from typing import Any

import pandas as pd

from pipeline.chapters.base import Chapter, Context, Section, write_table
from pipeline.chapters.feedback import effects
from pipeline.chapters.practice import table as tables
from pipeline.errors import ConfigError
from pipeline.report.place import report_folder
from pipeline.report.scorecards import scorecard
from pipeline.runs.plan import Plan

NAMES = ("feedback", "feedback_paper", "feedback_external")  # the experiments
FILE, FIGURE = "feedback.csv", "feedback"


class Feedback(Chapter):
    """Algorithm 1 with f_t in sample, f_t out of fold, f_0 or nothing as the trees' feature."""

    title = "Does feeding predictions back help?"
    part = "Does feeding predictions back help?"
    order = 65
    curated = {
        **{f"{name}/{FILE}": f"{name}.csv" for name in NAMES},
        **{f"paper/figures/{FIGURE}.{kind}": f"figures/{FIGURE}.{kind}" for kind in ("png", "pdf")},
    }

    def check(self, plan: Plan) -> None:
        missing = {f"method.options.{a}" for a in effects.AXES} - set(
            plan.config.experiment.further
        )
        if missing or plan.kind.name != "corrections":
            raise ConfigError(
                "experiment.chapters: feedback needs a grid of corrections whose experiment.vary "
                "has method.options.feedback and method.options.every"
            )

    def measure(self, plan: Plan) -> str:
        found, folder = effects.measure(tables.collect(plan)), report_folder(plan)
        write_table(folder / FILE, found, float_format="%.6g")
        judged = effects.judge.judge_all(found)
        return f"{effects.summary(found).to_string()}\n{scorecard(judged)}\ntable: {folder / FILE}"

    def section(self, context: Context) -> Section | None:
        found = [_read(context, name) for name in NAMES]
        runs = [table for table in found if table is not None]
        if not context.scope.is_replication or not runs:
            return None
        varied, papers, external = found
        figures = []
        if varied is not None:
            folder = context.folder / "figures"
            figures.append(self.draw(lambda: effects.draw(varied), folder, FIGURE))
        content: dict[str, Any] = {
            "table": None if varied is None else effects.shown(varied),
            "papers": None if papers is None else effects.shown(papers),
            "external": None if external is None else effects.shown(external),
            "judged": [] if external is None else effects.judge.judge_all(external),
        }
        facts: dict[str, str] = {}
        for name, table in zip(("varied", "papers", "external"), found, strict=True):
            facts |= {} if table is None else effects.facts(table, name)
        facts["external_holding"] = str(sum(j.verdict == "holds" for j in content["judged"]))
        judged = effects.judge.judge_all(runs[0])
        facts["harm"] = judged[0].verdict
        return Section(content, judged, figures, facts=facts)


CHAPTER = Feedback()


def _read(context: Context, name: str) -> pd.DataFrame | None:
    file = CHAPTER.result(context, f"{name}/{FILE}")
    if not file.is_file():
        return None
    table: Any = pd.read_csv(file)
    return table if set(effects.COLUMNS) <= set(table) else None
