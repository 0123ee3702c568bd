"""Touched stores: flipped bits, cut files, pipes, foreign and sealed records, odd names."""

import hashlib
import io
import json
import os
import random
import shutil
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.runs.grid import run_plan
from pipeline.runs.store import _behind_checksum, _seal
from scripts.attack.ground import Tally, in_parallel, plan_of, rounds_in

Touch = Callable[[Path, random.Random], object]


def attack(folder: Path, truth: pd.DataFrame, tries: int) -> Tally:
    """Touch a copy of a finished store ``tries`` times; the grid must make it whole again."""
    tally = Tally("touched stores")
    original = folder / "original"
    run_plan(plan_of(original, "grid.workers=1"))
    names = [list(TOUCHES)[k % len(TOUCHES)] for k in range(tries)]
    in_parallel(
        tally,
        [
            (f"{name} {k}", partial(_one, original, folder / str(k), name, k, truth))
            for k, name in enumerate(names)
        ],
        at_once=1,
    )
    tally.identical = "yes" if not tally.wrong else "NO"
    return tally


def _one(original: Path, copy: Path, name: str, k: int, truth: pd.DataFrame) -> str | None:
    shutil.copytree(original, copy)
    rng = random.Random(k)
    runs = sorted((copy / "smoke" / "runs").glob("*/*/seed=*"))
    TOUCHES[name](rng.choice(runs), rng)
    run_plan(plan_of(copy, "grid.workers=1"))
    rounds = rounds_in(copy)
    shutil.rmtree(copy)
    return None if rounds.equals(truth) else "other numbers"


def _flip(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def _cut(path: Path, rng: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: rng.randrange(len(data))])


def _pipe(path: Path, _: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def _resealed(run: Path, change: Callable[[dict[str, object]], object]) -> None:
    record = json.loads((run / "run.json").read_text())
    change(record)
    (run / "run.json").write_text(json.dumps(_seal(record)))


def _shortened(run: Path, _: random.Random) -> None:
    rows = (run / "rounds.csv").read_bytes().splitlines(keepends=True)
    cut = b"".join(rows[:-1])
    (run / "rounds.csv").write_bytes(cut)
    _resealed(run, lambda r: r.update(rounds_sha256=hashlib.sha256(cut).hexdigest()))


def _swapped(run: Path, _: random.Random) -> None:
    other = next(p for p in run.parent.iterdir() if p != run)
    shutil.copy(other / "run.json", run)
    shutil.copy(other / "rounds.csv", run)


def _initial(run: Path, rng: random.Random) -> None:
    """A damaged f_0, beside a run that is gone and so has to be computed from it."""
    experiment, dataset = run.parents[3], run.parents[1].name
    seed = run.name.partition("-")[0]
    (path,) = (experiment / "initial" / dataset).glob(f"{seed}-*.npz")
    rng.choice([_flip, _cut, _pipe])(path, rng)
    shutil.rmtree(run)


def _odd_names(run: Path, _: random.Random) -> None:
    for name in (".partial-x", ".partial-host--1", ".partial-²-²-²"):
        (run.parents[3] / name).mkdir()
    shutil.rmtree(run)


def _ill(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Touch:
    """Rounds that were changed by somebody who also made the checksums right."""

    def touch(run: Path, _: random.Random) -> None:
        ill = change(pd.read_csv(run / "rounds.csv")).to_csv(index=False).encode()
        (run / "rounds.csv").write_bytes(ill)
        _resealed(run, lambda r: r.update(rounds_sha256=hashlib.sha256(ill).hexdigest()))

    return touch


def _in_its_place(make: Callable[[Path], object]) -> Touch:
    """Something else where the folder of a run should be."""

    def touch(run: Path, _: random.Random) -> None:
        shutil.rmtree(run)
        make(run)

    return touch


def _sealed_initial(run: Path, rng: random.Random) -> None:
    """An f_0 that numpy cannot read, behind a right checksum."""
    experiment, dataset = run.parents[3], run.parents[1].name
    (path,) = (experiment / "initial" / dataset).glob(f"{run.name.partition('-')[0]}-*.npz")
    key = json.loads((run / "run.json").read_text())["key"]
    names = ("numerics", "data", "dataset", "seed", "initial")
    bare, huge = io.BytesIO(), io.BytesIO()
    np.save(bare, np.zeros(3))
    np.lib.format.write_array_header_1_0(
        huge, {"descr": "<f8", "fortran_order": False, "shape": (10**13,)}
    )
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name in ("train", "test"):
            file.writestr(f"{name}.npy", huge.getvalue())
    blob = rng.choice([bare.getvalue(), archive.getvalue(), b"PK", b""])
    path.write_bytes(_behind_checksum({name: key[name] for name in names}, blob))
    shutil.rmtree(run)


def _user_file(run: Path, _: random.Random) -> None:
    (run / "notes.txt").write_text("mine")
    (run / "rounds.csv").write_text("")


TOUCHES: dict[str, Touch] = {
    "flipped rounds": lambda run, rng: _flip(run / "rounds.csv", rng),
    "flipped record": lambda run, rng: _flip(run / "run.json", rng),
    "cut rounds": lambda run, rng: _cut(run / "rounds.csv", rng),
    "cut record": lambda run, rng: _cut(run / "run.json", rng),
    "pipe for rounds": lambda run, rng: _pipe(run / "rounds.csv", rng),
    "pipe for record": lambda run, rng: _pipe(run / "run.json", rng),
    "nested record": lambda run, _: (run / "run.json").write_text("[" * 10**5),
    "no key, sealed": lambda run, _: _resealed(run, lambda r: r.pop("key")),
    "no checksum, sealed": lambda run, _: _resealed(run, lambda r: r.pop("rounds_sha256")),
    "rounds cut, sealed": _shortened,
    "another run's files": _swapped,
    "damaged f_0": _initial,
    "odd scratch names": _odd_names,
    "a user's file": _user_file,
    "folder is gone": lambda run, _: shutil.rmtree(run),
    "words, sealed": _ill(lambda t: t.assign(mse_test=["x"] * len(t))),
    "no column, sealed": _ill(lambda t: t.drop(columns="mce_test")),
    "infinity, sealed": _ill(lambda t: t.assign(mse_train=np.inf)),
    "no numbers, sealed": _ill(lambda t: t.assign(mce_train=np.nan)),
    "other rounds, sealed": _ill(lambda t: t.assign(round=1)),
    "a file for a run": _in_its_place(lambda run: run.write_text("mine")),
    "a dangling link": _in_its_place(lambda run: run.symlink_to(run.parent / "nowhere")),
    "a looping link": _in_its_place(lambda run: run.symlink_to(run)),
    "ill f_0, sealed": _sealed_initial,
}
