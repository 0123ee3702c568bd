"""How far a grid is: one line that renews itself on a terminal, a plain log elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping

LOG_EVERY = 10.0  # seconds between lines where there is no terminal


class Progress:
    """Counts runs, and tells the time left from the cost of the tasks done so far."""

    def __init__(self, total: int, found: int, datasets: Mapping[str, int]) -> None:
        self.total, self.count = total, found
        self.per_dataset = dict(datasets)
        self.live = sys.stderr.isatty()
        self.started = time.monotonic()
        self.logged = self.started
        self.all_cost, self.done_cost = 1.0, 0.0
        self.last = ""

    def expect(self, cost: float, slots: int) -> None:
        """Set the total cost of the tasks ahead."""
        self.all_cost = max(cost, 1.0)
        if slots > 1:
            self.say(f"{self.total - self.count} runs to compute with {slots} workers")

    def done(self, dataset: str, line: str) -> None:
        """A run is stored."""
        self.count += 1
        self.per_dataset[dataset] += 1
        self.last = line
        self._show()

    def found(self, dataset: str, n: int) -> None:
        """Runs turned up in the store meanwhile."""
        self.count += n
        self.per_dataset[dataset] += n

    def spent(self, cost: float) -> None:
        """A task is over."""
        self.done_cost += cost

    def tick(self) -> None:
        """Called about once a second."""
        if self.live:
            self._show()

    def say(self, line: str) -> None:
        """Print a line of its own."""
        self._clear()
        print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._clear()

    def _show(self) -> None:
        now = time.monotonic()
        if self.live:
            self._clear()
            sys.stderr.write(self._line(now)[: _width()])
            sys.stderr.flush()
        elif now - self.logged > LOG_EVERY or self.count == self.total:
            self.logged = now
            print(self._line(now), file=sys.stderr, flush=True)

    def _line(self, now: float) -> str:
        elapsed = now - self.started
        share = min(self.done_cost / self.all_cost, 1.0)
        left = f"about {_clock(elapsed * (1 - share) / share)} left" if share > 0 else "…"
        counts = " ".join(f"{name} {n}" for name, n in self.per_dataset.items())
        return f"[{self.count}/{self.total}] {_clock(elapsed)}, {left} | {counts} | {self.last}"

    def _clear(self) -> None:
        if self.live:
            sys.stderr.write("\r\x1b[K")


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes}:{seconds:02d}"


def _width() -> int:
    import shutil

    return shutil.get_terminal_size().columns - 1
