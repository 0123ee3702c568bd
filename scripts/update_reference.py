"""Copy what is curated of a full run into ``outputs/reference/``; see CONTRIBUTING.md."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

# What the report links to lies beside it as in the run's folder.
OF_PAPER = (
    "report.html", "rounds.parquet", "claims.json", "table1.csv", "noise.csv", "summary.csv",
    "readings.csv", "audit.html", "theory/errata.html", "theory/errata.md", "practice_changes.csv",
)  # fmt: skip
PRACTICE = ("practice", "practice_tuned", "practice_settings", "practice_defaults")
RENAMED = {
    "paper/theory/findings.json": "theory_findings.json",
    "oracle/oracle.csv": "oracle.csv",
    "oracle_rows/oracle.csv": "oracle_rows.csv",
    **{f"{name}/practice.parquet": f"{name}.parquet" for name in PRACTICE},
}
FIGURES = ("png", "pdf", "csv")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--outputs", type=Path, default=Path("outputs"))
    outputs = parser.parse_args().outputs
    reference = outputs / "reference"
    sources = {outputs / "paper" / name: reference / name for name in OF_PAPER}
    sources |= {outputs / name: reference / place for name, place in RENAMED.items()}
    for kind in FIGURES:
        for figure in sorted((outputs / "paper" / "figures").glob(f"*.{kind}")):
            sources[figure] = reference / "figures" / figure.name
    missing = [source for source in sources if not source.is_file()]
    if missing:
        print(f"nothing was copied: {', '.join(map(str, missing))} not there; see CONTRIBUTING.md")
        return 1
    for source, place in sources.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, place)
        print(f"{place}: {place.stat().st_size / 1024:.0f} KB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
