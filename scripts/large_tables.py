"""Tables of any size as Parquet folders, written block by block.

``planted``: numbers x0, x1, …, a group g (words), an outcome y with a known mean, and a prediction
f0 that is right but for a bias in known segments; the mean is there as ``truth``. ``classes``: the
same with outcomes 0 and 1, of which truth is the logit, probabilities f0 whose logits are biased,
and weights w. ``german`` and the other datasets: rows drawn from the table, numbers with noise.
"""

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.special import expit
from tqdm import tqdm

from pipeline.boosting.arrays import Floats
from pipeline.config.compose import load
from pipeline.config.schema import PAPERS
from pipeline.datasets.library import Library

FILE_ROWS = 500_000
BLOCK_CELLS = 5_000_000
GROUPS = np.array(["north", "east", "south", "west"])


@dataclass(frozen=True)
class Planted:
    """Rows with a known mean, and a prediction that is wrong where it is known to be.

    The bias is 1 where x0 > 0.5, −1 in the south where x1 < 0, and 0 elsewhere.
    """

    columns: int
    noise: float = 1.0
    classes: bool = False

    def block(self, n: int, random: np.random.Generator) -> pa.Table:
        """Some rows."""
        X = random.normal(size=(n, self.columns))
        group = random.integers(0, len(GROUPS), n)
        truth = 2.0 * X[:, 2] + X[:, 0] * X[:, 1] + 0.5 * group
        cells = {f"x{j}": X[:, j] for j in range(self.columns)}
        bias = planted_bias(X, group)
        more = {
            "y": truth + self.noise * random.normal(size=n),
            "f0": truth + bias,
            "truth": truth,
        }
        if self.classes:
            truth = 0.5 * (truth - 0.75)
            more = {
                "y": (random.random(n) < expit(truth)).astype(np.int8),
                "f0": expit(truth + bias),
                "truth": truth,
                "w": random.integers(0, 4, n).astype(np.float64),
            }
        words = pa.DictionaryArray.from_arrays(pa.array(group, pa.int8()), pa.array(GROUPS))
        return pa.table(cells | {"g": words.cast(pa.string())} | more)


def planted_bias(X: Floats, group: np.ndarray) -> Floats:
    """What f0 is off by, (n,), for the columns X (n, ≥ 2) and the numbers of groups (n,)."""
    bias = np.where(X[:, 0] > 0.5, 1.0, 0.0)
    south = group == int(np.flatnonzero(GROUPS == "south")[0])
    return bias - np.where(south & (X[:, 1] < 0), 1.0, 0.0)


@dataclass(frozen=True)
class Repeated:
    """Rows of a dataset, drawn with replacement; numbers get noise of a hundredth of their sd."""

    frame: pd.DataFrame

    @property
    def columns(self) -> int:
        """How many there are."""
        return self.frame.shape[1]

    def block(self, n: int, random: np.random.Generator) -> pa.Table:
        """Some rows."""
        drawn = self.frame.iloc[random.integers(0, len(self.frame), n)].reset_index(drop=True)
        for name in drawn.columns:
            if pd.api.types.is_numeric_dtype(drawn[name]):
                spread = 0.01 * float(self.frame[name].std())
                drawn[name] = drawn[name].astype(np.float64) + spread * random.normal(size=n)
        return pa.Table.from_pandas(drawn, preserve_index=False)


def write(kind: Planted | Repeated, folder: Path, rows: int, seed: int) -> None:
    """Write the table, in files of `FILE_ROWS` rows."""
    folder.mkdir(parents=True, exist_ok=True)
    step = max(1, BLOCK_CELLS // kind.columns)
    bar = tqdm(total=rows, unit="rows", unit_scale=True, desc=str(folder))
    for number, size in enumerate(_sizes(rows, FILE_ROWS)):
        writer = None
        for block, n in enumerate(_sizes(size, step)):
            table = kind.block(n, np.random.default_rng([seed, number, block]))
            writer = writer or pq.ParquetWriter(
                folder / f"part-{number:05d}.parquet", table.schema, use_dictionary=["g"]
            )
            writer.write_table(table)
            bar.update(n)
        if writer is not None:
            writer.close()
    bar.close()


def _sizes(total: int, step: int) -> Iterator[int]:
    for k in range(math.ceil(total / step)):
        yield min(step, total - k * step)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["planted", "classes", *PAPERS])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=float, default=1e6, help="such as 1e7 (default: 1e6)")
    parser.add_argument("--columns", type=int, default=20, help="numbers of planted (default: 20)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.kind in ("planted", "classes"):
        columns, classes = max(3, options.columns), options.kind == "classes"
        kind: Planted | Repeated = Planted(columns, classes=classes)
    else:
        kind = Repeated(Library().table(load([f"dataset={options.kind}"]).dataset).frame)
    write(kind, options.folder, int(options.rows), options.seed)


if __name__ == "__main__":
    main()
