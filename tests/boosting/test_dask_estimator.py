"""Fits on a Dask cluster of processes: all collections, killed workers, a model without Dask."""

import json
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("lightgbm")
pytest.importorskip("distributed")

from sklearn.base import clone
from sklearn.metrics import log_loss

from pipeline.boosting import DaskMulticalibrationBoostingClassifier as Classifier
from pipeline.boosting import DaskMulticalibrationBoostingRegressor as Regressor
from pipeline.boosting import (
    MulticalibrationBoostingClassifier,
    MulticalibrationBoostingRegressor,
    load,
)
from pipeline.boosting.distributed.dask import LEADER, ClusterUnfit, OnDask
from pipeline.boosting.distributed.parts import Unfit

N, CHUNK = 6000, 1000
QUICK = {
    "n_trees": 10,
    "max_leaf_nodes": None,
    "max_depth": 3,
    "learning_rate": 0.1,
    "random_state": 3,
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    y = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=N)
    return X, y


@pytest.fixture(scope="module")
def arrays(rows):
    import dask.array as da

    X, y = rows
    return da.from_array(X, chunks=(CHUNK, 2)), da.from_array(y, chunks=CHUNK)


@pytest.mark.exhaustive
def test_rows_left_out_choose_the_rounds_and_the_audit_tells_what_was_gained(cluster, arrays):
    X, y = arrays
    model = Regressor(8, **QUICK).fit(X, y)
    assert model.best_round_ == 8
    assert model.losses_[-1] < 0.7 * model.losses_[0]
    assert model.audit_.n == pytest.approx(0.2 * N, rel=0.1)
    assert model.audit_.mce < model.initial_audit_.mce
    assert model.audit_.standard_error > 0


def test_predictions_that_need_no_correction_are_kept(cluster, arrays):
    import dask.array as da

    noise = da.from_array(np.random.default_rng(1).normal(size=N), chunks=CHUNK)
    model = Regressor(8, **QUICK).fit(
        arrays[0], noise, initial_prediction=da.zeros(N, chunks=CHUNK)
    )
    assert model.best_round_ == 0
    assert model.audit_.p_value > 0.01


def test_dask_collections_and_arrays_get_the_same_predictions(cluster, arrays, rows):
    model = Regressor(3, **QUICK).fit(*arrays)
    here = model.predict(rows[0])
    there = model.predict(arrays[0])
    assert there.shape == (N,)
    np.testing.assert_array_equal(there.compute(), here)
    np.testing.assert_array_equal(model.model_.predict(rows[0]), here)
    assert isinstance(model.model_, MulticalibrationBoostingRegressor)


