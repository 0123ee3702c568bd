"""Runs on disk are complete or absent, damage is noticed, and reasons are given."""

import hashlib
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import files
from pipeline.runs.store import (
    CorruptRun,
    Initial,
    RunId,
    RunStore,
    StoreError,
    _behind_checksum,
    _seal,
)

KEY = {"numerics": 1, "boosting": {"eta": 0.5, "rounds": 1}}


def run_id(**change):
    return RunId("german", "unit", 7, KEY | change)


def rounds(value=1 / 3):
    return pd.DataFrame(
        {"round": [0, 1], "gap": [np.nan, value], "weight": [np.nan, 1.0],
         "mse_train": [value, 1e-300], "mse_test": 1.0, "mce_train": 1.0, "mce_test": 1.0}
    )  # fmt: skip


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "exp")


def test_run_comes_back_bit_for_bit(store):
    folder = store.save(run_id(), rounds(), {"cpu": "x"})
    assert folder.parent == store.runs / "german" / "unit"
    assert folder.name.startswith("seed=007-")
    stored = store.load(run_id())
    pd.testing.assert_frame_equal(stored.rounds, rounds(), check_exact=True)
    assert stored.record["cpu"] == "x"
    assert stored.record["key"] == KEY


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_any_number_survives_the_file(tmp_path_factory, values):
    store = RunStore(tmp_path_factory.mktemp("s"))
    others = dict.fromkeys(rounds().columns, 1.0)
    frame = pd.DataFrame(others | {"round": np.arange(len(values)), "x": np.array(values, float)})
    run = run_id(boosting={"rounds": len(values) - 1})
    store.save(run, frame, {})
    np.testing.assert_array_equal(store.load(run).rounds["x"].to_numpy(float), values)


def test_run_of_another_experiment_is_found_and_copied_whole(store, tmp_path):
    other = RunStore(tmp_path / "other")
    folder = other.save(run_id(), rounds(), {"cpu": "x"})
    assert store.has(run_id())
    assert list(store.stored()) == []  # its own folder has none yet
    store.adopt(run_id())
    ((copied, stored),) = store.stored()
    assert copied == store.runs / run_id().folder
    assert stored.record["cpu"] == "x"
    assert (copied / "rounds.csv").read_bytes() == (folder / "rounds.csv").read_bytes()
    store.adopt(run_id())  # nothing more to do
    assert not list(store.runs.glob(".*"))


def test_absent_run_is_none(store):
    assert store.load(run_id()) is None
    assert not store.has(run_id())


def test_other_key_is_another_run_and_the_difference_is_named(store):
    store.save(run_id(), rounds(), {})
    other = run_id(boosting={"eta": 0.25, "rounds": 1})
    assert store.load(other) is None
    assert store.why_missing(other) == "boosting.eta: 0.25 instead of 0.5"
    assert store.why_missing(RunId("german", "unit", 8, KEY)) is None


