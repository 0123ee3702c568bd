"""Stored runs of different settings side by side: curves, and differences paired over seeds."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from pipeline.analysis.curves import SQUARE, Runs, mean_interval
from pipeline.analysis.style import STRATEGIES, papers_first
from pipeline.datasets.manifest import manifest
from pipeline.errors import ConfigError
from pipeline.runs.tidy import RUNS

log = logging.getLogger("pipeline")

MEASURES = ("mse_train", "mse_test", "mce_train", "mce_test", SQUARE)


@dataclass(frozen=True)
class Comparison:
    """Runs by the settings that tell them apart.

    rounds : one row per run and round, with ``variant`` (what is compared) and ``within`` (the
    strategy inside which it is, or nothing where strategies themselves are compared).
    variants : their names, the baseline first.
    """

    rounds: pd.DataFrame
    variants: tuple[str, ...]

    @property
    def baseline(self) -> str:
        """What the others are held against."""
        return self.variants[0]

    @property
    def withins(self) -> list[str]:
        """The strategies inside which variants are compared."""
        return papers_first(self.rounds["within"].drop_duplicates())

    def runs(self, within: str) -> Variants:
        """The curves of one strategy, with variants in the place of strategies.

        Of the datasets, and up to the last round, that all of them have.
        """
        some = self.rounds[self.rounds["within"] == within]
        have = some.groupby("dataset")["variant"].nunique()
        some = some[some["dataset"].isin(have.index[have == some["variant"].nunique()])]
        last = some.groupby("variant")["round"].max().min()
        some = some[some["round"] <= last].assign(strategy=some["variant"])
        titles = {d: _title(str(d)) for d in some["dataset"].drop_duplicates()}
        return Variants(some, titles, tuple(v for v in self.variants if v in set(some["strategy"])))


@dataclass(frozen=True)
class Variants(Runs):
    """Runs whose strategies have an order of their own."""

    order: tuple[str, ...] = ()

    @property
    def strategies(self) -> list[str]:
        """The variants, the baseline first."""
        return list(self.order)


def compare(runs: pd.DataFrame, baseline: str | None = None) -> Comparison:
    """Tell the runs of a frame of `load_runs` apart by their settings.

    Where a setting differs that is not a strategy's own, settings are compared inside each
    strategy; else strategies with each other. The same run in two experiments counts once.
    """
    settings = list(runs.columns[len(RUNS) : list(runs.columns).index("round")])
    own = [s for s in settings if s.startswith("strategy.")]
    others = [s for s in settings if s not in own]
    runs = runs.drop_duplicates(["dataset", "strategy", "seed", "key", "round"])
    # The first experiment's settings come first, and of one experiment the smaller values.
    order = runs.groupby("experiment", sort=False).ngroup().rename("order")
    runs = runs.assign(order=order).sort_values(["order", *settings], kind="stable")
    strategy = _named(runs, own, runs["strategy"])
    if others:
        rounds = runs.assign(within=strategy, variant=_named(runs, others, None))
    else:
        rounds = runs.assign(within="", variant=strategy)
    variants = list(rounds["variant"].drop_duplicates())
    odd = [s for s in others if s.startswith(("dataset.", "audit.", "data", "numerics"))]
    if odd:
        log.warning(
            "these runs differ in %s: their errors are not of the same rows, units or kind",
            ", ".join(odd),
        )
    if len(variants) < 2:
        raise ConfigError(
            f"compare: nothing differs between these runs ({variants[0]}); name experiments with "
            "other settings or strategies"
        )
    if baseline is not None and baseline not in variants:
        raise ConfigError(f"compare.baseline={baseline}: must be one of {'; '.join(variants)}")
    first = baseline or next((s for s in STRATEGIES if s in variants), variants[0])
    return Comparison(rounds, (first, *(v for v in variants if v != first)))


def differences(comparison: Comparison) -> pd.DataFrame:
    """Each variant against the baseline at their last rounds, paired over the seeds of both.

    ``low`` and ``high`` bound the mean difference with 95 % confidence, by the t statistic with the
    variance of overlapping splits (Nadeau and Bengio, 2003); ``relative`` is to the baseline.
    """
    rounds = comparison.rounds
    last = rounds[
        rounds["round"] == rounds.groupby(["variant", "within"])["round"].transform("max")
    ]
    rows = []
    for (dataset, within), one in last.groupby(["dataset", "within"], sort=False):
        base = one[one["variant"] == comparison.baseline].set_index("seed")
        for variant in comparison.variants[1:]:
            other = one[one["variant"] == variant].set_index("seed")
            seeds = base.index.intersection(other.index)
            if len(seeds) < 2:
                continue
            share = float((base["n_test"] / base["n_train"]).iloc[0])
            for measure in (m for m in MEASURES if m in one):
                a, b = base.loc[seeds, measure], other.loc[seeds, measure]
                mean, low, high = mean_interval((b - a).to_numpy(), share)
                rows.append(
                    {
                        "dataset": dataset,
                        "strategy": within,
                        "variant": variant,
                        "measure": measure,
                        "seeds": len(seeds),
                        "baseline": float(a.mean()),
                        "mean": float(b.mean()),
                        "difference": mean,
                        "low": low,
                        "high": high,
                        "relative": mean / abs(float(a.mean())),
                    }
                )
    if not rows:
        raise ConfigError("compare: no dataset, strategy and two seeds are in both settings")
    return pd.DataFrame(rows)


def _named(
    runs: pd.DataFrame, settings: Sequence[str], front: pd.Series[str] | None
) -> pd.Series[str]:
    """``eta=0.3, trees=50``, behind a name where there is one."""
    short = {s: s.rpartition(".")[2] for s in settings}
    names = {s: n if list(short.values()).count(n) == 1 else s for s, n in short.items()}
    said = [
        ", ".join(f"{names[s]}={_value(v)}" for s, v in zip(settings, row, strict=True) if v == v)
        for row in runs[list(settings)].astype(object).itertuples(index=False)
    ]
    text = pd.Series(said, index=runs.index, dtype=object)
    return text if front is None else (front.astype(object) + " " + text).str.strip()


def _value(value: object) -> str:
    if isinstance(value, int | float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return str(value)[:12] if len(str(value)) == 64 else str(value)  # a hash


def _title(dataset: str) -> str:
    spec = manifest().get(dataset)
    return spec.title if spec else dataset
