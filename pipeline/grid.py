"""Dataset × strategy × seed → many runs, in parallel, into a store.

The unit of work is a (dataset, seed): its strategies share the split, f_0, the engine's layout of X
and round 0. Workers compute and return; only the driver writes. So a run is in the store or it is
not, whoever died when, and workers on other machines need no common file system.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Future,
    ProcessPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from pipeline.config import Config
from pipeline.errors import Interrupted, UserError
from pipeline.interrupts import raised_in_this_process
from pipeline.keys import initial_key, run_key
from pipeline.progress import Progress
from pipeline.stages import boost
from pipeline.stages.fetch import expected_hash, fetch
from pipeline.stages.preprocess import Design, preprocess
from pipeline.store import CorruptRun, Initial, RunId, RunStore

log = logging.getLogger("pipeline")

Configs = Mapping[tuple[str, str], Config]  # by (dataset, strategy)

ATTEMPTS = 3  # a task whose worker died is tried again


class GridError(UserError):
    """Some runs failed; the others are stored."""


@dataclass(frozen=True)
class Task:
    """The missing strategies of one (dataset, seed)."""

    configs: tuple[Config, ...]
    data_sha256: str

    @property
    def dataset(self) -> str:
        """The dataset's short name."""
        return self.configs[0].dataset.label

    @property
    def seed(self) -> int:
        """The seed of all its runs."""
        return self.configs[0].seed

    def run_id(self, config: Config) -> RunId:
        """The place in the store of one of its runs."""
        return RunId(
            self.dataset, config.strategy.name, self.seed, run_key(config, self.data_sha256)
        )

    def __str__(self) -> str:
        """For logs."""
        return f"{self.dataset} seed={self.seed}"


@dataclass(frozen=True)
class Outcome:
    """What a worker sends back: per config a run or a traceback, and f_0 if it was fitted."""

    runs: tuple[boost.Run | str, ...]
    initial: Initial | None
    seconds: float


@dataclass(frozen=True)
class Summary:
    """How a grid went."""

    total: int
    computed: int
    found: int
    failed: int
    seconds: float
    run_seconds: float = 0.0


class Workers(Protocol):
    """A place where tasks run: an executor, how many at once, and how a task is handed over."""

    slots: int

    def submit(self, task: Task, initial: Initial | None) -> Future[Outcome]:
        """Start a task."""
        ...

    def stop(self) -> None:
        """End at once, whatever is under way."""
        ...


def compute(task: Task, design: Design, initial: Initial | None) -> Outcome:
    """All runs of a task; a failing one becomes its traceback and does not harm the others."""
    started = time.perf_counter()
    runs: list[boost.Run | str] = []
    try:
        bench = boost.Workbench(task.configs[0], design, initial)
    except Exception:
        return Outcome((traceback.format_exc(),) * len(task.configs), None, 0.0)
    for config in task.configs:
        try:
            runs.append(boost.run(config, bench))
        except Exception:
            runs.append(traceback.format_exc())
    fitted = bench.initial if initial is None else None
    return Outcome(tuple(runs), fitted, time.perf_counter() - started)


def run_grid(
    configs: Mapping[tuple[str, str], Config], seeds: Sequence[int], store: RunStore
) -> Summary:
    """Compute what the store lacks of the grid; raises `GridError` if runs failed."""
    started = time.perf_counter()
    store.check_writable()
    store.sweep()
    tasks, found = _missing(configs, seeds, store)
    total = len(configs) * len(seeds)
    if not tasks:
        log.info("all %d runs are in %s already", total, store.root)
        return Summary(total, 0, found, 0, time.perf_counter() - started)
    if found:
        log.info("%d of %d runs are in %s already", found, total, store.root)
    boost.compile_kernels()
    designs = _designs(tasks)
    costs = _costs(designs)
    tasks.sort(key=lambda task: -costs[task.dataset])
    progress = Progress(total, found, {t.dataset: 0 for t in tasks})
    driver = _Driver(store, progress, {str(t): costs[t.dataset] for t in tasks})
    first = next(iter(configs.values()))
    with _workers(first, designs, len(tasks)) as workers:
        try:
            with raised_in_this_process():
                driver.drive(tasks, workers)
        except KeyboardInterrupt:
            workers.stop()
            raise Interrupted(
                f"interrupted: {progress.count} of {total} runs are stored; "
                "the same command goes on from there"
            ) from None
        except BaseException:
            workers.stop()
            raise
        finally:
            progress.close()
    seconds = time.perf_counter() - started
    summary = Summary(
        total, driver.computed, found, len(driver.failed), seconds, driver.run_seconds
    )
    if driver.failed:
        raise GridError(
            f"{len(driver.failed)} of {total} runs failed ({', '.join(driver.failed[:5])}"
            f"{', …' if len(driver.failed) > 5 else ''}); their tracebacks are in "
            f"{store.root / 'failures'}, and the same command tries them again"
        )
    return summary


