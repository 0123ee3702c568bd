"""Workers that compute tasks: this process, processes of this machine, or a Dask cluster."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

from pipeline.config.schema import Grid
from pipeline.datasets.design import Design
from pipeline.processes import cores
from pipeline.runs.kinds.base import OnRound
from pipeline.runs.workers.base import Workers
from pipeline.runs.workers.local import in_this_process, local_processes


def open_workers(
    grid: Grid, designs: Mapping[str, Design], n_tasks: int, on_round: OnRound
) -> AbstractContextManager[Workers]:
    """The workers that a config asks for, ready to compute with ``designs``.

    If tasks run in this process, ``on_round`` is called after every round.
    """
    if grid.on_dask:
        from pipeline.runs.workers.dask import cluster  # an optional extra

        return cluster(grid, designs)
    slots = min(grid.workers or cores(), n_tasks)
    return in_this_process(designs, on_round) if slots == 1 else local_processes(slots, designs)


__all__ = ["Workers", "open_workers"]
