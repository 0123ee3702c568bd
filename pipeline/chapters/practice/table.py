"""The runs of an experiment of kind corrections as one table, and a file of it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from pipeline import files
from pipeline.runs.kinds.corrections.measures import NUMBERS
from pipeline.runs.kinds.corrections.run import OWN
from pipeline.runs.plan import Plan

NAMES = ["dataset", "situation", "method", "seed", "rule"]
COSTS = ["cpu_seconds", "peak_mb"]
SIZES = ["n_correct", "n_validation", "n_test"]
SHARE = "test_share"  # test rows per training row, those of the model included
FILE = "practice.parquet"


@dataclass(frozen=True)
class Labels:
    """What tables and figures call things, by their short names, in order."""

    datasets: Mapping[str, str]
    situations: Mapping[str, str]
    methods: Mapping[str, str]

    def cell(self, dataset: str, situation: str) -> str:
        """A cell in words."""
        place = self.situations.get(situation, situation)
        return f"{self.datasets.get(dataset, dataset)}, {place}"

    def method(self, name: str) -> str:
        """A method in words."""
        return self.methods.get(name, name)

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """Of a plan's axes."""
        return cls(
            {c.dataset.label: c.dataset.display for c in plan.configs},
            {c.situation.name: c.situation.display for c in plan.configs},
            {c.method.name: c.method.display for c in plan.configs},
        )


def collect(plan: Plan) -> pd.DataFrame:
    """All runs of a plan from its store: a row per run and rule, with sizes and varied options."""
    axes = [key.rpartition(".")[2] for key in plan.config.experiment.further]
    frames = []
    for _, config, stored in plan.stored():
        options = {name: config.method.options[name] for name in axes}
        sizes = {name: stored.record["sizes"][name] for name in SIZES}
        size = config.dataset.test_size
        frames.append(stored.rounds.assign(**options, **sizes, **{SHARE: size / (1 - size)}))
    table = pd.concat(frames, ignore_index=True)
    table["failed"] = [v if isinstance(v, str) else "" for v in table["failed"]]
    return table


def write(table: pd.DataFrame, folder: Path, labels: Labels) -> Path:
    """Keep a table with its labels, measures in single precision: more digits are noise."""
    slim = table.astype(dict.fromkeys([*NUMBERS, *COSTS], np.float32))
    slim.attrs = {"labels": asdict(labels)}
    with files.replacing(folder / FILE) as scratch:
        slim.to_parquet(scratch, index=False, compression="zstd")
    return folder / FILE


def read(file: Path) -> tuple[pd.DataFrame, Labels] | None:
    """A table as `write` left it, and its labels; None if there is none, or something else."""
    try:
        table = pd.read_parquet(file)
        labels = Labels(**table.attrs["labels"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if not {*NAMES, *NUMBERS, *SIZES, SHARE, "rounds", "failed"} <= set(table.columns):
        return None
    return table.astype(dict.fromkeys(NUMBERS, np.float64)), labels


def own_rows(table: pd.DataFrame) -> pd.DataFrame:
    """What methods themselves ended with."""
    return table[table["rule"] == OWN]
