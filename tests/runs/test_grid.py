"""However a grid is spread, killed, repeated or shared, its numbers are the same bits."""

import contextlib
import io
import itertools
import os
import pickle
import random
import shutil
import signal
import socket
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from pipeline import files
from pipeline.config.compose import load
from pipeline.errors import ConfigError, DataError
from pipeline.runs import grid, tasks
from pipeline.runs.kinds import rounds
from pipeline.runs.kinds.base import Run
from pipeline.runs.plan import make_plan
from pipeline.runs.progress import Progress
from pipeline.runs.store import RunId
from pipeline.runs.tidy import load_runs
from pipeline.runs.workers import dask as dask_workers
from pipeline.runs.workers.dask import ClusterError
from pipeline.stages import reproduce

pytestmark = pytest.mark.slow

SMALL = [
    "experiment=smoke", "experiment.datasets=[diabetes,german]", "experiment.seeds=[0,1]",
    "boosting.rounds=3", "boosting.trees=20",
    "initial.trees=10",
]  # fmt: skip
TOTAL = 2 * 3 * 2
ENDLESS = ["experiment=smoke", "boosting.rounds=10000", "grid.workers=2"]


def frame(folder, experiment="smoke"):
    try:
        rounds = load_runs(Path(folder) / experiment)
    except DataError:  # there are none
        return pd.DataFrame()
    return rounds.sort_values(["dataset", "strategy", "seed", "round"]).reset_index(drop=True)


def plan(folder, *overrides):
    lines = [*SMALL, *overrides, f"output_dir={folder}"]
    return make_plan(load(lines), lines)


def run_here(folder, *overrides, workers=1):
    return grid.run_plan(plan(folder, f"grid.workers={workers}", *overrides))


def stored(folder):
    """How many runs there are, valid or not."""
    return len(files.find(Path(folder) / "smoke" / "runs", "*/*/seed=*"))


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serial")
    summary = run_here(folder)
    assert (summary.total, summary.computed, summary.found) == (TOTAL, TOTAL, 0)
    return folder


def test_two_workers_give_the_same_bits_as_one(serial, tmp_path):
    assert run_here(tmp_path, workers=2).computed == TOTAL
    pd.testing.assert_frame_equal(frame(tmp_path), frame(serial), check_exact=True)


def test_single_runs_share_the_store_with_the_grid(serial, tmp_path, start, finish):
    code, output = finish(start(
        tmp_path, *SMALL[3:], "dataset=german", "strategy=relaxed", "seed=1",
        "experiment.name=smoke",
    ))  # fmt: skip
    assert code == 0, output
    assert run_here(tmp_path).found == 1
    pd.testing.assert_frame_equal(frame(tmp_path), frame(serial), check_exact=True)


def test_hydra_multirun_gives_the_same_bits(serial, tmp_path, start, finish):
    sweep = ["-m", "experiment.name=smoke", "dataset=german", "strategy=unit,adaptive", "seed=0,1"]
    code, output = finish(start(tmp_path, *SMALL[3:], *sweep))
    assert code == 0, output
    both = frame(serial).query("dataset == 'german' and strategy != 'relaxed'")
    both = both.reset_index(drop=True)
    pd.testing.assert_frame_equal(frame(tmp_path), both, check_exact=True)


@pytest.mark.exhaustive
def test_hydra_multirun_with_joblib_gives_the_same_bits(serial, tmp_path, start_process, finish):
    arguments = [
        *SMALL[3:], "-m", "hydra/launcher=cores", "hydra.launcher.n_jobs=2",
        "experiment.name=smoke", "dataset=diabetes,german", "strategy=unit,relaxed,adaptive",
        "seed=range(0,2)",
    ]  # fmt: skip
    code, output = finish(start_process(tmp_path, *arguments))
    assert code == 0, output
    pd.testing.assert_frame_equal(frame(tmp_path), frame(serial), check_exact=True)
    code, output = finish(start_process(tmp_path, *arguments))
    assert code == 0
    assert "stored in" not in output


