"""Table 1 of the paper and the counts of our tables, with the reason where they differ."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from pipeline.analysis.paper import TABLE1
from pipeline.datasets.design import Design
from pipeline.datasets.manifest import manifest

COUNTS = ("raw", "features", "rows")
COLUMNS = ["dataset", *(f"{what}_{whose}" for what in COUNTS for whose in ("paper", "ours")), "why"]
Counts = tuple[int, int, int]  # columns before and after encoding, and rows


def table_of_designs(designs: Mapping[str, tuple[str, Design]]) -> pd.DataFrame:
    """Table 1 counted on the data; ``designs`` gives a title and a design by dataset."""
    return _table(
        (name, title, (len(design.covariates), design.X.shape[1], len(design.y)))
        for name, (title, design) in designs.items()
    )


def table_of_runs(records: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Table 1 as the stored runs saw it; ``records`` are their ``run.json``."""
    by_dataset = {record["key"]["name"]: record for record in records}
    known = {name: record for name, record in by_dataset.items() if name in TABLE1}
    return _table((name, *_counts_of_run(name, record)) for name, record in known.items())


def _counts_of_run(name: str, record: Mapping[str, Any]) -> tuple[str, Counts]:
    dataset, sizes = record["config"]["dataset"], record["sizes"]
    target = dataset["target"] or []
    gone = {*([target] if isinstance(target, str) else target), *dataset["drop"]}
    raw = sum(column not in gone for column in manifest()[name].columns)
    counts = (raw, sizes["n_features"], sizes["n_train"] + sizes["n_test"])
    return dataset["title"] or name, counts


def _table(rows: Iterable[tuple[str, str, Counts]]) -> pd.DataFrame:
    """One row per dataset of the paper, in its order."""
    ours = {name: (title, counts) for name, title, counts in rows}
    table = []
    for name, printed in TABLE1.items():
        if name in ours:
            title, counts = ours[name]
            pairs = zip(printed, counts, strict=True)
            table.append([title, *(n for pair in pairs for n in pair), _why(name, counts)])
    return pd.DataFrame(table, columns=COLUMNS)


def _why(name: str, counts: Counts) -> str:
    raw, features, _ = counts
    if counts == TABLE1[name]:
        return ""
    if name == "adult":
        return (
            "One-hot encoding of the whole table, before education and the target's two columns "
            f"are removed, gives {manifest()[name].encoded_width} columns. After the removals that "
            f"the text describes, {raw} columns remain (income is one of them), which "
            f"encode to {features}."
        )
    if name == "german":
        return (
            f"The table has 20 attributes and the class: without the target {raw} remain, "
            f"not 10. Their encoding has the paper's {features} columns."
        )
    return "The settings of this run differ from the defaults."