def runs_of(configs: Configs, seeds: Sequence[int]) -> list[RunId]:
    """The places of all runs of a grid, without computing anything."""
    return [task.run_id(config) for task in _tasks(configs, seeds) for config in task.configs]


@dataclass
class _Driver:
    """Feeds tasks to workers, a few ahead, and stores what comes back."""

    store: RunStore
    progress: Progress
    cost: Mapping[str, float]
    computed: int = 0
    run_seconds: float = 0.0
    failed: list[str] = field(default_factory=list)

    def drive(self, tasks: Sequence[Task], workers: Workers) -> None:
        """Until all tasks are done."""
        self.progress.expect(sum(self.cost.values()), workers.slots)
        waiting: list[tuple[Task, int]] = [(task, 1) for task in reversed(tasks)]
        under_way: dict[Future[Outcome], tuple[Task, int]] = {}
        while waiting or under_way:
            while waiting and len(under_way) < workers.slots + 1:
                # A dead worker takes all tasks under way with it; which one was to blame shows when
                # each is tried again alone.
                alone = waiting[-1][1] > 1 or any(n > 1 for _, n in under_way.values())
                if alone and under_way:
                    break
                task, attempt = waiting.pop()
                remaining = self._still_missing(task)
                if remaining is None:
                    continue
                key = initial_key(remaining.configs[0], remaining.data_sha256)
                initial = self.store.load_initial(remaining.dataset, remaining.seed, key)
                under_way[workers.submit(remaining, initial)] = (remaining, attempt)
            done, _ = wait(under_way, timeout=1.0, return_when=FIRST_COMPLETED)
            self.progress.tick()
            for future in done:
                task, attempt = under_way.pop(future)
                try:
                    outcome = future.result()
                except (BrokenProcessPool, CancelledError):
                    if attempt < ATTEMPTS:
                        waiting.append((task, attempt + 1))
                        continue
                    outcome = Outcome(("its worker died",) * len(task.configs), None, 0.0)
                except Exception:
                    outcome = Outcome((traceback.format_exc(),) * len(task.configs), None, 0.0)
                self._keep(task, outcome)

    def _still_missing(self, task: Task) -> Task | None:
        """Another grid on the same store may have finished some of it meanwhile."""
        configs = tuple(c for c in task.configs if not _stored(self.store, task.run_id(c)))
        if len(configs) < len(task.configs):
            self.progress.found(task.dataset, len(task.configs) - len(configs))
        return Task(configs, task.data_sha256) if configs else None

    def _keep(self, task: Task, outcome: Outcome) -> None:
        if outcome.initial is not None:
            key = initial_key(task.configs[0], task.data_sha256)
            self.store.save_initial(task.dataset, task.seed, key, outcome.initial)
        self.run_seconds += outcome.seconds
        for config, run in zip(task.configs, outcome.runs, strict=True):
            run_id = task.run_id(config)
            note = self.store.root / "failures" / f"{str(run_id).replace('/', '-')}.txt"
            if isinstance(run, str):
                self.failed.append(str(run_id))
                note.parent.mkdir(parents=True, exist_ok=True)
                note.write_text(run, encoding="utf-8")
                self.progress.say(f"FAILED {run_id}: {run.strip().splitlines()[-1]}")
                continue
            self.store.save(run_id, run.rounds, run.record)
            note.unlink(missing_ok=True)
            self.computed += 1
            last = run.rounds.iloc[-1]
            self.progress.done(
                task.dataset,
                f"{run_id}: train MSE {last['mse_train']:.4g}, test MCE {last['mce_test']:.4g}",
            )
        self.progress.spent(self.cost[str(task)])


def _tasks(configs: Configs, seeds: Sequence[int]) -> Iterator[Task]:
    by_dataset: dict[str, list[Config]] = {}
    for (dataset, _), config in configs.items():
        by_dataset.setdefault(dataset, []).append(config)
    for variants in by_dataset.values():
        digest = expected_hash(variants[0].dataset) or fetch(variants[0].dataset).sha256
        for seed in seeds:
            yield Task(tuple(c.model_copy(update={"seed": seed}) for c in variants), digest)