def test_fitted_model_predicts_where_there_is_no_dask(cluster, arrays, rows, tmp_path):
    model = Regressor(3, **QUICK).fit(*arrays)
    (tmp_path / "model").write_bytes(pickle.dumps(model.model_))
    np.save(tmp_path / "X.npy", rows[0][:50])
    code = (
        "import sys, pickle, numpy as np\n"
        "sys.modules['dask'] = sys.modules['distributed'] = None\n"
        "model = pickle.loads(open('model', 'rb').read())\n"
        "np.save('f.npy', model.predict(np.load('X.npy')))\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "f.npy"), model.predict(rows[0][:50]))


@pytest.mark.exhaustive
def test_data_frames_and_parquet_folders_give_the_same_fit(cluster, rows, tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    X, y = rows
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["w"] = np.where(X[:, 2] > 0, "north", "south")
    frame.loc[::9, "a"] = np.nan
    frame["y"] = y + (X[:, 2] > 0)
    whole = dd.from_pandas(frame, npartitions=6)
    whole.to_parquet(tmp_path / "table")
    of_frame = Regressor(4, **QUICK).fit(whole.drop(columns="y"), whole["y"])
    of_files = Regressor(4, **QUICK).fit(tmp_path / "table", "y")
    np.testing.assert_array_equal(of_files.losses_, of_frame.losses_)
    assert list(of_files.feature_names_in_) == ["a", "b", "c", "d", "w"]
    assert of_files.model_.encoding_.categorical == (4,)
    table = frame.drop(columns="y")
    np.testing.assert_array_equal(of_files.predict(table), of_frame.predict(table))
    lazily = of_frame.predict(whole.drop(columns="y"))
    np.testing.assert_array_equal(lazily.compute(), of_frame.predict(table))


def test_given_predictions_take_the_place_of_the_forest(cluster, arrays, rows):
    X, y = arrays
    f0 = 0.5 * X[:, 0]
    quick = QUICK | {"feedback": "in_sample", "early_stopping": False}
    model = Regressor(3, **quick).fit(X, y, initial_prediction=f0)
    assert model.losses_[0] == pytest.approx(np.mean((rows[1] - 0.5 * rows[0][:, 0]) ** 2))
    with pytest.raises(ValueError, match="initial_prediction"):
        model.predict(rows[0])
    there = model.predict(X, f0).compute()
    np.testing.assert_array_equal(there, model.predict(rows[0], 0.5 * rows[0][:, 0]))


@pytest.mark.parametrize("kills", [1, pytest.param(3, marks=pytest.mark.exhaustive)])
def test_workers_that_are_killed_while_a_model_is_fitted_change_nothing(cluster, arrays, kills):
    X, y = arrays
    model = Regressor(12, init="mean", early_stopping=False, **QUICK)
    expected = clone(model).fit(X, y)
    rng, killed, over = random.Random(0), [], threading.Event()

    def kill():
        while len(killed) < kills and not over.wait(rng.uniform(0.5, 1.5)):
            workers = cluster.run(os.getpid)
            if len(workers) == 2:
                killed.append(rng.choice(list(workers.values())))
                os.kill(killed[-1], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        found = clone(model).fit(X, y)
        while not killed:  # the machine was quicker than the killer
            found = clone(model).fit(X, y)
    finally:
        over.set()
        killer.join()
    np.testing.assert_array_equal(found.losses_, expected.losses_)
    np.testing.assert_array_equal(found.gaps_, expected.gaps_)
    cluster.wait_for_workers(2, timeout=60)


def test_fit_leaves_nothing_behind_and_what_a_killed_leader_left_is_removed(cluster, arrays):
    def held():
        from pipeline.boosting.distributed.dask import SHARDS

        return sorted(key[0] for key in SHARDS)

    Regressor(1, **QUICK).fit(*arrays)
    assert all(shards == [] for shards in cluster.run(held).values())

    def leave():
        from pipeline.boosting.distributed.dask import SHARDS

        class Left:
            folder = "nowhere"

        SHARDS["a-fit-whose-driver-is-gone", 0] = Left()

    cluster.run(leave)
    assert all(len(shards) == 1 for shards in cluster.run(held).values())
    with OnDask(cluster).open():
        pass
    assert all(shards == [] for shards in cluster.run(held).values())


@pytest.mark.exhaustive
def test_workers_that_forget_their_shards_are_given_them_again(cluster, arrays):
    model = Regressor(12, init="mean", early_stopping=False, **QUICK)
    expected = clone(model).fit(*arrays)

    def forget():  # as one that was started again at its old address
        from pipeline.boosting.distributed.dask import SHARDS

        held = bool(SHARDS)
        SHARDS.clear()
        return held

    forgotten, over = [], threading.Event()

    def disturb():
        while sum(forgotten) < 2 and not over.wait(0.7):
            forgotten.extend(cluster.run(forget).values())

    other = threading.Thread(target=disturb)
    other.start()
    try:
        found = clone(model).fit(*arrays)
        while not any(forgotten):
            found = clone(model).fit(*arrays)
    finally:
        over.set()
        other.join()
    np.testing.assert_array_equal(found.losses_, expected.losses_)


def test_two_fits_have_the_cluster_one_after_the_other(cluster, arrays):
    from distributed import Client

    model = Regressor(6, init="mean", early_stopping=False, **QUICK)
    expected = clone(model).fit(*arrays)
    found = []
    with Client(cluster.scheduler.address, set_as_default=False) as second:
        fits = [
            threading.Thread(
                target=lambda c=c: found.append(clone(model).set_params(client=c).fit(*arrays))
            )
            for c in (cluster, second)
        ]
        for fit in fits:
            fit.start()
        for fit in fits:
            fit.join()
    assert len(found) == 2
    for fitted in found:
        np.testing.assert_array_equal(fitted.losses_, expected.losses_)


def test_checkpoint_of_one_worker_is_gone_on_with_by_one_of_two(cluster, arrays, tmp_path):
    model = Regressor(2, early_stopping=False, checkpoint=tmp_path, **QUICK)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            "pipeline.boosting.distributed.checkpoint.Checkpoint.shards_in", lambda _: 1
        )
        first = clone(model).fit(*arrays)
    (tmp_path / "round-0002.json").unlink()
    np.testing.assert_array_equal(clone(model).fit(*arrays).losses_, first.losses_)


def test_checkpoint_of_a_fit_is_gone_on_with(cluster, arrays, tmp_path):
    model = Regressor(4, early_stopping=False, checkpoint=tmp_path, **QUICK)
    first = clone(model).fit(*arrays)
    (tmp_path / "round-0004.json").unlink()
    again = clone(model).fit(*arrays)
    np.testing.assert_array_equal(again.losses_, first.losses_)
    with pytest.raises(Unfit, match="max_depth"):
        clone(model).set_params(max_depth=2).fit(*arrays)


@pytest.mark.parametrize(
    ("parameters", "error", "says"),
    [
        ({"eta": 0.0}, ValueError, "eta"),
        ({"init": "zero"}, ValueError, "init"),
        ({"max_bins": 1}, ValueError, "max_bins"),
        ({"n_trees": 1.5}, TypeError, "n_trees"),
        ({"validation_fraction": 1.0}, ValueError, "validation_fraction"),
        ({"checkpoint": "somewhere", "random_state": None}, ValueError, "random_state"),
    ],
)
def test_parameters_out_of_range_are_named(cluster, arrays, parameters, error, says):
    with pytest.raises(error, match=says):
        Regressor(**parameters).fit(*arrays)


def test_tables_that_are_no_dask_collections_are_refused_with_the_way_out(cluster, rows, arrays):
    with pytest.raises(TypeError, match="MulticalibrationBoostingRegressor"):
        Regressor().fit(*rows)
    with pytest.raises(Unfit, match="chunks"):
        Regressor().fit(arrays[0], arrays[1].rechunk(500))
    with pytest.raises(Unfit, match="same chunks"):
        Regressor().fit(arrays[0], arrays[1].rechunk(((900, 1100, 1000, 1000, 1000, 1000),)))
    with pytest.raises(Unfit, match="must be a column"):
        Regressor().fit(arrays[0], arrays[0])
    with pytest.raises(TypeError, match="initial_prediction"):
        Regressor().fit(*arrays, initial_prediction=rows[1])
    with pytest.raises(ValueError, match="drop"):
        Regressor().fit(*arrays, drop=["x0"])


def test_column_of_y_is_as_good_as_a_vector(cluster, arrays):
    model = Regressor(1, **QUICK)
    column = clone(model).fit(arrays[0], arrays[1][:, None])
    np.testing.assert_array_equal(column.losses_, clone(model).fit(*arrays).losses_)


def test_error_in_a_collection_of_ones_own_is_that_error(cluster, arrays):
    def fails(block):
        raise KeyError("my own mistake")

    broken = arrays[0].map_blocks(fails, meta=np.empty((0, 0)))
    with pytest.raises(KeyError, match="my own mistake"):
        Regressor().fit(broken, arrays[1])


def test_shards_beyond_the_workers_memory_are_refused_before_anything_is_read(cluster):
    holders = OnDask(cluster)
    holders.require(1e9)
    with pytest.raises(Unfit, match=r"3\.0 GB, and the workers' memory limit is 2\.1 GB"):
        holders.require(3e9)


def test_too_few_workers_are_said_to_be_too_few(cluster):
    with pytest.raises(ClusterUnfit, match="3 Dask worker"):
        OnDask(cluster, 3, patience=0.5)


def test_driver_that_was_stopped_beyond_its_lease_ends_with_a_sentence(cluster):
    first, second = OnDask(cluster, 1), OnDask(cluster, 1)
    with first.open():
        first._require_lead()
        cluster.set_metadata(LEADER, second._fit)  # what another driver does that has the lock
        with pytest.raises(ClusterUnfit, match="another driver took the cluster over"):
            first.call(len, {0: ()}, together=True)


def test_shards_that_do_not_find_each_other_end_their_process():
    code = """
import time
from pipeline.boosting.distributed.shard import Network
with Network(("a:1",), 0, 0.1).linking():
    time.sleep(0.3)  # alone there is nobody to wait for
with Network(("a:1", "b:2"), 0, 0.1).linking():
    time.sleep(30)
"""
    done = subprocess.run([sys.executable, "-c", code], timeout=25, check=False)
    assert done.returncode == 1


# --- classes, weights, and clusters as users run them ---------------------------------------------


@pytest.fixture(scope="module")
def labelled(rows):
    """A frame with words, labels, probabilities and weights; one level is in its last rows only."""
    X, _ = rows
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["g"] = np.where(X[:, 3] > 0, "north", "south")
    frame.loc[5800:, "g"] = "island"
    score = 1.5 * X[:, 0] * X[:, 1] - 2.0 * (frame["g"] == "island")
    frame["label"] = np.where(rng.random(N) < 1 / (1 + np.exp(-score)), "yes", "no")
    frame["w"] = rng.integers(0, 4, N)
    frame["p"] = 0.5
    return frame


COLUMNS = ["a", "b", "c", "d", "g"]


def test_classes_with_weights_are_fitted_and_predicted_without_dask(
    cluster, labelled, tmp_path, monkeypatch
):
    dd = pytest.importorskip("dask.dataframe")
    # Partitions of very different sizes.
    parts = [labelled[:10], labelled[10:5200], labelled[5200:5800], labelled[5800:]]
    table = dd.concat([dd.from_pandas(part, npartitions=1) for part in parts])
    model = Classifier(20, random_state=3)
    model.fit(table[COLUMNS], table["label"], table["w"])
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.audit_.mce < model.initial_audit_.mce
    assert 0 < model.gain_.share <= 1
    assert model.losses_[model.best_round_] < 0.9 * model.losses_[0]
    levels = dict(zip(COLUMNS, model.model_.encoding_.codes, strict=True))["g"].levels
    assert "island" in levels
    p = model.predict_proba(labelled[COLUMNS])
    assert p.shape == (N, 2)
    lazily = model.predict_proba(table[COLUMNS])
    np.testing.assert_array_equal(lazily.compute(), p)
    np.testing.assert_array_equal(
        model.predict(table[COLUMNS]).compute(), model.predict(labelled[COLUMNS])
    )
    assert set(model.predict(labelled[COLUMNS])) == {"no", "yes"}
    model.model_.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(load(tmp_path / "model.npz").predict_proba(labelled[COLUMNS]), p)


def test_files_give_the_fit_of_the_collections(cluster, labelled, tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    table = dd.from_pandas(labelled, npartitions=4)
    table.to_parquet(tmp_path / "table")
    model = Classifier(3, early_stopping=False, **QUICK)
    given = {"initial_prediction": "p"}
    of_files = clone(model).fit(tmp_path / "table", "label", "w", **given)
    of_frame = clone(model).fit(table[COLUMNS], table["label"], table["w"], table["p"])
    np.testing.assert_array_equal(of_files.losses_, of_frame.losses_)
    with pytest.raises(ValueError, match="initial_prediction"):
        of_files.model_.predict_proba(labelled[COLUMNS])
    with pytest.raises(Unfit, match="3 classes instead of two"):
        clone(model).fit(table[COLUMNS], table["g"])


def test_default_is_near_to_that_of_one_machine(cluster, labelled):
    dd = pytest.importorskip("dask.dataframe")
    mixed = labelled.sample(frac=1, random_state=0)
    train, test = mixed[:4500], mixed[4500:]
    table = dd.from_pandas(train, npartitions=4)
    model = Classifier(random_state=0).fit(table[COLUMNS], table["label"], table["w"])
    alone = MulticalibrationBoostingClassifier(random_state=0, stack=False, init_cv=2, cv=2)
    alone.fit(train[COLUMNS], train["label"], train["w"])
    start, found, expected = (
        log_loss(test["label"], p, sample_weight=test["w"])
        for p in (
            model.model_.init_.predict_proba(model.model_.encoding_.encode(test[COLUMNS])),
            model.predict_proba(test[COLUMNS]),
            alone.predict_proba(test[COLUMNS]),
        )
    )
    assert found < start
    assert found == pytest.approx(expected, rel=0.05)


def test_strategy_of_a_notebook_travels_to_the_workers(cluster, arrays):
    class Mine:
        def weight(self, t, y, phi):
            raise AssertionError

        def reduced_weight(self, t, each):
            (n,) = np.sum(each(lambda y, phi, w: [len(y)]), axis=0)
            return 1.0 - 1.0 / n

    model = Regressor(2, rescaling=Mine(), early_stopping=False, feedback="in_sample", **QUICK)
    np.testing.assert_allclose(model.fit(*arrays).weights_, 1 - 1 / N)


@pytest.fixture
def object_store(tmp_path):
    """The URL of a folder behind an object store on loopback, in WebHDFS's protocol."""
    folder = tmp_path / "store"
    folder.mkdir()

    class Store(BaseHTTPRequestHandler):
        def do_GET(self):
            url = urlsplit(self.path)
            query = parse_qs(url.query)
            file = folder / url.path.removeprefix("/webhdfs/v1/").removeprefix("bucket").strip("/")
            what = query["op"][0].upper()
            if not file.exists():
                self.answer(404, b'{"RemoteException": {"message": "no such file"}}')
            elif what == "OPEN":
                start = int(query.get("offset", ["0"])[0])
                stop = start + int(query.get("length", [str(file.stat().st_size)])[0])
                self.answer(200, file.read_bytes()[start:stop])
            elif what == "GETFILESTATUS":
                self.answer(200, json.dumps({"FileStatus": status(file)}).encode())
            else:
                found = [status(f) | {"pathSuffix": f.name} for f in sorted(file.iterdir())]
                self.answer(200, json.dumps({"FileStatuses": {"FileStatus": found}}).encode())

        def answer(self, code, body):
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    def status(file):
        kind = "DIRECTORY" if file.is_dir() else "FILE"
        return {"type": kind, "length": file.stat().st_size, "pathSuffix": ""}

    with ThreadingHTTPServer(("127.0.0.1", 0), Store) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"webhdfs://127.0.0.1:{server.server_address[1]}/bucket"
        server.shutdown()


def test_table_of_an_object_store_is_that_of_a_folder(cluster, labelled, object_store):
    dd = pytest.importorskip("dask.dataframe")
    folder, url = object_store
    dd.from_pandas(labelled, npartitions=4).to_parquet(folder / "table")
    model = Classifier(2, early_stopping=False, **QUICK)
    near, far = (
        clone(model).fit(place, "label", "w", drop=["p"]).losses_
        for place in (folder / "table", f"{url}/table")
    )
    np.testing.assert_array_equal(far, near)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_adaptive_cluster_of_workers_with_threads_keeps_those_that_hold_shards(
    arrays, tmp_path, eventually
):
    import dask
    from distributed import Client, LocalCluster

    model = Regressor(30, init="mean", early_stopping=False, **QUICK)
    with (
        dask.config.set({"distributed.adaptive.wait-count": 1}),
        LocalCluster(n_workers=3, threads_per_worker=2, dashboard_address=None) as processes,
        Client(processes) as client,
    ):
        model.set_params(client=client)
        expected = clone(model).fit(*arrays).losses_
        again, found = clone(model).set_params(checkpoint=tmp_path), []
        fit = threading.Thread(target=lambda: found.append(again.fit(*arrays)))
        fit.start()
        eventually((tmp_path / "round-0001.json").exists)
        before = set(client.scheduler_info()["workers"])
        processes.adapt(minimum=1, maximum=3, interval="100ms")
        eventually((tmp_path / "round-0020.json").exists)
        assert set(client.scheduler_info()["workers"]) == before
        fit.join()
        np.testing.assert_array_equal(found[0].losses_, expected)
        deadline = time.monotonic() + 60
        while len(client.scheduler_info()["workers"]) > 1 and time.monotonic() < deadline:
            time.sleep(0.2)
        assert len(client.scheduler_info()["workers"]) == 1  # nothing holds them any more