DAMAGE = {
    "truncated rounds": ("rounds.csv", lambda b: b[: len(b) // 2]),
    "changed digit": ("rounds.csv", lambda b: b.replace(b"3", b"4", 1)),
    "empty record": ("run.json", lambda b: b""),
    "truncated record": ("run.json", lambda b: b[:-20]),
    "changed record": ("run.json", lambda b: b.replace(b"0.5", b"0.6")),
    "foreign record": ("run.json", lambda b: b"[]"),
    "missing rounds": ("rounds.csv", None),
    "missing record": ("run.json", None),
}


@pytest.mark.parametrize("damage", list(DAMAGE))
def test_damage_is_noticed_named_and_replaced_and_harms_no_other_run(store, damage):
    name, change = DAMAGE[damage]
    folder = store.save(run_id(), rounds(), {})
    store.save(RunId("german", "unit", 8, KEY), rounds(), {})
    if change is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(change((folder / name).read_bytes()))
    for look in (store.load, store.has):
        with pytest.raises(CorruptRun, match=f"{folder.name}: .*{name}"):
            look(run_id())
    assert [r.rounds.shape[0] for _, r in store.stored()] == [2]  # the other run
    store.save(run_id(), rounds(), {})
    pd.testing.assert_frame_equal(store.load(run_id()).rounds, rounds())


def test_folder_renamed_to_another_key_is_not_believed_and_is_replaced(store):
    store.save(run_id(), rounds(), {})
    other = run_id(boosting={"eta": 0.25, "rounds": 1})
    (store.runs / run_id().folder).rename(store.runs / other.folder)
    for look in (store.has, store.load):
        with pytest.raises(CorruptRun, match="holds a run of other settings"):
            look(other)
    store.save(other, rounds(2.0), {})
    pd.testing.assert_frame_equal(store.load(other).rounds, rounds(2.0), check_exact=True)


def test_valid_run_is_not_overwritten(store):
    store.save(run_id(), rounds(1.0), {})
    store.save(run_id(), rounds(2.0), {})
    assert store.load(run_id()).rounds["gap"][1] == 1.0


def test_initial_predictions_come_back_or_are_absent_when_damaged(store):
    initial = Initial(np.array([1 / 3, np.pi]), np.array([-0.0]))
    store.save_initial("german", 7, KEY, initial)
    back = store.load_initial("german", 7, KEY)
    np.testing.assert_array_equal(back.train, initial.train)
    np.testing.assert_array_equal(back.test, initial.test)
    assert store.load_initial("german", 8, KEY) is None
    (path,) = store.root.glob("initial/german/*.npz")
    path.write_bytes(path.read_bytes()[:-3])
    assert store.load_initial("german", 7, KEY) is None


def test_leftovers_of_dead_processes_are_swept_and_those_of_living_ones_kept(store):
    other = multiprocessing.get_context("fork").Process(target=store._scratch)
    other.start()
    other.join()
    (dead,) = store.runs.glob(".partial-*")
    living = store._scratch()
    store.sweep()
    assert not dead.exists()
    assert living.exists()


def test_no_scratch_is_left_after_saving(store):
    store.save(run_id(), rounds(), {})
    store.save_initial("german", 7, KEY, Initial(np.ones(1), np.ones(1)))
    assert not list(store.root.rglob(".partial-*"))


def test_folder_that_cannot_be_written_is_named_in_one_sentence(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    store = RunStore(blocked / "exp")
    for action in (
        store.check_writable,
        lambda: store.save(run_id(), rounds(), {}),
        lambda: store.save_initial("german", 7, KEY, Initial(np.ones(1), np.ones(1))),
    ):
        with pytest.raises(StoreError, match=r"output_dir: cannot write to .*intact"):
            action()


def test_full_disk_is_reported_and_leaves_earlier_runs_intact(store, monkeypatch):
    store.save(run_id(), rounds(), {})

    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", full)
    with pytest.raises(StoreError, match="No space left on device"):
        store.save(RunId("german", "unit", 8, KEY), rounds(), {})
    monkeypatch.undo()
    assert store.has(run_id())
    assert not store.has(RunId("german", "unit", 8, KEY))
    assert not list(store.root.rglob(".partial-*"))


# --- what somebody with the checksums could write, or a file system could hold ---


def sealed(store, folder, **change):
    """Rewrite a record with a checksum that is right; a value of None takes an entry out."""
    record = json.loads((folder / "run.json").read_text()) | change
    record = {name: value for name, value in record.items() if value is not None}
    (folder / "run.json").write_text(json.dumps(_seal(record)))


@pytest.mark.parametrize(
    "change",
    [
        {"key": None},
        {"key": [1]},
        {"rounds_sha256": None},
        {"key": {"boosting": {"rounds": 7}}},
        {"key": {"boosting": []}},
        {"key": {"boosting": {"rounds": "1"}}},
    ],
)
def test_record_that_lacks_what_it_should_hold_is_damaged(store, change):
    folder = store.save(run_id(), rounds(), {})
    sealed(store, folder, **change)
    with pytest.raises(CorruptRun):
        store.has(run_id())
    assert store.why_missing(run_id(boosting={"rounds": 1})) is None
    store.save(run_id(), rounds(), {})
    assert store.has(run_id())


def test_rounds_that_are_cut_short_are_not_believed_though_the_checksum_fits(store):
    folder = store.save(run_id(), rounds(), {})
    short = (folder / "rounds.csv").read_bytes().splitlines(keepends=True)[:2]
    (folder / "rounds.csv").write_bytes(b"".join(short))
    sealed(store, folder, rounds_sha256=hashlib.sha256(b"".join(short)).hexdigest())
    with pytest.raises(CorruptRun, match="what rounds cannot be"):
        store.load(run_id())


def test_deeply_nested_record_is_damaged_and_no_overflow(store):
    folder = store.save(run_id(), rounds(), {})
    (folder / "run.json").write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(CorruptRun):
        store.has(run_id())


@pytest.mark.parametrize("name", ["rounds.csv", "run.json"])
def test_pipe_in_the_place_of_a_file_is_not_waited_for(store, name):
    folder = store.save(run_id(), rounds(), {})
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(CorruptRun):
        store.has(run_id())


def test_files_of_somebody_else_in_a_damaged_run_are_kept(store):
    folder = store.save(run_id(), rounds(), {})
    (folder / "my notes.txt").write_text("keep me")
    (folder / "rounds.csv").write_text("")
    store.save(run_id(), rounds(), {})
    assert store.has(run_id())
    (kept,) = store.runs.rglob("my notes.txt")
    assert kept.read_text() == "keep me"


INITIAL = Initial(np.arange(3.0), np.arange(2.0))


@pytest.mark.parametrize(
    "arrays",
    [
        {"train": np.full(3, np.nan), "test": np.zeros(2)},
        {"train": np.zeros(3, np.float32), "test": np.zeros(2)},
        {"train": np.zeros((3, 1)), "test": np.zeros(2)},
        {"train": np.array(["a"]), "test": np.zeros(2)},
    ],
)
def test_initial_predictions_that_cannot_be_are_made_anew(store, arrays):
    store.save_initial("german", 7, KEY, Initial(arrays["train"], arrays["test"]))
    assert store.load_initial("german", 7, KEY) is None


def test_initial_predictions_of_another_key_are_not_believed(store):
    store.save_initial("german", 7, KEY, INITIAL)
    (path,) = store.root.glob("initial/german/*.npz")
    other = KEY | {"numerics": 9}
    path.rename(store._initial_path("german", 7, other))
    assert store.load_initial("german", 7, other) is None


def test_initial_predictions_that_are_cut_or_a_pipe_are_made_anew(store):
    store.save_initial("german", 7, KEY, INITIAL)
    (path,) = store.root.glob("initial/german/*.npz")
    blob = path.read_bytes()[64:-30]
    path.write_bytes(_behind_checksum(KEY, blob))
    assert store.load_initial("german", 7, KEY) is None
    path.unlink()
    os.mkfifo(path)
    assert store.load_initial("german", 7, KEY) is None


@pytest.mark.parametrize(
    "name", ["x", "{host}-abc-def", "{host}--12345678", "{host}-²-12345678", "{host}-0-12345678",
             "{host}-99999999999999999999999-12345678", "elsewhere-4194304-12345678"]
)  # fmt: skip
def test_sweep_leaves_alone_what_no_dead_process_of_this_machine_wrote(store, name):
    store.root.mkdir(parents=True)
    odd = store.root / f"{files.SCRATCH}{name.format(host=files._machine())}"
    odd.mkdir()
    store.sweep()
    assert odd.exists()


def test_sweep_removes_what_a_dead_process_left_in_any_folder(store):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    name = f"{files.SCRATCH}{files._machine()}-{dead.pid}-12345678"
    for folder in (store.root, store.runs, store.root / "figures"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.png").write_text("half")
    store.sweep()
    assert not list(store.root.rglob(f"{files.SCRATCH}*"))


def test_runs_may_be_on_another_disk(tmp_path):
    shm = Path("/dev/shm")
    if not os.access(shm, os.W_OK) or shm.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second disk here")
    elsewhere = Path(tempfile.mkdtemp(dir=shm))
    try:
        (tmp_path / "exp").mkdir()
        (tmp_path / "exp" / "runs").symlink_to(elsewhere)
        store = RunStore(tmp_path / "exp")
        store.check_writable()
        store.save(run_id(), rounds(), {})
        assert store.has(run_id())
    finally:
        shutil.rmtree(elsewhere)


@pytest.mark.parametrize(
    "change",
    [
        {"mse_test": ["x", "y"]}, {"mse_train": np.inf}, {"mce_train": np.nan}, {"round": 1},
        {"gap": np.nan}, {"round": ["x", "y"]}, {"weight": [1.0, np.inf]},
    ],
    ids=str,
)  # fmt: skip
def test_rounds_that_cannot_be_are_damaged_though_they_are_sealed(store, change):
    store.save(run_id(), rounds().assign(**change), {})
    for look in (store.has, store.load):
        with pytest.raises(CorruptRun, match="what rounds cannot be"):
            look(run_id())
    store.save(run_id(), rounds(), {})
    assert store.has(run_id())


def test_rounds_without_a_measure_are_damaged(store):
    store.save(run_id(), rounds().drop(columns="mce_test"), {})
    with pytest.raises(CorruptRun, match="what rounds cannot be"):
        store.has(run_id())


@pytest.mark.parametrize("make", ["file", "dangling", "loop"])
def test_something_else_in_the_place_of_a_run_is_replaced(store, make):
    folder = store.save(run_id(), rounds(), {})
    shutil.rmtree(folder)
    if make == "file":
        folder.write_text("mine")
    else:
        folder.symlink_to(folder if make == "loop" else folder.parent / "nowhere")
    assert store.save(run_id(), rounds(), {}) == folder
    assert store.has(run_id())


def test_a_file_in_the_place_of_a_folder_is_named(store):
    store.runs.mkdir(parents=True)
    (store.runs / "german").write_text("mine")
    with pytest.raises(StoreError, match="german"):
        store.save(run_id(), rounds(), {})


@pytest.mark.parametrize("blob", [b"", b"PK", b"\x93NUMPY"])
def test_initial_predictions_that_numpy_cannot_read_are_absent(store, blob):
    store.save_initial("german", 7, KEY, Initial(np.zeros(2), np.zeros(1)))
    (path,) = store.root.glob("initial/german/*.npz")
    path.write_bytes(_behind_checksum(KEY, blob))
    assert store.load_initial("german", 7, KEY) is None
