"""Fits over shards have the numbers of a fit in memory, however rows are shared out or lost."""

import json
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("lightgbm")

from pipeline.boosting.algorithm import advance, boost, round_seed
from pipeline.boosting.distributed import checkpoint
from pipeline.boosting.distributed import parts as parts_module
from pipeline.boosting.distributed.checkpoint import Checkpoint
from pipeline.boosting.distributed.fit import DistributedFit, FitSettings, ShardsLost
from pipeline.boosting.distributed.initial import FOREST
from pipeline.boosting.distributed.local import InThisProcess
from pipeline.boosting.distributed.parts import MemoryPart, Table, Unfit, parquet_table
from pipeline.boosting.distributed.shard import Network, Shard
from pipeline.boosting.engines import TreeSettings
from pipeline.boosting.engines.lightgbm import LOSSLESS, Bins, LightgbmEngine
from pipeline.boosting.losses import LogLoss
from pipeline.boosting.rescaling import Adaptive, Relaxed, Unit
from pipeline.boosting.rows import TrainingRows
from pipeline.boosting.trajectories import BoostingSettings, CrossFit

TREES = TreeSettings(8, 3, min_samples_leaf=5)
SETTINGS = FitSettings(
    3, 0.5, Adaptive(), TREES, Bins(), "given", replace(FOREST, n_trees=8), 0.0, 10**6, 7
)


def data(n=3000, d=4, missing=0.05):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n)
    f0 = 0.2 * X[:, 2]
    X[rng.random((n, d)) < missing] = np.nan
    return X, y, f0


def in_parts(X, y, f0, n_parts=5, weights=None):
    cuts = np.array_split(np.arange(len(y)), n_parts)
    weigh = (lambda i: None) if weights is None else (lambda i: weights[i])
    parts = tuple(MemoryPart(k, X[i], y[i], f0[i], weigh(i)) for k, i in enumerate(cuts))
    names = tuple(f"x{j}" for j in range(X.shape[1]))
    return Table(parts, tuple(len(i) for i in cuts), names)


def write_parquet(folder, frame, rows=700, groups=250):
    for k, start in enumerate(range(0, len(frame), rows)):
        part = pa.Table.from_pandas(frame[start : start + rows], preserve_index=False)
        pq.write_table(part, folder / f"part-{k}.parquet", row_group_size=groups)


def frame_of(X, y, f0):
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    return pd.DataFrame(columns | {"y": y, "f0": f0})


class InThreads:
    """Holders of n shards in this process, which talk over sockets; some calls lose a shard.

    losses : by the number of a call, the shard that is lost in it, before or after it has acted.
    """

    def __init__(self, folder, n_shards, losses=None):
        self.folder, self.n_shards = folder, n_shards
        self.shards = {}
        self.losses = losses or {}
        self.calls = []

    def require(self, n_bytes):
        assert n_bytes > 0

    def present(self):
        return list(self.shards)

    def place(self, shard, settings):
        self.shards[shard] = Shard(settings, self.folder / f"{shard}")

    def call(self, action, arguments, *, together=False):
        if not arguments:
            return {}
        number = len(self.calls)
        self.calls.append(action.__name__)
        if together:
            networks = self.networks()
            arguments = {k: (*more, networks[k]) for k, more in arguments.items()}
        lost, before = self.losses.get(number, (None, False))
        if lost not in arguments:
            lost = None
        some = {k: more for k, more in arguments.items() if not (before and k == lost)}
        if lost is not None:
            if together:
                some = {}
            gone = self.shards.pop(lost)
        with ThreadPoolExecutor(max(1, len(some))) as threads:
            futures = {
                k: threads.submit(action, self.shards.get(k) or gone, *more)
                for k, more in some.items()
            }
            results = {k: future.result() for k, future in futures.items()}
        if lost is not None:
            results.pop(lost, None)
            raise ShardsLost("lost on purpose", results)
        return results

    def map_parts(self, action, parts):
        return [action(part) for part in parts]

    def networks(self):
        if self.n_shards == 1:
            return {0: Network(("",), 0)}
        open_ = [socket.socket() for _ in range(self.n_shards)]
        for s in open_:
            s.bind(("127.0.0.1", 0))
        machines = tuple(f"127.0.0.1:{s.getsockname()[1]}" for s in open_)
        for s in open_:
            s.close()
        return {k: Network(machines, k) for k in range(self.n_shards)}


