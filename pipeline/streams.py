"""Standard streams that may break: what is printed is never a reason to stop computing.

A reader that went away (``| head -1``), a full disk or a closed stream would end the work with an
error of the stream; here they end the printing only. Characters that the stream's encoding lacks
are printed as escapes.
"""

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import TextIO


class Tolerant(io.TextIOBase):
    """A text stream that goes quiet when the one behind it breaks; None is one that was closed."""

    def __init__(self, stream: TextIO | None) -> None:
        self.stream = stream
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of the stream behind."""
        return getattr(self.stream, "encoding", None) or "utf-8"

    def writable(self) -> bool:
        """Always."""
        return True

    def isatty(self) -> bool:
        """Whether a person looks at it."""
        return self.stream is not None and self.stream.isatty()

    def fileno(self) -> int:
        """That of the stream behind."""
        if self.stream is None:
            raise io.UnsupportedOperation("fileno")
        return self.stream.fileno()

    def write(self, text: str) -> int:
        """Print, or do nothing."""
        self._try("write", text)
        return len(text)

    def flush(self) -> None:
        """Flush, or do nothing."""
        self._try("flush")

    def _try(self, what: str, *arguments: str) -> None:
        if self.stream is None:
            return
        try:
            getattr(self.stream, what)(*arguments)
        except (OSError, ValueError):
            stream, self.stream = self.stream, None
            # What is still in the buffer is discarded, so that it causes no error at exit.
            with contextlib.suppress(OSError, ValueError), Path(os.devnull).open("w") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())


def tolerate_broken_streams() -> None:
    """From now on, printing of this process fails silently."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, Tolerant):
            setattr(sys, name, Tolerant(stream))
