"""Hydra's multirun: each job prints a line and leaves a note, and the driver makes one table."""

import json
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline import files
from pipeline.config.overrides import key_of

LAST = {
    "mse_train": "train MSE",
    "mse_test": "test MSE",
    "mce_train": "train MCE",
    "mce_test": "test MCE",
}


def leave_note(notes: Path, overrides: Sequence[str], rounds: pd.DataFrame) -> None:
    """Tell the driver what a job's run came to: its last round, and the best one by test MCE."""
    ordered = rounds.sort_values("round", ignore_index=True)
    last = {title: float(ordered[name].iloc[-1]) for name, title in LAST.items()}
    if ordered["mce_test"].notna().any():
        last["best round"] = float(ordered["mce_test"].argmin())
    given = {key_of(line): line.partition("=")[2] for line in overrides}
    note = {"overrides": given, "last": last}
    files.write_text(notes / f"{uuid.uuid4().hex}.json", json.dumps(note))


@contextmanager
def told_together(notes: Path) -> Iterator[None]:
    """Print a table of what the jobs of a multirun came to, when it is over."""
    try:
        yield
    finally:
        found = [json.loads(file.read_text()) for file in files.find(notes, "*.json")]
        shutil.rmtree(notes, ignore_errors=True)
        if len(found) > 1:
            print(table(found))


def table(notes: Sequence[Mapping[str, Mapping[str, Any]]]) -> str:
    """Means over seeds, a row for each combination of the overrides that differ."""
    given = pd.DataFrame([note["overrides"] for note in notes]).fillna("")
    varied = [c for c in given if c != "seed" and len(set(given[c])) > 1]
    given = given[varied] if varied else pd.DataFrame({"": ["all"] * len(notes)})
    last = pd.DataFrame([note["last"] for note in notes]).assign(runs=1)
    grouped = pd.concat([given, last], axis=1).groupby(list(given))
    means = grouped.mean().assign(runs=grouped["runs"].sum()).reset_index()
    shown = means.to_string(index=False, float_format="{:.4g}".format)
    return f"after the last round, means over seeds\n{shown}"
