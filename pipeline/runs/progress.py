"""How far the work is: tqdm's bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
import logging
import sys
import time
from collections.abc import Mapping
from typing import Protocol

import pandas as pd
from tqdm import tqdm

from pipeline.runs.kinds.base import Row, Run
from pipeline.runs.store import RunId

tqdm.monitor_interval = 0  # its thread would be forked with the workers

log = logging.getLogger("pipeline")

LOG_EVERY = 10.0  # seconds between lines where there is no terminal


class Progress(Protocol):
    """What a grid tells while it works."""

    @property
    def count(self) -> int:
        """How many runs are stored."""
        ...

    def begin(self, cost: float) -> None:
        """Tasks of that cost in all are ahead."""
        ...

    def on_round(self, row: Row) -> None:
        """A round of a run in this process is over."""
        ...

    def stored(self, run_id: RunId, run: Run, cost: float) -> None:
        """A run is stored, and with it that part of the cost is spent."""
        ...

    def found(self, dataset: str, n: int, cost: float) -> None:
        """Runs turned up in the store meanwhile, which saves that part of the cost."""
        ...

    def failed(self, run_id: RunId, why: str, cost: float) -> None:
        """There will be no such run, and that part of the cost is spent."""
        ...

    def tick(self) -> None:
        """A moment has passed."""
        ...

    def say(self, line: str) -> None:
        """A line of its own."""
        ...

    def close(self) -> None:
        """The work is over."""
        ...


class _Nowhere(io.TextIOBase):
    """Where a bar is drawn that only its text is asked of."""

    def write(self, text: str) -> int:
        """Nothing is kept."""
        return len(text)


class GridProgress:
    """Counts runs; the time left follows from the cost of what is done.

    total, count : runs in all and in the store;  datasets : the same by dataset, of those ahead.
    """

    def __init__(self, total: int, count: int, datasets: Mapping[str, int]) -> None:
        self.total, self.count = total, count
        self.per_dataset = dict(datasets)
        self.last = ""
        self.live = sys.stderr.isatty()
        self.logged = time.monotonic()
        self.unsaid = False
        self.bar: tqdm[None] | None = None

    def begin(self, cost: float) -> None:
        """See `Progress`."""
        bar = "|{bar:12}| " if self.live else ""
        self.bar = tqdm(
            total=cost,
            bar_format=f"{{desc}} {bar}{{elapsed}}, {{remaining}} left{{postfix}}",
            smoothing=0,  # costs are rough: the mean speed tells more than the latest
            file=sys.stderr if self.live else _Nowhere(),
            dynamic_ncols=True,
            leave=False,
        )
        self._describe()

    def on_round(self, row: Row) -> None:
        """Single rounds are too many to tell."""

    def stored(self, run_id: RunId, run: Run, cost: float) -> None:
        """See `Progress`."""
        self.count += 1
        self.per_dataset[run_id.dataset] += 1
        self.last = f"{run_id}: {run.headline}"
        self._spend(cost)

    def found(self, dataset: str, n: int, cost: float) -> None:
        """See `Progress`."""
        self.count += n
        self.per_dataset[dataset] += n
        self._spend(cost)

    def failed(self, run_id: RunId, why: str, cost: float) -> None:
        """See `Progress`."""
        self.say(f"FAILED {run_id}: {why}")
        self._spend(cost)

    def tick(self) -> None:
        """See `Progress`."""
        if self.bar is None:
            return
        if self.live:
            self.bar.refresh()
        elif self.unsaid and (
            time.monotonic() - self.logged > LOG_EVERY or self.count == self.total
        ):
            self._log()

    def say(self, line: str) -> None:
        """See `Progress`."""
        tqdm.write(line, file=sys.stderr)

    def close(self) -> None:
        """See `Progress`."""
        if self.bar is None:
            return
        if not self.live and self.unsaid:
            self._log()
        self.bar.close()

    def _spend(self, cost: float) -> None:
        if self.bar is None:
            return
        self.bar.update(cost)
        self._describe()
        self.unsaid = True

    def _log(self) -> None:
        """A line; not in the midst of a task's runs, when the time left would be nonsense."""
        self.logged, self.unsaid = time.monotonic(), False
        self.say(str(self.bar))

    def _describe(self) -> None:
        if self.bar is not None:
            counts = " ".join(f"{name} {n}" for name, n in self.per_dataset.items())
            self.bar.set_description_str(f"[{self.count}/{self.total}]", refresh=False)
            self.bar.set_postfix_str(f"{counts} | {self.last}", refresh=False)


class RoundsProgress:
    """A single run: its rounds as a table on standard output, line by line.

    beside : other runs write to the same terminal, so that each line needs the run's name.
    """

    COLUMNS = ("round", "mse_train", "mse_test", "mce_train", "mce_test", "gap", "weight")

    def __init__(self, rounds: int, *, beside: bool = False) -> None:
        self.rounds, self.beside = rounds, beside
        self.count = 0
        self.shown = 0
        self.bar: tqdm[None] | None = None

    def begin(self, cost: float) -> None:  # noqa: ARG002
        """See `Progress`."""
        if self.beside:
            return
        log.info("preparing the split and the initial predictor ...")
        self.bar = tqdm(
            total=self.rounds + 1, unit="round", leave=False, disable=not sys.stderr.isatty()
        )

    def on_round(self, row: Row) -> None:
        """See `Progress`."""
        name = f"{row['dataset']}/{row['strategy']}/seed={row['seed']}"
        front = f"{name:<28}" if self.beside else ""
        if self.shown == 0:
            if not self.beside:
                tqdm.write(f"{row['dataset']} / {row['strategy']} / seed {row['seed']}")
            tqdm.write(front + "".join(f"{name:>12}" for name in self.COLUMNS))
        self.shown += 1
        tqdm.write(front + self._line(row))
        if self.bar is not None:
            self.bar.update()

    def show(self, rounds: pd.DataFrame) -> None:
        """All rounds of a run that was computed before, or elsewhere."""
        for _, row in rounds.iterrows():
            self.on_round(dict(row))

    def stored(self, run_id: RunId, run: Run, cost: float) -> None:  # noqa: ARG002
        """See `Progress`."""
        self.count += 1
        if self.shown == 0:
            self.show(run.rounds)

    def found(self, dataset: str, n: int, cost: float) -> None:  # noqa: ARG002
        """See `Progress`."""
        self.count += n

    def failed(self, run_id: RunId, why: str, cost: float) -> None:
        """The grid's error says it."""

    def tick(self) -> None:
        """See `Progress`."""

    def say(self, line: str) -> None:
        """See `Progress`."""
        tqdm.write(line, file=sys.stderr)

    def close(self) -> None:
        """See `Progress`."""
        if self.bar is not None:
            self.bar.close()

    def _line(self, row: Row) -> str:
        cells = [f"{int(row['round']):>12}"]
        for name in self.COLUMNS[1:]:
            value = float(row[name])
            cells.append(f"{'':>12}" if value != value else f"{value:>12.6g}")
        return "".join(cells)
