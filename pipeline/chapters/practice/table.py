"""The runs of an experiment of kind corrections as one table, and a file of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

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
LABELS_FILE = "practice.json"


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


def write(table: pd.DataFrame, folder: Path, name: str = FILE) -> Path:
    """Keep a table, its measures in single precision: more digits are noise, and a larger file."""
    slim = table.astype(dict.fromkeys([*NUMBERS, *COSTS], np.float32))
    with files.replacing(folder / name) as scratch:
        slim.to_parquet(scratch, index=False, compression="zstd")
    return folder / name


@dataclass(frozen=True)
class Labels:
    """What tables and figures call things, by their short names, in order.

    tables : of each dataset the table that it is made from, whose rows another may share.
    """

    datasets: Mapping[str, str]
    situations: Mapping[str, str]
    methods: Mapping[str, str]
    tables: Mapping[str, str]

    @classmethod
    def of(cls, plan: Plan) -> Labels:
        """Of a plan's axes."""
        return cls(
            {c.dataset.label: c.dataset.display for c in plan.configs},
            {c.situation.name: c.situation.display for c in plan.configs},
            {c.method.name: c.method.display for c in plan.configs},
            {c.dataset.label: c.dataset.table_name for c in plan.configs},
        )

    def write(self, folder: Path) -> None:
        """Put them next to the table."""
        files.write_text(folder / LABELS_FILE, json.dumps(asdict(self), indent=2))

    @classmethod
    def read(cls, folder: Path) -> Labels | None:
        """As `write` left them; None if they are not there."""
        try:
            return cls(**json.loads((folder / LABELS_FILE).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None


def read(file: Path) -> pd.DataFrame | None:
    """A table as `write` left it; None if there is none, or something else."""
    try:
        table = pd.read_parquet(file)
    except (OSError, ValueError):
        return None
    if not {*NAMES, *NUMBERS, *SIZES, SHARE, "rounds", "failed"} <= set(table.columns):
        return None
    return table.astype(dict.fromkeys(NUMBERS, np.float64))


def own_rows(table: pd.DataFrame) -> pd.DataFrame:
    """What methods themselves ended with."""
    return table[table["rule"] == OWN]
