"""Fits on clusters as users run them: over TLS, killed at random, and over slow networks.

    python -m scripts.large_clusters kills     workers, schedulers and drivers of fits of binary
                                               outcomes with weights, killed at random moments, on a
                                               cluster with TLS and a scheduler file
    python -m scripts.large_clusters network   seconds and bytes of a round on two and four workers
                                               over links of limited bandwidth (network namespaces
                                               of this machine, made and removed; needs root, ip and
                                               tc), beside what the formula of CONTRIBUTING.md says
    python -m scripts.large_clusters paper     the formula for 10, 100 and 1,000 workers
    python -m scripts.large_clusters defaults  what is lost against the estimators of one machine:
                                               two halves instead of five folds and a stack

Certificates are made by openssl.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.boosting.distributed.dask import OnDask
from pipeline.boosting.distributed.fit import DistributedFit
from scripts.large_fits import ROOT, SETTINGS, cluster, planted, table_of

KILLED_ROWS, COLUMNS = 100_000, 20
KILLS_OF_ONE_FIT = 6
VICTIMS = ("worker", "worker", "scheduler", "driver")
NETWORK_ROWS = 20_000  # of each worker: computing is to take little of a round
RATES = (0, 100, 40)  # Mbit/s of each worker's link; 0: as fast as it is


# --- clusters -------------------------------------------------------------------------------------


class Cluster:
    """A scheduler and workers over TLS, known by a scheduler file; who is killed is replaced."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder, self.n, self.note = folder, workers, folder / "scheduler.json"
        key, certificate = folder / "key.pem", folder / "certificate.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
             "/CN=cluster", "-keyout", str(key), "-out", str(certificate)],
            check=True, capture_output=True,
        )  # fmt: skip
        tls = {f"DASK_DISTRIBUTED__COMM__TLS__{who}__{what}": str(path)
               for who in ("SCHEDULER", "WORKER", "CLIENT")
               for what, path in (("KEY", key), ("CERT", certificate))}  # fmt: skip
        self.environment = os.environ | tls | {
            "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": str(certificate),
            # What a killed driver held is free again after this, instead of half a minute.
            "DASK_DISTRIBUTED__SCHEDULER__LOCKS__LEASE_TIMEOUT": "3s",
        }  # fmt: skip
        self.workers: list[subprocess.Popen[bytes]] = []
        self.start()

    def start(self) -> None:
        """Start all of it."""
        self.note.unlink(missing_ok=True)
        self.scheduler = self._launch("scheduler", "--host", "tls://127.0.0.1", "--port", "0",
                                      "--no-dashboard")  # fmt: skip
        while not self.note.exists():
            time.sleep(0.05)
        self.workers = [self._worker() for _ in range(self.n)]

    def stop(self) -> None:
        """End all of it."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    def kill(self, what: str, rng: random.Random) -> None:
        """Kill a worker or the scheduler, with what depends on it, and start it again."""
        if what == "worker":
            k = rng.randrange(self.n)
            self.workers[k].kill()
            self.workers[k].wait()
            self.workers[k] = self._worker()
        else:
            self.scheduler.kill()
            time.sleep(1.0)
            self.stop()
            self.start()

    def _worker(self) -> subprocess.Popen[bytes]:
        return self._launch("worker", "--nthreads", "1", "--no-nanny", "--no-dashboard",
                            "--local-directory", str(self.folder))  # fmt: skip

    def _launch(self, what: str, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{what}", "--scheduler-file",
             str(self.note), *arguments],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder,
            env=self.environment,
        )  # fmt: skip


def kills(tables: Path, n: int, seed: int) -> None:
    """Fits that are killed, again and again, against an undisturbed one."""
    table = planted(tables, KILLED_ROWS, COLUMNS, classes=True)
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        one = Cluster(place)

        def driver(out: Path) -> subprocess.Popen[str]:
            return subprocess.Popen(
                [
                    sys.executable, "-m", "pipeline", "dataset=parquet", f"dataset.path={table}",
                    "dataset.target=y", "dataset.positive='1'", "dataset.weight=w",
                    "dataset.drop=[truth]", "dataset.prediction=f0", "dataset.name=classes",
                    "boosting.loss=log", "strategy=adaptive", "engine=lightgbm",
                    "boosting.trees=50", "boosting.rounds=20", f"grid.scheduler={one.note}",
                    f"output_dir={out}",
                ],
                cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                env=one.environment,
            )  # fmt: skip

        def rounds_of(out: Path) -> bytes:
            (file,) = out.glob("own/runs/*/*/*/rounds.csv")
            return file.read_bytes()

        try:
            started = time.monotonic()
            process = driver(place / "undisturbed")
            output, _ = process.communicate()
            assert process.returncode == 0, output
            usual, expected = time.monotonic() - started, rounds_of(place / "undisturbed")
            print(f"undisturbed: {usual:.0f} s", flush=True)
            done: Counter[str] = Counter()
            same = fits = 0
            while done.total() < n:
                fits += 1
                out, started = place / f"{fits}", time.monotonic()
                hits, fault = _disturbed(one, partial(driver, out), rng, usual, n - done.total())
                done.update(hits)
                if not hits:  # the first fit compiled, or the machine was busy
                    usual = min(usual, time.monotonic() - started)
                equal = fault is None and rounds_of(out) == expected
                same += equal
                verdict = "the same result" if equal else f"ANOTHER RESULT\n{fault}"
                print(f"fit {fits}, killed: {', '.join(hits)}; {verdict}", flush=True)
            print(
                f"{done.total()} kills ({dict(done)}) in {fits} fits, {same} with the same result"
            )
        finally:
            one.stop()


def _disturbed(
    one: Cluster, driver: Callable[[], Any], rng: random.Random, usual: float, most: int
) -> tuple[list[str], str | None]:
    """A fit with kills, started again till it ends; what was killed, and the last output if not."""
    hits: list[str] = []
    output = ""
    for _ in range(2 * KILLS_OF_ONE_FIT):
        process = driver()
        while process.poll() is None:
            deadline = time.monotonic() + rng.uniform(0.1, 0.4) * usual
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.1)
            if process.poll() is None and len(hits) < min(KILLS_OF_ONE_FIT, most):
                hits.append(rng.choice(VICTIMS))
                if hits[-1] == "driver":
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                else:
                    one.kill(hits[-1], rng)
        output, _ = process.communicate()
        if process.returncode == 0:
            return hits, None
        if "Traceback" in output:
            return hits, output
    return hits, output


# --- networks -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Constants:
    """What a round's time is made of, measured on this project's machine and by `network`.

    core : seconds a row and tree, for 101 columns.  bins, histogram : bins of a column, and bytes
    of one of them.  levels : nodes whose histograms are exchanged for a tree of depth 3.
    bandwidth : bytes a second of a link.  message : seconds of a message.  exchanges : a tree.
    sample : bytes that the leader sends to each worker.  task : seconds of the scheduler for a
    call on a worker.  calls : on each worker, a round.
    """

    core: float = 2e-7
    bins: int = 255
    histogram: int = 16
    nodes: int = 4
    bandwidth: float = 125e6
    message: float = 1e-4
    exchanges: int = 8
    sample: float = 8e5
    task: float = 1e-3
    calls: int = 4

    def tree_bytes(self, workers: int, columns: int) -> float:
        """Bytes that a worker sends for a tree: all histograms but its own share."""
        whole = self.nodes * columns * self.bins * self.histogram
        return whole * (workers - 1) / workers

    def round(self, rows: float, columns: int, workers: int, trees: int) -> dict[str, float]:
        """Seconds of a round, by what they are spent on."""
        steps = 2 * math.log2(workers) if workers > 1 else 0.0
        return {
            "computing": trees * self.core * rows / workers * columns / 101,
            "histograms": trees * self.tree_bytes(workers, columns) / self.bandwidth,
            "messages": trees * self.exchanges * steps * self.message,
            "sample": workers * self.sample / self.bandwidth,
            "scheduler": workers * self.calls * self.task,
        }


def paper() -> None:
    """What saturates first, for 101 columns and 100 trees a round at 1 Gbit/s."""
    constants = Constants()
    for rows in (1e8, 1e9, 1e10):
        for workers in (10, 100, 1000):
            parts = constants.round(rows, 101, workers, 100)
            most = max(parts, key=lambda name: parts[name])
            told = ", ".join(f"{name} {seconds:.1f}" for name, seconds in parts.items())
            print(f"{rows:.0e} rows, {workers:>4} workers: {sum(parts.values()):8.1f} s a round "
                  f"({told}); most: {most}")  # fmt: skip


def _ip(*arguments: str, within: str | None = None) -> None:
    prefix = ["ip", "netns", "exec", within] if within else []
    subprocess.run([*prefix, *arguments], check=True, capture_output=True)


@contextmanager
def namespaces(workers: int, rate: int) -> Iterator[list[str]]:
    """Namespaces joined by a bridge: the leader's, and one of each worker with its own link."""
    lead, names = "mcgb-lead", [f"mcgb-w{k}" for k in range(workers)]
    try:
        for name in (lead, *names):
            _ip("ip", "netns", "add", name)
            _ip("ip", "link", "set", "lo", "up", within=name)
        _ip("ip", "link", "add", "br0", "type", "bridge", within=lead)
        _ip("ip", "addr", "add", "10.77.0.1/24", "dev", "br0", within=lead)
        _ip("ip", "link", "set", "br0", "up", within=lead)
        for k, name in enumerate(names):
            _ip("ip", "link", "add", f"v{k}", "type", "veth", "peer", "name", "eth0", "netns", name,
                within=lead)  # fmt: skip
            _ip("ip", "link", "set", f"v{k}", "master", "br0", "up", within=lead)
            _ip("ip", "addr", "add", f"10.77.0.{k + 10}/24", "dev", "eth0", within=name)
            _ip("ip", "link", "set", "eth0", "up", within=name)
            if rate:
                for device, where in ((f"v{k}", lead), ("eth0", name)):
                    _ip("tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{rate}mbit",
                        "burst", "256kb", "latency", "500ms", within=where)  # fmt: skip
        yield names
    finally:
        for name in (*names, lead):
            with suppress(subprocess.CalledProcessError):
                _ip("ip", "netns", "del", name)


