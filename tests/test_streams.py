"""What is printed is never a reason to stop computing."""

import io
import subprocess
import sys

import pytest

from pipeline.streams import Tolerant

RUN = ["dataset=diabetes", "boosting.rounds=2", "boosting.trees=3", "initial.trees=3"]


class Broken(io.StringIO):
    def write(self, text):
        raise BrokenPipeError


def test_stream_goes_quiet_when_the_one_behind_it_breaks():
    stream = Tolerant(Broken())
    assert stream.write("lost") == 4
    stream.flush()
    assert stream.stream is None
    assert stream.write("nowhere") == 7


def test_closed_stream_is_no_terminal_and_takes_anything():
    stream = Tolerant(None)
    assert not stream.isatty()
    assert stream.encoding == "utf-8"
    print("x", file=stream)


def test_characters_that_an_encoding_lacks_are_escaped():
    raw = io.BytesIO()
    stream = Tolerant(io.TextIOWrapper(raw, encoding="ascii"))
    stream.write("η")
    stream.flush()
    assert raw.getvalue() == b"\\u03b7"


@pytest.mark.slow
@pytest.mark.parametrize(
    "streams",
    [
        ">/dev/full 2>&-",
        *(
            pytest.param(s, marks=pytest.mark.exhaustive)
            for s in (">&- 2>&-", ">/dev/full", ">&-", "2>&-", "2>/dev/full", "2>&1 | head -1")
        ),
    ],
)
def test_run_is_stored_whatever_becomes_of_its_streams(tmp_path, streams):
    command = " ".join([sys.executable, "-m pipeline", *RUN, f"output_dir={tmp_path}", streams])
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert len(list(tmp_path.glob("paper/runs/diabetes/unit/seed=*/rounds.csv"))) == 1