def _missing(configs: Configs, seeds: Sequence[int], store: RunStore) -> tuple[list[Task], int]:
    tasks, found = [], 0
    told: set[str] = set()
    for task in _tasks(configs, seeds):
        absent = []
        for config in task.configs:
            run_id = task.run_id(config)
            if _stored(store, run_id):
                found += 1
                continue
            absent.append(config)
            why = store.why_missing(run_id)
            if why and why not in told:
                told.add(why)
                log.info("stored runs such as %s differ: %s", run_id, why)
        if absent:
            tasks.append(Task(tuple(absent), task.data_sha256))
    return tasks, found


def _stored(store: RunStore, run_id: RunId) -> bool:
    try:
        return store.has(run_id)
    except CorruptRun as error:
        log.warning("%s; computing it again", error)
        return False


def _designs(tasks: Sequence[Task]) -> dict[str, Design]:
    designs = {}
    for task in tasks:
        if task.dataset not in designs:
            dataset = task.configs[0].dataset
            designs[task.dataset] = preprocess(fetch(dataset), dataset)
    return designs


def _costs(designs: Mapping[str, Design]) -> dict[str, float]:
    """A rough guess per dataset, to start large tasks first and to tell the time that is left.

    Measured on the paper's datasets, a task's time goes with its rows plus its histogram bins.
    """
    costs = {}
    for name, design in designs.items():
        bins = sum(min(len(np.unique(column)), 256) for column in design.X[:2000].T)
        costs[name] = float(len(design.y) + bins)
    return costs


# --- where tasks run ---------------------------------------------------------------------------


def _workers(
    config: Config, designs: dict[str, Design], n_tasks: int
) -> AbstractContextManager[Workers]:
    grid = config.grid
    if grid.backend == "dask":
        from pipeline.cluster import dask_workers

        return dask_workers(str(grid.scheduler), designs)
    slots = min(grid.workers or _cores(), n_tasks)
    return _here(designs) if slots == 1 else _local(slots, designs)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _InProcess:
    """One task at a time, in this process."""

    slots = 0  # the driver keeps one more under way than there are slots

    def __init__(self, designs: Mapping[str, Design]) -> None:
        self.designs = designs

    def submit(self, task: Task, initial: Initial | None) -> Future[Outcome]:
        future: Future[Outcome] = Future()
        future.set_result(compute(task, self.designs[task.dataset], initial))
        return future

    def stop(self) -> None:
        pass


@contextmanager
def _here(designs: Mapping[str, Design]) -> Iterator[Workers]:
    yield _InProcess(designs)


class _Pool:
    """Processes of one thread each on this machine; replaced together when one of them dies."""

    def __init__(self, slots: int, designs: dict[str, Design]) -> None:
        self.slots, self.designs = slots, designs
        self.executor = self._start()

    def _start(self) -> ProcessPoolExecutor:
        # Forked workers share the designs' memory and start at once; no thread of ours runs.
        method = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
        return ProcessPoolExecutor(
            self.slots,
            mp_context=multiprocessing.get_context(method),
            initializer=_become_worker,
            initargs=(self.designs, os.getpid()),
        )

    def submit(self, task: Task, initial: Initial | None) -> Future[Outcome]:
        try:
            return self.executor.submit(_compute_here, task, initial)
        except BrokenProcessPool:
            self.executor.shutdown(wait=False, cancel_futures=True)
            self.executor = self._start()
            return self.executor.submit(_compute_here, task, initial)

    def stop(self) -> None:
        processes = list((self.executor._processes or {}).values())
        self.executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()


@contextmanager
def _local(slots: int, designs: dict[str, Design]) -> Iterator[Workers]:
    pool = _Pool(slots, designs)
    try:
        yield pool
    finally:
        pool.executor.shutdown(wait=True, cancel_futures=True)


_designs_here: dict[str, Design] = {}


def _become_worker(designs: dict[str, Design], driver: int) -> None:
    """A worker leaves Ctrl-C to the driver and ends when the driver is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _designs_here.update(designs)

    def watch() -> None:
        while os.getppid() == driver:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _compute_here(task: Task, initial: Initial | None) -> Outcome:
    return compute(task, _designs_here[task.dataset], initial)
