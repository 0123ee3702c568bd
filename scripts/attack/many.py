"""Thousands of runs in one grid: memory and open files of the driver stay flat."""

import time
from pathlib import Path

from pipeline import files
from scripts.attack.ground import Tally, process

FEW = 200  # runs after which everything that grows once has grown


def attack(folder: Path, tries: int) -> Tally:
    """A grid of ``tries`` runs of two strategies, watched from outside."""
    tally = Tally(f"a grid of {tries} runs")
    seeds = f"[{','.join(map(str, range(tries // 2)))}]"
    lines = ["experiment=smoke", "experiment.datasets=[diabetes]", f"experiment.seeds={seeds}",
             "experiment.strategies=[unit,relaxed]", "boosting.rounds=2", "boosting.trees=3",
             "initial.trees=3", "audit.trees=5", f"output_dir={folder}"]  # fmt: skip
    seen: list[tuple[int, float, int]] = []
    with process(*lines) as child:
        runs = folder / "smoke" / "runs" / "diabetes"
        while child.poll() is None:
            count = len(files.find(runs, "*/seed=*"))
            try:
                seen.append((count, _megabytes(child.pid), _handles(child.pid)))
            except OSError:
                break
            time.sleep(1)
        output = child.communicate()[0]
    stored = len(files.find(runs, "*/seed=*"))
    early = [s for s in seen if s[0] >= min(FEW, tries // 4)][:1] or seen[:1]
    fault = None
    if child.returncode or stored != 2 * (tries // 2):
        fault = f"{stored} of {tries} runs stored, status {child.returncode}: {output[-200:]}"
    elif seen[-1][1] > early[0][1] + 50 or seen[-1][2] > early[0][2] + 5:
        fault = f"memory and handles grow: {early[0][1:]} to {seen[-1][1:]}"
    tally.judge("all", fault)
    tally.identical = f"{early[0][1]:.0f} to {seen[-1][1]:.0f} MB, {seen[-1][2]} handles"
    return tally


def _megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def _handles(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