@pytest.mark.exhaustive
def test_submitit_launcher_runs_jobs_in_processes_of_their_own(
    serial, tmp_path, start_process, finish
):
    code, output = finish(start_process(
        tmp_path, *SMALL[3:], "-m", "hydra/launcher=slurm_local", "experiment.name=smoke",
        "dataset=german", "strategy=unit,adaptive", "seed=1",
    ))  # fmt: skip
    assert code == 0, output
    ours = frame(tmp_path)
    both = frame(serial).query("dataset == 'german' and seed == 1 and strategy != 'relaxed'")
    pd.testing.assert_frame_equal(ours, both.reset_index(drop=True), check_exact=True)


def test_finished_grid_computes_nothing_and_says_so(serial, start, finish):
    code, output = finish(start(serial, *SMALL))
    assert code == 0
    assert output == f"all {TOTAL} runs are in {serial / 'smoke'} already\n"


def test_damaged_run_is_named_and_computed_again(serial, tmp_path, start, finish):
    shutil.copytree(serial / "smoke", tmp_path / "smoke")
    victim = next((tmp_path / "smoke" / "runs" / "german" / "unit").iterdir())
    (victim / "rounds.csv").write_text("nonsense")
    code, output = finish(start(tmp_path, *SMALL))
    assert code == 0
    assert victim.name in output
    assert "computing it again" in output
    pd.testing.assert_frame_equal(frame(tmp_path), frame(serial), check_exact=True)


@pytest.mark.parametrize(
    ("kills", "how"),
    [(2, "start"), pytest.param(10, "start_process", marks=pytest.mark.exhaustive)],
)
def test_sigkill_at_random_moments_then_resume_gives_the_same_bits(
    serial, tmp_path, request, eventually, kills, how
):
    rng, start = random.Random(0), request.getfixturevalue(how)
    for _ in range(kills):
        if stored(tmp_path) > TOTAL // 2:
            shutil.rmtree(tmp_path / "smoke" / "runs" / "german", ignore_errors=True)
        process = start(tmp_path, *SMALL, "grid.workers=2", new_session=True)
        more = rng.choice([0, 1, 1, 2])
        if more == 0:
            time.sleep(rng.uniform(0.0, 3.0))  # any moment: importing, loading, computing
        goal = stored(tmp_path) + more
        eventually(lambda p=process, n=goal: p.poll() is not None or stored(tmp_path) >= n)
        process.kill()
        process.communicate()
        assert len(frame(tmp_path)) == 4 * stored(tmp_path)  # all there are, whole
    run_here(tmp_path)
    pd.testing.assert_frame_equal(frame(tmp_path), frame(serial), check_exact=True)
    assert not list((tmp_path / "smoke").rglob(".partial-*"))


def test_workers_end_when_their_driver_is_killed(tmp_path, start, eventually):
    process = start(tmp_path, *ENDLESS, new_session=True)
    children = eventually(lambda: _workers(process.pid))
    process.kill()
    process.communicate()
    eventually(lambda: not any(_alive(pid) for pid in children), timeout=10)


def test_ctrl_c_ends_within_seconds_and_says_how_to_go_on(tmp_path, start, finish, eventually):
    process = start(tmp_path, *ENDLESS, new_session=True)
    eventually(lambda: _workers(process.pid))
    os.killpg(process.pid, signal.SIGINT)
    code, output = finish(process, timeout=10)
    assert code == 130
    assert "the same command goes on from there" in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.exhaustive),
        pytest.param(signal.SIGQUIT, marks=pytest.mark.exhaustive),
    ],
)
def test_stopped_worker_does_not_keep_a_driver_from_ending(
    tmp_path, start, finish, eventually, number
):
    process = start(tmp_path, *ENDLESS, new_session=True)
    workers = eventually(lambda: _workers(process.pid))
    os.kill(workers[0], signal.SIGSTOP)
    os.kill(process.pid, number)
    code, output = finish(process, timeout=15)
    assert code == 130
    assert "Traceback" not in output
    eventually(lambda: not any(_alive(pid) for pid in workers), timeout=5)


