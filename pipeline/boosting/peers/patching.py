"""Iterative patching (Hébert-Johnson, Kim, Reingold, Rothblum, ICML 2018, Algorithm 1).

[0, 1] is cut into intervals of a ``width`` λ. For every group S and interval v, the rows of S whose
predictions lie in v, S_v, are looked at if they are at least a share α λ of S; where the means of
their outcomes and of their predictions differ by more than α, the predictions are moved by the
difference. That is repeated until no S_v needs it; in the end the rows of an interval are given
their mean prediction. The means are those of the sample: the noise that the paper adds to them, so
that one sample may be asked many times, is left out, as in the experiments of Hansen et al. (2024).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.boosting.arrays import Flags, Floats, Ints
from pipeline.boosting.peers.base import Corrected, Range, Sample


@dataclass(frozen=True)
class _Patch:
    """Rows of a group (−1: all rows) in an interval are moved by ``delta``."""

    group: int
    interval: int
    delta: float


@dataclass(frozen=True)
class IterativePatching:
    """See the module's text; ``sweeps`` over all groups are done at most."""

    alpha: float = 0.1
    width: float = 0.1
    sweeps: int = 100

    validates = False

    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:  # noqa: ARG002
        """See `Method`."""
        scale = Range.of(sample)
        y, p = scale.to(sample.y), scale.to(sample.f)
        members = [(-1, np.arange(len(y)))] + [
            (int(g), np.flatnonzero(sample.groups[:, g])) for g in sample.large_groups
        ]
        patches: list[_Patch] = []
        n_sweeps = 0
        for _ in range(self.sweeps):
            before = len(patches)
            for group, rows in members:
                patches.extend(self._patch(group, rows, y, p))
            n_sweeps += 1
            if len(patches) == before:
                break
        values = self._values(p)

        def predict(rows: Sample) -> Floats:
            q = scale.to(rows.f)
            for patch in patches:
                inside = self._interval(q) == patch.interval
                inside &= _members(rows.groups, patch.group)
                q[inside] = np.clip(q[inside] + patch.delta, 0.0, 1.0)
            at = self._interval(q)
            return scale.back(np.where(np.isnan(values[at]), q, values[at]))

        return Corrected(predict, n_sweeps)

    def _patch(self, group: int, rows: Ints, y: Floats, p: Floats) -> list[_Patch]:
        """Patch a group's intervals one after the other; ``p`` is changed in place."""
        made = []
        for v in range(self._n_intervals):
            inside = rows[self._interval(p[rows]) == v]
            if len(inside) == 0 or len(inside) < self.alpha * self.width * len(rows):
                continue
            delta = float(y[inside].mean() - p[inside].mean())
            if abs(delta) > self.alpha:
                p[inside] = np.clip(p[inside] + delta, 0.0, 1.0)
                made.append(_Patch(group, v, delta))
        return made

    @property
    def _n_intervals(self) -> int:
        return int(np.ceil(1.0 / self.width - 1e-9))

    def _interval(self, p: Floats) -> Ints:
        """The interval (vλ, (v+1)λ] of each value; 0 lies in the first."""
        places = np.ceil(p / self.width - 1e-9).astype(np.int64) - 1
        return np.clip(places, 0, self._n_intervals - 1)

    def _values(self, p: Floats) -> Floats:
        """The mean prediction of each interval, NaN without rows."""
        at = self._interval(p)
        counts = np.bincount(at, minlength=self._n_intervals)
        sums = np.bincount(at, p, minlength=self._n_intervals)
        return np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)


def _members(groups: Flags, group: int) -> Flags:
    return np.ones(len(groups), np.bool_) if group < 0 else groups[:, group]
