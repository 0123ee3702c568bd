"""Bad tables and bad settings: each is refused in one sentence, or computed, whole and in parts."""

from __future__ import annotations

import datetime
import decimal
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipeline.config.compose import load
from pipeline.errors import UserError
from pipeline.runs.grid import run_plan
from pipeline.runs.plan import make_plan
from scripts.attack.ground import Tally, in_parallel

N = 60
FAST = (
    "dataset=file", "boosting.rounds=2", "boosting.trees=3", "initial.trees=3", "grid.workers=1",
)  # fmt: skip


def attack(folder: Path, tries: int) -> Tally:
    """``tries`` tables, the listed ones first and then random mixtures of them."""
    tally = Tally("bad tables")
    folder.mkdir(parents=True, exist_ok=True)
    names = [*COLUMNS, *FILES, *SETTINGS]
    chosen = names[:tries] + [f"mixture {k}" for k in range(tries - len(names))]
    in_parallel(tally, [(name, partial(_one, folder, name)) for name in chosen], at_once=1)
    tally.identical = "no numbers"
    return tally


def _one(folder: Path, name: str) -> str | None:
    rng = np.random.default_rng(0)
    overrides: list[str] = []
    path = folder / f"{name.replace(' ', '-').replace('/', '-')}.parquet"
    if name in FILES:
        path = path.with_suffix(".csv")
        path.write_bytes(FILES[name])
    elif name in SETTINGS:
        _frame(rng).to_parquet(path)
        overrides = list(SETTINGS[name])
    else:
        makers = [COLUMNS[name]] if name in COLUMNS else _mixture(name)
        frame = _frame(rng)
        for k, make in enumerate(makers):
            values = make(rng)
            frame["y" if k == 0 and name.startswith("target") else f"c{k}"] = values
        frame.to_parquet(path)
    lines = [*FAST, f"dataset.path='{path}'", "dataset.target=y", f"output_dir={folder}/out",
             *overrides]  # fmt: skip
    in_parts = ["dataset=parquet", "engine=lightgbm", *lines[1:], "audit.rows=100"]
    return _tried(lines) or (None if name in FILES else _tried(in_parts))


def _tried(lines: list[str]) -> str | None:
    try:
        plan = make_plan(load(lines), lines)
        run_plan(plan)
        (run,) = plan.run_ids()
        stored = plan.store.load(run)
        assert stored is not None
        if not np.isfinite(stored.rounds[["mse_train", "mse_test"]].to_numpy()).all():
            return "stored errors that are no numbers"
    except UserError as error:
        text = str(error)
        if "Error: " in text or len(text.splitlines()) != 1:
            return f"not a sentence for users: {text[:120]}"
    return None