def test_stopped_worker_does_not_outlive_a_killed_driver(tmp_path, start, eventually):
    process = start(tmp_path, *ENDLESS, new_session=True)
    workers = eventually(lambda: _workers(process.pid))
    os.kill(workers[0], signal.SIGSTOP)
    process.kill()
    process.communicate()
    eventually(lambda: not any(_alive(pid) for pid in workers), timeout=5)


def test_worker_that_is_killed_is_replaced_and_its_run_redone(
    serial, tmp_path, start, finish, eventually
):
    process = start(tmp_path, *SMALL, "grid.workers=2", new_session=True)
    os.kill(eventually(lambda: _workers(process.pid))[0], signal.SIGKILL)
    code, output = finish(process)
    assert code == 0, output
    pd.testing.assert_frame_equal(frame(tmp_path), frame(serial), check_exact=True)


def _workers(pid):
    """The worker processes of a driver, once there are two."""
    workers = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that is over
            workers += map(int, (thread / "children").read_text().split())
    return workers if len(workers) >= 2 else None


def _alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as status:  # noqa: PTH123
        return status.read().split()[2] != "Z"


def test_failing_run_stops_no_other_and_only_it_is_tried_again(serial, tmp_path, monkeypatch):
    real = rounds.run

    def fails_once(config, ground, *args):
        if config.strategy.name == "relaxed" and config.seed == 1:
            raise RuntimeError("out of luck")
        return real(config, ground, *args)

    monkeypatch.setattr(rounds, "run", fails_once)
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
    real = rounds.run

    def deadly(config, ground, *args):
        if config.seed == 1 and config.dataset.label == "german":
            os._exit(1)
        return real(config, ground, *args)

    monkeypatch.setattr(rounds, "run", deadly)  # forked workers inherit it
    with pytest.raises(grid.GridError, match=r"3 of 12 runs failed \(german/unit/seed=1"):
        run_here(tmp_path, workers=2)
    assert len(frame(tmp_path)) == 9 * 4
    monkeypatch.undo()
    assert run_here(tmp_path).computed == 3
    pd.testing.assert_frame_equal(frame(tmp_path), frame(serial), check_exact=True)


@pytest.mark.parametrize(
    ("arguments", "cold", "moment"),
    [
        ((), False, "import"),
        pytest.param((), False, "preparing the split", marks=pytest.mark.exhaustive),
        (("-m", "boosting.eta=0.3,0.4"), False, "german/unit/seed=0 ..."),
        ((), True, "compiling the exact engine"),
    ],
)
def test_ctrl_c_ends_single_runs_and_sweeps_in_one_line(
    tmp_path, start_process, eventually, arguments, cold, moment
):
    environment = os.environ | ({"NUMBA_CACHE_DIR": str(tmp_path / "numba")} if cold else {})
    process = start_process(
        tmp_path, "boosting.rounds=10000", "dataset=german", *arguments, new_session=True,
        env=environment | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(process.stdout), daemon=True)
    reader.start()
    if moment == "import":
        maps = Path(f"/proc/{process.pid}/maps")
        eventually(lambda: "numpy" in maps.read_text())
    else:
        eventually(lambda: any(moment in line for line in lines))
        time.sleep(0.2)  # into it
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=30) == 130
    reader.join(timeout=10)
    output = "".join(lines)
    assert "Traceback" not in output
    assert "the same command goes on" in output


def test_large_table_with_the_exact_engine_is_advised_before_it_starts():
    from pipeline.config.compose import load
    from pipeline.runs.kinds.rounds import KIND

    large, small = (SimpleNamespace(y=range(n)) for n in (100_001, 100_000))
    assert "engine=lightgbm" in KIND.advice(load([]), large)
    assert KIND.advice(load([]), small) == ""
    assert KIND.advice(load(["engine=lightgbm"]), large) == ""


