"""``python -m scripts.attack``: all attacks, or some, and a table of how they went."""

import argparse
import contextlib
import io
import json
import logging
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from pipeline.runs.compilation import compile_kernels
from scripts.attack import (
    clusters,
    downloads,
    many,
    outputs,
    places,
    signals,
    stores,
    storms,
    tables,
)
from scripts.attack.ground import Tally, undisturbed

TRIES = {
    "signals": 200, "stores": 72, "tables": 60, "downloads": 20, "clusters": 20, "outputs": 22,
    "many": 2000, "storms": 10, "places": 15,
}  # fmt: skip


def main() -> int:
    """Attack; status 1 if anything did not survive."""
    parser = argparse.ArgumentParser(prog="python -m scripts.attack", description=__doc__)
    parser.add_argument("kinds", nargs="*", choices=[[], *TRIES], help="default: all")
    parser.add_argument("--tries", type=int, help="of each kind (default: the full attack)")
    parser.add_argument("--json", type=Path, help="also write the table there")
    arguments = parser.parse_args()
    tallies = []
    logging.getLogger("pipeline").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="attack-") as name:
        folder = Path(name)
        compile_kernels()
        with contextlib.redirect_stderr(io.StringIO()):
            truth = undisturbed(folder / "truth")
        attacks: dict[str, Callable[[int], Tally]] = {
            "signals": lambda n: signals.attack(folder / "signals", truth, n),
            "stores": lambda n: stores.attack(folder / "stores", truth, n),
            "tables": lambda n: tables.attack(folder / "tables", n),
            "downloads": lambda n: downloads.attack(folder / "downloads", n),
            "clusters": lambda n: clusters.attack(folder / "clusters", truth, n),
            "outputs": lambda n: outputs.attack(folder / "outputs", truth, n),
            "many": lambda n: many.attack(folder / "many", n),
            "storms": lambda n: storms.attack(folder / "storms", truth, n),
            "places": lambda n: places.attack(folder / "places", truth, n),
        }
        for kind in arguments.kinds or list(TRIES):
            started = time.monotonic()
            quiet = io.StringIO()  # what runs in this process tell
            with contextlib.redirect_stderr(quiet), contextlib.redirect_stdout(quiet):
                tally = attacks[kind](arguments.tries or TRIES[kind])
            tally.seconds = round(time.monotonic() - started, 1)
            tallies.append(tally)
            print(line_of(tally), flush=True)
            for fault in tally.wrong:
                print(f"    {fault}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(t) for t in tallies], indent=2))
    return int(any(t.wrong or t.identical == "NO" for t in tallies))


def line_of(tally: Tally) -> str:
    """A line of the table."""
    survived = tally.tries - len(tally.wrong)
    return (
        f"{tally.kind:<22} {tally.tries:>5} tries {survived:>5} survived   "
        f"identical: {tally.identical:<28} {tally.seconds:6.0f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
