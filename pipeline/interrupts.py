"""What Ctrl-C does: end at once with one line, or stop a grid in an orderly way.

A `KeyboardInterrupt` may surface anywhere, also inside a library's constructor or a callback from
compiled code, where it is swallowed or leaves half-made objects that complain at exit. Nothing here
needs unwinding (a run is stored whole or not at all), so the process simply ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

from pipeline.errors import Interrupted

MESSAGE = "interrupted; what was stored stays, and the same command goes on"


def end_at_once() -> None:
    """From now on, Ctrl-C prints one line and ends this process."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _end)


def follow(leader: int) -> None:
    """In a child process: leave Ctrl-C to the leading process, and end when that is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == leader:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def noted() -> Iterator[Callable[[], bool]]:
    """Inside, the first Ctrl-C is only noted, for who asks; the second ends this process at once.

    Gives a function that tells whether it came. Nothing happens in processes forked from here.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    owner, asked = os.getpid(), False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if os.getpid() == owner:
            if asked:
                _end(number, frame)
            asked = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


def _end(_number: int, _frame: FrameType | None) -> None:
    with contextlib.suppress(Exception):  # may be in the middle of a write to the same stream
        sys.stdout.flush()
    start = "\n" if sys.stderr.isatty() else ""  # a terminal shows ^C, perhaps a progress bar
    os.write(2, f"{start}error: {MESSAGE}\n".encode())
    os._exit(Interrupted.exit_status)
