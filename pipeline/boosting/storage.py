"""Fitted models as files without pickle: numbers and words, checked when they are read.

A file is numpy's .npz: an array of bytes, which is a JSON text, and the arrays of the trees. It
holds the correction, and the initial predictor if that is this library's own forest or mean. Any
other model is stored as its owner stores it, and passed to `load`.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from .algorithm import Round
from .arrays import Floats
from .encoding import CategoryCode, Encoding, LevelCode, NumberCode
from .engines.exact.engine import exact_nodes
from .engines.nodes import Nodes, OfTrees, TreeEnsemble, add_up, forest_nodes
from .forest import ExactRandomForestRegressor
from .stopping import Gain
from .trajectories import FEEDBACK, Trajectory

VERSION = 1
CODES = {code.__name__: code for code in (NumberCode, LevelCode, CategoryCode)}
ARRAYS = ("nodes", "roots", "sets", "bounds")
SEES = ("table", "indicators", "matrix")
_CURVES = ("weights_", "gaps_", "losses_", "validation_scores_")


class StoredForest(BaseEstimator):  # type: ignore[misc]
    """An initial forest that was read from a file: its mean, or the probability of each class.

    trees : of more than two classes those of each, otherwise one, for y or the second class.
    """

    def __init__(self, trees: tuple[Nodes, ...], classes: Any = None) -> None:
        self.trees = trees
        self.classes = classes

    @property
    def classes_(self) -> Any:
        """The labels, of a forest of classes."""
        return self.classes

    def predict(self, X: Any) -> Floats:
        """Return the mean of the trees, (n,), for a matrix of numbers (n, d)."""
        return self._means(X)[0]

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of all classes, (n, classes)."""
        found = self._means(X)
        return np.column_stack(found if len(found) > 1 else [1.0 - found[0], found[0]])

    def _means(self, X: Any) -> list[Floats]:
        rows, found = np.ascontiguousarray(X, np.float64), []
        for trees in self.trees:
            found.append(np.empty(len(rows)))
            add_up(trees, rows, np.zeros(len(rows)), found[-1])
        return found


def save(model: Any, path: str | Path) -> None:
    """Write a fitted estimator to a file; see `MulticalibrationBoosting.save`."""
    arrays: dict[str, Any] = {}
    about = {"format": "mcgb", "version": VERSION, **_about(model, "", arrays)}
    text = np.frombuffer(json.dumps(about).encode(), np.uint8)
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(f"{Path(path).parent}: there is no such folder")
    # Whole or not at all: a process that is ended meanwhile leaves an earlier file as it was.
    scratch = Path(path).with_name(f".{Path(path).name}-{os.getpid()}")
    try:
        with scratch.open("wb") as file:
            np.savez_compressed(file, about=text, **arrays)
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def _about(model: Any, prefix: str, arrays: dict[str, Any]) -> dict[str, Any]:
    """Return what is told of a model in words; its trees are added to the arrays."""
    given = model.get_params(deep=False).items()
    corrections = getattr(model, "corrections_", ())
    trajectories = getattr(model, "trajectories_", ())
    return {
        "estimator": type(model).__name__,
        "parameters": {k: v for k, v in given if isinstance(v, bool | int | float | str | None)},
        "n_features_in": model.n_features_in_,
        "feature_names_in": list(getattr(model, "feature_names_in_", [])),
        "classes": model.classes_.tolist() if hasattr(model, "classes_") else None,
        "encoding": [{"code": type(c).__name__, **asdict(c)} for c in model.encoding_.codes],
        "init": _init_described(model, f"{prefix}init", arrays),
        "init_sees": getattr(model, "_init_sees", "table"),
        "best_round": model.best_round_,
        "gain": asdict(model.gain_) if getattr(model, "gain_", None) else None,
        "trajectories": [
            _described(one, f"{prefix}{k}", arrays) for k, one in enumerate(trajectories)
        ],
        "curves": {n: getattr(model, n).tolist() for n in _CURVES if hasattr(model, n)},
        "corrections": [
            _about(one, f"{prefix}class{k}-", arrays) for k, one in enumerate(corrections)
        ],
    }


