"""The library as people install it: a wheel under its own name, and the examples of its page."""

import email
import subprocess
import sys
import venv
import zipfile

import pytest

from pipeline.paths import ROOT

pytestmark = pytest.mark.slow

NEEDS = {
    "joblib", "lightgbm", "numba", "numpy", "pandas", "scikit-learn", "scipy", "tqdm",
}  # fmt: skip
MOST_BYTES = 300_000


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "-w", str(folder), str(ROOT)], check=True, timeout=120)
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def python(wheel):
    """An environment with the wheel; its dependencies are borrowed from this one."""
    folder = wheel.parent / "env"
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, str(wheel)], check=True, timeout=120)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(next(p for p in sys.path if p.endswith("site-packages")))
    return python


def run(python, *arguments, cwd):
    done = subprocess.run(
        [python, *arguments], cwd=cwd, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_wheel_holds_the_library_alone(wheel):
    with zipfile.ZipFile(wheel) as archive:
        folders = {name.split("/")[0] for name in archive.namelist()}
        (metadata,) = (n for n in archive.namelist() if n.endswith("METADATA"))
        words = email.message_from_bytes(archive.read(metadata))
        assert not any("peers" in name for name in archive.namelist())
    assert folders == {"mcgb", f"mcgb-{words['Version']}.dist-info"}
    always = [line for line in words.get_all("Requires-Dist") if "extra ==" not in line]
    assert {line.split(">")[0].strip() for line in always} == NEEDS
    assert wheel.stat().st_size < MOST_BYTES
    assert words.get_payload().startswith("# mcgb")


def test_examples_of_its_page_run_where_a_folder_is_called_pipeline(python, tmp_path):
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "pipeline" / "__init__.py").write_text("raise ImportError('a user has this name')")
    run(python, "-m", "doctest", str(ROOT / "pipeline" / "boosting" / "README.md"), cwd=tmp_path)


def test_examples_of_docstrings_run(python, tmp_path):
    code = """
        import doctest, importlib, mcgb
        modules = [importlib.import_module("mcgb." + name) for name in mcgb._MODULES]
        results = [doctest.testmod(module) for module in modules]
        print(sum(r.attempted for r in results), sum(r.failed for r in results))
    """
    attempted, failed = run(python, "-c", _lines(code), cwd=tmp_path).split()[-2:]
    assert int(attempted) > 5
    assert failed == "0"


def _lines(code):
    return "\n".join(line.strip() for line in code.strip().splitlines())


def test_import_brings_nothing_of_the_replication_along(python, tmp_path):
    code = """
        import sys, mcgb
        mcgb.audit_predictions, mcgb.MulticalibrationBoostingClassifier
        heavy = {"hydra", "openml", "bokeh", "matplotlib", "distributed", "pipeline", "lightgbm"}
        print(sorted(heavy & set(sys.modules)))
    """
    assert run(python, "-c", _lines(code), cwd=tmp_path).strip() == "[]"