def test_two_datasets_of_one_name_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="called the same"):
        plan(tmp_path, "dataset.name=mine")


@pytest.mark.exhaustive
def test_two_grids_on_one_store_do_not_harm_each_other(serial, tmp_path, start_process, finish):
    both = [start_process(tmp_path, *SMALL, "grid.workers=1") for _ in range(2)]
    for process in both:
        code, output = finish(process)
        assert code == 0, output
    pd.testing.assert_frame_equal(frame(tmp_path), frame(serial), check_exact=True)


def test_runs_finished_by_somebody_else_meanwhile_are_not_computed(serial, tmp_path, monkeypatch):
    real, calls = tasks.Task.compute, []

    def others_finish_all(task, design, initial, on_round):
        calls.append(task)
        if len(calls) == 1:
            shutil.copytree(
                serial / "smoke" / "runs", tmp_path / "smoke" / "runs", dirs_exist_ok=True
            )
        return real(task, design, initial, on_round)

    monkeypatch.setattr(tasks.Task, "compute", others_finish_all)
    run_here(tmp_path)
    assert len(calls) == 1


def test_folder_that_cannot_be_written_is_one_sentence_and_a_failure(tmp_path, start, finish):
    (tmp_path / "blocked").write_text("")
    code, output = finish(start(tmp_path / "blocked", *SMALL))
    assert code == 1
    assert output.startswith("error: output_dir: cannot write to ")
    assert len(output.splitlines()) == 1


@pytest.mark.parametrize("override", ["dataset=german", "strategy=unit", "seed=3"])
def test_grid_refuses_a_choice_on_its_own_axes(override, tmp_path):
    with pytest.raises(ConfigError, match=r"a grid has its own .*experiment\."):
        plan(tmp_path, override)


def test_grid_applies_other_overrides_to_all_its_runs(tmp_path):
    made = plan(tmp_path, "dataset.test_size=0.3")
    assert {c.dataset.test_size for c in made.configs} == {0.3}
    experiment = made.config.experiment
    assert {(c.dataset.name, c.strategy.name) for c in made.configs} == set(
        itertools.product(experiment.datasets, experiment.strategies)
    )


@pytest.mark.exhaustive
def test_command_composes_its_plan_once_and_prepares_each_dataset_once(tmp_path, monkeypatch):
    calls = []
    for where, name in (("config.compose", "compose"), ("datasets.library", "fetch"),
                        ("datasets.library", "preprocess")):  # fmt: skip
        module = sys.modules[f"pipeline.{where}"]
        real = getattr(module, name)
        counted = lambda *args, real=real, name=name: calls.append(name) or real(*args)  # noqa: E731
        monkeypatch.setattr(module, name, counted)
    lines = [*SMALL, f"output_dir={tmp_path}", "grid.workers=1", "boosting.rounds=6"]
    reproduce.main(make_plan(load(lines), lines))
    # The command itself, two datasets, and the two strategies beside the first; and the paper's
    # grid with its five datasets, which the report is held against.
    composed = (1 + 2 + 2) + (1 + 5 + 2)
    assert [calls.count(c) for c in ("compose", "fetch", "preprocess")] == [composed, 2, 2]


# --- progress ----------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_last_line_of_a_grid_has_all_runs_done_and_no_time_left(monkeypatch, stream, serial):
    screen = stream()
    monkeypatch.setattr(sys, "stderr", screen)
    one = Run(frame(serial).iloc[:4], {}, "train MSE 1")
    progress = Progress(3, 1, ["german"])
    progress.begin(cost=10.0)
    progress.stored(RunId("german", "unit", 0, {}), one, cost=7.0)
    progress.say("a line of its own")
    progress.stored(RunId("german", "unit", 1, {}), one, cost=3.0)
    progress.tick()
    text = screen.getvalue()
    progress.close()
    last = [line for line in text.replace("\r", "\n").splitlines() if "left" in line][-1]
    assert "[3/3]" in last
    assert "00:00 left, german 2 | german/unit/seed=1: train MSE" in last
    assert "a line of its own" in text


