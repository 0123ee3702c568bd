"""Compare the bundled snapshot with OpenML's versions, cell by cell (needs a network)."""

import sys

from pipeline.config.compose import load
from pipeline.config.schema import PAPERS
from pipeline.datasets.manifest import manifest
from pipeline.datasets.sources import fetch
from pipeline.errors import DataError


def main() -> int:
    """Print one line per dataset; exit status 1 if any could not be confirmed."""
    status = 0
    for name in PAPERS:
        if manifest()[name].openml is None:
            print(f"{name:<12} not on OpenML (scikit-learn ships it)")
            continue
        dataset = load([f"dataset={name}", "dataset.source=openml"]).dataset
        try:
            table = fetch(dataset)
        except DataError as error:
            print(f"{name:<12} NOT CONFIRMED: {error}")
            status = 1
        else:
            print(f"{name:<12} equal: {table.origin}, {len(table.frame)} rows")
    return status


if __name__ == "__main__":
    sys.exit(main())
