"""Iterative patching (Hébert-Johnson, Kim, Reingold, Rothblum, ICML 2018, Algorithm 1).

[0, 1] is divided into intervals of a ``width`` λ. For every group S and interval v, let S_v be the
rows of S whose predictions lie in v. Where S_v has at least a share α λ of the rows of S and the
means of its outcomes and of its predictions differ by at least α / 2, its predictions are moved by
the difference. (The paper requires a move from α on and allows it from α / 2 on; the code of Hansen
et al., 2024, moves from α / 2 on.) This is repeated until no S_v needs it; in the end all rows of
an interval get their mean prediction. The means are those of the sample: the noise that paper and
code add to them, so that one sample may be used many times, is left out.
"""

from dataclasses import dataclass

import numpy as np

from ..arrays import Flags, Floats, Ints
from .base import Corrected, Method, Range, Sample


@dataclass(frozen=True)
class _Patch:
    """A move by ``delta`` of the rows of a group (−1: all rows) in an interval."""

    group: int
    interval: int
    delta: float


@dataclass(frozen=True)
class IterativePatching(Method):
    """Moves each interval of predictions of each group to its mean outcome, until none is far off.

    See the module's text; ``sweeps`` is the largest number of passes over all groups.
    """

    name = "patching"

    alpha: float = 0.1
    width: float = 0.1
    sweeps: int = 100

    def fit(self, sample: Sample, validation: Sample, seed: int) -> Corrected:
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
        """Patch the intervals of a group one after the other; ``p`` is changed in place."""
        patches = []
        for v in range(self._n_intervals):
            inside = rows[self._interval(p[rows]) == v]
            if len(inside) == 0 or len(inside) < self.alpha * self.width * len(rows):
                continue
            delta = float(y[inside].mean() - p[inside].mean())
            if abs(delta) >= self.alpha / 2:
                p[inside] = np.clip(p[inside] + delta, 0.0, 1.0)
                patches.append(_Patch(group, v, delta))
        return patches

    @property
    def _n_intervals(self) -> int:
        return int(np.ceil(1.0 / self.width - 1e-9))

    def _interval(self, p: Floats) -> Ints:
        """Return the number v of the interval (vλ, (v+1)λ] of each value; 0 lies in the first."""
        places = np.ceil(p / self.width - 1e-9).astype(np.int64) - 1
        return np.clip(places, 0, self._n_intervals - 1)

    def _values(self, p: Floats) -> Floats:
        """Return the mean prediction of each interval, NaN for one without rows."""
        at = self._interval(p)
        counts = np.bincount(at, minlength=self._n_intervals)
        sums = np.bincount(at, p, minlength=self._n_intervals)
        return np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)


def _members(groups: Flags, group: int) -> Flags:
    return np.ones(len(groups), np.bool_) if group < 0 else groups[:, group]
