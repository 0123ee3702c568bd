"""All stored runs as one tidy frame, whatever settings they have."""

from __future__ import annotations

import glob
import json
import logging
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline.errors import DataError
from pipeline.runs.keys import Key, flat
from pipeline.runs.store import RunStore, StoredRun

log = logging.getLogger("pipeline")

RUNS = ["experiment", "dataset", "strategy", "seed"]  # what a run is called
# Of a run's key, what is no setting: what it is called, and what it was computed from.
_NAMES = {"seed", "name", "strategy.name"}
_ORIGINS = {"numerics", "data"}  # which differ if a table or the project's code was changed


def load_runs(
    *places: str | Path, only: Mapping[Path, Container[str] | None] | None = None
) -> pd.DataFrame:
    """The rounds of all stored runs, one row per run and round.

    places : experiments' folders, or patterns of such; by default ``outputs/*``. Besides what a
    run's ``rounds.csv`` has, there are ``experiment`` (the folder's name), ``key`` (the run's
    hash), ``n_train``, ``n_test``, and one column for each setting that differs between runs of one
    dataset (of a strategy's own settings: of one strategy), such as ``boosting.eta``; also ``data``
    and ``numerics``, where a dataset's table or the project's numbers changed meanwhile. Damaged
    runs are left out with a warning.
    only : for an experiment's folder the runs that count, by their folders below ``runs/``.

    >>> import pipeline
    >>> runs = pipeline.load_runs("outputs/*")                               # doctest: +SKIP
    >>> last = runs[runs["round"] == 20]                                     # doctest: +SKIP
    >>> last.groupby(["dataset", "boosting.eta"])["mse_test"].mean()         # doctest: +SKIP
    """
    frames: list[pd.DataFrame] = []
    keys: list[dict[str, Any]] = []
    for experiment, stored, hash_ in _stored(places or ("outputs/*",), only or {}):
        key, sizes = stored.record["key"], stored.record.get("sizes", {})
        keys.append(settings_of(key) | {name: _cell(key.get(name)) for name in sorted(_ORIGINS)})
        size = {name: sizes.get(name) for name in ("n_train", "n_test")}
        further = {"experiment": experiment, "key": hash_, "run": len(frames), **size}
        frames.append(stored.rounds.assign(**further))
    if not frames:
        raise DataError(f"{', '.join(map(str, places or ['outputs/*']))}: no stored runs are there")
    rounds = pd.concat(frames, ignore_index=True)
    runs = rounds.groupby("run", sort=False)[RUNS].first()
    settings = pd.DataFrame(keys, index=runs.index)
    differing = [c for c in settings.columns if _differs(settings[c], runs, c)]
    rounds = rounds.join(settings[differing], on="run").drop(columns="run")
    front = [*RUNS, *differing, "round"]
    return rounds[[*front, *rounds.columns.difference(front, sort=False)]]


def settings_of(key: Key) -> dict[str, Any]:
    """What a run's numbers depend on besides its data and seed, by dotted names; lists as text."""
    known = _NAMES | _ORIGINS
    return {name: _cell(value) for name, value in flat(key) if name not in known}


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value


def _stored(
    places: Sequence[str | Path], only: Mapping[Path, Container[str] | None]
) -> Iterator[tuple[str, StoredRun, str]]:
    for place in places:
        folders = sorted(glob.glob(str(Path(place).expanduser())))  # noqa: PTH207 (absolute, too)
        for store in (RunStore(Path(folder)) for folder in folders):
            wanted = only.get(store.root)
            for folder, stored in store.stored():
                if wanted is not None and str(folder.relative_to(store.runs)) not in wanted:
                    continue
                yield store.root.resolve().name, stored, folder.name.rpartition("-")[2]


def _differs(values: pd.Series[Any], runs: pd.DataFrame, name: str) -> bool:
    groups: Sequence[str] = ["dataset", *(["strategy"] if name.startswith("strategy.") else [])]
    several = values.groupby([runs[g] for g in groups]).nunique(dropna=False)
    return bool((several > 1).any())
