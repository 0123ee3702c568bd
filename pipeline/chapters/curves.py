"""Chapters of an experiment with rounds of its own: a table of its runs, and mean curves."""

from collections.abc import Mapping
from typing import Any, ClassVar

import pandas as pd
from matplotlib.figure import Figure

from pipeline.analysis.style import plain
from pipeline.chapters.base import Chapter, Context, Section, write_judgements, write_table
from pipeline.errors import ConfigError
from pipeline.judgement import Registry
from pipeline.report.place import report_folder
from pipeline.report.scorecards import scorecard
from pipeline.runs.plan import Plan
from pipeline.runs.store import StoredRun


class CurvesChapter(Chapter):
    """A chapter that is called like its experiment and its figure.

    varied : the axes that the experiment must vary.  judges : of the table of runs, in which
    ``title`` names the dataset.
    """

    varied: ClassVar[frozenset[str]]
    judges: ClassVar[Registry[pd.DataFrame]]

    def __init_subclass__(cls) -> None:
        """Say what is curated."""
        name = cls.__module__.rpartition(".")[2]
        tables = {f"{name}/{file}": file for file in (f"{name}.csv", f"{name}_curves.csv")}
        figures = {f"paper/figures/{name}.{k}": f"figures/{name}.{k}" for k in ("png", "pdf")}
        cls.curated = {**tables, **figures, f"{name}/{name}.json": f"{name}.json"}

    def of_run(self, stored: StoredRun, eta: float, gamma: float) -> dict[str, Any]:
        """What the table says of a run."""
        raise NotImplementedError

    def curves_of(self, rounds: pd.DataFrame) -> pd.DataFrame:
        """The curves of a run, a row per round; their means over seeds are kept."""
        raise NotImplementedError

    def drawing(self, curves: pd.DataFrame, titles: Mapping[str, str]) -> Figure:
        """The figure."""
        raise NotImplementedError

    def content(self, runs: pd.DataFrame) -> Mapping[str, Any]:
        """What the template shows besides judgements and figure."""
        raise NotImplementedError

    def check(self, plan: Plan) -> None:
        if not set(plan.config.experiment.further) >= self.varied:
            raise ConfigError(
                f"experiment.chapters: {self.name} needs {' and '.join(sorted(self.varied))} in "
                "experiment.vary"
            )

    def measure(self, plan: Plan) -> str:
        rows, curves = [], []
        for run, config, stored in plan.stored():
            eta, gamma = config.boosting.eta, config.boosting.gamma
            names: dict[str, Any] = {
                "dataset": run.dataset,
                "title": plan.titles[run.dataset],
                "eta": eta,
            }
            names |= {"strategy": config.strategy.label, "gamma": gamma}
            rows.append({**names, "seed": run.seed, **self.of_run(stored, eta, gamma)})
            ordered = stored.rounds.sort_values("round", ignore_index=True)
            curves.append(self.curves_of(ordered).assign(round=ordered["round"], **names))
        runs, everything = pd.DataFrame(rows), pd.concat(curves)
        means = everything.groupby([*names, "round"], sort=False).mean().reset_index()
        folder, judged = report_folder(plan), self.judges.judge_all(runs)
        for file, table in ((f"{self.name}.csv", runs), (f"{self.name}_curves.csv", means)):
            write_table(folder / file, table, float_format="%.6g")
        write_judgements(folder / f"{self.name}.json", judged)
        self.draw(lambda: self.drawing(means, plain(plan.titles)), folder / "figures", self.name)
        return f"{scorecard(judged)}\ntables: {folder}"

    def section(self, context: Context) -> Section | None:
        names = [f"{self.name}/{self.name}{end}.csv" for end in ("", "_curves")]
        files = [self.result(context, name) for name in names]
        if not context.scope.is_replication or not all(file.is_file() for file in files):
            return None
        runs, curves = map(pd.read_csv, files)
        titles = dict(zip(runs["dataset"], runs["title"], strict=True))
        place, printed = context.folder / "figures", plain(titles)
        figure = self.draw(lambda: self.drawing(curves, printed), place, self.name)
        return Section(self.content(runs), self.judges.judge_all(runs), [figure])
