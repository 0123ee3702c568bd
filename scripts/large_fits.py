"""What do fits of large tables take, and do they survive? On two Dask workers of this machine.

    python -m scripts.large_fits memory   a table three times each worker's memory limit: five
                                          rounds, what they hold and exchange, and the numbers
                                          beside those of one process and of LightGBM in memory
    python -m scripts.large_fits classes  the same for binary outcomes with weights; the planted
                                          bias is of the logits
    python -m scripts.large_fits growth   seconds a round and memory over 10^5 to 10^7 rows, with a
                                          figure: exact, LightGBM in memory, in parts, on Dask
    python -m scripts.large_fits theirs   LightGBM's own Dask estimator under the same limit

Tables are made by scripts/large_tables.py in a folder (--tables), which may be removed afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import pyarrow.parquet as pq
from matplotlib.figure import Figure

from pipeline.boosting.algorithm import advance, boost, round_seed
from pipeline.boosting.distributed.dask import OnDask
from pipeline.boosting.distributed.fit import DistributedFit, DistributedStep, FitSettings, Holders
from pipeline.boosting.distributed.initial import FOREST
from pipeline.boosting.distributed.local import InThisProcess
from pipeline.boosting.distributed.parts import TableRows, parquet_table
from pipeline.boosting.engines import TreeSettings, make_engine
from pipeline.boosting.engines.lightgbm import Bins, LightgbmEngine
from pipeline.boosting.losses import LogLoss
from pipeline.boosting.rescaling import Unit
from pipeline.runs.provenance import cpu_model
from scripts import large_tables

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 3 * 2**29  # bytes of each worker
ROWS, COLUMNS = 6_200_000, 100
TREES = TreeSettings(100, 3, min_samples_leaf=20)
SETTINGS = FitSettings(
    n_rounds=5, eta=0.5, rescaling=Unit(), trees=TREES, bins=Bins(), initial="given",
    forest=FOREST, held_out=0.02, sample=100_000, seed=0,
)  # fmt: skip
CLASSES = replace(SETTINGS, loss=LogLoss(), trees=replace(TREES, n_trees=50))
GROWTH = {10**5: 3, 10**6: 3, 10**7: 2}  # rows, and rounds to measure
GROWTH_COLUMNS = 20
EXACT_UP_TO = 10**6  # rows; beyond them a round takes many minutes


def planted(folder: Path, rows: int, columns: int, classes: bool = False) -> Path:
    """The planted table of a size, made if it is not there."""
    place = folder / f"{'classes' if classes else 'planted'}-{rows}-{columns}"
    if not (place / "done").exists():
        large_tables.write(large_tables.Planted(columns, classes=classes), place, rows, seed=0)
        (place / "done").touch()
    return place


def table_of(folder: Path, classes: bool = False) -> Any:
    more = ("w", "1") if classes else ()
    return parquet_table(folder, ["y"], ["truth"], "f0", *more)


@contextmanager
def cluster(limit: int | None = None, workers: int = 2) -> Iterator[Any]:
    """Workers of one thread each, in processes of their own."""
    import dask
    from distributed import Client, LocalCluster

    # They are to be measured, not to be talked about.
    dask.config.set({"logging.distributed": "error"})
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, memory_limit=limit or 0,
            dashboard_address=None,
        ) as processes,
        Client(processes) as client,
    ):  # fmt: skip
        yield client


@dataclass
class Watch:
    """The most memory of some processes, looked at ten times a second."""

    pids: Callable[[], list[int]]
    most: dict[int, int] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Watch:
        """Begin to look."""
        self.thread = threading.Thread(target=self._look)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Look no more."""
        self.over.set()
        self.thread.join()

    def _look(self) -> None:
        pids = self.pids()
        while not self.over.wait(0.1):
            for pid in pids:
                try:
                    held = psutil.Process(pid).memory_info().rss
                except psutil.Error:
                    continue
                self.most[pid] = max(self.most.get(pid, 0), held)


def loopback_bytes() -> int:
    """Bytes that were sent on this machine to itself so far."""
    return psutil.net_io_counters(pernic=True)["lo"].bytes_sent


# --- memory ---------------------------------------------------------------------------------------


