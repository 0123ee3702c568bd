"""How far a multirun is whose jobs run elsewhere and write to files of their own (submitit)."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline import files

RESULTS = "*/*_result.pkl"
LOOK_UP = 0.5  # seconds
LINES = 10.0  # seconds between lines where there is no terminal


@contextmanager
def watching(folder: Path, total: int | None) -> Iterator[None]:
    """While jobs run, tell how many have ended: each leaves a result in its folder below.

    total : how many there will be, if that is known.
    """
    over = threading.Event()
    before = set(files.find(folder, RESULTS))
    watcher = threading.Thread(target=_watch, args=(folder, before, total, over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _watch(folder: Path, before: set[Path], total: int | None, over: threading.Event) -> None:
    started = said = time.monotonic()
    live, shown = sys.stderr.isatty(), -1
    while True:
        last = over.wait(LOOK_UP)
        now = time.monotonic()
        ended = len(set(files.find(folder, RESULTS)) - before)
        due = live or last or shown < 0 or now - said > LINES
        if due and (ended != shown or live):
            count = ended if total is None else f"{ended}/{total}"
            line = f"[{count}] jobs ended, {now - started:.0f} s; their logs: {folder}"
            print(f"\r{line}" if live else line, end="" if live else "\n", file=sys.stderr)
            shown, said = ended, now
        if last:
            if live:
                print(file=sys.stderr)
            return