# --- Dask: a real scheduler and worker processes on loopback -----------------------------------


def test_dask_cluster_gives_the_same_bits_though_a_worker_is_killed_midway(
    serial, tmp_path, cluster, eventually
):
    def kill():
        eventually(lambda: stored(tmp_path))
        os.kill(min(workers.values()), signal.SIGKILL)

    workers = cluster.run(os.getpid)
    killer = threading.Thread(target=kill)
    killer.start()
    address = cluster.scheduler.address
    computed = run_here(tmp_path, "grid.backend=dask", f"grid.scheduler='{address}'").computed
    killer.join()
    assert computed == TOTAL
    pd.testing.assert_frame_equal(frame(tmp_path), frame(serial), check_exact=True)
    cluster.wait_for_workers(2, timeout=60)


@pytest.mark.exhaustive
def test_driver_and_workers_of_a_cluster_that_are_processes_of_their_own_give_the_same_bits(
    serial, tmp_path, dask_cluster, start_process, finish, eventually
):
    address, workers = dask_cluster
    cluster = ["grid.backend=dask", f"grid.scheduler='{address}'"]
    process = start_process(tmp_path / "out", *SMALL, *cluster)
    eventually(lambda: stored(tmp_path / "out"))
    workers[0].kill()
    code, output = finish(process)
    assert code == 0, output
    pd.testing.assert_frame_equal(frame(tmp_path / "out"), frame(serial), check_exact=True)


def test_scheduler_that_is_not_there_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.runs.workers.dask.CONNECT_SECONDS", 1)
    with pytest.raises(ClusterError, match=r"grid.scheduler=tcp://127.0.0.1:9: cannot be reached"):
        run_here(tmp_path, "grid.backend=dask", "grid.scheduler='tcp://127.0.0.1:9'")


# --- clusters that are none ---


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("tcp://127.0.0.1", "must be the address of a Dask scheduler"),
        ("foo://127.0.0.1:8786", "must be the address of a Dask scheduler"),
        ("tcp://127.0.0.1:99999999", "must be the address of a Dask scheduler"),
    ],
)
def test_address_that_cannot_be_is_refused_at_once(address, words):
    with pytest.raises(ConfigError, match=words):
        load(["grid.backend=dask", f"grid.scheduler={address}"])


@pytest.mark.parametrize(("says", "words"), [(b"", "said nothing"), (b"HTTP/1.1 4", "is no Dask")])
def test_port_where_something_else_listens_is_no_scheduler(monkeypatch, says, words):
    monkeypatch.setattr(dask_workers, "CONNECT_SECONDS", 1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        held = []

        def answer():
            held.append(server.accept()[0])
            held[0].sendall(says)

        threading.Thread(target=answer, daemon=True).start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ClusterError, match=words):
            dask_workers._require_scheduler(address)


def test_outcome_of_other_code_is_refused_and_that_of_ours_comes_through():
    ours, theirs = Future(), Future()
    futures = [dask_workers._unpickled(raw, "abc") for raw in (ours, theirs)]
    ours.set_result(("abc", pickle.dumps("an outcome")))
    theirs.set_result(("xyz", b""))
    assert futures[0].result(timeout=1) == "an outcome"
    with pytest.raises(ClusterError, match="other code"):
        futures[1].result(timeout=1)


def test_hash_of_the_code_sees_every_byte(monkeypatch, tmp_path):
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "manifest.yaml").write_text("")
    module = tmp_path / "pipeline" / "a.py"
    monkeypatch.setattr(dask_workers, "ROOT", tmp_path)
    monkeypatch.setattr(dask_workers, "DATA", tmp_path / "data")
    codes = []
    for text in ("x = 1", "x = 2", "x = 1"):
        module.write_text(text)
        codes.append(dask_workers._package()[0])
    assert codes[0] == codes[2] != codes[1]
