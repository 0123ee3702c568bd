"""Algorithm 1 over the shards of a table, led from here.

Whoever leads knows the rounds (their trees and weights) and a sample of the rows, never all of
them. A shard can be made again from its parts and the rounds so far, to the same bits. So a holder
that is lost costs the step it was lost in, and a lost leader the round it was in, because rounds
are kept in a `Checkpoint`.
"""

from __future__ import annotations

import logging
import math
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from pipeline.boosting.algorithm import Round, advance, finite_weight, round_seed
from pipeline.boosting.arrays import Floats
from pipeline.boosting.distributed.checkpoint import Checkpoint, Saved
from pipeline.boosting.distributed.initial import (
    Initial,
    LightgbmForest,
    MeanRegressor,
    fitted_forest,
)
from pipeline.boosting.distributed.parts import Part, Table, Unfit
from pipeline.boosting.distributed.shard import (
    Network,
    Read,
    Rows,
    Shard,
    ShardSettings,
    State,
    Trained,
    levels_of,
    reference_of,
    size_of,
)
from pipeline.boosting.encoding import MAX_LEVELS, CategoryCode, Code, Encoding, NumberCode
from pipeline.boosting.engines.base import TreeSettings
from pipeline.boosting.engines.lightgbm import Bins, LightgbmEnsemble, lightgbm_package
from pipeline.boosting.rescaling import Adaptive, Relaxed, Rescaling, Unit

log = logging.getLogger("pipeline")

T = TypeVar("T")

ATTEMPTS = 5  # at one step, before a cluster is called unfit
ABSENT, READ, BINNED = -3, -2, -1  # where a shard is that has no f yet


class ShardsLost(Exception):  # noqa: N818
    """Holders of shards are gone, or could not reach each other; ``finished`` has the others'."""

    def __init__(self, why: str, finished: Mapping[int, Any] | None = None) -> None:
        super().__init__(why)
        self.finished = finished or {}


class Holders(Protocol):
    """Whoever holds the shards of a fit, 0 … n − 1."""

    @property
    def n_shards(self) -> int:
        """How many there are."""
        ...

    @property
    def n_threads(self) -> int:
        """That a holder may use."""
        ...

    def require(self, n_bytes: float) -> None:
        """Raise `Unfit` if no holder has room for a shard of that size."""
        ...

    def present(self) -> Collection[int]:
        """The shards that somebody holds."""
        ...

    def place(self, shard: int, settings: ShardSettings) -> None:
        """Have somebody begin an empty shard; raises `ShardsLost` if there is nobody just now."""
        ...

    def call(
        self,
        action: Callable[..., T],
        arguments: Mapping[int, tuple[Any, ...]],
        *,
        together: bool = False,
    ) -> dict[int, T]:
        """``action(shard, *arguments)`` where each shard is, all at the same time.

        together : the shards need each other for it.
        """
        ...

    def map_parts(self, action: Callable[[Part], T], parts: Sequence[Part]) -> list[T]:
        """``action(part)`` of every part, anywhere."""
        ...

    def networks(self) -> dict[int, Network]:
        """Where the shards of a training can listen."""
        ...