def memory(tables: Path, classes: bool = False) -> None:
    """Five rounds of a table that no worker could hold, under a limit."""
    folder = planted(tables, ROWS, COLUMNS, classes)
    table = table_of(folder, classes)
    settings = CLASSES if classes else SETTINGS
    size = sum(f.stat().st_size for f in folder.glob("*.parquet"))
    cells = 8 * ROWS * (COLUMNS + 4 + classes)
    print(
        f"{table.n_rows:,} rows of {len(table.columns)} covariates: {size / 1e9:.2f} GB on disk, "
        f"{cells / 1e9:.2f} GB as numbers: {cells / LIMIT:.2f} times a worker's limit of "
        f"{LIMIT / 1e9:.2f} GB, {cells / LIMIT / 2:.2f} times both workers'",
        flush=True,
    )
    if classes:
        print("honest feedback: two trajectories, each fitted to half of the rows", flush=True)
        limited(table, replace(settings, feedback="honest"))
        print("one trajectory, fitted to all rows", flush=True)
    on_dask = limited(table, settings)
    if not classes:
        print("the same shards in one process, two threads:", flush=True)
        with InThisProcess(2) as holder:
            _tell_difference(on_dask, timed(table, holder, settings))
    print("LightGBM in memory, two threads, with boundaries of its own sample:", flush=True)
    _tell_difference(on_dask, in_memory(on_dask))


def limited(table: Any, settings: FitSettings) -> Fitted:
    """A fit on two workers under the limit, with what they held and what is left of the bias."""
    with cluster(LIMIT) as client:
        before = client.run(os.getpid)
        with Watch(lambda: list(before.values())) as watch, OnDask(client).open() as holders:
            on_dask = timed(table, holders, settings)
        after = client.run(os.getpid)
    print(f"workers restarted: {len(set(before.values()) - set(after.values()))}")
    for pid, most in watch.most.items():
        print(f"worker {pid}: {most / 1e9:.2f} GB at most, {most / LIMIT:.0%} of its limit")
    _tell_bias(on_dask)
    return on_dask


@dataclass(frozen=True)
class Fitted:
    """A fit and its steps."""

    fit: DistributedFit
    steps: list[DistributedStep]


def timed(table: Any, holders: Holders, settings: FitSettings) -> Fitted:
    """A fit, with a line for each step."""
    fit = DistributedFit(table, holders, settings, tell=lambda line: print(f"  {line}", flush=True))
    steps = []
    at, sent = time.monotonic(), loopback_bytes()
    for step in fit.run():
        now, sent_now = time.monotonic(), loopback_bytes()
        print(
            f"  round {step.t}: loss {step.loss:.6f}, {now - at:.1f} s, "
            f"{(sent_now - sent) / 1e6:.0f} MB sent",
            flush=True,
        )
        steps.append(step)
        at, sent = now, sent_now
    return Fitted(fit, steps)


def _tell_bias(fitted: Fitted) -> None:
    """How much of the planted bias is left, on rows that no round has seen."""
    held = fitted.fit.held_out
    X = held.X[:, :COLUMNS]
    levels = fitted.fit.encoding.codes[-1].levels  # type: ignore[union-attr]
    group = np.array([list(large_tables.GROUPS).index(level) for level in levels])
    of_rows = group[held.X[:, COLUMNS].astype(int)]
    bias = large_tables.planted_bias(X, of_rows)
    assert held.f0 is not None
    truth = fitted.fit.settings.loss.score(held.f0) - bias
    for step in (fitted.steps[0], fitted.steps[-1]):
        off = step.f_held_out - truth
        segments = [
            f"{off[bias == value].mean():+.3f} where {value:+.0f} was planted"
            for value in np.unique(bias)
        ]
        print(
            f"round {step.t}: mean square distance to the truth {np.square(off).mean():.4f} on "
            f"{len(off):,} held-out rows; mean bias {', '.join(segments)}",
            flush=True,
        )


def _tell_difference(ours: Fitted, theirs: Fitted) -> None:
    spread = float(np.std(ours.fit.sample.y))
    for a, b in zip(ours.steps[1:], theirs.steps[1:], strict=True):
        off = np.abs(a.f_sample - b.f_sample)
        print(
            f"  round {a.t}: loss {b.loss:.9f} against {a.loss:.9f}; predictions of sampled rows "
            f"differ by {off.max() / spread:.1e} sd at most, {off.mean() / spread:.1e} on average"
        )


