"""``python -m pipeline.theory ID ...``: try single statements on random instances."""

from __future__ import annotations

import argparse

from pipeline.theory.findings import REGISTRY, find
from pipeline.theory.instances import Bank
from pipeline.theory.trials import Trials

SHOWN = 8  # checks


def main() -> None:
    """Print a statement, what holds instead, and the first checks."""
    parser = argparse.ArgumentParser(
        prog="python -m pipeline.theory", description="Try statements on random instances."
    )
    parser.add_argument("id", nargs="+", choices=sorted(REGISTRY), metavar="ID", help="such as W8")
    parser.add_argument("-n", type=int, default=10, help="instances of each kind (default: 10)")
    arguments = parser.parse_args()
    if arguments.n < 1:
        parser.error(f"-n {arguments.n}: must be at least 1")
    trials = Trials(Bank(arguments.n))
    for id_ in arguments.id:
        found = find(id_, trials)
        print(f"{found.id} ({found.where}): {found.text}\n{found.verdict}; {found.evidence}")
        for line in filter(None, (found.correction, found.remark, found.measured)):
            print(f"  {line}")
        if len(found.regimes) > 1:
            print("\n".join(f"  {usage}" for usage in found.regimes))
        # Those that fail come first: they are what a reader asks for.
        for check in sorted(found.stated, key=lambda c: c.holds)[:SHOWN]:
            print(f"  measured {check.measured:.3e} bound {check.bound:.3e}")
        print()


if __name__ == "__main__":
    main()
