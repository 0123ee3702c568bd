"""Models as files: the same predictions after reading, and nothing but sound files is read."""

import contextlib
import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression

from pipeline.boosting import (
    PAPER,
    MulticalibrationBoostingClassifier,
    MulticalibrationBoostingRegressor,
    load,
)


@pytest.fixture(scope="module")
def frame():
    """Numbers with holes, words, flags; a target that depends on all of them."""
    random = np.random.default_rng(0)
    n = 400
    X = pd.DataFrame(
        {
            "x": random.standard_normal(n),
            "word": random.choice(["a", "b", "ü, 'quoted'"], n),
            "flag": random.random(n) < 0.3,
        }
    )
    X.loc[::7, "x"] = np.nan
    y = X["x"].fillna(2.0) + (X["word"] == "b") + X["flag"] + 0.3 * random.standard_normal(n)
    return X, y.to_numpy()


SETTINGS = {"n_rounds": 4, "n_trees": 5, "random_state": 0}


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"stack": False, "feedback": "initial"},
        {"rescaling": "adaptive", "early_stopping": False},
        {**PAPER, "init_cv": 5},
        {"engine": "lightgbm_lossless", "init_cv": "oob"},
    ],
)
def test_regressor_predicts_the_same_after_reading(parameters, frame, tmp_path):
    X, y = frame
    model = MulticalibrationBoostingRegressor(**{**SETTINGS, **parameters, "n_rounds": 4})
    model.fit(X, y)
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-12)
    for one, other in zip(again.staged_predict(X), model.staged_predict(X), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    np.testing.assert_allclose(again.feature_importances_, model.feature_importances_)
    np.testing.assert_array_equal(again.validation_scores_, model.validation_scores_)
    assert again.get_params() == model.get_params()
    again.save(tmp_path / "again.npz")
    np.testing.assert_array_equal(load(tmp_path / "again.npz").predict(X), again.predict(X))


def test_classifier_keeps_its_labels(frame, tmp_path):
    X, y = frame
    labels = np.where(y > 1, "yes", "no")
    model = MulticalibrationBoostingClassifier(**SETTINGS).fit(X, labels)
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), rtol=1e-10)
    assert list(again.predict(X)) == list(model.predict(X))


@pytest.mark.parametrize("init", [None, LogisticRegression(max_iter=2000)])
def test_many_classes_are_stored(init, tmp_path):
    X, y = load_wine(return_X_y=True)
    model = MulticalibrationBoostingClassifier(init=init, **SETTINGS).fit(X, y)
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz", None if init is None else model.init_)
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), rtol=1e-10)


def test_predictions_that_were_given_are_given_again(frame, tmp_path):
    X, y = frame
    f = np.full(len(y), y.mean())
    model = MulticalibrationBoostingRegressor(**SETTINGS).fit(X, y, initial_prediction=f)
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.predict(X, f), model.predict(X, f))
    with pytest.raises(ValueError, match="initial_prediction: is needed"):
        again.predict(X)


def test_model_of_a_user_is_stored_apart_and_passed_again(tmp_path):
    random = np.random.default_rng(0)
    X = random.standard_normal((300, 3))
    y = X[:, 0] * X[:, 1]
    init = LinearRegression().fit(X, y)
    model = MulticalibrationBoostingRegressor(init=init, init_cv="prefit", **SETTINGS).fit(X, y)
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz", init=init)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="init: is needed"):
        load(tmp_path / "model.npz")
    classifier = MulticalibrationBoostingClassifier(init=LogisticRegression(), **SETTINGS)
    classifier.fit(X, y > 0).save(tmp_path / "classifier.npz")
    again = load(tmp_path / "classifier.npz", classifier.init_)
    np.testing.assert_array_equal(again.predict_proba(X), classifier.predict_proba(X))


def test_what_cannot_be_stored_is_refused_before_a_file_is_written(tmp_path, frame):
    X, y = frame
    with pytest.raises(NotFittedError):
        MulticalibrationBoostingRegressor().save(tmp_path / "model.npz")
    model = MulticalibrationBoostingRegressor(
        engine="cosines", max_leaf_nodes=None, max_depth=2, early_stopping=False, **SETTINGS
    )
    with pytest.raises(ValueError, match="cannot be stored"):
        model.fit(X, y).save(tmp_path / "model.npz")
    assert not (tmp_path / "model.npz").exists()


def test_an_earlier_file_stays_if_writing_ends_early(frame, tmp_path, monkeypatch):
    X, y = frame
    model = MulticalibrationBoostingRegressor(**SETTINGS).fit(X, y)
    model.save(tmp_path / "model.npz")
    before = (tmp_path / "model.npz").read_bytes()

    def full(file, **_):
        file.write(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="no space"):
        model.save(tmp_path / "model.npz")
    assert (tmp_path / "model.npz").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.npz"]


@pytest.fixture(scope="module")
def stored(frame, tmp_path_factory):
    X, y = frame
    path = tmp_path_factory.mktemp("stored") / "model.npz"
    MulticalibrationBoostingRegressor(**SETTINGS).fit(X, y).save(path)
    return path


def changed(stored, path, **changes):
    """A copy of a file with other arrays, or another JSON text."""
    with np.load(stored) as file:
        arrays = {name: file[name] for name in file.files}
    about = json.loads(arrays["about"].tobytes())
    for name, change in changes.items():
        if name in arrays:
            arrays[name] = change(arrays[name].copy())
        else:
            about[name] = change(about[name])
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": lambda v: v + 1}, "newer version"),
        ({"format": lambda v: "other"}, "no model"),
        ({"estimator": lambda v: "os.system"}, "damaged"),
        ({"encoding": lambda v: v[:-1]}, "damaged|not sound"),
        ({"trajectories": lambda v: [{}]}, "damaged"),
        ({"0_roots": lambda v: v + 10**6}, "not sound"),
        ({"0_bounds": lambda v: v[:-1]}, "not sound"),
        ({"0_nodes": lambda v: v[:5]}, "not sound"),
        ({"0_nodes": lambda v: v["left"]}, "damaged"),
        ({"init0_nodes": lambda v: v[::-1].copy()}, "not sound"),
    ],
)
def test_files_that_were_changed_are_refused(stored, tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        load(changed(stored, tmp_path / "changed.npz", **changes))


def test_damaged_files_are_refused_in_a_sentence(stored, tmp_path):
    content, random = stored.read_bytes(), np.random.default_rng(0)
    path = tmp_path / "damaged.npz"
    for _ in range(300):
        place = int(random.integers(len(content)))
        path.write_bytes(content[:place] + bytes([random.integers(256)]) + content[place + 1 :])
        with contextlib.suppress(ValueError):  # some bytes do not matter
            load(path)
    for broken in (b"", b"PK", content[: len(content) // 2], b"\x80\x04."):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match="no model of this library"):
            load(path)


def test_pickles_and_huge_arrays_in_a_file_are_refused(tmp_path):
    buffer = io.BytesIO()
    np.save(buffer, np.array([object()], dtype=object), allow_pickle=True)
    huge = b"\x93NUMPY\x01\x00" + len(text := repr({"descr": "<f8", "fortran_order": False,
        "shape": (10**13,)}).ljust(117) + "\n").to_bytes(2, "little") + text.encode()  # fmt: skip
    for content in (buffer.getvalue(), huge):
        path = tmp_path / "bad.npz"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("about.npy", content)
        with pytest.raises(ValueError, match="no model of this library"):
            load(path)
