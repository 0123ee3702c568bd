"""Docstrings of everything public, by numpydoc's rules."""

import inspect
import subprocess
import sys
from importlib.metadata import version

import pytest
from numpydoc.validate import validate

import pipeline.boosting as library
from pipeline.paths import ROOT

# Matters of layout (GL), optional sections (SA, EX, ES), and one line that need not be one (SS06).
NOT_ASKED = {"GL01", "GL02", "GL03", "SA01", "EX01", "ES01", "SS06"}


def members(owner):
    """Return the methods and properties of a class that are this library's own, documented here."""
    for name, member in inspect.getmembers(owner):
        function = getattr(member, "fget", None) or getattr(member, "__func__", member)
        ours = getattr(function, "__module__", "") or ""
        if not name.startswith("_") and callable(function) and ours.startswith("pipeline"):
            yield name, function


def documented():
    for name in library.__all__:
        value = getattr(library, name)
        if not callable(value):
            continue
        yield name
        if inspect.isclass(value):
            # A method that implements an interface is described there.
            yield from (f"{name}.{m}" for m, function in members(value) if function.__doc__)


@pytest.mark.parametrize("name", list(documented()))
def test_documented_by_numpydocs_rules(name):
    errors = validate(f"pipeline.boosting.{name}")["errors"]
    if name == "Rescaling":  # a protocol has no parameters
        errors = [error for error in errors if error[0] != "PR01"]
    assert [error for error in errors if error[0] not in NOT_ASKED] == []


def test_every_public_method_is_described_somewhere():
    missing = [
        f"{name}.{member}"
        for name in library.__all__
        if inspect.isclass(getattr(library, name))
        for member, _ in members(getattr(library, name))
        if not inspect.getdoc(getattr(getattr(library, name), member))
    ]
    assert missing == []


def test_both_estimators_describe_all_parameters_themselves():
    both = [
        library.MulticalibrationBoostingRegressor,
        library.MulticalibrationBoostingClassifier,
    ]
    for estimator in both:
        for name in inspect.signature(estimator).parameters:
            assert f"\n{name} : " in inspect.getdoc(estimator)


def test_public_names_are_offered_for_completion():
    assert set(library.__all__) <= set(dir(library))
    assert library.__version__ == version("mcgb")


def test_missing_extra_is_named(monkeypatch):
    monkeypatch.setattr(library, "import_module", _no_module)
    with pytest.raises(ImportError, match=r"needs Dask: pip install 'mcgb\[dask\]'"):
        library.__getattr__("DaskMulticalibrationBoostingRegressor")
    with pytest.raises(ModuleNotFoundError):
        library.__getattr__("Unit")


def _no_module(name):
    raise ModuleNotFoundError(name)


def test_reference_shows_what_classes_have_from_their_base(tmp_path):
    code = "import sys; from pathlib import Path; from scripts.docs import write_docs; "
    code += "write_docs(Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, tmp_path], cwd=ROOT, check=True, timeout=120)
    page = (tmp_path / "mcgb.html").read_text()
    for name in ("fit", "save", "score", "predict"):
        assert f'id="MulticalibrationBoostingRegressor.{name}"' in page
    assert "set_fit_request" not in page
