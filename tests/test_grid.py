"""However a grid is spread, killed, repeated or shared, its numbers are the same bits."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from pipeline import grid
from pipeline.compose import load, load_grid
from pipeline.errors import ConfigError
from pipeline.stages import boost
from pipeline.store import RunStore

SMALL = [
    "experiment=smoke", "experiment.datasets=[diabetes,german]", "experiment.seeds=[0,1]",
    "boosting.rounds=3", "boosting.trees=20",
    "initial.trees=10",
]  # fmt: skip
TOTAL = 2 * 3 * 2


def pipeline(folder, *arguments, **options):
    command = [sys.executable, "-m", "pipeline", *arguments, f"output_dir={folder}"]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )


def finish(process, timeout=240):
    output, _ = process.communicate(timeout=timeout)
    return process.returncode, output


def frame(folder, experiment="smoke"):
    rounds = RunStore(Path(folder) / experiment).frame()
    if rounds.empty:
        return rounds
    return rounds.sort_values(["dataset", "strategy", "seed", "round"]).reset_index(drop=True)


def run_here(folder, *overrides, workers=1):
    lines = [*SMALL, f"grid.workers={workers}", *overrides]
    store = RunStore(Path(folder) / "smoke")
    return grid.run_grid(load_grid(lines), load(lines).experiment.seeds, store)


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serial")
    summary = run_here(folder)
    assert (summary.total, summary.computed, summary.found) == (TOTAL, TOTAL, 0)
    return folder


def test_two_workers_give_the_same_bits_as_one(serial, tmp_path):
    assert run_here(tmp_path, workers=2).computed == TOTAL
    pd.testing.assert_frame_equal(frame(tmp_path), frame(serial), check_exact=True)


def test_single_runs_share_the_store_with_the_grid(serial, tmp_path):
    code, output = finish(pipeline(
        tmp_path, *SMALL[3:], "dataset=german", "strategy=relaxed", "seed=1",
        "experiment.name=smoke",
    ))  # fmt: skip
    assert code == 0, output
    assert run_here(tmp_path).found == 1
    pd.testing.assert_frame_equal(frame(tmp_path), frame(serial), check_exact=True)


def test_hydra_multirun_with_joblib_gives_the_same_bits(serial, tmp_path):
    arguments = [
        *SMALL[3:], "-m", "hydra/launcher=cores", "hydra.launcher.n_jobs=2",
        "experiment.name=smoke", "dataset=diabetes,german", "strategy=unit,relaxed,adaptive",
        "seed=range(0,2)",
    ]  # fmt: skip
    code, output = finish(pipeline(tmp_path, *arguments))
    assert code == 0, output
    pd.testing.assert_frame_equal(frame(tmp_path), frame(serial), check_exact=True)
    code, output = finish(pipeline(tmp_path, *arguments))
    assert code == 0
    assert "stored in" not in output


def test_submitit_launcher_runs_jobs_in_processes_of_their_own(serial, tmp_path):
    code, output = finish(pipeline(
        tmp_path, *SMALL[3:], "-m", "hydra/launcher=slurm_local", "experiment.name=smoke",
        "dataset=german", "strategy=unit,adaptive", "seed=1",
    ))  # fmt: skip
    assert code == 0, output
    ours = frame(tmp_path)
    both = frame(serial).query("dataset == 'german' and seed == 1 and strategy != 'relaxed'")
    pd.testing.assert_frame_equal(ours, both.reset_index(drop=True), check_exact=True)


def test_finished_grid_computes_nothing_and_says_so(serial, caplog):
    assert run_here(serial).computed == 0


def test_damaged_run_is_named_and_computed_again(serial, tmp_path):
    shutil.copytree(serial / "smoke", tmp_path / "smoke")
    victim = next((tmp_path / "smoke" / "runs" / "german" / "unit").iterdir())
    (victim / "rounds.csv").write_text("nonsense")
    code, output = finish(pipeline(tmp_path, *SMALL))
    assert code == 0
    assert victim.name in output
    assert "computing it again" in output
    pd.testing.assert_frame_equal(frame(tmp_path), frame(serial), check_exact=True)


def test_sigkill_at_random_moments_then_resume_gives_the_same_bits(serial, tmp_path):
    rng = random.Random(0)
    for _ in range(20):
        process = pipeline(tmp_path, *SMALL, "grid.workers=2", start_new_session=True)
        # From before the first run to after the last one of what is left.
        time.sleep(rng.uniform(1.0, 4.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        readable = frame(tmp_path)
        assert len(readable) % 4 == 0
    code, output = finish(pipeline(tmp_path, *SMALL))
    assert code == 0, output
    pd.testing.assert_frame_equal(frame(tmp_path), frame(serial), check_exact=True)
    assert not list((tmp_path / "smoke").rglob(".partial-*"))


def test_workers_end_when_their_driver_is_killed(tmp_path):
    process = pipeline(
        tmp_path, "experiment=smoke", "boosting.rounds=10000", "grid.workers=2",
        start_new_session=True,
    )  # fmt: skip
    children = _children(process.pid)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 10
    while any(_alive(pid) for pid in children) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not [pid for pid in children if _alive(pid)]


def test_ctrl_c_ends_within_seconds_and_says_how_to_go_on(tmp_path):
    process = pipeline(
        tmp_path, "experiment=smoke", "boosting.rounds=10000", "grid.workers=2",
        start_new_session=True,
    )  # fmt: skip
    _children(process.pid)
    asked = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    code, output = finish(process, timeout=15)
    assert time.monotonic() - asked < 10
    assert code == 130
    assert "the same command goes on from there" in output
    assert "Traceback" not in output


def test_worker_that_is_killed_is_replaced_and_its_run_redone(serial, tmp_path):
    process = pipeline(tmp_path, *SMALL, "grid.workers=2", start_new_session=True)
    os.kill(_children(process.pid)[0], signal.SIGKILL)
    code, output = finish(process)
    assert code == 0, output
    pd.testing.assert_frame_equal(frame(tmp_path), frame(serial), check_exact=True)


def _children(pid):
    """The worker processes of a driver, as soon as there are two."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True
        )
        workers = [int(line) for line in found.stdout.split()]
        if len(workers) >= 2:
            return workers
        time.sleep(0.05)
    raise AssertionError("no workers came up")


