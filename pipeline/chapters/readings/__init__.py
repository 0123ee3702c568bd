"""How the paper may be read: how likely its statements are under each reading."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from pipeline.analysis.evidence import Evidence
from pipeline.analysis.samples import single_runs
from pipeline.analysis.scope import scope_of
from pipeline.chapters.base import Chapter, Context, Section, write_table
from pipeline.chapters.claims import RULES
from pipeline.chapters.readings import likelihood
from pipeline.chapters.readings.likelihood import CURVES, STATEMENTS, Variant
from pipeline.errors import ConfigError
from pipeline.report.place import report_folder
from pipeline.report.render import share
from pipeline.runs.plan import Plan

FILE, CLAIMS_FILE = "readings.csv", "claims.csv"
HEADS = {
    "rows": "Rows of Figures 1 and 2",
    "curve": "Their curves show",
    "tail": "The tail begins",
    "target": "Target",
    "t": "t counted",
    "error": "Multicalibration error",
    "round_0": "Round 0 as a best round",
}
CHOICES = Path(__file__).parent / "choices.yaml"
IDENTIFIED = 0.9  # a posterior from which on the text is taken to identify a choice
RARE = 0.25  # a probability below which a statement is not explained
VISIBLE = 0.005
N_BEST = 5


class Readings(Chapter):
    """The paper's statements over the readings whose runs are stored."""

    title = "How the paper may be read"
    part = "How was the paper read?"
    order = 60
    curated = {f"readings/{FILE}": FILE, f"readings/{CLAIMS_FILE}": "readings_claims.csv"}

    def check(self, plan: Plan) -> None:
        if not plan.is_grid or not scope_of(_default(plan)).is_replication:
            raise ConfigError(
                "experiment.chapters: readings needs the paper's datasets, strategies and "
                "settings, such as experiment=readings (fewer seeds: 'experiment.seeds=[0,1]')"
            )

    def measure(self, plan: Plan) -> str:
        runs = list(likelihood.stored(_default(plan)))
        table, folder = likelihood.probabilities(runs), report_folder(plan)
        file = folder / FILE
        write_table(file, table, float_format="%.4g")
        write_table(folder / CLAIMS_FILE, _claims(runs))
        choices = likelihood.by_choice(table)[["choice", "option", "posterior"]]
        return f"{choices.round(2).to_string(index=False)}\n{len(table)} readings\ntable: {file}"

    def section(self, context: Context) -> Section | None:
        if not context.scope.is_replication:
            return None
        table, claims = (
            pd.read_csv(self.result(context, f"readings/{name}")) for name in (FILE, CLAIMS_FILE)
        )
        return Section(_content(table) | {"claims": claims}, facts=_facts(table))


CHAPTER = Readings()


def _default(plan: Plan) -> Plan:
    """Of a plan with several readings, the one that is taken by default."""
    first = likelihood.variants(plan)[0].plan.configs
    return replace(plan, configs=tuple(c for c in plan.configs if c in first))


def _content(table: pd.DataFrame) -> dict[str, Any]:
    """What the template shows of the readings' probabilities."""
    options = likelihood.by_choice(table)
    likeliest = options.groupby("choice", sort=False)["posterior"].transform("max")
    several = options.groupby("choice")["option"].transform("nunique") > 1
    decided = several & (likeliest >= IDENTIFIED)
    chosen, unlikely = options["posterior"] >= IDENTIFIED, options["posterior"] <= 1 - IDENTIFIED
    named = options["choice"].map(HEADS) + ": " + options["option"]
    reached = table[STATEMENTS].max()
    pairs = {pair: table[list(pair)].prod(axis=1).max() for pair in combinations(STATEMENTS, 2)}
    hardest = min(pairs, key=lambda pair: pairs[pair])
    best = table.sort_values("joint", ascending=False, kind="stable").head(N_BEST)
    return {
        "choices": pd.DataFrame(yaml.safe_load(CHOICES.read_text(encoding="utf-8"))).rename(
            columns={"question": "Question", "reading": "Here", "key": "Key", "why": "Why"}
        ),
        "n": len(table),
        "options": _without_constants(options, _shown(options)),
        "best": _shown(best).drop(columns=STATEMENTS),
        "identified": list(named[decided & chosen]),
        "ruled_out": list(named[several & ~decided & unlikely]),
        "open": list(options.loc[several & ~decided, "choice"].map(HEADS).drop_duplicates()),
        "unexplained": [f"{name} ({p:.2f})" for name, p in reached[reached < RARE].items()],
        "hardest": (*hardest, f"{pairs[hardest]:.2f}"),
        "r2_tolerance": likelihood.R2_TOLERANCE,
    }


def _facts(table: pd.DataFrame) -> dict[str, str]:
    """The posterior of every option, and the largest probability of every statement."""
    options = likelihood.by_choice(table).to_dict("records")
    posteriors = {f"{o['choice']}: {o['option']}": _two_digits(o["posterior"]) for o in options}
    reached = {name: _two_digits(table[name].max()) for name in STATEMENTS}
    return {"n": str(len(table)), **posteriors, **reached}


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    """Probabilities with as many digits as they deserve, the posterior first."""
    rounded = {c: table[c].map(_two_digits) for c in [*STATEMENTS, "posterior"]}
    heads = {"choice": "Choice", "option": "Option", "joint": "All", "posterior": "Posterior"}
    shown = table.assign(**rounded, joint=table["joint"].map("{:.1g}".format))
    if "choice" in shown:
        shown["choice"] = shown["choice"].map(HEADS)
    last = ["posterior", *STATEMENTS, "joint"]
    return shown[[*shown.columns.difference(last, sort=False), *last]].rename(columns=HEADS | heads)


def _two_digits(probability: float) -> str:
    """Never 0 or 1 for what is neither."""
    rounded = f"{probability:.2f}"
    return {"0.00": "< 0.01", "1.00": "> 0.99"}.get(rounded, rounded)


def _without_constants(options: pd.DataFrame, shown: pd.DataFrame) -> pd.DataFrame:
    """A statement's cells are empty for choices that it does not depend on."""
    spread = options.groupby("choice")[STATEMENTS].transform(lambda p: p.max() - p.min())
    shown[STATEMENTS] = shown[STATEMENTS].where(spread > VISIBLE, "")
    return shown


def _claims(runs: Iterable[tuple[Variant, Evidence]]) -> pd.DataFrame:
    """How often the claims about Figures 1 and 2 are satisfied, by what these may show."""
    rows: dict[str, dict[str, str]] = {}
    for variant, evidence in runs:
        if (variant.target, variant.t) == ("raw", "from 0"):
            for curve, drawn in CURVES.items():
                at = drawn(evidence)
                for id_, rule in RULES.items():
                    if rule.shown is single_runs:
                        column = f"{curve}, {variant.rows} rows"
                        satisfied = rule.satisfied(at).mean()
                        rows.setdefault(id_, {})[column] = share(satisfied, 0)
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("Claim").reset_index()