def restore(path: str | Path, kinds: Sequence[type], init: Any = None) -> Any:
    """Return the estimator, of one of some classes, in a file; see `mcgb.load`."""
    try:
        with np.load(Path(path), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(arrays.pop("about").tobytes())
        if about["format"] != "mcgb":
            raise KeyError("format")
    except OSError:
        raise
    except Exception as error:  # numpy, zip and JSON have a dozen for files that they do not know
        raise ValueError(f"{path}: is no model of this library, or damaged") from error
    if about["version"] > VERSION:
        raise ValueError(
            f"{path}: was written by a newer version (format {about['version']}; this one reads "
            f"formats up to {VERSION})"
        )
    try:
        return _restored(about, "", arrays, kinds, init)
    except (KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
        raise ValueError(f"{path}: is damaged ({error!r})") from None


def _described(trajectory: Trajectory, name: str, arrays: dict[str, Any]) -> dict[str, Any]:
    """Return a trajectory without its trees, which are added to the arrays."""
    if trajectory.rounds:
        _put(arrays, name, Nodes.joined(round_trees(trajectory)))
        arrays[f"{name}_gains"] = np.array([step.ensemble.gains() for step in trajectory.rounds])
    return {
        "eta": trajectory.eta,
        "feedback": trajectory.feedback,
        "start": trajectory.start,
        "share": trajectory.share,
        "weights": [float(step.weight) for step in trajectory.rounds],
        "gaps": [float(step.gap) for step in trajectory.rounds],
    }


def round_trees(trajectory: Trajectory) -> list[Nodes]:
    """Return the trees of each round; raise ValueError if the rounds are not trees."""
    ensembles = [step.ensemble for step in trajectory.rounds]
    trees = [ensemble.nodes() for ensemble in ensembles if isinstance(ensemble, OfTrees)]
    if len(trees) < len(ensembles):
        raise ValueError(
            f"{type(ensembles[0]).__name__} cannot be stored or exported; rounds of the engines "
            "'lightgbm', 'lightgbm_lossless' and 'exact' can"
        )
    return trees


def init_kind(model: Any) -> str:
    """Return what a model starts from: "none" (given predictions), "mean", "user" or "forest"."""
    init = model.init_
    if init is None:
        return "none"
    if isinstance(init, DummyRegressor) and init.strategy == "constant":
        return "mean"
    return "user" if model.init is not None and model._init_sees == "table" else "forest"


def _init_described(model: Any, name: str, arrays: dict[str, Any]) -> Any:
    """Return what is stored of the initial predictor: nothing, a mean, trees, or whose it is."""
    kind = init_kind(model)
    if kind != "forest":
        mean = float(np.ravel(model.init_.constant_)[0]) if kind == "mean" else None
        return {"none": None, "mean": mean, "user": "user"}[kind]
    trees = forest_trees(model.init_)
    for k, one in enumerate(trees):
        _put(arrays, f"{name}{k}", one)
    return {"forests": len(trees)}


def forest_trees(forest: Any) -> tuple[Nodes, ...]:
    """Return the trees of a forest as `StoredForest` has them."""
    if isinstance(forest, StoredForest):
        return forest.trees
    if isinstance(forest, ExactRandomForestRegressor):
        trees = forest.forest_.trees
        return (exact_nodes(trees, 1.0 / forest.n_estimators, forest.forest_.mean),)
    if isinstance(forest, RandomForestClassifier) and len(forest.classes_) > 2:
        return tuple(forest_nodes(forest, k) for k in range(len(forest.classes_)))
    if isinstance(forest, RandomForestRegressor | RandomForestClassifier):
        return (forest_nodes(forest, -1),)
    return (forest.trees_.nodes(),)  # LightGBM's


def _restored(
    about: Mapping[str, Any],
    prefix: str,
    arrays: Mapping[str, Any],
    kinds: Sequence[type],
    init: Any,
) -> Any:
    kind: Any = {k.__name__: k for k in kinds}[about["estimator"]]
    known = set(kind().get_params(deep=False))
    model = kind(**{k: v for k, v in about["parameters"].items() if k in known})
    codes: list[dict[str, Any]] = [
        {k: tuple(v) if isinstance(v, list) else v for k, v in code.items()}
        for code in about["encoding"]
    ]
    model.encoding_ = Encoding(tuple(CODES[code.pop("code")](**code) for code in codes))
    n_columns = len(model.encoding_.names)
    model.n_features_in_ = int(about["n_features_in"])
    if about["feature_names_in"]:
        model.feature_names_in_ = np.array(about["feature_names_in"], dtype=object)
    if about["classes"] is not None:
        model.classes_ = np.array(about["classes"])
    model._init_sees = about["init_sees"]
    if model._init_sees not in SEES or len(codes) != model.n_features_in_:
        raise KeyError("init_sees")
    stored = about["init"]
    if (stored == "user") != (init is not None):
        raise ValueError(
            "init: is needed, the fitted model that was corrected"
            if init is None
            else "init: this file needs none"
        )
    model.init_ = init
    if isinstance(stored, dict):
        width = n_columns
        if model._init_sees == "indicators":
            width = model.encoding_.expanded(np.zeros((1, n_columns))).shape[1]
        classes = getattr(model, "classes_", None)
        names = [f"{prefix}init{k}" for k in range(stored["forests"])]
        trees = tuple(_taken(arrays, name, width) for name in names)
        if len(trees) not in ((1,) if classes is None or len(classes) == 2 else (len(classes),)):
            raise KeyError("init")
        model.init_ = StoredForest(trees, classes)
    elif isinstance(stored, float):
        mean = DummyRegressor(strategy="constant", constant=stored)
        model.init_ = mean.fit([[0.0]], [0.0])
    model.trajectories_ = tuple(
        _trajectory(one, f"{prefix}{k}", arrays, n_columns)
        for k, one in enumerate(about["trajectories"])
    )
    if about["classes"] is not None:
        model.corrections_ = tuple(
            _restored(one, f"{prefix}class{k}-", arrays, kinds, None)
            for k, one in enumerate(about["corrections"])
        )
        if len(model.corrections_) not in (0, len(model.classes_)):
            raise KeyError("corrections")
    model.best_round_ = int(about["best_round"])
    model.gain_ = Gain(**about["gain"]) if about["gain"] else None
    for name in _CURVES:
        if name in about["curves"]:
            setattr(model, name, np.array(about["curves"][name], np.float64))
    return model


def _trajectory(
    about: Mapping[str, Any], name: str, arrays: Mapping[str, Any], n_columns: int
) -> Trajectory:
    weights, gaps = (np.array(about[name], np.float64) for name in ("weights", "gaps"))
    rounds: list[Round] = []
    if len(weights):
        trees, gains = _taken(arrays, name, n_columns), arrays[f"{name}_gains"]
        if not len(weights) == len(gaps) == len(gains) == len(trees.bounds) - 1:
            raise KeyError("rounds")
        rounds = [
            Round(TreeEnsemble(some, gain), float(weight), float(gap))
            for some, gain, weight, gap in zip(trees.split(), gains, weights, gaps, strict=True)
        ]
    if about["feedback"] not in FEEDBACK:
        raise KeyError("feedback")
    start = None if about["start"] is None else float(about["start"])
    return Trajectory(
        tuple(rounds), float(about["eta"]), about["feedback"], start, float(about["share"])
    )


def _put(arrays: dict[str, Any], name: str, trees: Nodes) -> None:
    arrays.update({f"{name}_{part}": getattr(trees, part) for part in ARRAYS})


def _taken(arrays: Mapping[str, Any], name: str, n_columns: int) -> Nodes:
    """Return trees that compiled code can follow on rows of so many columns."""
    found = Nodes(*(arrays[f"{name}_{part}"] for part in ARRAYS))
    for array, kind in zip(ARRAYS, Nodes.joined([]), strict=True):
        given = getattr(found, array)
        if given.dtype != np.asarray(kind).dtype or given.ndim != 1:
            raise KeyError(array)
    found.check(n_columns)
    return found