def network(tables: Path) -> None:
    """Rounds on two and four workers over links of several rates."""
    print(f"{NETWORK_ROWS:,} rows a worker, {COLUMNS + 1} columns, 100 trees of depth 3 a round")
    for workers in (2, 4):
        folder = planted(tables, workers * NETWORK_ROWS, COLUMNS)
        free = 0.0
        for rate in RATES:
            found = _over(folder, workers, rate)
            free = free or found["seconds"]
            line = (
                f"{workers} workers, {rate or 'unlimited'} Mbit/s: {found['seconds']:.2f} s a round"
            )
            constants = Constants(bandwidth=rate * 1e6 / 8)
            by_formula = 100 * constants.tree_bytes(workers, COLUMNS + 1)
            line += (
                f", {found['sent'] / 1e6:.1f} MB sent by a worker (formula {by_formula / 1e6:.1f})"
            )
            if rate:
                expected = free + (by_formula + constants.sample) / constants.bandwidth
                line += f"; formula {expected:.2f} s"
            print(line, flush=True)


def _over(folder: Path, workers: int, rate: int) -> dict[str, float]:
    """Seconds of a round, and bytes that a worker sends, over links of a rate."""
    with namespaces(workers, rate) as names, tempfile.TemporaryDirectory() as scratch:
        processes: list[subprocess.Popen[Any]] = []

        def launch(where: str, *command: str, **more: Any) -> subprocess.Popen[Any]:
            processes.append(
                subprocess.Popen(
                    ["ip", "netns", "exec", where, sys.executable, "-m", *command], **more
                )
            )
            return processes[-1]

        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": scratch}
        try:
            launch("mcgb-lead", "distributed.cli.dask_scheduler", "--host", "10.77.0.1", "--port",
                   "8786", "--no-dashboard", **quiet)  # fmt: skip
            for name in names:
                launch(name, "distributed.cli.dask_worker", "tcp://10.77.0.1:8786", "--nthreads",
                       "1", "--no-nanny", "--no-dashboard", **quiet)  # fmt: skip
            leader = launch("mcgb-lead", "scripts.large_clusters", "lead", "--tables", str(folder),
                            "--workers", str(workers), cwd=ROOT, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True)  # fmt: skip
            output, _ = leader.communicate(timeout=600)
            return json.loads(output.strip().splitlines()[-1])
        finally:
            for process in processes:
                process.kill()
                process.wait()


