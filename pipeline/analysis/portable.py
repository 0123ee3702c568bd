"""Runs as one table that stands alone: rounds, sizes and settings."""

from pathlib import Path

import pandas as pd

from pipeline.analysis.curves import Runs
from pipeline.analysis.evidence import Evidence
from pipeline.errors import DataError
from pipeline.runs.tidy import settings_of

FILE = "rounds.parquet"
KEYS = ["dataset", "strategy", "seed"]
TITLE = "title"  # of a dataset


def as_table(evidence: Evidence) -> pd.DataFrame:
    """The rounds with each dataset's title and each run's sizes and settings.

    Settings have dotted names, such as ``boosting.eta``; all that the numbers depend on is there.
    """
    settings = pd.DataFrame([settings_of(record["key"]) for record in evidence.records])
    runs = pd.concat([evidence.sizes, settings.set_index(evidence.sizes.index)], axis=1)
    runs.insert(len(KEYS), TITLE, runs["dataset"].map(dict(evidence.titles)))
    return evidence.rounds.merge(runs, on=KEYS, how="left", validate="many_to_one")


def read(path: Path) -> Runs:
    """The runs in a table that `as_table` made, in its order of datasets."""
    try:
        table = pd.read_parquet(path)
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file; stage=report writes one") from None
    except Exception as error:  # readers raise many kinds
        raise DataError(f"{path} cannot be read as parquet ({error})") from None
    needed = {*KEYS, "round", "mse_train", "mse_test", "mce_train", "mce_test", "gap"}
    if not needed <= set(table.columns):
        lacks = ", ".join(sorted(needed - set(table.columns)))
        raise DataError(f"{path}: is no table of rounds; it has no column {lacks}")
    runs = table.groupby(["dataset", "strategy"])[["seed", "round"]].nunique()
    pairs = table["dataset"].nunique() * table["strategy"].nunique()
    if len(runs) < pairs or len(runs.drop_duplicates()) > 1:
        raise DataError(f"{path}: not every dataset and strategy has the same seeds and rounds")
    titles = dict.fromkeys(table["dataset"])
    titles |= table.groupby("dataset")[TITLE].first().to_dict() if TITLE in table else {}
    return Runs(table, {name: str(title or name) for name, title in titles.items()})
