"""Compare a run of the paper's grid with the committed reference result.

Prints, per column, where and by how much they differ, and which verdicts changed. On the machine
and versions of the reference all differences are zero; elsewhere rounding may break a tie between
equally good splits another way, which shows on held-out columns first.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

KEYS = ["dataset", "strategy", "seed", "round"]


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare a run with the reference result.")
    parser.add_argument("run", nargs="?", type=Path, default=Path("outputs/paper"))
    parser.add_argument("--reference", type=Path, default=Path("outputs/reference"))
    parser.add_argument("--tolerance", type=float, default=0.05, help="of curve means (relative)")
    arguments = parser.parse_args()
    for folder in (arguments.run, arguments.reference):
        if not (folder / "rounds.parquet").exists():
            print(f"error: {folder}/rounds.parquet is not there; make reproduce writes it")
            return 2
    return int(
        compare_rounds(arguments.run, arguments.reference, arguments.tolerance)
        + compare_claims(arguments.run, arguments.reference)
        > 0
    )


def compare_rounds(run: Path, reference: Path, tolerance: float) -> int:
    """Print differences of rounds; gives the number of columns beyond the tolerance."""
    ours, theirs = (
        pd.read_parquet(folder / "rounds.parquet").set_index(KEYS).sort_index()
        for folder in (run, reference)
    )
    common = ours.index.intersection(theirs.index)
    print(f"{len(common)} of {len(theirs)} reference rows are in {run}")
    if len(common) < len(theirs):
        return 1
    beyond = 0
    for column in theirs.columns:
        a, b = ours.loc[common, column], theirs.loc[common, column]
        differs = ~((a == b) | (a.isna() & b.isna()))
        if not differs.any():
            print(f"{column:<30} identical")
            continue
        if not pd.api.types.is_float_dtype(b):  # a setting
            beyond += 1
            print(f"{column:<30} {int(differs.sum())} values differ")
            continue
        relative = (a - b).abs() / b.abs().clip(lower=np.finfo(float).tiny)
        worst = relative.idxmax()
        curves = ["dataset", "strategy", "round"]
        means = (a.groupby(curves).mean() / b.groupby(curves).mean() - 1).abs()
        verdict = "" if means.max() <= tolerance else f"  BEYOND {tolerance:.0%}"
        beyond += means.max() > tolerance
        print(
            f"{column:<30} {int(differs.sum())} values differ, at most by {relative.max():.1e} "
            f"(at {worst}); means over seeds at most by {means.max():.1e}{verdict}"
        )
    return beyond


def compare_claims(run: Path, reference: Path) -> int:
    """Print changed verdicts; gives their number. Only a replication has any."""
    if not (reference / "claims.json").exists():
        return 0
    ours, theirs = (
        {c["id"]: c["verdict"] for c in json.loads((folder / "claims.json").read_text())}
        for folder in (run, reference)
    )
    changed = [i for i in theirs if ours.get(i) != theirs[i]]
    for i in changed:
        print(f"claim {i}: {ours.get(i)} instead of {theirs[i]}")
    print(f"{len(theirs) - len(changed)} of {len(theirs)} verdicts are the reference's")
    return len(changed)


if __name__ == "__main__":
    sys.exit(main())