def fitted(table, settings=SETTINGS, holders=None, checkpoint=None):
    """A fit's steps, and the f of all training rows in the order of the shards."""
    with InThisProcess() as here:
        holders = holders or here
        fit = DistributedFit(table, holders, settings, checkpoint, tell=lambda _: None)
        steps = list(fit.run())
        shards = (
            [holders.shards[k] for k in sorted(holders.shards)]
            if holders is not here
            else [here._shard]
        )
        return fit, steps, np.concatenate([half.f[0] for shard in shards for half in shard.halves])


@pytest.mark.parametrize("rescaling", [Unit(), Relaxed(), Adaptive()])
def test_one_shard_has_the_rounds_of_the_engine_in_memory(rescaling):
    X, y, f0 = data()
    settings = replace(SETTINGS, rescaling=rescaling)
    fit, steps, f = fitted(in_parts(X, y, f0), settings)
    fitter = LightgbmEngine(TREES).bind(X)
    expected = list(
        boost(y, f0, 3, 0.5, rescaling, lambda t, f, r: fitter.fit(f, r, round_seed(7, t)))
    )
    # LightGBM keeps labels in single precision; here they are centred before, there after.
    np.testing.assert_allclose(f, expected[-1].f, atol=1e-6 * y.std())
    for ours, theirs in zip(steps[1:], expected, strict=True):
        assert ours.weight == pytest.approx(theirs.weight, rel=1e-6)
        assert ours.gap == pytest.approx(theirs.gap, rel=1e-6)
        assert ours.loss == pytest.approx(np.mean((y - theirs.f) ** 2), rel=1e-6)
    assert fit.losses[0] == pytest.approx(np.mean((y - f0) ** 2), rel=1e-12)


def test_what_training_gives_rows_is_what_their_ensembles_predict():
    X, y, f0 = data()
    fit, steps, f = fitted(in_parts(X, y, f0))
    followed = f0
    for round_ in fit.rounds[0]:
        followed = advance(followed, X, round_, 0.5)
    np.testing.assert_array_equal(f, followed)
    np.testing.assert_array_equal(steps[-1].f_sample, followed)  # all rows are in the sample


@pytest.mark.parametrize("n_shards", [2, 3])
def test_several_shards_give_what_one_gives(tmp_path, n_shards):
    X, y, f0 = data()
    X, y, f0 = (v[np.argsort(y)] for v in (X, y, f0))  # shards that are not alike
    table = in_parts(X, y, f0, 7)
    _, one, f = fitted(table)
    holders = InThreads(tmp_path, n_shards)
    _, several, g = fitted(table, holders=holders)
    np.testing.assert_allclose(g, f, rtol=0, atol=1e-9)
    for a, b in zip(one, several, strict=True):
        assert b.loss == pytest.approx(a.loss, rel=1e-11)


def test_files_give_the_bits_of_the_same_rows_in_memory(tmp_path):
    X, y, f0 = data()
    write_parquet(tmp_path, frame_of(X, y, f0))
    table = parquet_table(tmp_path, ["y"], initial="f0")
    cuts = np.cumsum(table.rows)[:-1]
    pieces = zip(*(np.split(v, cuts) for v in (X, y, f0)), strict=True)
    memory = Table(
        tuple(MemoryPart(k, *piece) for k, piece in enumerate(pieces)), table.rows, table.columns
    )
    settings = replace(SETTINGS, held_out=0.2, sample=500)
    _, steps, f = fitted(table, settings)
    _, expected, g = fitted(memory, settings)
    np.testing.assert_array_equal(f, g)
    np.testing.assert_array_equal(steps[-1].f_held_out, expected[-1].f_held_out)


def test_how_many_rows_are_read_at_a_time_changes_nothing(tmp_path, monkeypatch):
    X, y, f0 = data()
    write_parquet(tmp_path, frame_of(X, y, f0))
    table = parquet_table(tmp_path, ["y"], initial="f0")
    settings = replace(SETTINGS, held_out=0.3, sample=400)
    _, steps, f = fitted(table, settings)
    monkeypatch.setattr(parts_module, "BLOCK_CELLS", 200)
    monkeypatch.setattr("pipeline.boosting.distributed.shard.SLICE_CELLS", 300)
    _, again, g = fitted(table, settings)
    np.testing.assert_array_equal(f, g)
    np.testing.assert_array_equal(steps[-1].f_held_out, again[-1].f_held_out)


