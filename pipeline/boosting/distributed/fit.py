"""Algorithm 1 over the shards of a table, as the driver runs it.

The driver knows the rounds (their trees and weights) and a sample of the rows, never all of them.
A shard can be made again from its parts and the rounds so far, to the same bits. So a lost shard
costs the step in which it was lost. A `Checkpoint` keeps the rounds, so a driver that dies costs
the round in which it died.

With honest feedback two trajectories are fitted, each to one half of the rows, and the prediction
of a new row is their mean; see `shard`.
"""

import logging
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from ..algorithm import Round, finite_weight, round_seed
from ..arrays import Floats
from ..encoding import MAX_LEVELS, CategoryCode, Code, Encoding, NumberCode
from ..engines.base import TreeSettings
from ..engines.lightgbm import Bins, lightgbm_package
from ..engines.nodes import TreeEnsemble
from ..losses import LogLoss, Loss, SquaredLoss
from ..rescaling import Reduced, Rescaling
from .checkpoint import Checkpoint, Saved
from .initial import Initial, fitted_forest
from .parts import ParquetPart, Part, Table, TableRows, Unfit
from .shard import (
    Arguments,
    Read,
    Shard,
    ShardSettings,
    State,
    Trained,
    followed,
    reference_of,
    size_of,
    words_of,
)

log = logging.getLogger(__name__)

T = TypeVar("T")

ATTEMPTS = 5  # at one step
# How far a shard is that has no f yet; the others are at a round, from 0 on.
ABSENT, READ, BINNED = -3, -2, -1
_SQUARED = SquaredLoss()
_MEANS = ("weight", "gap")  # of trajectories, that a step tells
_ALSO = ("eta", "initial", "held_out", "sample", "seed", "feedback")  # that rounds depend on


class ShardsLost(Exception):  # noqa: N818
    """Shards are gone, or could not reach each other.

    finished : the results of the calls on other shards.
    """

    def __init__(self, why: str, finished: Mapping[int, Any] | None = None) -> None:
        super().__init__(why)
        self.finished = finished or {}


class Holders(Protocol):
    """The processes that hold the shards of a fit, numbered from 0 on, one each."""

    @property
    def n_shards(self) -> int: ...  # noqa: D102

    def require(self, n_bytes: float) -> None:
        """Raise `Unfit` if no process has enough memory for a shard of that size."""
        ...

    def present(self) -> Collection[int]:
        """The shards that are held now."""
        ...

    def place(self, shard: int, settings: ShardSettings) -> None:
        """Make an empty shard; raises `ShardsLost` if the process for it is lost just now."""
        ...

    def call(
        self, action: Callable[..., T], arguments: Arguments, *, together: bool = False
    ) -> dict[int, T]:
        """Call ``action(shard, *arguments)`` for each shard in its process, all at the same time.

        together : the shards need each other for it; each gets a `Network` as its last argument.
        """
        ...

    def map_parts(self, action: Callable[[Part], T], parts: Sequence[Part]) -> list[T]:
        """Call ``action(part)`` for every part, in any process."""
        ...


@dataclass(frozen=True)
class FitSettings:
    """All settings of a fit.

    initial : "forest", "mean" or "given".  held_out : the share of rows that are not fitted.
    sample : about how many rows the driver sees, of those that are fitted and of the others, each.
    feedback : "in_sample", or "honest" for two trajectories.
    """

    n_rounds: int
    eta: float
    rescaling: Rescaling
    trees: TreeSettings
    bins: Bins
    initial: str
    forest: TreeSettings
    held_out: float
    sample: int
    seed: int
    loss: Loss = _SQUARED
    feedback: str = "in_sample"

    def __post_init__(self) -> None:
        """Refuse weights that do not follow from sums over shards."""
        if not isinstance(self.rescaling, Reduced):
            raise TypeError(
                f"rescaling={self.rescaling!r}: has no reduced_weight(t, each) method, and no "
                "process sees all rows; without it, only 'unit', 'relaxed' and 'adaptive' can be "
                "computed over several shards"
            )

    @property
    def n_trajectories(self) -> int:
        """How many are fitted."""
        return 2 if self.feedback == "honest" else 1


@dataclass(frozen=True)
class DistributedStep:
    """The result of round t; t = 0 is the start, which has no round.

    weight, gap : means over the trajectories, NaN at the start.  loss : the mean over all training
    rows.  f_sample, f_held_out : f of the rows that the driver sees; of two trajectories, the
    honest one and their mean.
    """

    t: int
    weight: float
    gap: float
    loss: float
    f_sample: Floats
    f_held_out: Floats