def _alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as status:  # noqa: PTH123
        return status.read().split()[2] != "Z"


def test_failing_run_stops_no_other_and_only_it_is_tried_again(serial, tmp_path, monkeypatch):
    real = boost.run

    def fails_once(config, bench, *args):
        if config.strategy.name == "relaxed" and config.seed == 1:
            raise RuntimeError("out of luck")
        return real(config, bench, *args)

    monkeypatch.setattr(boost, "run", fails_once)
    with pytest.raises(grid.GridError, match=r"2 of 12 runs failed \(.*relaxed/seed=1"):
        run_here(tmp_path)
    notes = list((tmp_path / "smoke" / "failures").iterdir())
    assert len(notes) == 2
    assert "out of luck" in notes[0].read_text()
    monkeypatch.undo()
    assert run_here(tmp_path).computed == 2
    assert not list((tmp_path / "smoke" / "failures").iterdir())
    pd.testing.assert_frame_equal(frame(tmp_path), frame(serial), check_exact=True)


def test_task_that_kills_its_worker_fails_alone(serial, tmp_path, monkeypatch):
    real = boost.run

    def deadly(config, bench, *args):
        if config.seed == 1 and config.dataset.label == "german":
            os._exit(1)
        return real(config, bench, *args)

    monkeypatch.setattr(boost, "run", deadly)  # forked workers inherit it
    with pytest.raises(grid.GridError, match=r"3 of 12 runs failed \(german/unit/seed=1"):
        run_here(tmp_path, workers=2)
    assert len(frame(tmp_path)) == 9 * 4
    monkeypatch.undo()
    assert run_here(tmp_path).computed == 3
    pd.testing.assert_frame_equal(frame(tmp_path), frame(serial), check_exact=True)