def test_rows_are_held_out_whoever_reads_them_and_change_no_tree(tmp_path):
    X, y, f0 = data(4000)
    settings = replace(SETTINGS, held_out=0.25, sample=10**6)
    write_parquet(tmp_path, frame_of(X, y, f0), rows=4000, groups=4000)
    table = parquet_table(tmp_path, ["y"], initial="f0")
    fit, steps, _ = fitted(table, settings)
    assert len(fit.held_out.y) == pytest.approx(1000, abs=100)
    assert len(fit.held_out.y) + fit.n_rows == 4000
    other, _, _ = fitted(table, settings, InThreads(tmp_path / "shards", 3))  # cuts the one part
    np.testing.assert_array_equal(np.sort(other.held_out.y), np.sort(fit.held_out.y))
    moved = np.where(np.isin(y, fit.held_out.y), 1e6, y)
    _, again, _ = fitted(in_parts(X, moved, f0, 1), settings)
    np.testing.assert_array_equal([s.loss for s in again], [s.loss for s in steps])


def test_sample_is_about_as_large_as_it_should_be():
    X, y, f0 = data(20_000, missing=0)
    settings = replace(SETTINGS, held_out=0.5, sample=1000, n_rounds=0)
    fit, _, _ = fitted(in_parts(X, y, f0), settings)
    assert len(fit.sample.y) == pytest.approx(1000, abs=150)
    assert len(fit.held_out.y) == pytest.approx(1000, abs=150)


def test_start_is_the_mean_a_forest_or_what_is_given():
    X, y, f0 = data(missing=0)
    table = in_parts(X, y, f0)
    mean, steps, _ = fitted(table, replace(SETTINGS, initial="mean"))
    assert mean.losses[0] == pytest.approx(y.var(), rel=1e-12)
    np.testing.assert_allclose(steps[0].f_sample, y.mean(), rtol=1e-12)
    forest, _, _ = fitted(table, replace(SETTINGS, initial="forest"))
    assert forest.losses[0] < 0.9 * y.var()
    again, _, _ = fitted(table, replace(SETTINGS, initial="forest"))
    assert again.losses == forest.losses


def test_words_are_whole_categories_and_new_ones_are_missing(tmp_path):
    rng = np.random.default_rng(0)
    words = rng.choice(["red", "green", "blue", None], 3000)
    x = rng.normal(size=3000)
    y = 2.0 * (words == "green") - (pd.isna(words)) + 0.1 * rng.normal(size=3000)
    write_parquet(tmp_path, pd.DataFrame({"w": words, "x": x, "y": y}))
    table = parquet_table(tmp_path, ["y"])
    assert table.words == ("w",)
    settings = replace(SETTINGS, initial="mean", trees=TreeSettings(50, 3, min_samples_leaf=5))
    fit, _, _ = fitted(table, settings)
    assert fit.encoding.codes[0].levels == ("(missing)", "blue", "green", "red")
    assert fit.losses[-1] < 0.05 * fit.losses[0]
    new = fit.encoding.encode(pd.DataFrame({"w": ["purple"], "x": [0.0]}))
    assert np.isnan(new[0, 0])
    assert fit.encoding.expanded(new).tolist() == [[0, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [
        ("x", pd.date_range("2026-01-01", periods=100), "timestamp"),
        ("x", [[1]] * 100, "list"),
        ("y", [np.nan] + [1.0] * 99, "target"),
        ("y", ["p", "q"] * 50, "must hold numbers"),
        ("y", pd.date_range("2026-01-01", periods=100), "timestamp"),
        ("y", [1e200, 1.0] * 50, "too large"),
        ("y", [1e-40, 1e-41] * 50, "too small"),
        ("x", [np.inf] + [1.0] * 99, "infinity"),
    ],
)
def test_columns_that_cannot_be_used_are_named(tmp_path, column, values, says):
    frame = pd.DataFrame({"x": np.arange(100.0), "y": np.arange(100.0)})
    frame[column] = values
    write_parquet(tmp_path, frame)
    with pytest.raises(Unfit, match=says):
        fitted(parquet_table(tmp_path, ["y"]), replace(SETTINGS, initial="mean"))


def test_files_of_other_columns_and_folders_without_files_are_refused(tmp_path):
    with pytest.raises(Unfit, match="no Parquet file"):
        parquet_table(tmp_path, ["y"])
    write_parquet(tmp_path, pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0]}))
    with pytest.raises(Unfit, match="no column 'z'"):
        parquet_table(tmp_path, ["z"])
    with pytest.raises(Unfit, match="no covariate"):
        parquet_table(tmp_path, ["y"], drop=["x"])
    notes = tmp_path / "_delta_log"
    notes.mkdir()
    pq.write_table(pa.table({"x": [1], "y": [1]}), notes / "other.parquet")
    assert len(parquet_table(tmp_path, ["y"]).parts) == 1
    pq.write_table(pa.table({"x": [1], "y": [1]}), tmp_path / "other.parquet")
    with pytest.raises(Unfit, match="other columns, or other types"):
        parquet_table(tmp_path, ["y"])
    (tmp_path / "year=2020").mkdir()
    (tmp_path / "other.parquet").rename(tmp_path / "year=2020" / "other.parquet")
    with pytest.raises(Unfit, match="year=2020 has a column in its name"):
        parquet_table(tmp_path, ["y"])


