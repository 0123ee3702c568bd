"""How far the work is: tqdm's bar on a terminal, plain lines otherwise; rounds as a table."""

import io
import logging
import sys
import time
from collections.abc import Iterable

import pandas as pd
from tqdm import tqdm

from pipeline.runs.kinds.base import Row, Run
from pipeline.runs.store import RunId

tqdm.monitor_interval = 0  # its thread would be forked with the workers

log = logging.getLogger("pipeline")

LOG_EVERY = 10.0  # seconds between lines where there is no terminal


class RoundTable:
    """The rounds of a single run as a table on standard output, line by line.

    quiet : print nothing, because the run is one of many.
    """

    COLUMNS = ("round", "mse_train", "mse_test", "mce_train", "mce_test", "gap", "weight")

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet, self.shown = quiet, 0

    def __call__(self, row: Row) -> None:
        """Print a round; before the first, the names of the columns."""
        self.shown += 1
        if self.quiet:
            return
        if self.shown == 1:
            tqdm.write(f"{row['dataset']} / {row['strategy']} / seed {row['seed']}")
            tqdm.write("".join(f"{name:>12}" for name in self.COLUMNS))
        values = [float(row[name]) for name in self.COLUMNS[1:]]
        cells = [f"{'' if v != v else format(v, '.6g'):>12}" for v in values]
        tqdm.write(f"{int(row['round']):>12}" + "".join(cells))

    def show(self, rounds: pd.DataFrame) -> None:
        """Print all rounds of a run that was not computed in this process."""
        for row in rounds.to_dict("records"):
            self({str(name): value for name, value in row.items()})


class Progress:
    """Counts runs; the time left follows from the cost of what is done.

    total, count : runs in all and in the store.  datasets : those with runs to compute.
    table : of a single run, which is shown round by round instead of being counted.
    """

    def __init__(
        self, total: int, count: int, datasets: Iterable[str], table: RoundTable | None = None
    ) -> None:
        self.total, self.count, self.table = total, count, table
        self.per_dataset = dict.fromkeys(datasets, 0)
        self.live = sys.stderr.isatty() and table is None
        self.logged, self.pending, self.latest = time.monotonic(), False, ""
        self.bar = tqdm(disable=True)

    def begin(self, cost: float) -> None:
        """Start to count: tasks of that cost in all are ahead."""
        if self.table is not None:
            if not self.table.quiet:
                log.info("preparing the split and the initial predictor ...")
            return
        bar = "|{bar:12}| " if self.live else ""
        self.bar = tqdm(
            total=cost,
            bar_format=f"{{desc}} {bar}{{elapsed}}, {{remaining}} left{{postfix}}",
            smoothing=0,  # costs are rough: the mean speed tells more than the latest
            file=sys.stderr if self.live else io.StringIO(),
            dynamic_ncols=True,
            leave=False,
        )
        self._spend(0.0)

    def on_round(self, row: Row) -> None:
        """A round of a run in this process is over."""
        if self.table is not None:
            self.table(row)

    def stored(self, run_id: RunId, run: Run, cost: float) -> None:
        """A run is stored, and with it that part of the cost is spent."""
        if self.table is not None and self.table.shown == 0:
            self.table.show(run.rounds)
        self._count(run_id.dataset, 1)
        self._spend(cost, f"{run_id}: {run.headline}")

    def found(self, dataset: str, n: int, cost: float) -> None:
        """Runs turned up in the store meanwhile, which saves that part of the cost."""
        self._count(dataset, n)
        self._spend(cost)

    def failed(self, run_id: RunId, why: str, cost: float) -> None:
        """There will be no such run, and that part of the cost is spent."""
        if self.table is None:  # of a single run the error says it
            self.say(f"FAILED {run_id}: {why}")
        self._spend(cost)

    def tick(self) -> None:
        """Redraw the bar or, where there is no terminal, print a line from time to time."""
        if self.live:
            self.bar.refresh()
        elif time.monotonic() - self.logged > LOG_EVERY or self.count == self.total:
            self._log()

    def say(self, line: str) -> None:
        """Print a line of its own."""
        tqdm.write(line, file=sys.stderr)

    def close(self) -> None:
        """The work is over."""
        self._log()
        self.bar.close()

    def _count(self, dataset: str, n: int) -> None:
        self.count += n
        self.per_dataset[dataset] += n

    def _spend(self, cost: float, latest: str = "") -> None:
        self.latest = latest or self.latest
        self.bar.update(cost)
        counts = " ".join(f"{name} {n}" for name, n in self.per_dataset.items())
        self.bar.set_description_str(f"[{self.count}/{self.total}]", refresh=False)
        self.bar.set_postfix_str(f"{counts} | {self.latest}", refresh=False)
        self.pending = cost > 0

    def _log(self) -> None:
        """A line; not in the midst of a task's runs, when the time left would be nonsense."""
        if self.pending and not self.live and self.table is None:
            self.logged, self.pending = time.monotonic(), False
            self.say(str(self.bar))
