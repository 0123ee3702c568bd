"""What Ctrl-C and similar signals do: end at once with one line, or stop a grid in order.

The others are those by which a terminal, a shell or a scheduler asks a process to end: SIGTERM,
SIGQUIT (Ctrl-\\) and SIGHUP.

A `KeyboardInterrupt` may surface anywhere, also inside a library's constructor or a callback from
compiled code, where it is swallowed or leaves half-made objects that complain at exit. Nothing here
needs unwinding (a run is stored whole or not at all), so the process simply ends.
"""

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

from pipeline.errors import Interrupted

PR_SET_PDEATHSIG = 1  # of Linux' prctl: a signal when the parent dies
_followed: set[int] = set()  # leaders that a thread watches already
MESSAGE = "interrupted; what was stored stays, and the same command goes on"
# Not every system has all of them.
_NAMES = ("SIGINT", "SIGTERM", "SIGQUIT", "SIGHUP")
ASKING = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]


def end_at_once() -> None:
    """From now on, Ctrl-C prints one line and ends this process.

    A signal that somebody had this process ignore (``nohup``) stays ignored.
    """
    if threading.current_thread() is threading.main_thread():
        for number in ASKING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _end)


def follow(leader: int) -> None:
    """In a child process: leave Ctrl-C to the leading process, and end when that is gone."""
    for number in ASKING:
        # A terminal sends these to all processes alike; SIGTERM is meant for this one.
        signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):  # Linux: also while it is stopped
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    end_with(leader)


def end_with(leader: int) -> None:
    """End this process soon after its parent, ``leader``, is gone."""
    if leader in _followed:
        return
    _followed.add(leader)

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

    before = {
        number: signal.signal(number, note)
        for number in ASKING
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(_number: int, _frame: FrameType | None) -> None:
    if hasattr(signal, "SIGALRM"):  # a reader that does not read must not keep us
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(2)
    with contextlib.suppress(Exception):  # may be in the middle of a write to the same stream
        sys.stdout.flush()
    with contextlib.suppress(Exception):  # or the stream may be gone
        start = "\n" if sys.stderr.isatty() else ""  # a terminal shows ^C, perhaps a progress bar
        os.write(2, f"{start}error: {MESSAGE}\n".encode())
    os._exit(Interrupted.exit_status)