def in_memory(ours: Fitted) -> Fitted:
    """The single-machine engine on the same training rows, all of them in memory."""
    fit, encoding, s = ours.fit, ours.fit.encoding, ours.fit.settings
    rows = training_rows(fit)
    y, w = rows.y, rows.weights
    engine = LightgbmEngine(s.trees, 2, Bins(), encoding.categorical)
    fitter = engine.bind(rows.X, w)
    seconds = time.monotonic()
    steps = [ours.steps[0]]
    f = ours.steps[0].f_sample
    assert rows.f0 is not None
    for step in boost(
        y, s.loss.score(rows.f0), s.n_rounds, s.eta, s.rescaling,
        lambda t, f, _: s.loss.fit(fitter, y, f, f, round_seed(s.seed, t), w), w,
    ):  # fmt: skip
        f = advance(f, fit.sample.X, step, s.eta)
        loss = rows.mean(s.loss.of_rows(y, step.f))
        steps.append(DistributedStep(step.t + 1, step.weight, step.gap, loss, f, f))
        print(f"  round {step.t + 1}: {time.monotonic() - seconds:.1f} s", flush=True)
        seconds = time.monotonic()
    return Fitted(fit, steps)


def training_rows(fit: DistributedFit) -> TableRows:
    """All rows that were fitted, in memory."""
    pieces = []
    for part in fit.table.parts:
        chances = np.random.default_rng([SETTINGS.seed, part.number])
        for block in part.blocks():
            kept = chances.random(len(block)) >= SETTINGS.held_out
            pieces.append(replace(block, X=fit.encoding.encode(block.X)).take(kept))
    return TableRows.joined(pieces)


def theirs(tables: Path) -> None:
    """LightGBM's DaskLGBMRegressor on the same table and limit: a single ensemble on (x, f0)."""
    import dask.dataframe as dd
    from lightgbm import DaskLGBMRegressor

    folder = planted(tables, ROWS, COLUMNS)
    with cluster(LIMIT) as client:
        before = set(client.run(os.getpid).values())
        names = [f"x{j}" for j in range(COLUMNS)]
        frame = dd.read_parquet(sorted(map(str, folder.glob("*.parquet"))), columns=[*names, "y"])
        model = DaskLGBMRegressor(client=client, n_estimators=100, max_depth=3, num_leaves=8)
        started = time.monotonic()

        def fit() -> None:
            try:
                model.fit(frame[names], frame["y"])
                print("it ended")
            except Exception as error:
                print(f"it failed: {type(error).__name__}: {str(error)[:200]}")

        thread = threading.Thread(target=fit, daemon=True)
        thread.start()
        while thread.is_alive() and time.monotonic() - started < 300:
            thread.join(1.0)
            gone = before - set(client.run(os.getpid, on_error="ignore").values())
            if gone:
                print(f"after {time.monotonic() - started:.0f} s: {len(gone)} of 2 workers were "
                      "ended for going over their limit")  # fmt: skip
                break
    os._exit(0)


# --- growth ---------------------------------------------------------------------------------------


WAYS = {
    "exact": "exact engine, one thread",
    "lightgbm": "LightGBM in memory, two threads",
    "parts": "LightGBM in parts, one process, two threads",
    "dask": "LightGBM in parts, two Dask workers",
}


def growth(tables: Path, figure: Path) -> None:
    """Each way and size in a process of its own."""
    print(f"100 trees of depth 3 a round, {GROWTH_COLUMNS} columns; {cpu_model()}")
    rows = []
    for n in GROWTH:
        planted(tables, n, GROWTH_COLUMNS)
        for way in WAYS:
            if way == "exact" and n > EXACT_UP_TO:
                continue
            command = [sys.executable, "-m", "scripts.large_fits", "one", "--tables", str(tables)]
            out = subprocess.run(
                [*command, "--way", way, "--rows", str(n)], capture_output=True, text=True,
                cwd=ROOT, check=False,
            )  # fmt: skip
            try:
                found = json.loads(out.stdout.strip().splitlines()[-1])
            except (ValueError, IndexError):
                print(f"{way} {n}: failed\n{out.stderr[-500:]}")
                continue
            rows.append({"way": way, "rows": n} | found)
            print(
                f"{n:>9} rows, {way:<9} {found['seconds']:8.2f} s a round, preparing "
                f"{found['preparing']:6.1f} s, {found['peak_mb']:7.0f} MB at most",
                flush=True,
            )
    frame = pd.DataFrame(rows)
    figure.parent.mkdir(parents=True, exist_ok=True)
    frame.to_csv(figure.with_suffix(".csv"), index=False)
    draw_growth(frame, figure)