@dataclass(frozen=True)
class FitSettings:
    """A fit but for its table.

    initial : "forest", "mean" or "given".  held_out : the share of rows that are not fitted.
    sample : about how many rows are seen by whoever leads, of those fitted and of those not, each.
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

    def __post_init__(self) -> None:
        """Only these weights follow from sums over shards."""
        if not isinstance(self.rescaling, Unit | Relaxed | Adaptive):
            raise TypeError(
                f"rescaling={self.rescaling!r}: over several shards, only 'unit', 'relaxed' and "
                "'adaptive' can be computed"
            )


@dataclass(frozen=True)
class DistributedStep:
    """Where round t led; t = 0 is the start, which has no round.

    loss : mean of (y − f)² over all training rows.  f_sample, f_held_out : of the rows seen here.
    """

    t: int
    round: Round | None
    loss: float
    f_sample: Floats
    f_held_out: Floats


class DistributedFit:
    """A fit to a table, over shards that somebody holds.

    checkpoint : a folder, or None.  tell : hears of what takes long.
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
        self.rounds: list[Round] = []
        self.losses: list[float] = []
        self._shares = table.shared_out(holders.n_shards)
        self._at = dict.fromkeys(range(holders.n_shards), ABSENT)
        self._states: dict[int, State] = {}
        self.sampled = False
        self._reads: dict[tuple[int, int], Read] = {}  # by shard and place of the part in it
        self._n_read: dict[int, int] = {}
        self._checkpoint = None
        if checkpoint is not None:
            self._checkpoint = Checkpoint(checkpoint, self._fingerprint())

    def run(self) -> Iterator[DistributedStep]:
        """Yield the start and every round."""
        known = [] if self._checkpoint is None else self._checkpoint.load()
        known = known[: self.settings.n_rounds + 1]
        if len(known) > 1:
            self.tell(f"going on after round {len(known) - 1}, from {self._checkpoint}")
        self._prepare(known)
        sample, held_out = self.sample, self.held_out
        f, f_out = (self.initial.predict(rows.X, rows.f0) for rows in (sample, held_out))
        yield DistributedStep(0, None, self.losses[0], f, f_out)
        for t in range(self.settings.n_rounds):
            if t == len(self.rounds):
                self._round(t, f)
            f = advance(f, sample.X, self.rounds[t], self.settings.eta)
            f_out = advance(f_out, held_out.X, self.rounds[t], self.settings.eta)
            yield DistributedStep(t + 1, self.rounds[t], self.losses[t + 1], f, f_out)

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
            encoding, s.trees, s.eta, s.bins, s.seed, s.held_out,
            sampled=min(1.0, s.sample / max(1.0, table.n_rows - n_held_out)),
            sampled_out=min(1.0, s.sample / max(1.0, n_held_out)),
            n_threads=self.holders.n_threads,
        )  # fmt: skip
        self.holders.require(size_of(table.n_rows / self.holders.n_shards, len(encoding.names)))
        self._retried(self._read_missing)
        reads = [self._reads[key] for key in sorted(self._reads)]
        self.sample = Rows.joined([read.training for read in reads])
        self.held_out = Rows.joined([read.held_out for read in reads])
        self.sampled = True
        self._y_mean = math.fsum(r.y_sum for r in reads) / max(1, sum(r.n for r in reads))
        self._reads.clear()
        if len(self.sample.y) < 2:
            raise Unfit(f"a table of {table.n_rows} rows is too small to be fitted in parts")
        if s.held_out and len(self.held_out.y) < 2:
            raise Unfit(f"of {table.n_rows} rows, a share of {s.held_out:g} leaves none to look at")
        _require_scale(self.sample.y)
        self.encoding = encoding.with_fills_of(self.sample.X)
        with tempfile.TemporaryDirectory() as folder:
            self._reference = reference_of(self.sample.X, self.shard_settings, Path(folder))
        self._retried(self._bin_missing)
        self.initial = self._known_initial(known) if known else self._new_initial()
        self.rounds = [
            Round(_ensemble(str(saved.model), saved.constant), saved.weight, saved.gap)
            for saved in known[1:]
        ]
        self.losses = [saved.loss for saved in known]
        self._retried(self._restore)
        if not known:
            self._arrive(math.nan, math.nan, math.nan, _text_of(self.initial))
        elif (loss := self._mean("loss")) != self.losses[-1]:
            raise Unfit(
                f"{self._checkpoint}: its rounds do not fit this table, or other versions made "
                f"them (loss {loss!r} instead of {self.losses[-1]!r}); choose another folder"
            )

    def _encoding(self) -> Encoding:
        """Numbers as they are; of words, the levels in all parts."""
        words = self.table.words
        levels: dict[str, set[str]] = {name: set() for name in words}
        if words:
            of_parts = self.holders.map_parts(_Levels(words), self.table.parts)
            for found in of_parts:
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

    def _known_initial(self, known: Sequence[Saved]) -> Initial:
        text = known[0].model
        if self.settings.initial == "forest":
            return Initial(LightgbmForest(str(text)))
        return Initial(None if text is None else MeanRegressor(float(text)))

    def _new_initial(self) -> Initial:
        s = self.settings
        if s.initial == "given":
            return Initial()
        if s.initial == "mean":
            return Initial(MeanRegressor(self._y_mean))
        return Initial(
            fitted_forest(
                self.sample.X, self.sample.y, s.forest, s.bins, s.seed, self.encoding.categorical
            )
        )

    # --- rounds ---------------------------------------------------------------------------------

    def _round(self, t: int, f_sample: Floats) -> None:
        s = self.settings
        constant = self._mean("residual")
        arguments = (f_sample, constant, round_seed(s.seed, t))

        def train() -> tuple[str, dict[int, Trained]]:
            self._restore()
            return self._trained(Shard.train, dict.fromkeys(self._at, arguments))

        def move() -> None:
            self._restore()  # with this round, where a shard is made again
            behind = {k: (weight,) for k, at in self._at.items() if at == t}
            self._each(Shard.step, behind, self._arrived)

        model, trained = self._retried(train)
        weight = self._weight(t, list(trained.values()))
        self.rounds.append(Round(_ensemble(model, constant), weight, math.nan))
        self._retried(move)
        gap = math.sqrt(math.fsum(state.gap for state in self._states.values()))
        self.rounds[t] = replace(self.rounds[t], gap=gap)
        self._arrive(weight, gap, constant, model)

    def _arrive(self, weight: float, gap: float, constant: float, model: str | None) -> None:
        """Note, and keep, where the last round has led."""
        self.losses.append(self._mean("loss"))
        if self._checkpoint is not None:
            saved = Saved(self.losses[-1], weight, gap, constant, model)
            self._checkpoint.save(len(self.losses) - 1, saved)

    def _weight(self, t: int, trained: Sequence[Trained]) -> float:
        """w_t from inner products alone: one row stands for all, with the same ones."""
        y_phi = math.fsum(part.y_phi for part in trained)
        norm = math.sqrt(math.fsum(part.phi_phi for part in trained))
        y, phi = np.array([y_phi / norm if norm else 0.0]), np.array([norm])
        rescaling = self.settings.rescaling
        return finite_weight(rescaling.weight(t, y, phi), rescaling, t)

    def _trained(
        self, action: Callable[..., Trained], arguments: Mapping[int, tuple[Any, ...]]
    ) -> tuple[str, dict[int, Trained]]:
        """What came of a training that all shards take part in, and its model text."""
        networks = self.holders.networks()
        outcomes = self.holders.call(
            action, {k: (*more, networks[k]) for k, more in arguments.items()}, together=True
        )
        outcomes = {k: outcomes[k] for k in sorted(outcomes)}
        if len({outcome.trees_sha256 for outcome in outcomes.values()}) != 1:
            raise ShardsLost("the shards of a training ended with different trees")
        (model,) = (o.model for o in outcomes.values() if o.model is not None)
        return model, outcomes

    @property
    def n_rows(self) -> int:
        """How many rows are fitted."""
        return sum(state.n for state in self._states.values())

    def _mean(self, name: str) -> float:
        """Of a sum that shards tell, over all rows."""
        return math.fsum(getattr(state, name) for state in self._states.values()) / self.n_rows

    # --- shards that are lost -------------------------------------------------------------------

    def _retried(self, action: Callable[[], T]) -> T:
        """What an action gives; where shards are lost on the way, after another try."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return action()
            except ShardsLost as lost:
                if attempt == ATTEMPTS:
                    raise
                self.tell(f"{lost}; trying again")
        raise AssertionError

    def _each(
        self,
        action: Callable[..., T],
        arguments: Mapping[int, tuple[Any, ...]],
        note: Callable[[int, T], None],
    ) -> None:
        """Have shards do something; ``note`` what came of it, also where others were lost."""
        try:
            outcomes: Mapping[int, T] = self.holders.call(action, arguments)
        except ShardsLost as lost:
            for k, outcome in lost.finished.items():
                note(k, outcome)
            raise
        for k, outcome in outcomes.items():
            note(k, outcome)

    def _restore(self) -> None:
        """Make shards that are lost again, up to the rounds there are."""
        self._bin_missing()
        arguments = (self.initial, tuple(self.rounds))
        self._each(Shard.start, dict.fromkeys(self._those_at(BINNED), arguments), self._arrived)

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
        arguments = dict.fromkeys(self._those_at(READ), (self._reference,))
        self._each(Shard.bin, arguments, lambda k, _: self._at.update({k: BINNED}))

    def _those_at(self, place: int) -> list[int]:
        return [k for k, at in self._at.items() if at == place]

    def _has_read(self, k: int, read: Read) -> None:
        if not self.sampled:  # later, what a shard tells is known
            self._reads[k, self._n_read[k]] = read
        self._n_read[k] += 1
        if self._n_read[k] == len(self._shares[k]):
            self._at[k] = READ

    def _arrived(self, k: int, state: State) -> None:
        self._states[k] = state
        self._at[k] = len(self.rounds)

    def _fingerprint(self) -> dict[str, Any]:
        """What the rounds depend on, for a reader, too."""
        s = self.settings
        return {
            "lightgbm": lightgbm_package().__version__,
            "n_shards": self.holders.n_shards,
            "rows": list(self.table.rows),
            "columns": list(self.table.columns),
            "rescaling": {"name": type(s.rescaling).__name__, **asdict(s.rescaling)},  # type: ignore[call-overload]
            "trees": asdict(s.trees),
            "bins": asdict(s.bins),
            "forest": asdict(s.forest) if s.initial == "forest" else None,
            **{k: getattr(s, k) for k in ("eta", "initial", "held_out", "sample", "seed")},
        }


def _require_scale(y: Floats) -> None:
    """Residuals must not vanish in single precision, which LightGBM has of labels."""
    spread = float(np.ptp(y))
    if 0 < spread < 1e-30:
        raise Unfit(f"y: values that differ by {spread:.1g} are too small; use other units")


@dataclass(frozen=True)
class _Levels:
    """`levels_of` with its columns, to be sent to where parts are."""

    columns: tuple[str, ...]

    def __call__(self, part: Part) -> dict[str, set[str]]:
        return levels_of(part, self.columns, MAX_LEVELS)


def _ensemble(model: str, constant: float) -> LightgbmEnsemble:
    return LightgbmEnsemble(lightgbm_package().Booster(model_str=model), constant)


def _text_of(initial: Initial) -> str | None:
    """An initial predictor in a checkpoint."""
    predictor = initial.predictor
    if isinstance(predictor, LightgbmForest):
        return predictor.model
    return None if predictor is None else repr(predictor.mean)