@pytest.mark.parametrize(
    ("arguments", "cache", "seconds"),
    [((), "warm", 2), (("-m", "boosting.eta=0.3,0.4"), "warm", 6), ((), "cold", 8)],
)
def test_ctrl_c_ends_single_runs_and_sweeps_in_one_line(tmp_path, arguments, cache, seconds):
    # While importing, while running, and (with no cache: half a minute) while compiling.
    cold = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "numba")}
    process = pipeline(
        tmp_path, "boosting.rounds=10000", "dataset=german", *arguments, start_new_session=True,
        env=cold if cache == "cold" else os.environ,
    )  # fmt: skip
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    code, output = finish(process, timeout=30)
    assert code == 130, output
    assert "Traceback" not in output
    assert "the same command goes on" in output


def test_two_datasets_of_one_name_are_refused(tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match="called the same"):
        load_grid([*SMALL, "dataset.name=mine"])


def test_two_grids_on_one_store_do_not_harm_each_other(serial, tmp_path):
    both = [pipeline(tmp_path, *SMALL, "grid.workers=1") for _ in range(2)]
    for process in both:
        code, output = finish(process)
        assert code == 0, output
    pd.testing.assert_frame_equal(frame(tmp_path), frame(serial), check_exact=True)


def test_runs_finished_by_somebody_else_meanwhile_are_not_computed(serial, tmp_path, monkeypatch):
    real, calls = grid.compute, []

    def others_finish_all(task, design, initial):
        calls.append(task)
        if len(calls) == 1:
            shutil.copytree(serial / "smoke" / "runs", tmp_path / "smoke" / "runs")
        return real(task, design, initial)

    monkeypatch.setattr(grid, "compute", others_finish_all)
    run_here(tmp_path)
    assert len(calls) == 1


def test_folder_that_cannot_be_written_is_one_sentence_and_a_failure(tmp_path):
    (tmp_path / "blocked").write_text("")
    code, output = finish(pipeline(tmp_path / "blocked", *SMALL))
    assert code == 1
    assert output.startswith("error: output_dir: cannot write to ")
    assert len(output.splitlines()) == 1


@pytest.mark.parametrize("override", ["dataset=german", "strategy=unit", "seed=3"])
def test_grid_refuses_a_choice_on_its_own_axes(override):
    with pytest.raises(ConfigError, match=r"a grid has its own .*experiment\."):
        load_grid([*SMALL, override])


def test_grid_applies_other_overrides_to_all_its_runs():
    configs = load_grid([*SMALL, "dataset.test_size=0.3"])
    assert {c.dataset.test_size for c in configs.values()} == {0.3}
    assert {(c.dataset.name, c.strategy.name) for c in configs.values()} == set(configs)


# --- Dask: a real scheduler and worker processes on loopback -----------------------------------


@pytest.fixture
def cluster(tmp_path):
    started = []

    def start(module, *arguments):
        command = [sys.executable, "-m", f"distributed.cli.dask_{module}", *arguments]
        process = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        started.append(process)
        return process

    note = tmp_path / "scheduler.json"
    start("scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", ":0",
          "--scheduler-file", str(note))  # fmt: skip
    deadline = time.monotonic() + 60
    while not note.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    workers = [
        start("worker", "--scheduler-file", str(note), "--nthreads", "1", "--no-nanny",
              "--no-dashboard")
        for _ in range(2)
    ]  # fmt: skip
    import json

    yield json.loads(note.read_text())["address"], workers
    for process in started:
        process.kill()
        process.wait()


def test_dask_cluster_gives_the_same_bits_though_a_worker_is_killed_midway(
    serial, tmp_path, cluster
):
    address, workers = cluster
    process = pipeline(tmp_path / "out", *SMALL, "grid.backend=dask", f"grid.scheduler='{address}'")
    runs = tmp_path / "out" / "smoke" / "runs"
    deadline = time.monotonic() + 120
    while not list(runs.glob("*/*/seed=*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    workers[0].send_signal(signal.SIGKILL)
    code, output = finish(process)
    assert code == 0, output
    pd.testing.assert_frame_equal(frame(tmp_path / "out"), frame(serial), check_exact=True)


def test_scheduler_that_is_not_there_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.cluster.CONNECT_SECONDS", 1)
    with pytest.raises(Exception, match=r"grid.scheduler=tcp://127.0.0.1:9: cannot be reached"):
        run_here(tmp_path, "grid.backend=dask", "grid.scheduler='tcp://127.0.0.1:9'")