def one(tables: Path, way: str, n: int) -> None:
    """A way and a size: seconds of a round, and the most memory of all its processes."""
    folder = planted(tables, n, GROWTH_COLUMNS)
    rounds = GROWTH[n]
    started = time.monotonic()
    children: dict[int, int] = {}
    if way in {"exact", "lightgbm"}:
        seconds, begun = _in_one_go(folder, way, rounds)
    else:
        settings = FitSettings(
            rounds, 0.5, Unit(), TREES, Bins(), "given", FOREST, 0.0, SETTINGS.sample, 0
        )
        if way == "parts":
            with InThisProcess(2) as holder:
                seconds, begun = _in_parts(folder, holder, settings)
        else:
            with cluster() as client:
                pids = list(client.run(os.getpid).values())
                with Watch(lambda: pids) as watch, OnDask(client).open() as holders:
                    seconds, begun = _in_parts(folder, holders, settings)
                children = watch.most
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + sum(children.values())
    print(
        json.dumps({"seconds": min(seconds), "preparing": begun - started, "peak_mb": peak / 1e6})
    )


def _in_one_go(folder: Path, way: str, rounds: int) -> tuple[list[float], float]:
    names = [f"x{j}" for j in range(GROWTH_COLUMNS)]
    files = sorted(folder.glob("*.parquet"))
    n = sum(pq.read_metadata(file).num_rows for file in files)
    X, y, f = np.empty((n, len(names) + len(large_tables.GROUPS))), np.empty(n), np.empty(n)
    at = 0
    for file in files:
        table = pq.read_table(file)
        rows = slice(at, at + table.num_rows)
        for j, name in enumerate(names):
            X[rows, j] = table[name].to_numpy()
        words = table["g"].to_pandas().to_numpy()
        for j, group in enumerate(large_tables.GROUPS):
            X[rows, len(names) + j] = words == group
        y[rows], f[rows] = table["y"].to_numpy(), table["f0"].to_numpy()
        at += table.num_rows
    fitter = make_engine(way, TREES, 2).bind(X)
    begun = time.monotonic()
    seconds = []
    for t in range(rounds):
        at_start = time.monotonic()
        _, h = fitter.fit(f, y - f, t)
        f = f + 0.5 * h
        seconds.append(time.monotonic() - at_start)
    return seconds, begun


def _in_parts(folder: Path, holders: Holders, settings: FitSettings) -> tuple[list[float], float]:
    fit = DistributedFit(table_of(folder), holders, settings, tell=lambda _: None)
    at, seconds, begun = 0.0, [], 0.0
    for step in fit.run():
        now = time.monotonic()
        if step.t == 0:
            begun = now
        else:
            seconds.append(now - at)
        at = now
    return seconds, begun


def draw_growth(frame: pd.DataFrame, path: Path) -> None:
    """Seconds a round and memory over rows."""
    figure = Figure(figsize=(9.5, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    looks = dict(zip(WAYS, (("#0072b2", "o"), ("#d55e00", "s"), ("#009e73", "^"), ("#333333", "D")),
                     strict=True))  # fmt: skip
    for way, name in WAYS.items():
        some = frame[frame["way"] == way]
        colour, marker = looks[way]
        style = {"color": colour, "marker": marker, "label": name}
        left.plot(some["rows"], some["seconds"], **style)
        right.plot(some["rows"], some["peak_mb"], **style)
    cells = 8.0 * (GROWTH_COLUMNS + 3)
    sizes = np.array(sorted(set(frame["rows"])))
    right.plot(sizes, sizes * cells / 1e6, color="#999999", linestyle=":", label="the table itself")
    for axes, title in ((left, "seconds a round"), (right, "memory of all processes, MB")):
        axes.set(xscale="log", yscale="log", xlabel="rows", title=title)
        axes.grid(alpha=0.3)
    right.legend(fontsize=8, frameon=False)
    figure.savefig(path, dpi=150)
    figure.savefig(path.with_suffix(".pdf"))
    print(f"figure: {path}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["memory", "classes", "growth", "theirs", "one"])
    parser.add_argument("--tables", type=Path, default=Path(tempfile.gettempdir()) / "mcboost")
    parser.add_argument("--figure", type=Path, default=Path("outputs/bench/large.png"))
    parser.add_argument("--way", choices=list(WAYS), help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    works: dict[str, Callable[[], None]] = {
        "memory": lambda: memory(options.tables),
        "classes": lambda: memory(options.tables, classes=True),
        "growth": lambda: growth(options.tables, options.figure),
        "theirs": lambda: theirs(options.tables),
        "one": lambda: one(options.tables, options.way, options.rows),
    }
    works[options.what]()


if __name__ == "__main__":
    main()
