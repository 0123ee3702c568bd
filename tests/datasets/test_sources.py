"""Every source gives the same table or one clear sentence; the OpenML client is the real one."""

import datetime
import decimal
import hashlib
import http.server
import socket
import threading

import numpy as np
import pandas as pd
import pytest

from pipeline.config.compose import load
from pipeline.config.schema import PAPERS
from pipeline.datasets import library as shelves
from pipeline.datasets import openml, sources
from pipeline.datasets.canonical import canonicalise, content_hash
from pipeline.datasets.manifest import manifest
from pipeline.datasets.sources import fetch, read_bundled
from pipeline.errors import DataError
from pipeline.paths import DATA

BUNDLED = [name for name, spec in manifest().items() if spec.file]


# --- bundled, scikit-learn, files ------------------------------------------------------------


@pytest.mark.parametrize("name", PAPERS)
def test_default_source_gives_the_manifests_table(dataset, name):
    table, spec = fetch(dataset(name)), manifest()[name]
    assert table.sha256 == spec.content_sha256
    assert table.frame.shape == (spec.rows, len(spec.columns))
    assert tuple(table.frame.columns) == spec.columns
    assert pd.get_dummies(table.frame, drop_first=True).shape[1] == spec.encoded_width


def test_snapshot_is_small():
    assert sum(p.stat().st_size for p in DATA.glob("*.*")) < 2.5e6


def test_known_cells_survive():
    adult = read_bundled("adult")
    assert list(adult.iloc[0])[:5] == [39, "State-gov", 77516, "Bachelors", 13]
    assert int((adult == "?").sum().sum()) == 4262
    assert read_bundled("german").iloc[1]["credit_amount"] == 5951
    assert read_bundled("california")["AveRooms"].iloc[0] == 6.984126984126984
    assert int(read_bundled("crime").isna().sum().sum()) == 39202


