"""Shared by all tests: datasets, configs and commands. Nothing may touch the checkout's outputs."""

import json
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache

import pytest
from hypothesis import settings

# The package, numpy and pandas are imported where they are used: pytest-xdist's controller loads
# this file too, and everybody waits for it.

# Workers of pytest-xdist share two cores; nested threads would only slow them down. (Before numpy.)
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# The same cases in every run; HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("fixed", derandomize=True)
settings.register_profile("explore", derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


# A shell starts background jobs with Ctrl-C and Ctrl-\\ ignored, which the commands under test
# would inherit.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGQUIT) == signal.SIG_IGN:
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


# Processes, sockets, minutes of theory.
SLOW_FIXTURES = {
    "command",
    "start",
    "start_process",
    "cluster",
    "server",
    "study",
    "smoke",
    "replication",
}
# What takes long to make is made by one of the processes (--dist loadgroup): fixture and group.
MADE_ONCE = {
    "study": "made once",
    "smoke": "made once",
    "replication": "made once",
    "cluster": "dask",
}


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(items):
    for item in items:
        if SLOW_FIXTURES & set(item.fixturenames):
            item.add_marker(pytest.mark.slow)
        for group in {MADE_ONCE[name] for name in MADE_ONCE.keys() & set(item.fixturenames)}:
            item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="session")
def library():
    """Each dataset is fetched and preprocessed once per session."""
    from pipeline.datasets.library import Library

    return Library()


@pytest.fixture(scope="session")
def dataset():
    """``dataset(name, *overrides)``: a dataset's config."""
    from pipeline.config.compose import load

    return cache(lambda name, *overrides: load([f"dataset={name}", *overrides]).dataset)


@pytest.fixture(scope="session")
def design(library, dataset):
    """``design(name, *overrides)``: a dataset's design matrix."""
    return lambda name, *overrides: library.design(dataset(name, *overrides))


@pytest.fixture(scope="session")
def paper_split(design, dataset):
    """``paper_split(name, seed, n)``: X_train, y_train (n rows), X_test, y_test."""
    from pipeline.datasets.design import split

    def of(name, seed=0, n=None):
        d = split(design(name), dataset(name), seed)
        return d.X_train[:n], d.y_train[:n], d.X_test, d.y_test

    return of


SMALL_REPORT = [
    "experiment=smoke", "experiment.datasets=[diabetes,german]", "experiment.seeds=[0,1]",
    "boosting.rounds=6", "boosting.trees=10",
    "initial.trees=10", "grid.workers=1",
]  # fmt: skip


@pytest.fixture(scope="session")
def report_plan():
    """``report_plan(folder, *overrides)``: a plan; by default the smallest with a report.

    small : with overrides of that one.
    """
    from pipeline.config.compose import load
    from pipeline.runs.plan import make_plan

    def of(folder, *overrides, small=False):
        if not overrides:
            overrides = [*SMALL_REPORT, "experiment.name=mini"]
        lines = [*(SMALL_REPORT if small else ()), *overrides, f"output_dir={folder}"]
        return make_plan(load(lines), lines)

    return of


@pytest.fixture(scope="session")
def smoke(tmp_path_factory, report_plan):
    """The folder of that experiment, reproduced."""
    from pipeline.stages import reproduce

    folder = tmp_path_factory.mktemp("report")
    reproduce.main(report_plan(folder))
    return folder / "mini"


@pytest.fixture(scope="session")
def replication(tmp_path_factory, report_plan):
    """The folder of the paper's grid with one seed, reproduced."""
    from pipeline.stages import reproduce

    folder = tmp_path_factory.mktemp("replication")
    one_seed = ["experiment=paper", "experiment.seeds=[0]", "grid.workers=1"]
    reproduce.main(report_plan(folder, *one_seed, "experiment.name=one_seed"))
    return folder / "one_seed"


@pytest.fixture
def few_figures():
    """Of the figures of runs only these are drawn, where they are not what is looked at."""
    from pipeline.chapters.figures import FIGURES

    every = dict(FIGURES)
    for name in set(every) - {"gap", "training", "debiased"}:
        del FIGURES[name]
    yield list(FIGURES)
    FIGURES.clear()  # and not only filled up again: the order counts
    FIGURES.update(every)


PRACTICE_ROWS = {"small": 200, "large": 5000, "other": 3000}
PRACTICE_SITUATIONS = ("forest", "linear", "boosted", "moved")
# The factor by which each method changes the loss, on tables with few rows and with many.
PRACTICE_FACTORS = {
    "nothing": (1.0, 1.0), "unit": (1.4, 1.2), "relaxed": (1.4, 1.2), "adaptive": (1.4, 1.2),
    "unit_stopped": (0.99, 0.9), "residual": (0.9, 0.8), "lightgbm": (1.1, 0.85),
    "ours": (0.98, 0.9), "mcgrad": (1.05, 0.88), "level_sets": (3.0, 1.0), "patching": (1.5, 1.0),
    "auditor_ridge": (1.2, 1.0), "auditor_tree": (1.3, 1.0),
}  # fmt: skip


