"""How a grid compares with the paper's: the same, a part of it, another reading, or another."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.analysis.style import STRATEGIES
from pipeline.config.compose import load
from pipeline.config.schema import Config
from pipeline.runs.keys import differing, run_key
from pipeline.runs.plan import Plan, make_plan
from pipeline.runs.strategies import labels_of

# Settings by which the paper is read where it is silent, and who computes: its claims stand.
READINGS = (
    "dataset.target_scaling",
    "dataset.missing",
    "dataset.drop_first",
    "audit.reading",
    "audit.also",
    "strategy.offset",
    "engine.name",
    "initial.engine",
)


@dataclass(frozen=True)
class Scope:
    """How a grid differs from the paper's."""

    datasets: tuple[str, ...]  # display names
    missing: tuple[str, ...]  # datasets and strategies of the paper that were not run
    seeds: str  # which ones, if they are not the paper's
    few: bool  # whether they are fewer than its
    readings: tuple[str, ...]  # choices where the paper is silent
    changed: tuple[str, ...]  # what makes it an experiment of its own

    @property
    def is_replication(self) -> bool:
        """Whether the paper's claims can be judged by it."""
        return not self.missing and not self.changed

    @property
    def title(self) -> str:
        """What its report is called."""
        if self.is_replication:
            return "Multicalibration gradient boosting: a replication"
        names = self.datasets
        several = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
        return f"Multicalibration gradient boosting on {several}"

    @property
    def banner(self) -> list[str]:
        """What to say first of a report that is not of the paper's grid; nothing if it is."""
        said = []
        if self.changed:
            said.append(f"Other than in the paper: {'; '.join(self.changed)}.")
        if self.missing:
            said.append(f"Not run: {', '.join(self.missing)}.")
        if self.seeds:
            said.append(f"Seeds: {self.seeds}.")
        if self.readings:
            said.append(f"Read otherwise than by default: {'; '.join(self.readings)}.")
        if self.missing or self.changed:
            said.append("The paper's claims are not judged here; experiment=paper judges them.")
        elif self.few:
            said.append("Verdicts of so few runs say little.")
        return said


def scope_of(plan: Plan) -> Scope:
    """Compare a plan with the paper's grid as ``conf/`` has it."""
    overrides = ["experiment=paper"]
    papers = make_plan(load(overrides), overrides)
    datasets = plan.datasets
    strategies = labels_of(config.strategy for config in plan.configs).values()
    readings: dict[str, None] = {}
    changed = dict.fromkeys(
        [f"dataset {name}" for name in datasets if name not in papers.datasets]
        + [f"strategy {name}" for name in strategies if name not in STRATEGIES]
    )
    for config in plan.configs:
        of_other_kinds = {"name"}  # settings of something that is not the paper's at all
        if config.dataset.label not in papers.datasets:
            of_other_kinds.add("dataset")
        if config.strategy.label not in STRATEGIES:
            of_other_kinds.add("strategy")
        pair = (config, _nearest(config, papers.configs))
        for line in differing(*(run_key(c.model_copy(update={"seed": 0}), "") for c in pair)):
            name = line.partition(":")[0]
            if name.partition(".")[0] not in of_other_kinds:
                (readings if name in READINGS else changed)[line] = None
    return Scope(
        datasets=tuple(plan.titles.values()),
        missing=(
            *(title for name, title in papers.titles.items() if name not in datasets),
            *(f"strategy {name}" for name in STRATEGIES if name not in strategies),
        ),
        seeds=_seeds(plan, papers),
        few=len(plan.seeds) < len(papers.seeds),
        readings=tuple(readings),
        changed=tuple(changed),
    )


def _seeds(plan: Plan, papers: Plan) -> str:
    if set(plan.seeds) == set(papers.seeds):
        return ""
    common = len(set(plan.seeds) & set(papers.seeds))
    others = len(plan.seeds) - common
    return f"{common} of the paper's {len(papers.seeds)}" + (f", {others} others" if others else "")


def _nearest(config: Config, papers: Sequence[Config]) -> Config:
    """The config of the paper that shares most with another: dataset and strategy, if it can."""
    dataset, strategy = config.dataset.label, config.strategy.label
    return max(papers, key=lambda c: (c.dataset.label == dataset, c.strategy.label == strategy))