def test_file_that_is_gone_or_damaged_is_named(tmp_path):
    write_parquet(tmp_path, pd.DataFrame({"x": np.arange(900.0), "y": np.arange(900.0)}))
    table = parquet_table(tmp_path, ["y"])
    file = tmp_path / "part-1.parquet"
    raw = file.read_bytes()
    for damaged in (raw[: len(raw) // 2], b"", None):
        file.unlink()
        if damaged is not None:
            file.write_bytes(damaged)
        with pytest.raises(Unfit, match=r"part-1\.parquet cannot be read"):
            fitted(table, replace(SETTINGS, initial="mean"))
        file.touch()


@given(rows=st.lists(st.integers(1, 50), min_size=1, max_size=12), n=st.integers(1, 9))
def test_rows_are_shared_out_evenly_each_once_and_in_order(rows, n):
    parts = tuple(
        parts_module.ParquetPart(k, "", 0, parts_module.Columns(("x",), ("y",)), size)
        for k, size in enumerate(rows)
    )
    table = Table(parts, tuple(rows), ("x",))
    if n > sum(rows):
        with pytest.raises(Unfit):
            table.shared_out(n)
        return
    shares = table.shared_out(n)
    sizes = [sum(p.stop - p.start for p in share) for share in shares]
    assert len(shares) == n
    assert max(sizes) - min(sizes) <= 1
    seen = [(p.number, row) for share in shares for p in share for row in range(p.start, p.stop)]
    assert seen == [(k, row) for k, size in enumerate(rows) for row in range(size)]


@given(rows=st.lists(st.integers(1, 50), min_size=1, max_size=12), n=st.integers(1, 9))
def test_chunks_are_shared_out_whole(rows, n):
    table = in_parts(np.zeros((sum(rows), 1)), np.zeros(sum(rows)), np.zeros(sum(rows)), 1)
    chunks = tuple(replace(table.parts[0], number=k) for k in range(len(rows)))
    table = Table(chunks, tuple(rows), ("x0",))
    if n > len(rows):
        with pytest.raises(Unfit):
            table.shared_out(n)
        return
    shares = table.shared_out(n)
    assert [part.number for share in shares for part in share] == list(range(len(rows)))
    assert all(shares)


# --- classes and weights --------------------------------------------------------------------------


def classes(n=3000, seed=0):
    """Rows of two classes, with initial probabilities and whole weights from 0 to 3."""
    X, score, _ = data(n)
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 1 / (1 + np.exp(-2 * score))).astype(float)
    p = 1 / (1 + np.exp(-0.3 * np.nan_to_num(X[:, 2])))
    return X, y, p, rng.integers(0, 4, n).astype(float)


def few_kinds_of_rows(n=4000):
    """The same for 27 kinds of rows, so that each leaf has many.

    (With the log-loss or weights, LightGBM estimates the number of a leaf's rows from their
    curvatures, in one way for one shard and in another for several: small leaves are not equal.)
    """
    rng = np.random.default_rng(2)
    X = rng.integers(0, 3, (n, 3)).astype(float)
    y = (rng.random(n) < 0.2 + 0.15 * X[:, 0] * (X[:, 1] > 0)).astype(float)
    return X, y, 0.3 + 0.1 * X[:, 2], rng.integers(0, 4, n).astype(float)


LOG = replace(SETTINGS, loss=LogLoss(), rescaling=Unit())
PLAIN = replace(SETTINGS, rescaling=Unit())


@pytest.mark.parametrize("rescaling", [Unit(), Adaptive()])
@pytest.mark.parametrize("weighted", [False, True])
def test_log_loss_of_one_shard_has_the_rounds_of_the_engine_in_memory(rescaling, weighted):
    X, y, p, w = classes()
    w = w if weighted else None
    settings = replace(LOG, rescaling=rescaling)
    _, steps, _ = fitted(in_parts(X, y, p, weights=w), settings)
    loss = LogLoss()
    fitter = LightgbmEngine(TREES).bind(X, w)
    expected = boost(
        y, loss.score(p), 3, 0.5, loss.rescaling(rescaling),
        lambda t, f, _: loss.fit(fitter, y, f, f, round_seed(7, t), w), w,
    )  # fmt: skip
    for ours, theirs in zip(steps[1:], expected, strict=True):
        # LightGBM's own log-loss rounds differently to single precision.
        assert ours.weight == pytest.approx(theirs.weight, rel=1e-5)
        assert ours.gap == pytest.approx(theirs.gap, rel=1e-4)
        mean = np.average(loss.of_rows(y, theirs.f), weights=w)
        assert ours.loss == pytest.approx(mean, rel=1e-5)


@pytest.mark.parametrize("settings", [PLAIN, LOG, replace(LOG, rescaling=Adaptive())])
@pytest.mark.parametrize("feedback", ["in_sample", "honest"])
def test_several_shards_give_what_one_gives_with_classes_and_weights(tmp_path, settings, feedback):
    settings = replace(settings, feedback=feedback)
    for make, number in ((few_kinds_of_rows, 1), (classes, 2)):
        X, y, p, w = make()
        table = in_parts(X, y, p, 7, w)
        _, few, _ = fitted(table, settings, InThreads(tmp_path / f"{number}", number))
        _, several, _ = fitted(table, settings, InThreads(tmp_path / "3", 3))
        for a, b in zip(few, several, strict=True):
            assert b.loss == pytest.approx(a.loss, rel=1e-9)
            assert (b.weight, b.gap) == pytest.approx((a.weight, a.gap), rel=1e-9, nan_ok=True)
        np.testing.assert_allclose(several[-1].f_sample, few[-1].f_sample, rtol=0, atol=1e-9)


@pytest.mark.parametrize("settings", [PLAIN, LOG, replace(LOG, rescaling=Adaptive())])
def test_whole_weights_are_repeated_rows(settings):
    X, y, p, w = few_kinds_of_rows()
    settings = replace(settings, bins=LOSSLESS)  # bins count rows: there is one for every value
    _, weighted, _ = fitted(in_parts(X, y, p, weights=w), settings)
    times = w.astype(int)
    _, repeated, _ = fitted(in_parts(*(np.repeat(v, times, axis=0) for v in (X, y, p))), settings)
    for a, b in zip(weighted, repeated, strict=True):
        # LightGBM has weights, divided by their mean, in single precision.
        assert a.loss == pytest.approx(b.loss, rel=1e-7)
        assert (a.weight, a.gap) == pytest.approx((b.weight, b.gap), rel=1e-5, nan_ok=True)


def test_first_honest_round_is_that_of_two_trajectories_in_memory():
    X, y, p, w = few_kinds_of_rows()
    settings = replace(LOG, feedback="honest", n_rounds=1)
    fit, steps, _ = fitted(in_parts(X, y, p, 1, w), settings)
    sample = fit.sample  # all rows of positive weight
    rows = TrainingRows(y=sample.y, weights=sample.weights, table=X, X=sample.X, labels=sample.y)
    own = BoostingSettings(LogLoss(), LightgbmEngine(TREES), 0.5, Unit(), 7, "honest")
    f0 = LogLoss().score(sample.f0)
    crossed = CrossFit(own, rows, sample.X, [f0, f0], sample.half, 1)
    *_, expected = crossed.stages()
    assert steps[-1].loss == pytest.approx(crossed.losses[-1], rel=1e-6)
    np.testing.assert_allclose(steps[-1].f_sample, expected, atol=1e-5)
    assert sample.half.mean() == pytest.approx(0.5, abs=0.05)


def test_honest_predictions_of_noise_know_nothing_of_the_outcomes():
    X, _, f0 = data(6000)
    y = np.random.default_rng(5).normal(size=6000)
    settings = replace(PLAIN, n_rounds=6, trees=TreeSettings(20, 6, 0.2, 5))
    table = in_parts(X, y, 0.0 * f0)
    (_, in_sample, _), (fit, honest, _) = (
        fitted(table, replace(settings, feedback=how)) for how in ("in_sample", "honest")
    )
    assert np.cov(in_sample[-1].f_sample, y)[0, 1] > 0.3
    assert abs(np.cov(honest[-1].f_sample, fit.sample.y)[0, 1]) < 0.1


def test_labels_of_any_kind_are_two_classes(tmp_path):
    X, y, p, w = classes()
    frame = frame_of(X, y, p).assign(w=w)
    frame["y"] = np.where(y == 1, "yes", "no")
    write_parquet(tmp_path, frame)
    table = parquet_table(tmp_path, ["y"], initial="f0", weight="w", positive="yes")
    _, words, _ = fitted(table, LOG)
    frame["y"] = y.astype(int) + 7
    write_parquet(tmp_path, frame)
    table = parquet_table(tmp_path, ["y"], initial="f0", weight="w", positive="8")
    _, numbers, _ = fitted(table, LOG)
    cuts = np.cumsum(table.rows)[:-1]
    pieces = zip(*(np.split(v, cuts) for v in (X, y, p, w)), strict=True)
    parts = tuple(MemoryPart(k, *piece) for k, piece in enumerate(pieces))
    expected = fitted(Table(parts, table.rows, table.columns), LOG)[1]
    losses = [[step.loss for step in steps] for steps in (words, numbers, expected)]
    assert losses[0] == losses[1] == losses[2]


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("y", None, "no label"),
        ("y", "all", "one class only"),
        ("w", -1.0, "negative"),
        ("w", np.nan, "missing"),
        ("w", "zero", "zero for all rows"),
        ("f0", 1.5, "probabilities"),
    ],
)
def test_classes_and_weights_that_cannot_be_used_are_refused(tmp_path, column, value, says):
    X, y, p, w = classes(300)
    frame = frame_of(X, y, p).assign(w=w)
    frame["y"] = np.where(y == 1, "yes", "no")
    if value == "all":
        frame["y"] = "yes"
    elif value == "zero":
        frame["w"] = 0.0
    else:
        frame.loc[3, column] = value
    write_parquet(tmp_path, frame)
    with pytest.raises(Unfit, match=says):
        fitted(parquet_table(tmp_path, ["y"], (), "f0", "w", "yes"), LOG)


