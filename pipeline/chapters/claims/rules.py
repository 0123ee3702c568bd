"""The rules of claims about curves.

A rule measures a value of each of its cases (a dataset, or a dataset and a strategy) and compares
it with a limit. The claim is *replicated* by a sample of curves in which all cases keep the limit,
*partly* by one in which at least half of them do, or all keep a looser limit. What the paper's
Figures 1 and 2 show is judged on single runs, since it speaks of 20 seeds for Figure 3 alone; what
Figure 3 shows, on the mean over seeds. A verdict has to come out in `AGREEING` of the samples;
otherwise the claim is *undecided*.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np

from pipeline.analysis.curves import Runs
from pipeline.analysis.evidence import Evidence
from pipeline.analysis.samples import Samples, mean_curve, single_runs
from pipeline.boosting.arrays import Flags, Floats, Ints
from pipeline.judgement import Measured, Registry, Ruling
from pipeline.report.render import share

AGREEING = 0.8
HALF = 0.5  # of the cases make a claim hold partly
VERDICTS = ("not replicated", "partly", "replicated")
UNDECIDED = "undecided"

Value = Callable[[Samples, str, str], Floats | Ints]

claim: Registry[Evidence] = Registry()


@dataclass(frozen=True)
class Limit:
    """Where a value has to lie; ``by_hand``: the paper gives no number."""

    low: float = -inf
    high: float = inf
    by_hand: bool = False

    def excess(self, values: Floats) -> Floats:
        """How far values lie outside; negative inside, infinite for NaN."""
        outside = np.maximum(self.low - values, values - self.high)
        return np.where(np.isnan(outside), inf, outside)

    def keeps(self, values: Floats) -> Flags:
        """Which values lie inside."""
        return self.excess(values) <= 0

    def words(self, show: Callable[[float], str], wider: float = 0) -> str:
        """The limit, moved outwards by ``wider``."""
        low, high = self.low - wider, self.high + wider
        if isfinite(low) and isfinite(high):
            return show(low) if low == high else f"{show(low)} to {show(high)}"
        return f"at least {show(low)}" if isfinite(low) else f"at most {show(high)}"


@dataclass(frozen=True)
class Rule:
    """A rule about curves.

    what : what is measured, in words.  value : (samples, dataset, strategy) to values (n,).
    limit : where they have to lie.  looser : a limit that is enough for "partly", if there is one.
    show : a value in words.  shown : what the paper's figure is taken to show.  on : datasets;
    empty: all.  strategies : of each dataset.
    """

    what: str
    value: Value
    limit: Limit
    show: Callable[[float], str]
    shown: Callable[[Runs], Samples] = single_runs
    on: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ("unit",)
    looser: Limit | None = None

    def cases(self, runs: Runs) -> list[tuple[str, str]]:
        """Datasets and strategies."""
        return [(d, s) for d in self.on or runs.datasets for s in self.strategies]

    def values(self, samples: Samples) -> Floats:
        """What is measured: (n, cases)."""
        cases = self.cases(samples.runs)
        return np.column_stack([self.value(samples, *case) for case in cases]).astype(np.float64)

    def satisfied(self, samples: Samples) -> Flags:
        """Whether all cases of each sample keep the limit: (n,)."""
        return np.asarray(self.limit.keeps(self.values(samples)).all(axis=1))

    def grades(self, values: Floats) -> Ints:
        """Places (n,) in `VERDICTS` of what was measured (n, cases)."""
        found = grades(self.limit.keeps(values))
        enough = self.looser is not None and self.looser.keeps(values).all(axis=1)
        return np.maximum(found, np.where(enough, 1, 0))

    def judge(self, e: Evidence) -> Ruling | None:
        """The verdict of an experiment's runs; None if they lack a dataset."""
        if not set(self.on) <= set(e.datasets):
            return None
        samples = self.shown(e)
        values, mean = self.values(samples), self.values(mean_curve(e))
        shares = np.bincount(self.grades(values), minlength=len(VERDICTS)) / len(values)
        of_mean = int(self.grades(mean)[0])
        found = int(shares.argmax()) if self.shown is single_runs else of_mean
        verdict = VERDICTS[found] if shares[found] >= AGREEING else UNDECIDED
        lines = self._lines(e, values, mean)
        low, high = self.show(mean.min()), self.show(mean.max())
        found_range = low if low == high else f"{low} to {high}"
        satisfied = share(self.limit.keeps(values).all(axis=1).mean(), 0)
        together = ("all together", VERDICTS[of_mean], "", "", _in_words(shares))
        return Ruling(
            measured=Measured(
                ("", "mean over seeds", f"{samples.name}: median", "90 % of them", "satisfied in"),
                (*lines, together),
            ),
            brief=f"{self.what[0].upper()}{self.what[1:]}: {found_range}. "
            f"Satisfied by {satisfied} of {samples.name}.",
            details={"range": found_range, "satisfied": satisfied},
            rule=self._words(samples, values),
            verdict=verdict,
            explanation=""
            if verdict == VERDICTS[-1]
            else f"Of {samples.name}: {_in_words(shares)}." + self._failing(lines, values),
        )

    def _lines(self, e: Evidence, values: Floats, mean: Floats) -> list[tuple[str, ...]]:
        """What was measured, a line for each case."""
        low, middle, high = np.quantile(values, [0.05, 0.5, 0.95], axis=0, method="inverted_cdf")
        kept = self.limit.keeps(values).mean(axis=0)
        return [
            (
                e.titles[dataset] + (f"/{strategy}" if len(self.strategies) > 1 else ""),
                self.show(mean[0, k]),
                self.show(middle[k]),
                f"{self.show(low[k])} to {self.show(high[k])}",
                share(kept[k], 0),
            )
            for k, (dataset, strategy) in enumerate(self.cases(e))
        ]

    def _failing(self, lines: Sequence[tuple[str, ...]], values: Floats) -> str:
        """The cases that fail too often by themselves."""
        kept = self.limit.keeps(values).mean(axis=0)
        names = [
            f"{name} ({share})"
            for (name, *_, share), k in zip(lines, kept, strict=True)
            if k < AGREEING
        ]
        return f" Satisfied least on {', '.join(names)}." if names else ""

    def turning(self, values: Floats) -> float:
        """How much wider the limit has to be for the claim to be replicated; negative: may be."""
        worst = self.limit.excess(values).max(axis=1)
        return float(np.quantile(worst, AGREEING, method="inverted_cdf"))

    def _words(self, samples: Samples, values: Floats) -> str:
        """The rule, with the limit at which the verdict changes if it was chosen by hand."""
        turning = self.turning(values)
        by_hand = (
            " This limit was chosen by hand; the claim would be replicated with: "
            f"{self.limit.words(self.show, turning)}."
            if self.limit.by_hand and isfinite(turning)
            else ""
        )
        n = values.shape[1]
        looser = f", or {self.looser.words(self.show)} in all" if self.looser else ""
        several = f" in every case (partly: in {-(-n // 2)} of {n}{looser})" if n > 1 else ""
        limit = self.limit.words(self.show)
        return f"{self.what}: {limit}{several}, in {share(AGREEING)} of {samples.name}.{by_hand}"


RULES: dict[str, Rule] = {}


def about_curves(
    id_: str, *, text: str, paper: str, figure: str, **options: Any
) -> Callable[[Value], Value]:
    """Register a claim whose `Rule` measures the decorated function, with the rule's options."""

    def register(value: Value) -> Value:
        RULES[id_] = Rule(value=value, **options)
        claim(id_, text=text, paper=paper, figure=figure)(RULES[id_].judge)
        return value

    return register


def grades(kept: Flags) -> Ints:
    """Places in `VERDICTS` (n,) of samples whose cases (n, m) keep their limit or not."""
    share = kept.mean(axis=1)
    return np.where(share == 1, 2, np.where(share >= HALF, 1, 0)).astype(np.int64)


def where_not(verdict: str, failing: Sequence[str], what: str) -> str:
    """Where a claim fails; nothing if it does not."""
    if verdict == VERDICTS[-1]:
        return ""
    return f"{what}: {', '.join(failing)}." if failing else f"{what}."


def _in_words(shares: Floats) -> str:
    """How often each verdict comes out, the best one first."""
    found = [(v, s) for v, s in zip(VERDICTS, shares, strict=True) if s > 0]
    return ", ".join(f"{v} {share(s)}" for v, s in reversed(found))