def lead(folder: Path, workers: int) -> None:
    """Inside of the leader's namespace: four rounds, of which the last three are measured."""
    from distributed import Client

    def sent(_: Any = None) -> int:
        import psutil

        return psutil.net_io_counters(pernic=True)["eth0"].bytes_sent

    with Client("tcp://10.77.0.1:8786") as client:
        client.wait_for_workers(workers, timeout=120)
        with OnDask(client, workers).open() as holders:
            table = table_of(folder)
            settings = replace(SETTINGS, n_rounds=4, held_out=0.0, sample=100_000)
            at, before, seconds, amounts = 0.0, 0.0, [], []
            for step in DistributedFit(table, holders, settings, tell=lambda _: None).run():
                now = time.monotonic()
                amount = float(np.mean(list(client.run(sent).values())))
                if step.t > 1:
                    seconds.append(now - at)
                    amounts.append(amount - before)
                at, before = time.monotonic(), amount
    print(json.dumps({"seconds": float(np.median(seconds)), "sent": float(np.median(amounts))}))


# --- defaults -------------------------------------------------------------------------------------


def defaults(seeds: int) -> None:
    """Held-out losses on tables that fit both ways, relative to that of the model corrected."""
    import dask.array as da
    from scipy.special import expit
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.metrics import log_loss, mean_squared_error
    from sklearn.model_selection import train_test_split

    from pipeline.boosting import (
        DaskMulticalibrationBoostingClassifier,
        DaskMulticalibrationBoostingRegressor,
        MulticalibrationBoostingClassifier,
        MulticalibrationBoostingRegressor,
    )
    from pipeline.config.compose import load
    from pipeline.datasets.library import Library

    library = Library()
    losses: dict[tuple[str, str], list[float]] = {}
    with cluster() as client:
        for name in ("california", "adult", "adult_income"):
            design = library.design(load([f"dataset={name}"]).dataset)
            binary = name == "adult_income"
            for seed in range(seeds):
                rows = train_test_split(np.arange(len(design.y)), random_state=seed)
                fitted, rest = train_test_split(rows[0], train_size=0.3, random_state=seed)
                model = RandomForestRegressor(100, max_depth=5, random_state=seed)
                model.fit(design.X[fitted], design.y[fitted])
                f0 = model.predict(design.X)
                kinds: dict[str, Any] = {}
                alone: Any = MulticalibrationBoostingRegressor
                over: Any = DaskMulticalibrationBoostingRegressor
                if binary:
                    f0 = expit(np.log(np.clip(f0, 1e-6, 1 - 1e-6) / np.clip(1 - f0, 1e-6, 1)))
                    alone = MulticalibrationBoostingClassifier
                    over = DaskMulticalibrationBoostingClassifier
                kinds["one machine, default"] = alone(random_state=seed)
                kinds["one machine, no stack"] = alone(random_state=seed, stack=False)
                kinds["one machine, no stack, two folds"] = alone(
                    random_state=seed, stack=False, cv=2
                )
                for feedback in ("honest", "in_sample"):
                    kinds[f"Dask, {feedback}"] = over(
                        random_state=seed, feedback=feedback, client=client
                    )
                X, y = design.X[rest], design.y[rest]
                test, y_test = design.X[rows[1]], design.y[rows[1]]

                def loss(p: Any, truth: Any = y_test, binary: bool = binary) -> float:
                    return log_loss(truth, p) if binary else mean_squared_error(truth, p)

                start = loss(f0[rows[1]])
                for label, kind in kinds.items():
                    collections = (X, y, f0[rest])
                    if label.startswith("Dask"):
                        collections = tuple(
                            da.from_array(v, chunks=(4000, *v.shape[1:])) for v in collections
                        )
                    kind.fit(*collections[:2], initial_prediction=collections[2])
                    if binary:
                        found = kind.predict_proba(test, f0[rows[1]])[:, 1]
                    else:
                        found = kind.predict(test, f0[rows[1]])
                    losses.setdefault((name, label), []).append(loss(found) / start)
            for (table, label), found in losses.items():
                if table == name:
                    print(f"{table}: {label}: {np.mean(found):.3f} of the model's loss", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["kills", "network", "paper", "defaults", "lead"])
    parser.add_argument("--tables", type=Path, default=Path(tempfile.gettempdir()) / "mcboost")
    parser.add_argument("--kills", type=int, default=30, help="(default: 30)")
    parser.add_argument("--seeds", type=int, default=3, help="of defaults (default: 3)")
    parser.add_argument("--seed", type=int, default=0, help="of the kills (default: 0)")
    parser.add_argument("--workers", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    works: dict[str, Callable[[], None]] = {
        "kills": lambda: kills(options.tables, options.kills, options.seed),
        "network": lambda: network(options.tables),
        "paper": paper,
        "defaults": lambda: defaults(options.seeds),
        "lead": lambda: lead(options.tables, options.workers),
    }
    works[options.what]()


if __name__ == "__main__":
    main()