def test_rows_without_weight_are_as_good_as_absent():
    X, y, p, w = classes()
    absent = w == 0
    assert absent.any()
    _, steps, _ = fitted(in_parts(X, np.where(absent, 1 - y, y), p, weights=w), LOG)
    _, expected, _ = fitted(in_parts(X, y, p, weights=w), LOG)
    assert [s.loss for s in steps] == [s.loss for s in expected]


def test_a_level_of_one_part_and_parts_of_very_different_sizes_are_all_fitted(tmp_path):
    rng = np.random.default_rng(1)
    words = np.array(["often"] * 3000, dtype=object)
    words[2400:2600] = "once"  # all in one file
    y = 3.0 * (words == "once") + 0.1 * rng.normal(size=3000)
    frame = pd.DataFrame({"w": words, "x": rng.normal(size=3000), "y": y})
    at = 0
    for k, size in enumerate((1, 2390, 300, 309)):
        frame[at : at + size].to_parquet(tmp_path / f"{k}.parquet", index=False)
        at += size
    table = parquet_table(tmp_path, ["y"])
    settings = replace(PLAIN, initial="mean", trees=TreeSettings(30, 3, 0.2, 5), n_rounds=4)
    fit, one, _ = fitted(table, settings)
    assert fit.encoding.codes[0].levels == ("often", "once")
    assert one[-1].loss < 0.05
    _, three, _ = fitted(table, settings, InThreads(tmp_path / "shards", 3))
    assert three[-1].loss == pytest.approx(one[-1].loss, rel=1e-9)