def _frame(rng: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame({"a": rng.normal(size=N), "y": rng.normal(size=N)})


def _mixture(name: str) -> list[Callable[[np.random.Generator], Any]]:
    draw = random.Random(name)
    return draw.sample([f for key, f in COLUMNS.items() if not key.startswith("target")], 3)


def _objects(values: list[Any]) -> pd.Series[Any]:
    return pd.Series(values, dtype=object)


DAY = datetime.date(2020, 1, 1)
COLUMNS: dict[str, Callable[[np.random.Generator], Any]] = {
    "beyond single precision": lambda r: r.normal(size=N) * 1e39,
    "infinite": lambda r: np.where(np.arange(N) == 3, np.inf, r.normal(size=N)),
    "all missing": lambda _: np.full(N, np.nan),
    "words that are all different": lambda _: [f"row {i}" for i in range(N)],
    "numbers and one word": lambda r: [*map(str, r.normal(size=N - 1)), "oops"],
    "decimals": lambda r: _objects([decimal.Decimal(f"{x:.3f}") for x in r.normal(size=N)]),
    "dates": lambda _: _objects([DAY + datetime.timedelta(i) for i in range(N)]),
    "timestamps": lambda _: pd.date_range("2020", periods=N),
    "durations": lambda _: pd.to_timedelta(np.arange(N), unit="h"),
    "times": lambda _: _objects([datetime.time(i % 24) for i in range(N)]),
    "lists": lambda _: _objects([[i, i] for i in range(N)]),
    "records": lambda _: _objects([{"k": i} for i in range(N)]),
    "bytes": lambda _: _objects([bytes([i]) for i in range(N)]),
    "flags with holes": lambda _: pd.array([True, None] * (N // 2), dtype="boolean"),
    "whole numbers with holes": lambda _: pd.array([1, None] * (N // 2), dtype="Int64"),
    "unsigned 64 bits": lambda _: np.arange(N, dtype=np.uint64) + np.uint64(2**63),
    "categories": lambda _: pd.Categorical(["u", "v"] * (N // 2)),
    "constant": lambda _: np.ones(N),
    "empty words": lambda _: [""] * N,
    "dollar signs": lambda _: ["$a$", "$$"] * (N // 2),
    "target too large": lambda r: r.normal(size=N) * 1e200,
    "target too small": lambda r: r.normal(size=N) * 1e-200,
    "target constant": lambda _: np.ones(N),
    "target missing": lambda _: np.full(N, np.nan),
    "target infinite": lambda _: np.full(N, np.inf),
    "target of words": lambda _: ["a", "b"] * (N // 2),
    "target of decimals": lambda r: _objects([decimal.Decimal(int(9 * x)) for x in r.random(N)]),
    "target of dates": lambda _: pd.date_range("2020", periods=N),
}
ROWS = b"".join(b"%d,%d\n" % (i, i * i % 17) for i in range(N))
FILES: dict[str, bytes] = {
    "empty": b"",
    "blank": b"\n\n\n",
    "header alone": b"a,y\n",
    "one row": b"a,y\n1,2\n",
    "two rows": b"a,y\n1,2\n2,3\n",
    "NUL bytes": b"a,y\n1,\x002\n" + ROWS,
    "UTF-16": ("a,y\n" + ROWS.decode()).encode("utf-16"),
    "Latin-1": b"a,y,w\n" + b"1,2,\xe9\n" * N,
    "BOM and CRLF": b"\xef\xbb\xbfa,y\r\n" + ROWS.replace(b"\n", b"\r\n"),
    "a field too many": b"a,y\n" + ROWS.replace(b"\n", b",3\n"),
    "a field too few": b"a,b,y\n" + ROWS,
    "two columns of one name": b"a,y,a\n" + ROWS.replace(b"\n", b",3\n"),
    "two targets of one name": b"y,y\n" + ROWS,
    "integers beyond 64 bits": b"a,y\n" + b"".join(b"%d,%d\n" % (10**30 + i, i) for i in range(N)),
    "dates as words": b"a,y\n" + b"".join(b"2020-01-%02d,%d\n" % (i % 28 + 1, i) for i in range(N)),
    "not a table": bytes(range(1, 256)) * 20,
    "quotes that never end": b'a,y\n"1,2\n' + ROWS,
}
SETTINGS: dict[str, tuple[str, ...]] = {
    "almost all to test": ("dataset.test_size=0.99",),
    "almost all to train": ("dataset.test_size=0.001",),
    "too many trees": ("boosting.trees=100000000000",),
    "too many rounds": ("boosting.rounds=10000", "boosting.trees=100000"),
    "a forest of everything": ("initial.trees=100000000000",),
    "a long name": (f"dataset.name={'x' * 300}",),
    "a long experiment": (f"experiment.name={'x' * 300}",),
    "target twice": ("dataset.target=[y,y]",),
    "no such target": ("dataset.target=nope",),
    "no such column": ("dataset.drop=[nope]",),
    "nothing left": ("dataset.drop=[a]",),
    "dollar title": ("dataset.title='$$ and $\\foo$'",),
}