def test_damaged_snapshot_is_noticed(tmp_path, monkeypatch):
    for file in DATA.glob("*.*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "german.data.xz").write_bytes((tmp_path / "crime.csv.xz").read_bytes())
    monkeypatch.setattr(sources, "DATA", tmp_path)
    with pytest.raises(DataError, match=r"german.data.xz is damaged: .* instead of b21f3d81db80"):
        read_bundled("german")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("name", BUNDLED)
def test_users_copy_of_a_paper_dataset_is_recognised_by_content(dataset, name, suffix, tmp_path):
    path = tmp_path / f"copy.{suffix}"
    frame = read_bundled(name)
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    table = fetch(dataset(name, "dataset.source=file", f"dataset.path={path}"))
    assert table.sha256 == manifest()[name].content_sha256


def test_altered_copy_is_refused_with_column_and_number_of_cells(dataset, tmp_path):
    frame = read_bundled("german")
    frame.loc[[3, 5, 8], "age"] += 1
    frame.loc[7, "housing"] = "A999"
    frame.to_csv(tmp_path / "g.csv", index=False)
    with pytest.raises(DataError, match="age in 3 of 1000 cells, housing in 1 of 1000 cells"):
        fetch(dataset("german", "dataset.source=file", f"dataset.path={tmp_path / 'g.csv'}"))


def test_copy_with_rows_missing_is_refused_with_the_count(dataset, tmp_path):
    read_bundled("german").iloc[:990].to_csv(tmp_path / "g.csv", index=False)
    with pytest.raises(DataError, match="990 rows instead of 1000"):
        fetch(dataset("german", "dataset.source=file", f"dataset.path={tmp_path / 'g.csv'}"))


def test_own_table_keeps_numbers_flags_and_words(dataset, tmp_path):
    frame = pd.DataFrame({"n": [1.5, np.nan], "flag": [True, False], "w": ["a", None], "y": [1, 2]})
    frame.to_parquet(tmp_path / "my table.parquet")
    chosen = dataset("file", f"dataset.path='{tmp_path}/my table.parquet'", "dataset.target=y")
    table = fetch(chosen)
    assert chosen.label == "my-table"
    assert list(table.frame["flag"]) == [1.0, 0.0]
    assert list(table.frame["w"]) == ["a", "?"]
    assert np.isnan(table.frame["n"][1])


def test_rows_with_a_field_more_than_the_header_are_refused(dataset, tmp_path):
    (tmp_path / "x.csv").write_text("a,b,y\n" + "1,2,3,4\n" * 5)
    chosen = dataset("file", f"dataset.path={tmp_path}/x.csv", "dataset.target=y")
    with pytest.raises(DataError, match=r"x\.csv: its rows have more fields"):
        fetch(chosen)


def test_a_target_that_openml_chose_is_part_of_what_a_run_depends_on(dataset, monkeypatch):
    targets = {77: "y", 78: "a"}

    def served(chosen):
        target = chosen.target_columns or (targets[chosen.id],)
        return sources.RawTable(pd.DataFrame(), "the same table", "", target)

    monkeypatch.setattr(shelves, "fetch", served)
    ours, theirs, named = (
        shelves.Library().sha256(dataset("openml", *overrides))
        for overrides in (
            ["dataset.id=77"],
            ["dataset.id=78"],
            ["dataset.id=78", "dataset.target=a"],
        )
    )
    assert ours != theirs
    assert named == "the same table"  # what the user names is in a run's key already


def test_unreadable_file_is_named(dataset, tmp_path):
    (tmp_path / "x.parquet").write_text("not parquet")
    with pytest.raises(DataError, match=r"x.parquet cannot be read as parquet"):
        fetch(dataset("file", f"dataset.path={tmp_path}/x.parquet", "dataset.target=y"))


@pytest.mark.parametrize("source", ["sklearn", "bundled"])
def test_source_without_the_dataset_says_which_it_has(dataset, source):
    name = "german" if source == "sklearn" else "diabetes"
    with pytest.raises(DataError, match=r"has (only diabetes|california)"):
        fetch(dataset(name, f"dataset.source={source}"))


def test_content_hash_sees_values_names_order_and_kinds_but_not_zero_signs():
    table = pd.DataFrame({"a": [0.0, 1.0], "b": ["u", "v"]})
    same = canonicalise(pd.DataFrame({"a": [-0.0, 1.0], "b": pd.Categorical(["u", "v"])}))
    assert content_hash(canonicalise(table)) == content_hash(same)
    others = [
        table.rename(columns={"a": "c"}),
        table[["b", "a"]],
        table.iloc[::-1].reset_index(drop=True),
        table.assign(a=[0.0, 2.0]),
        table.assign(a=["0", "1"]),
        table.assign(b=["uv", ""]),
    ]
    hashes = {content_hash(canonicalise(t)) for t in [table, *others]}
    assert len(hashes) == 1 + len(others)


# --- OpenML: the real client against a server on loopback -------------------------------------

DESCRIPTION = """<oml:data_set_description xmlns:oml="http://openml.org/openml">
<oml:id>{id}</oml:id><oml:name>t</oml:name><oml:version>1</oml:version>
<oml:description>d</oml:description><oml:format>ARFF</oml:format>
<oml:upload_date>2020-01-01T00:00:00</oml:upload_date><oml:licence>Public</oml:licence>
<oml:url>http://127.0.0.1:{port}/arff/{id}</oml:url><oml:file_id>{id}</oml:file_id>
<oml:default_target_attribute>{target}</oml:default_target_attribute>
<oml:visibility>public</oml:visibility><oml:status>active</oml:status>
<oml:processing_date>2020-01-01</oml:processing_date>
<oml:md5_checksum>{md5}</oml:md5_checksum></oml:data_set_description>"""

UNKNOWN = """<oml:error xmlns:oml="http://openml.org/openml"><oml:code>111</oml:code>
<oml:message>Unknown dataset</oml:message></oml:error>"""


class OpenmlServer:
    """As much of OpenML's API as the client asks for, with faults to order."""

    def __init__(self):
        self.tables, self.fault = {}, None
        self.release = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.answer(self)

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.http.server_port
        self.url = f"http://127.0.0.1:{self.port}/api/v1/xml"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def answer(self, request):
        if self.fault == "hang":
            self.release.wait(60)
        number = int(request.path.rstrip("/").rpartition("/")[2])
        if number not in self.tables:
            return self.send(request, 412, UNKNOWN.encode())
        arff, target = self.tables[number]
        if "/arff/" in request.path:
            return self.send(request, 200, arff, cut=self.fault == "truncate")
        md5 = hashlib.md5(arff if self.fault != "checksum" else b"else").hexdigest()
        text = DESCRIPTION.format(id=number, port=self.port, target=target, md5=md5)
        return self.send(request, 200, text.encode())

    @staticmethod
    def send(request, status, body, cut=False):
        request.send_response(status)
        request.send_header("Content-Type", "text/xml; charset=utf-8")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body[: len(body) // 2] if cut else body)


@pytest.fixture
def server():
    server = OpenmlServer()
    yield server
    server.release.set()
    server.http.shutdown()


def arff(frame, categories):
    lines = ["@RELATION t"]
    for name in frame.columns:
        if name in categories:
            levels = ",".join(f"'{v}'" for v in sorted(frame[name].unique()) if v != "?")
            lines.append(f"@ATTRIBUTE '{name}' {{{levels}}}")
        else:
            lines.append(f"@ATTRIBUTE '{name}' REAL")
    lines.append("@DATA")
    for row in frame.itertuples(index=False):
        cells = zip(frame.columns, row, strict=True)
        lines.append(
            ",".join(
                "?" if v == "?" or v != v else f"'{v}'" if c in categories else repr(v)
                for c, v in cells
            )
        )
    return "\n".join(lines).encode()


def as_openml_has_it(name):
    """The bundled table with OpenML's column names, spelled-out levels and raw columns."""
    spec, frame = manifest()[name], read_bundled(name)
    for column, levels in spec.openml.levels.items():
        frame[column] = frame[column].map({code: text for text, code in levels.items()})
    return frame.rename(columns=dict(spec.openml.names))


TINY = (
    b"@RELATION t\n@ATTRIBUTE a REAL\n@ATTRIBUTE c {u,v}\n@ATTRIBUTE y REAL\n@DATA\n"
    + b"\n".join(b"%d,u,%d" % (i, i) for i in range(50))
)


def tiny(server, *overrides):
    lines = ["dataset=openml", "dataset.id=77", f"dataset.server='{server.url}'"]
    return load([*lines, *overrides]).dataset


@pytest.mark.parametrize("name", ["german", pytest.param("adult", marks=pytest.mark.exhaustive)])
def test_openml_version_ends_as_the_same_canonical_table(dataset, name, server, tmp_path):
    spec = manifest()[name]
    frame = as_openml_has_it(name)
    categories = {spec.openml.names.get(c, c) for c in spec.categories}
    server.tables[spec.openml.id] = (arff(frame, categories), "class")
    chosen = dataset(name, "dataset.source=openml", f"dataset.server='{server.url}'")
    table = fetch(chosen, tmp_path)
    assert table.sha256 == spec.content_sha256
    assert table.target == chosen.target_columns


def test_raw_california_columns_turn_into_sklearns_bit_for_bit():
    households, rooms = np.array([126.0, 1138.0]), np.array([880.0, 7099.0])
    raw = pd.DataFrame(
        {
            "longitude": [-122.23, -122.22],
            "latitude": [37.88, 37.86],
            "housingMedianAge": [41.0, 21.0],
            "totalRooms": rooms,
            "totalBedrooms": [129.0, 1106.0],
            "population": [322.0, 2401.0],
            "households": households,
            "medianIncome": [8.3252, 8.3014],
            "medianHouseValue": [452600.0, 358500.0],
        }
    )
    ours = canonicalise(raw, manifest()["california"])
    pd.testing.assert_frame_equal(ours, read_bundled("california").iloc[:2], check_exact=True)


def test_any_openml_dataset_works_and_is_downloaded_once(server, tmp_path):
    server.tables[77] = (TINY, "y")
    table = fetch(tiny(server), tmp_path)
    assert table.target == ("y",)
    assert table.frame.shape == (50, 3)
    server.fault = "hang"  # a second download would wait for ever
    assert fetch(tiny(server, "dataset.target=a"), tmp_path).target == ("a",)


FAULTS = {
    "checksum": "does not match the md5 checksum",
    "truncate": "broke off|md5 checksum",
    "hang": r"did not deliver it within dataset.timeout=4 s",
}


@pytest.mark.parametrize(
    "fault",
    ["hang", *(pytest.param(f, marks=pytest.mark.exhaustive) for f in ("checksum", "truncate"))],
)
def test_fault_gives_one_sentence_leaves_nothing_and_is_over_when_the_server_is_back(
    fault, server, tmp_path
):
    server.tables[77] = (TINY, "y")
    server.fault = fault
    with pytest.raises(DataError, match=FAULTS[fault]) as caught:
        fetch(tiny(server, f"dataset.timeout={4 if fault == 'hang' else 60}"), tmp_path)
    assert str(caught.value).startswith("OpenML dataset 77: ")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    server.release.set()
    server.fault = None
    assert len(fetch(tiny(server), tmp_path).frame) == 50


@pytest.mark.exhaustive
def test_unknown_number_is_said_to_be_unknown(server, tmp_path):
    with pytest.raises(DataError, match="knows no dataset with that number"):
        fetch(tiny(server), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_server_that_is_gone_is_said_to_be_unreachable(dataset, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/api/v1/xml"
    chosen = dataset("openml", "dataset.id=77", f"dataset.server='{url}'")
    with pytest.raises(DataError, match="cannot be reached"):
        fetch(chosen, tmp_path)
    assert list(tmp_path.iterdir()) == []


# --- tables that are neither numbers nor levels ------------------------------------------------


def file_of(tmp_path, frame):
    path = tmp_path / "t.parquet"
    frame.to_parquet(path)
    return [f"dataset.path={path}", "dataset.target=y"]


DAYS = [datetime.date(2020, 1, d + 1) for d in range(25)]
OTHERS = {
    "dates or times": DAYS,
    "durations": pd.to_timedelta(np.arange(25), unit="h"),
    "lists or records": [[i] for i in range(25)],
    "bytes": [bytes([i]) for i in range(25)],
}


@pytest.mark.parametrize("words", list(OTHERS))
def test_column_that_is_neither_number_nor_level_is_refused_and_can_be_left_out(
    dataset, tmp_path, words
):
    lines = file_of(tmp_path, pd.DataFrame({"c": OTHERS[words], "y": np.arange(25.0)}))
    with pytest.raises(DataError, match=rf"column 'c' holds {words}.*dataset.drop=\[c\]"):
        fetch(dataset("file", *lines))
    table = fetch(dataset("file", *lines, "dataset.drop=[c]"))
    assert list(table.frame.columns) == ["c", "y"]


def test_words_that_are_nearly_all_numbers_are_pointed_out(dataset, tmp_path, caplog):
    frame = pd.DataFrame({"c": [*map(str, range(24)), "oops"], "y": np.arange(25.0)})
    with caplog.at_level("WARNING", logger="pipeline"):
        fetch(dataset("file", *file_of(tmp_path, frame)))
    assert "column 'c' holds numbers but for some cells (such as 'oops')" in caplog.text


def test_decimals_and_large_integers_are_numbers(dataset, tmp_path):
    decimals = [decimal.Decimal("1.5"), None, decimal.Decimal("2.25")]
    table = fetch(
        dataset("file", *file_of(tmp_path, pd.DataFrame({"c": decimals, "y": [1, 2, 3]})))
    )
    np.testing.assert_array_equal(table.frame["c"], [1.5, np.nan, 2.25])
    (tmp_path / "big.csv").write_text(f"c,y\n{10**30},1\n{10**30 + 10**15},2\n")
    big = fetch(dataset("file", f"dataset.path={tmp_path}/big.csv", "dataset.target=y"))
    np.testing.assert_array_equal(big.frame["c"], [1e30, 1e30 + 1e15])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a,y\n", "has no rows"),
        (b"a,y\n1,\x002\n", "NUL bytes"),
        (b"a,y\n\xe9,2\n", "UTF-8"),
        (b"a,a,y\n1,2,3\n", "two columns are called 'a'"),
        (b"a,y\n" + b"".join(b"%d,2,3\n" % i for i in range(9)), "more fields"),
        (b"a,y\n2020-01-02,1\n2020-01-03,2\n", "column 'a' holds dates"),
    ],
)
def test_file_that_pandas_would_read_as_something_else_is_refused(
    dataset, tmp_path, content, words
):
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(DataError, match=words):
        fetch(dataset("file", f"dataset.path={tmp_path}/x.csv", "dataset.target=y"))


def test_table_whose_cached_bytes_changed_is_downloaded_again(tmp_path, monkeypatch, dataset):
    calls = []

    def download(number, server, timeout, destination):
        calls.append(number)
        frame = pd.DataFrame({"a": [1.0, 2.0], "y": [3.0, 4.0]})
        frame.to_parquet(destination)
        digest = hashlib.sha256(destination.read_bytes()).hexdigest()
        openml._digest_file(destination).write_text(digest)

    monkeypatch.setattr(openml, "_download", download)
    chosen = dataset("openml", "dataset.id=77", "dataset.target=y")
    first = fetch(chosen, tmp_path)
    fetch(chosen, tmp_path)
    assert calls == [77]
    (cached,) = tmp_path.glob("*.parquet")
    raw = bytearray(cached.read_bytes())
    raw[len(raw) // 2] ^= 1
    cached.write_bytes(raw)
    assert fetch(chosen, tmp_path).sha256 == first.sha256
    assert calls == [77, 77]
