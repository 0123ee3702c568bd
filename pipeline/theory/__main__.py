"""``python -m pipeline.theory ID ...``: try single statements on random instances."""

import argparse

from pipeline.theory.findings import REGISTRY
from pipeline.theory.instances import Bank
from pipeline.theory.trials import Trials
from pipeline.theory.verdicts import Tried

SHOWN = 8  # checks


def main() -> None:
    """Print a statement, what holds instead, and the first checks."""
    parser = argparse.ArgumentParser(
        prog="python -m pipeline.theory", description="Try statements on random instances."
    )
    parser.add_argument(
        "id", nargs="+", choices=sorted(REGISTRY.judges), metavar="ID", help="such as W8"
    )
    parser.add_argument("-n", type=int, default=10, help="instances of each kind (default: 10)")
    arguments = parser.parse_args()
    if arguments.n < 1:
        parser.error(f"-n {arguments.n}: must be at least 1")
    trials = Trials(Bank(arguments.n))
    for found in filter(None, (REGISTRY.judge(id_, trials) for id_ in arguments.id)):
        print(f"{found.id} ({found.paper}): {found.text}")
        print(f"{found.verdict}; {found.details['evidence']}")
        for line in filter(None, (found.explanation, found.details["remark"], found.measured)):
            print(f"  {line}")
        tried: Tried = found.details["tried"]
        for r in tried.regimes if len(tried.regimes) > 1 else ():
            line = f"  {r['regime']}: {r['hold']} of {r['checks']} hold"
            if r["most"] is not None:
                line += f", of the bound {r['median']:.2g} in the median, {r['most']:.2g} at most"
            print(line)
        # Those that fail come first: they are what a reader asks for.
        for check in sorted(tried.stated, key=lambda c: c.holds)[:SHOWN]:
            print(f"  measured {check.measured:.3e} bound {check.bound:.3e}")
        print()


if __name__ == "__main__":
    main()
