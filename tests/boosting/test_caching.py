"""Compiled code finds a place, and is compiled again where its sources have changed."""

import importlib.util
import os
import subprocess
import sys

from pipeline.boosting import caching
from pipeline.paths import ROOT


def test_private_folder_is_used_where_neither_usual_place_can_be_written(monkeypatch, tmp_path):
    monkeypatch.setattr(caching, "_writable", lambda folder: False)
    monkeypatch.setattr(caching.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    caching.find_cache()
    folder = tmp_path / f"mcgb-{os.getuid()}"
    assert os.environ["NUMBA_CACHE_DIR"] == str(folder)
    assert folder.stat().st_mode & 0o077 == 0


def test_folder_that_others_could_have_filled_is_not_trusted(monkeypatch, tmp_path):
    monkeypatch.setattr(caching.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(caching.tempfile, "mkdtemp", lambda prefix: f"{prefix}fresh")
    folder = tmp_path / f"mcgb-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    assert caching._private_folder() == "mcgb-fresh"


def test_choice_of_the_user_and_writable_places_are_left_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", "mine")
    caching.find_cache()
    assert os.environ["NUMBA_CACHE_DIR"] == "mine"
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    caching.find_cache()
    assert "NUMBA_CACHE_DIR" not in os.environ  # this checkout can be written to


def test_code_that_is_older_than_a_source_is_compiled_again(monkeypatch, tmp_path):
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "cache"))
    path, called = tmp_path / "entry.py", tmp_path / "called.py"
    path.write_text("from numba import njit\n@njit(cache=True)\ndef one():\n    return 1\n")
    called.write_text("")
    spec = importlib.util.spec_from_file_location("entry", path)
    entry = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(entry)
    assert entry.one() == 1
    (index,) = (tmp_path / "cache").rglob("*.nbi")
    compiled = index.stat().st_mtime
    os.utime(called, (compiled - 9, compiled - 9))
    caching.forget_outdated(entry.one, [called])
    assert index.exists()
    os.utime(called, (compiled + 9, compiled + 9))
    caching.forget_outdated(entry.one, [called])
    assert not index.exists()


def test_compilation_is_announced_once_for_each_part(monkeypatch, tmp_path):
    code = """
import numpy as np, mcgb
mcgb.multicalibration_error(np.arange(40.0)[:, None], np.ones(40), np.ones(40))
mcgb.multicalibration_error(np.arange(50.0)[:, None], np.ones(50), np.ones(50))
"""
    (tmp_path / "mcgb").symlink_to(ROOT / "pipeline" / "boosting")
    first, second = (
        subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}, timeout=300,
        ).stderr
        for _ in range(2)
    )  # fmt: skip
    assert first == "mcgb: compiling the audit (once, some 5 seconds) ...\n"
    assert second == ""


def test_a_user_without_a_home_has_no_place_there(monkeypatch, tmp_path):
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pathlib.Path.expanduser", _no_home)
    assert not caching._writable(caching.Path("~/.cache") / "numba")


def _no_home(path):
    raise RuntimeError("Could not determine home directory.")