class DistributedFit:
    """A fit to a table.

    checkpoint : a folder, or None.  tell : is called with a line about what takes long.
    rounds : those of each trajectory.  n_known : how many of them a checkpoint had.
    repeated : how often something had to be done again because shards were lost.
    """

    def __init__(
        self,
        table: Table,
        holders: Holders,
        settings: FitSettings,
        checkpoint: str | Path | None = None,
        tell: Callable[[str], None] = log.info,
    ) -> None:
        self.table, self.holders, self.settings, self.tell = table, holders, settings, tell
        self.rounds: list[list[Round]] = [[] for _ in range(settings.n_trajectories)]
        self.losses: list[float] = []
        self.n_known = self.repeated = 0
        self._shares = table.shared_out(holders.n_shards)
        self._at = dict.fromkeys(range(holders.n_shards), ABSENT)
        self._states: dict[int, tuple[State, ...]] = {}
        self.sampled = False
        self._reads: dict[tuple[int, int], Read] = {}  # by shard and the part's place in it
        self._n_read: dict[int, int] = {}
        self._digests: dict[tuple[int, int], bytes] = {}  # likewise
        self._checkpoint = (
            None if checkpoint is None else Checkpoint(checkpoint, self._fingerprint())
        )

    def run(self) -> Iterator[DistributedStep]:
        """Yield the start and every round."""
        known = [] if self._checkpoint is None else self._checkpoint.load()
        known = known[: self.settings.n_rounds + 1]
        self.n_known = max(0, len(known) - 1)
        if self.n_known:
            self.tell(f"continues at round {self.n_known + 1}, from {self._checkpoint}")
        self._prepare(known)
        sample, held_out, eta = self.sample, self.held_out, self.settings.eta
        n = self.settings.n_trajectories
        f, f_out = ([self.initial.scores(rows.X, rows.f0)] * n for rows in (sample, held_out))
        yield DistributedStep(0, math.nan, math.nan, self.losses[0], f[0], f_out[0])
        for t in range(self.settings.n_rounds):
            feature = self._honest(f)
            if t == len(self.rounds[0]):
                self._round(t, feature)
            at_t = [rounds[t] for rounds in self.rounds]
            f = followed(f, sample.X, at_t, eta, feature)
            pairs = zip(f_out, at_t, strict=True)
            f_out = [followed([f_k], held_out.X, [r], eta, f_k)[0] for f_k, r in pairs]
            weight, gap = (float(np.mean([getattr(r, name) for r in at_t])) for name in _MEANS)
            mean_out = sum(f_out[1:], f_out[0]) / n
            yield DistributedStep(t + 1, weight, gap, self.losses[t + 1], self._honest(f), mean_out)

    def _honest(self, f: Sequence[Floats]) -> Floats:
        """The trees' feature of the sampled rows, from their f_t in each trajectory."""
        return f[0] if self.sample.half is None else np.where(self.sample.half == 0, f[0], f[1])

    # --- before the first round -----------------------------------------------------------------

    def _prepare(self, known: Sequence[Saved]) -> None:
        table, s = self.table, self.settings
        self.tell(
            f"reading {table.n_rows:,} rows of {len(table.columns)} columns into "
            f"{self.holders.n_shards} shard(s)"
        )
        encoding = self._retried(self._encoding)
        n_held_out = s.held_out * table.n_rows
        self.shard_settings = ShardSettings(
            encoding, s.trees, s.eta, s.bins, s.loss, s.n_trajectories, s.seed, s.held_out,
            sampled=min(1.0, s.sample / max(1.0, table.n_rows - n_held_out)),
            sampled_out=min(1.0, s.sample / max(1.0, n_held_out)),
        )  # fmt: skip
        n_each, n_columns = table.n_rows / self.holders.n_shards, len(encoding.names)
        self.holders.require(size_of(n_each, n_columns, s.n_trajectories))
        self._retried(self._read_missing)
        reads = [self._reads[key] for key in sorted(self._reads)]
        self.sample = TableRows.joined([read.training for read in reads])
        self.held_out = TableRows.joined([read.held_out for read in reads])
        self.sampled = True
        self._reads.clear()
        mass, y_sum = (math.fsum(getattr(r, name) for r in reads) for name in ("mass", "y_sum"))
        self._check_read(mass, y_sum)
        self._scale = mass / sum(read.n for read in reads)
        self.encoding = encoding.with_fills_of(self.sample.X)
        self._reference = reference_of(self.sample.X, self.shard_settings)
        self._retried(self._bin_missing)
        text = known[0].models[0] if known else self._start(y_sum / mass)
        self.initial = Initial(s.initial, text, s.loss)
        for saved in known[1:]:
            models = map(str, saved.models)
            self._append([*zip(models, saved.constants, saved.weights, saved.gaps, strict=True)])
        self.losses = [saved.loss for saved in known]
        self._retried(self._restore)
        if not known:
            self._keep(Saved(self._mean("loss"), [text]))
        elif (loss := self._mean("loss")) != self.losses[-1]:
            raise Unfit(
                f"{self._checkpoint}: its rounds do not fit this table, or other versions made "
                f"them (loss {loss!r} instead of {self.losses[-1]!r}); choose another folder"
            )

    def _check_read(self, mass: float, y_sum: float) -> None:
        """Raise `Unfit` for rows, of a total weight and weighted sum of y, that give no fit."""
        n, s = self.table.n_rows, self.settings
        if not mass:
            raise Unfit("sample_weight: is zero for all rows")
        if len(self.sample) < 2:
            raise Unfit(f"a table of {n} rows is too small to be fitted in parts")
        if s.held_out and len(self.held_out) < 2:
            raise Unfit(f"of {n} rows, a share of {s.held_out:g} leaves none to look at")
        if isinstance(s.loss, LogLoss):
            if not 0.0 < y_sum < mass:
                raise Unfit("y: has one class only, and the log-loss needs two")
            return
        spread = float(np.ptp(self.sample.y))
        if 0 < spread < 1e-30:  # residuals would vanish in single precision, as LightGBM has them
            raise Unfit(f"y: values that differ by {spread:.1g} are too small; use other units")

    def _encoding(self) -> Encoding:
        """Numbers stay as they are; words are numbered by the levels in all parts."""
        words = self.table.words
        levels: dict[str, set[str]] = {name: set() for name in words}
        find = partial(words_of, columns=words, most=MAX_LEVELS)
        for found in self.holders.map_parts(find, self.table.parts) if words else ():
            for name in words:
                levels[name] |= found[name]
                if len(levels[name]) > MAX_LEVELS:
                    raise Unfit(
                        f"X: column {name!r} has more than {MAX_LEVELS} levels; leave it out, "
                        "or group them"
                    )
        codes: list[Code] = [
            CategoryCode(name, tuple(sorted(levels[name])))
            if name in levels
            else NumberCode(name, math.nan, kept=True)
            for name in self.table.columns
        ]
        return Encoding(tuple(codes))

    def _start(self, mean: float) -> str | None:
        """The text of f_0 for `Initial`."""
        s = self.settings
        if s.initial == "forest":
            return fitted_forest(self.sample, s.forest, s.bins, s.seed, self.encoding.categorical)
        return repr(mean) if s.initial == "mean" else None

    # --- rounds ---------------------------------------------------------------------------------

    def _round(self, t: int, feature: Floats) -> None:
        is_log = isinstance(self.settings.loss, LogLoss)
        n = self.settings.n_trajectories
        constants = [0.0 if is_log else self._mean("residual", k) for k in range(n)]
        arguments = (feature, constants, round_seed(self.settings.seed, t))

        def train() -> tuple[list[Trained], list[float]]:
            self._restore()
            everywhere = dict.fromkeys(self._at, arguments)
            trained = list(self.holders.call(Shard.train, everywhere, together=True).values())
            if len({outcome.trees_sha256 for outcome in trained}) != 1:
                raise ShardsLost("the shards of a training ended with different trees")
            return trained, [self._weight(t, k) for k in range(n)]

        def move() -> None:
            self._restore()  # a shard that is made again has this round already
            self._each(Shard.step, dict.fromkeys(self._those_at(t), (weights,)), self._has_state)

        trained, weights = self._retried(train)
        (models,) = (outcome.models for outcome in trained if outcome.models)
        self._append([(*one, math.nan) for one in zip(models, constants, weights, strict=True)])
        self._retried(move)
        sums = [math.fsum(s[k].gap for s in self._states.values()) for k in range(n)]
        gaps = [math.sqrt(self._scale * total) for total in sums]
        for rounds, gap in zip(self.rounds, gaps, strict=True):
            rounds[t] = replace(rounds[t], gap=gap)
        self._keep(Saved(self._mean("loss"), models, weights, gaps, constants))

    def _append(self, one_each: Sequence[tuple[str, float, float, float]]) -> None:
        """Add a round, from the model, constant, weight and gap of each trajectory."""
        for rounds, (model, constant, weight, gap) in zip(self.rounds, one_each, strict=True):
            ensemble = TreeEnsemble.of_lightgbm(model, constant)
            ensemble.check_rows(self.sample.X)
            rounds.append(Round(ensemble, weight, gap))

    def _keep(self, saved: Saved) -> None:
        """Keep the results of the last round."""
        self.losses.append(saved.loss)
        if self._checkpoint is not None:
            self._checkpoint.save(len(self.losses) - 1, saved)

    def _weight(self, t: int, k: int) -> float:
        """w_t of a trajectory, from what the shards make of their rows."""
        rescaling = self.settings.loss.rescaling(self.settings.rescaling)
        assert isinstance(rescaling, Reduced)

        def each(function: Callable[..., Any]) -> list[Any]:
            found = self.holders.call(Shard.reduced, dict.fromkeys(self._at, (k, function)))
            return [found[shard] for shard in sorted(found)]

        return finite_weight(rescaling.reduced_weight(t, each), rescaling, t)

    @property
    def n_rows(self) -> int:
        """The number of rows that are fitted."""
        return sum(state.n for states in self._states.values() for state in states)

    @property
    def mass(self) -> float:
        """The sum of their weights."""
        return self.n_rows * self._scale

    def _mean(self, name: str, k: int | None = None) -> float:
        """The mean over a trajectory's rows of what shards sum up; None: over trajectories, too."""
        if k is None:
            n = self.settings.n_trajectories
            return math.fsum(self._mean(name, k) for k in range(n)) / n
        states = [states[k] for states in self._states.values()]
        total, mass = (math.fsum(getattr(s, each) for s in states) for each in (name, "mass"))
        return total / mass

    # --- shards that are lost -------------------------------------------------------------------

    def _retried(self, action: Callable[[], T]) -> T:
        """The result of an action, which is tried again if shards are lost on the way."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return action()
            except ShardsLost as lost:
                if attempt == ATTEMPTS:
                    raise
                self.repeated += 1
                self.tell(f"{lost}; made again and repeated ({self.repeated} times in this fit)")
        raise AssertionError

    def _each(
        self, action: Callable[..., T], arguments: Arguments, note: Callable[[int, T], None]
    ) -> None:
        """Call an action on shards and ``note`` each result, also if other shards are lost."""
        results: Mapping[int, T] = {}
        try:
            results = self.holders.call(action, arguments)
        except ShardsLost as lost:
            results = lost.finished
            raise
        finally:
            for k, result in results.items():
                note(k, result)

    def _restore(self) -> None:
        """Make lost shards again, up to the last round."""
        self._bin_missing()
        arguments = (self.initial, self.rounds)
        self._each(Shard.start, dict.fromkeys(self._those_at(BINNED), arguments), self._has_state)

    def _read_missing(self) -> None:
        held = self.holders.present()
        for k in self._at:
            if k not in held:
                self._at[k], self._n_read[k] = ABSENT, 0
                self.holders.place(k, self.shard_settings)
        while some := {k: (self._shares[k][self._n_read[k]],) for k in self._those_at(ABSENT)}:
            self._each(Shard.read, some, self._has_read)

    def _bin_missing(self) -> None:
        self._read_missing()
        arguments = dict.fromkeys(self._those_at(READ), (self._reference, self._scale))
        self._each(Shard.bin, arguments, lambda k, _: self._at.update({k: BINNED}))

    def _those_at(self, place: int) -> list[int]:
        return [k for k, at in self._at.items() if at == place]

    def _has_read(self, k: int, read: Read) -> None:
        place = k, self._n_read[k]
        if self._digests.setdefault(place, read.digest) != read.digest:
            part = self._shares[k][self._n_read[k]]
            name = part.path if isinstance(part, ParquetPart) else "X"
            raise Unfit(
                f"{name}: its rows are others than when they were first read; a table must not "
                "change while it is fitted"
            )
        if not self.sampled:  # afterwards, the samples are known
            self._reads[k, self._n_read[k]] = read
        self._n_read[k] += 1
        if self._n_read[k] == len(self._shares[k]):
            self._at[k] = READ

    def _has_state(self, k: int, states: tuple[State, ...]) -> None:
        self._states[k] = states
        self._at[k] = len(self.rounds[0])

    def _fingerprint(self) -> dict[str, Any]:
        """All that the rounds depend on, in a readable form."""
        s = self.settings
        return {
            "lightgbm": lightgbm_package().__version__,
            "n_shards": self.holders.n_shards,
            "rows": list(self.table.rows),
            "columns": list(self.table.columns),
            "rescaling": {"name": type(s.rescaling).__name__}
            | {name: repr(value) for name, value in vars(s.rescaling).items()},
            "loss": type(s.loss).__name__,
            "trees": asdict(s.trees),
            "bins": asdict(s.bins),
            "forest": asdict(s.forest) if s.initial == "forest" else None,
            **{k: getattr(s, k) for k in _ALSO},
        }