def test_files_behind_a_url_are_those_of_a_folder(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    write_parquet(tmp_path, frame_of(*data(1500)))
    place = "memory://bucket/table"
    fsspec.filesystem("memory").put(f"{tmp_path}/", "/bucket/table/", recursive=True)
    found, expected = (
        fitted(parquet_table(path, ["y"], initial="f0"))[1] for path in (place, tmp_path)
    )
    assert [s.loss for s in found] == [s.loss for s in expected]
    one = parquet_table(f"{place}/part-0.parquet", ["y"])
    assert {part.path for part in one.parts} == {f"{place}/part-0.parquet"}
    with pytest.raises(Unfit, match="no Parquet file"):
        parquet_table("memory://bucket/nothing", ["y"])


class Cautious:
    """Half way from 1 to the weight that keeps the mean size."""

    def weight(self, t, y, phi, sample_weight=None):
        return self.reduced_weight(t, lambda function: [function(y, phi, sample_weight)])

    def reduced_weight(self, t, each):
        of_y, of_phi = np.sum(each(lambda y, phi, w: (np.abs(y).sum(), np.abs(phi).sum())), axis=0)
        return 0.5 + 0.5 * of_y / of_phi


def test_strategy_of_ones_own_that_reduces_is_that_of_one_machine(tmp_path):
    X, y, f0 = data()
    settings = replace(SETTINGS, rescaling=Cautious())
    _, own, _ = fitted(in_parts(X, y, f0), settings, InThreads(tmp_path, 2))
    fitter = LightgbmEngine(TREES).bind(X)
    expected = boost(y, f0, 3, 0.5, Cautious(), lambda t, f, r: fitter.fit(f, r, round_seed(7, t)))
    assert [s.weight for s in own[1:]] == pytest.approx([s.weight for s in expected], rel=1e-6)


# --- shards that are lost -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("honest", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_shard_that_is_lost_at_any_step_changes_no_bit(tmp_path, before, honest):
    X, y, f0 = data(1200)
    table, settings = in_parts(X, y, f0, 4), replace(SETTINGS, n_rounds=2)
    if honest:
        X, y, p, w = classes(1200)
        table = in_parts(X, y, p, 4, w)
        settings = replace(LOG, n_rounds=2, feedback="honest")
    holders = InThreads(tmp_path / "undisturbed", 2)
    _, expected, f = fitted(table, settings, holders)
    calls = holders.calls
    assert set(calls) - {"reduced"} == {"read", "bin", "start", "train", "step"}
    for number in range(before, len(calls), 2):
        holders = InThreads(tmp_path / f"{number}", 2, {number: (number // 2 % 2, before)})
        _, steps, g = fitted(table, settings, holders)
        assert holders.calls != calls  # it was disturbed
        np.testing.assert_array_equal(g, f)
        assert [s.loss for s in steps] == [s.loss for s in expected]
        assert [s.gap for s in steps[1:]] == [s.gap for s in expected[1:]]


@pytest.mark.parametrize("changed", ["y", "X", "f0"])
def test_table_that_changes_before_a_shard_is_read_again_ends_the_fit(tmp_path, changed):
    table = in_parts(*data(1200), 4)
    last = len(undisturbed(tmp_path / "first", table).calls) - 1

    class Changing(InThreads):
        def place(self, shard, settings):
            if self.calls:  # a worker was lost, and with it a file was replaced
                for part in table.parts:
                    getattr(part, changed)[:] += 1.0
            super().place(shard, settings)

    with pytest.raises(Unfit, match="must not change while it is fitted"):
        fitted(table, holders=Changing(tmp_path / "second", 2, {last - 1: (1, True)}))


def undisturbed(folder, table):
    holders = InThreads(folder, 2)
    fitted(table, holders=holders)
    return holders


def test_cluster_that_loses_shards_again_and_again_is_given_up(tmp_path):
    X, y, f0 = data(1200)
    losses = dict.fromkeys(range(1000), (1, True))
    with pytest.raises(ShardsLost):
        fitted(in_parts(X, y, f0), holders=InThreads(tmp_path, 2, losses))


# --- checkpoints ----------------------------------------------------------------------------------


@pytest.mark.parametrize("initial", ["given", "mean", "forest"])
@pytest.mark.parametrize("kept", [0, 1, 3])
@pytest.mark.parametrize("honest", [False, True])
def test_fit_that_ended_continues_to_the_same_bits(tmp_path, kept, initial, honest):
    table = in_parts(*data())
    settings = replace(SETTINGS, initial=initial, held_out=0.2)
    if honest:
        X, y, p, w = classes()
        table = in_parts(X, y, p, 4, w)
        settings = replace(settings, loss=LogLoss(), feedback="honest")
    _, steps, f = fitted(table, settings, checkpoint=tmp_path)
    for t in range(kept + 1, 4):
        (tmp_path / f"round-{t:04d}.json").unlink()
    told = []
    with InThisProcess() as here:
        fit = DistributedFit(table, here, settings, tmp_path, told.append)
        again = list(fit.run())
        np.testing.assert_array_equal(np.concatenate([half.f[0] for half in here._shard.halves]), f)
    assert any(f"continues at round {kept + 1}" in line for line in told) == (kept > 0)
    assert [s.loss for s in again] == [s.loss for s in steps]
    np.testing.assert_array_equal(again[-1].f_held_out, steps[-1].f_held_out)


def test_damaged_round_is_computed_again(tmp_path):
    X, y, f0 = data()
    table = in_parts(X, y, f0)
    _, _, f = fitted(table, checkpoint=tmp_path)
    file = tmp_path / "round-0002.json"
    good = file.read_text()
    content = json.loads(good)
    content["content"]["weights"][0] += 1e-9
    nested = "[" * 100_000 + "]" * 100_000
    for bad in (json.dumps(content), good[: len(good) // 2], "", "[]", nested, *ill_models(good)):
        file.write_text(bad)
        _, _, g = fitted(table, checkpoint=tmp_path)
        np.testing.assert_array_equal(g, f)
        assert json.loads(file.read_text()) == json.loads(good)


def ill_models(good):
    """Yield rounds with a valid seal whose model LightGBM would end the process for."""
    (model,) = json.loads(good)["content"]["models"]
    for bad in (
        "",
        "tree",
        model[:500],
        model.replace("num_leaves=", "num_leaves=9"),
        model.replace("left_child=", "left_child=99"),
        model.replace("split_feature=", "split_feature=-7"),
        model.replace("leaf_value=", "leaf_value=x"),
        model.replace("threshold=", "threshold=nan "),
        model.replace("max_feature_idx=", "max_feature_idx=-"),
    ):
        yield json.dumps(checkpoint._sealed(json.loads(good)["content"] | {"models": [bad]}))


def test_what_is_no_file_is_told_in_a_sentence_and_nothing_hangs(tmp_path):
    table = in_parts(*data())
    (tmp_path / "a").write_text("no folder")
    with pytest.raises(Unfit, match="cannot be written"):
        fitted(table, checkpoint=tmp_path / "a")
    (tmp_path / "b" / "fit.json").mkdir(parents=True)
    with pytest.raises(Unfit, match="cannot be written"):
        fitted(table, checkpoint=tmp_path / "b")
    (tmp_path / "c").mkdir()
    os.mkfifo(tmp_path / "c" / "round-0002.json")
    _, steps, _ = fitted(table, checkpoint=tmp_path / "c")
    assert len(steps) == len(fitted(table)[1])


def test_folder_of_another_fit_is_refused_with_what_differs(tmp_path):
    X, y, f0 = data()
    fitted(in_parts(X, y, f0), checkpoint=tmp_path)
    with pytest.raises(Unfit, match=r"eta: 0\.5 there, 0\.3 here"):
        fitted(in_parts(X, y, f0), replace(SETTINGS, eta=0.3), checkpoint=tmp_path)
    with pytest.raises(Unfit, match="do not fit this table"):
        fitted(in_parts(X, y + 1.0, f0), checkpoint=tmp_path)


def test_more_rounds_go_on_where_fewer_ended(tmp_path):
    X, y, f0 = data()
    table = in_parts(X, y, f0)
    fitted(table, replace(SETTINGS, n_rounds=1), checkpoint=tmp_path)
    _, steps, f = fitted(table, checkpoint=tmp_path)
    _, expected, g = fitted(table)
    np.testing.assert_array_equal(f, g)
    assert [s.loss for s in steps] == [s.loss for s in expected]
    assert (
        len(Checkpoint(tmp_path, json.loads((tmp_path / "fit.json").read_text())["content"]).load())
        == 4
    )


def test_strategies_of_ones_own_that_do_not_reduce_are_refused():
    class Mine:
        def weight(self, t, y, phi):
            return 1.0

    with pytest.raises(TypeError, match="rescaling"):
        replace(SETTINGS, rescaling=Mine())
