"""Files are written whole or not at all."""

import contextlib
import resource
import signal
import sys
import threading

import pytest

from pipeline import files


def test_failure_leaves_the_earlier_file_and_nothing_else(tmp_path):
    path = tmp_path / "report.html"
    files.write_text(path, "good")
    with contextlib.suppress(RuntimeError), files.replacing(path) as scratch:
        scratch.write_text("half")
        raise RuntimeError
    assert path.read_text() == "good"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_scratch_keeps_the_suffix_by_which_libraries_know_the_format(tmp_path):
    with files.replacing(tmp_path / "a.parquet") as scratch:
        assert scratch.suffix == ".parquet"
        scratch.write_text("x")


def test_folders_that_come_and_go_meanwhile_are_no_error(tmp_path):
    over = threading.Event()

    def come_and_go():
        while not over.is_set():
            (tmp_path / "other").mkdir()
            (tmp_path / files.SCRATCH).mkdir()
            (tmp_path / "other").rmdir()
            (tmp_path / files.SCRATCH).rmdir()

    (tmp_path / "kept" / "seed=1").mkdir(parents=True)
    other = threading.Thread(target=come_and_go)
    other.start()
    try:
        found = {tuple(files.find(tmp_path, "*/seed=*")) for _ in range(3000)}
    finally:
        over.set()
        other.join()
    assert found == {(tmp_path / "kept" / "seed=1",)}


@pytest.mark.slow
def test_limit_on_the_size_of_files_keeps_the_report_and_is_one_sentence(
    smoke, report_plan, command
):
    before = {p: p.read_bytes() for p in smoke.rglob("*") if p.is_file()}

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
        sys.dont_write_bytecode = True  # which would be cut off at the limit

    lines = [*report_plan(smoke.parent).overrides, "stage=report"]
    done = command(*lines, before=limit)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: output_dir: cannot write to")
    assert "Traceback" not in done.stderr
    assert {p: p.read_bytes() for p in smoke.rglob("*") if p.is_file()} == before
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 20000  # the child's limit only


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("eta=0.3+seeds=[0, 1]", "eta=0.3+seeds=0,1"),
        ("outputs/paper-../up", "outputs_paper-.._up"),
        ("'quoted' {a:1}", "quoteda_1"),
        ("../", ""),
    ],
)
def test_slug_holds_what_any_file_system_takes(text, name):
    assert files.slug(text) == name


def test_slugs_that_are_cut_stay_apart():
    one, two = files.slug("x" * 200), files.slug("x" * 201)
    assert one != two
    assert len(one) == 120 + 9