@pytest.fixture(scope="session")
def practice_runs():
    """A table of corrections whose answers are known."""
    import numpy as np
    import pandas as pd

    from pipeline.runs.kinds.corrections.measures import NUMBERS

    rng = np.random.default_rng(0)
    rows = []
    for dataset, n in PRACTICE_ROWS.items():
        for situation in PRACTICE_SITUATIONS:
            for seed in range(8):
                base = 10.0 * (1 + 0.1 * rng.normal())  # a split's own difficulty
                for method, factors in PRACTICE_FACTORS.items():
                    loss = base * factors[n >= 1000] * (1 + 0.001 * rng.normal())
                    rules = {"own": loss}
                    if method in ("unit", "relaxed", "adaptive"):
                        rules["oracle"] = base * 0.85
                    for rule, value in rules.items():
                        rows.append(
                            {
                                "dataset": dataset, "situation": situation, "method": method,
                                "seed": seed, "rule": rule, "rounds": 3,
                                **dict.fromkeys(NUMBERS, 0.1), "mse": value, "loss": value,
                                "mce_floor": 0.5, "mce2_debiased": 0.25 * (method == "nothing"),
                                "mce_p": 0.01 if method == "nothing" else 0.5,
                                "cpu_seconds": 1.0, "peak_mb": 2.0, "failed": "",
                                "n_correct": n, "n_validation": n // 3, "n_test": n // 2,
                                "test_share": 0.25,
                            }
                        )  # fmt: skip
    return pd.DataFrame(rows)


class Forked:
    """``python -m MODULE ARGUMENTS`` in a fork of this process, whose imports are done.

    It has what tests need of `subprocess.Popen`. Where the start of a process is itself what is
    tested, there is `start_process`.
    """

    def __init__(self, *arguments, module="pipeline", folder=None, before=None, new_session=False):
        self._streams = [tempfile.TemporaryFile("w+") for _ in range(2)]  # noqa: SIM115

        def run():
            if new_session:
                os.setsid()
            for number, stream in enumerate(self._streams, 1):
                os.dup2(stream.fileno(), number)
            sys.stdout, sys.stderr = (os.fdopen(n, "w", buffering=1, closefd=False) for n in (1, 2))
            sys.argv = [module, *arguments]
            os.chdir(folder or ".")
            if before:
                before()
            runpy.run_module(module, run_name="__main__", alter_sys=True)

        self._process = multiprocessing.get_context("fork").Process(target=run)
        self._process.start()
        self.pid = self._process.pid

    def poll(self):
        self._process.join(0)
        return self.returncode

    @property
    def returncode(self):
        return self._process.exitcode

    def kill(self):
        self._process.kill()

    def communicate(self, timeout=None):
        """What it wrote to its two streams, after its end."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            self.kill()
            raise AssertionError(f"not over after {timeout} s")
        said = []
        for stream in self._streams:
            with stream:
                stream.seek(0)
                said.append(stream.read())
        self.stdout, self.stderr = said
        return said


@pytest.fixture(scope="session")
def command():
    """``command(*arguments, **options)``: a `Forked` that has ended."""

    def command_(*arguments, **options):
        process = Forked(*arguments, **options)
        process.communicate(timeout=300)
        return process

    return command_


@pytest.fixture(scope="session")
def start():
    """``start(folder, *arguments, **options)``: a `Forked` that writes to ``folder``."""
    return lambda folder, *arguments, **options: Forked(
        *arguments, f"output_dir={folder}", **options
    )


@pytest.fixture(scope="session")
def start_process():
    """The same as a process of its own, a `subprocess.Popen`."""

    def start_(folder, *arguments, new_session=False, **options):
        return subprocess.Popen(
            [sys.executable, "-m", "pipeline", *arguments, f"output_dir={folder}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=new_session, **options,
        )  # fmt: skip

    return start_


@pytest.fixture(scope="session")
def finish():
    """``finish(process)``: its exit status and what it printed."""

    def finish_(process, timeout=240):
        output, errors = process.communicate(timeout=timeout)
        return process.returncode, output + (errors or "")

    return finish_


@pytest.fixture(scope="session")
def eventually():
    """``eventually(condition)``: wait until it gives something true, and give that."""

    def eventually_(condition, timeout=120, what="what was waited for"):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            value = condition()
            if value:
                return value
            time.sleep(0.02)
        raise AssertionError(f"{what} did not happen within {timeout} s")

    return eventually_


@pytest.fixture(scope="session")
def cluster():
    """A client of two Dask workers, which are replaced when they are killed."""
    import dask
    from distributed import Client, LocalCluster
    from distributed.utils import get_mp_context

    # Workers are forked from a process that has imported what they need.
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context().set_forkserver_preload(["distributed", "pipeline.runs.workers.dask"])
        with (
            LocalCluster(
                n_workers=2, threads_per_worker=1, memory_limit="2GiB", dashboard_address=None
            ) as processes,
            Client(processes) as client,
        ):
            yield client


@pytest.fixture
def dask_cluster(tmp_path, eventually):
    """The address of a Dask scheduler on loopback, and its two workers: four real processes."""
    started = []

    def launch(module, *arguments):
        command = [sys.executable, "-m", f"distributed.cli.dask_{module}", *arguments]
        process = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            # What a killed driver held is free again after this, instead of half a minute.
            env=os.environ | {"DASK_DISTRIBUTED__SCHEDULER__LOCKS__LEASE_TIMEOUT": "3s"},
        )  # fmt: skip
        started.append(process)
        return process

    note = tmp_path / "scheduler.json"
    launch("scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", ":0",
           "--scheduler-file", str(note))  # fmt: skip
    eventually(note.exists)
    workers = [
        launch("worker", "--scheduler-file", str(note), "--nthreads", "1", "--no-nanny",
               "--no-dashboard")
        for _ in range(2)
    ]  # fmt: skip
    yield json.loads(note.read_text())["address"], workers
    for process in started:
        process.kill()
        process.wait()
