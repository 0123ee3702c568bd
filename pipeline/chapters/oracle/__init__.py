"""What sets the rate of the gaps? Trees, step sizes and rows, against the factor."""

import logging
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from pipeline.analysis.style import STRATEGIES, plain
from pipeline.chapters.base import Chapter, Context, Section, write_judgements, write_table
from pipeline.chapters.oracle import factors
from pipeline.errors import ConfigError
from pipeline.report.place import report_folder
from pipeline.report.render import share
from pipeline.report.scorecards import scorecard
from pipeline.runs.plan import Plan

log = logging.getLogger("pipeline")

FILE = "oracle.csv"
FULL, FEWER_ROWS, CAPACITY = "oracle", "oracle_rows", "oracle_capacity"  # the experiments
SMOOTH, SMOOTH_ROWS = "smooth", "smooth_rows"
EXPERIMENTS = (FULL, FEWER_ROWS, CAPACITY, SMOOTH, SMOOTH_ROWS)
ERRORS = "oracle_errors"  # the figure of all experiments with trees
TREES, ETA = "boosting.trees", "boosting.eta"  # what they vary
FEWEST_ROUNDS = 6  # for a second half


class Oracle(Chapter):
    """The factor gap_{t+1} / gap_t over trees per round."""

    title = "What sets the rate of the gaps?"
    part = "What do the figures measure?"
    order = 45
    curated = {
        **{f"{name}/{FILE}": f"{name}.csv" for name in EXPERIMENTS},
        **{
            f"paper/figures/{name}.{kind}": f"figures/{name}.{kind}"
            for name in (FULL, ERRORS, SMOOTH)
            for kind in ("png", "pdf")
        },
    }

    def check(self, plan: Plan) -> None:
        experiment, rounds = plan.config.experiment, plan.config.boosting.rounds
        if not {TREES, ETA} <= set(experiment.further) or experiment.strategies != ("unit",):
            raise ConfigError(
                "experiment.chapters: oracle needs a grid of strategy unit whose experiment.vary "
                f"has {TREES} and {ETA}"
            )
        if rounds < FEWEST_ROUNDS:
            raise ConfigError(f"boosting.rounds={rounds}: must be at least {FEWEST_ROUNDS}")

    def measure(self, plan: Plan) -> str:
        folder, runs = report_folder(plan), factors.measure(plan)
        judged = factors.judge.judge_all(runs)
        write_table(folder / FILE, runs)
        write_judgements(folder / "oracle.json", judged)
        draw, name = factors.draw, FULL
        if set(runs["engine"]) <= set(factors.TITLES):
            draw, name = factors.draw_smooth, SMOOTH
        elif runs.groupby("dataset")[["rows", "depth"]].nunique().to_numpy().max() > 1:
            draw, name = factors.draw_errors, ERRORS
        self.draw(lambda: draw(runs, plain(plan.titles)), folder / "figures", name)
        table = factors.summary(runs).pivot_table(
            index=[a for a in (*factors.AXES, *factors.CLASS) if a != "trees"],
            columns="trees",
            values="factor",
            sort=False,
        )
        return (
            "factor gap_{t+1}/gap_t, by trees per round\n"
            f"{table.round(3).to_string()}\n{scorecard(judged)}\ntable: {folder / FILE}"
        )

    def section(self, context: Context) -> Section | None:
        titles = context.plan.titles
        full, reduced, capacity, smooth, smooth_rows = (
            _read(self.result(context, f"{name}/{FILE}"), titles) for name in EXPERIMENTS
        )
        tables = [t for t in (full, reduced, capacity) if t is not None]
        if not tables or not set(STRATEGIES) <= set(context.evidence.strategies):
            return None
        folder, printed, figures = context.folder / "figures", plain(titles), []
        if full is not None:
            figures.append(self.draw(lambda: factors.draw(full, printed), folder, FULL))
        if capacity is not None:
            everything = pd.concat(tables)
            figures.append(
                self.draw(lambda: factors.draw_errors(everything, printed), folder, ERRORS)
            )
        if smooth is not None:
            figures.append(self.draw(lambda: factors.draw_smooth(smooth, printed), folder, SMOOTH))
        papers = [t for t in (full, reduced) if t is not None]
        content = {
            "fewer": [] if reduced is None else factors.judge.judge_all(reduced),
            "large": [] if smooth_rows is None else factors.judge.judge_all(smooth_rows),
            "table": _shown(factors.summary(pd.concat(papers)), titles) if papers else None,
        }
        judged = [
            judgement
            for table in (full, capacity, smooth)
            if table is not None
            for judgement in factors.judge.judge_all(table)
        ]
        return Section(content, judged, figures)


CHAPTER = Oracle()


def _read(file: Path, titles: Mapping[str, str]) -> pd.DataFrame | None:
    """The rows of an experiment's table that are of some datasets, if there are any."""
    if not file.is_file():
        return None
    try:
        runs = pd.read_csv(file)
        runs = runs[runs["dataset"].isin(list(titles))]
        runs = runs.assign(**{n: v for n, v in factors.CLASS.items() if n not in runs})
        return None if runs.empty or not set(factors.AXES) <= set(runs) else runs
    except (ValueError, KeyError) as error:
        log.warning("%s cannot be read (%s): stage=reproduce makes it anew", file, error)
        return None


def _shown(means: pd.DataFrame, titles: Mapping[str, str]) -> pd.DataFrame:
    """A row per dataset, number of rows and η; a column per number of trees."""
    trees = [int(k) for k in sorted(means["trees"].unique())]
    rows = []
    for dataset, title in titles.items():
        some = means[means["dataset"] == dataset]
        for _, group in some.groupby(["rows", "eta"], sort=False):
            by_trees, last = group.set_index("trees")["factor"].reindex(trees), group.iloc[-1]
            rows.append(
                {
                    "Dataset": title,
                    "Rows": f"{last['rows']:g}",
                    "η": f"{last['eta']:g}",
                    **{f"{k} trees": "" if pd.isna(x) else f"{x:.2f}" for k, x in by_trees.items()},
                    "1 − η": f"{1 - last['eta']:g}",
                    "Distinct predictions": f"{share(last['distinct_start'], 0)} → "
                    f"{share(last['distinct_end'], 0)}",
                    "Test MSE / f₀'s": f"{last['mse_ratio']:.2f}",
                }
            )
    return pd.DataFrame(rows)
