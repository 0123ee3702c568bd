"""Hostile OpenML servers on loopback: bodies without end, bombs, silence, lies, killed drivers."""

import gzip
import http.server
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from pipeline import files
from pipeline.paths import CACHE
from scripts.attack.ground import Tally, ended_well, in_parallel, process, session

TIMEOUT = 12  # seconds that a download may take
DESCRIPTION = """<oml:data_set_description xmlns:oml="http://openml.org/openml">
<oml:id>{id}</oml:id><oml:name>t</oml:name><oml:version>1</oml:version>
<oml:description>t</oml:description><oml:format>ARFF</oml:format>
<oml:upload_date>2020-01-01T00:00:00</oml:upload_date><oml:licence>Public</oml:licence>
<oml:url>{url}</oml:url><oml:file_id>1</oml:file_id>
<oml:default_target_attribute>y</oml:default_target_attribute>
<oml:status>active</oml:status>{extra}</oml:data_set_description>"""


class Server(http.server.BaseHTTPRequestHandler):
    """Behaves as the number of the dataset asked for says."""

    def do_GET(self) -> None:
        """Describe a table, or send something in its place."""
        kind = KINDS[int(self.path.rpartition("/")[2].partition("?")[0]) % len(KINDS)]
        try:
            if self.path.startswith("/body"):
                self._body(kind)
            else:
                self._describe(kind)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def _describe(self, kind: str) -> None:
        number = self.path.rpartition("/")[2]
        if kind == "silent":
            time.sleep(3600)
        if kind == "error 500":
            self.send_error(500)
            return
        assert isinstance(self.server, http.server.HTTPServer)
        url = f"http://127.0.0.1:{self.server.server_port}/body/{number}"
        extra = "<oml:md5_checksum>00</oml:md5_checksum>" if kind == "wrong checksum" else ""
        text = DESCRIPTION.format(id=number, url=url, extra=extra)
        self._send(b"<" * 10**6 if kind == "not XML" else text.encode())

    def _body(self, kind: str) -> None:
        if kind == "gzip bomb":
            block = gzip.compress(b"0" * 2**26)
            self.send_response(200)
            self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            while True:
                self.wfile.write(block)
        if kind in {"endless", "slow"}:
            self.send_response(200)
            self.end_headers()
            while True:
                self.wfile.write(b"1,2\n" * (2**18 if kind == "endless" else 1))
                time.sleep(0.0 if kind == "endless" else 0.5)
        if kind == "cut short":
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            self.wfile.write(b"@relation t\n")
            return
        if kind == "elsewhere":
            self.send_response(302)
            self.send_header("Location", self.path)
            self.end_headers()
            return
        self._send(b"@relation t\n@attribute y numeric\n@data\n\xff\xfe?!\n" if kind == "no ARFF"
                   else b"<html>hello</html>")  # fmt: skip

    def _send(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


KINDS = ("gzip bomb", "endless", "slow", "cut short", "elsewhere", "no ARFF", "a page", "silent",
         "error 500", "wrong checksum", "not XML", "killed driver")  # fmt: skip


def attack(folder: Path, tries: int) -> Tally:
    """``tries`` downloads: one sentence within the limits, nothing left behind."""
    tally = Tally("hostile downloads")
    with _serving() as port:
        in_parallel(
            tally,
            [
                (KINDS[k % len(KINDS)], partial(_one, folder / str(k), port, k))
                for k in range(tries)
            ],
        )
    files.sweep(CACHE)  # as the next download does, after the killed drivers
    left = [p.name for p in CACHE.glob(f"{files.SCRATCH}*")]
    if left:
        tally.wrong.append(f"left {left}")
    tally.identical = "no numbers"
    return tally


@contextmanager
def _serving() -> Iterator[int]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()


def _one(folder: Path, port: int, k: int) -> str | None:
    kind = KINDS[k % len(KINDS)]
    number = 10**6 + k - 10**6 % len(KINDS)  # its remainder names the kind; its cache is its own
    lines = ["dataset=openml", f"dataset.id={number}", f"dataset.timeout={TIMEOUT}",
             f"dataset.server=http://127.0.0.1:{port}/api/v1/xml", f"output_dir={folder}",
             "stage=fetch"]  # fmt: skip
    with process(*lines) as child:
        if kind == "killed driver":
            time.sleep(6)
            os.kill(child.pid, signal.SIGKILL)
            deadline = time.monotonic() + 5
            while [pid for pid in session(child.pid) if pid != child.pid]:
                if time.monotonic() > deadline:
                    return "the download outlives its driver"
                time.sleep(0.1)
            return None
        return ended_well(child, TIMEOUT + 20, [1])


def free_port() -> int:
    """A port nobody listens on, at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
