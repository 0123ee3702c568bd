"""Workers that compute tasks: this process, processes of this machine, or a Dask cluster."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from pipeline.config.schema import Grid
from pipeline.processes import cores
from pipeline.runs.kinds.base import Kind, OnRound
from pipeline.runs.workers.base import InThisProcess, Pool, Workers


def open_workers(
    kind: Kind, grid: Grid, materials: Mapping[str, Any], n_tasks: int, on_round: OnRound
) -> AbstractContextManager[Workers]:
    """The workers that a config asks for, ready to compute with each dataset's material.

    If tasks run in this process, ``on_round`` is called after every round.
    """
    if grid.on_dask and not kind.in_driver:
        from pipeline.runs.workers.dask import cluster  # an optional extra

        return cluster(grid, materials)
    slots = 1 if kind.in_driver else min(grid.workers or cores(), n_tasks)
    return InThisProcess(materials, on_round) if slots == 1 else Pool(slots, materials)
