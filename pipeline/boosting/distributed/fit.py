"""Algorithm 1 over the shards of a table, as the driver runs it.

The driver knows the rounds (their trees and weights) and a sample of the rows, never all of them.
A shard can be made again from its parts and the rounds so far, to the same bits. So a lost shard
costs the step in which it was lost. A `Checkpoint` keeps the rounds, so a driver that dies costs
the round in which it died.
"""

import logging
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from ..algorithm import Round, advance, finite_weight, round_seed
from ..arrays import Floats
from ..encoding import MAX_LEVELS, CategoryCode, Code, Encoding, NumberCode
from ..engines.base import TreeSettings
from ..engines.lightgbm import Bins, lightgbm_package
from ..engines.nodes import TreeEnsemble
from ..rescaling import Adaptive, Relaxed, Rescaling, Unit
from .checkpoint import Checkpoint, Saved
from .initial import Initial, fitted_forest
from .parts import ParquetPart, Part, Rows, Table, Unfit
from .shard import (
    Arguments,
    Read,
    Shard,
    ShardSettings,
    State,
    Trained,
    levels_of,
    reference_of,
    size_of,
)

log = logging.getLogger(__name__)

T = TypeVar("T")

ATTEMPTS = 5  # at one step
# How far a shard is that has no f yet; the others are at a round, from 0 on.
ABSENT, READ, BINNED = -3, -2, -1


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
        """Refuse weights that do not follow from sums over shards."""
        if not isinstance(self.rescaling, Unit | Relaxed | Adaptive):
            raise TypeError(
                f"rescaling={self.rescaling!r}: over several shards, only 'unit', 'relaxed' and "
                "'adaptive' can be computed"
            )


@dataclass(frozen=True)
class DistributedStep:
    """The result of round t; t = 0 is the start, which has no round.

    loss : mean of (y − f)² over all training rows.  f_sample, f_held_out : f of the rows that the
    driver sees.
    """

    t: int
    round: Round | None
    loss: float
    f_sample: Floats
    f_held_out: Floats


class DistributedFit:
    """A fit to a table.

    checkpoint : a folder, or None.  tell : is called with a line about what takes long.
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
        spread = float(np.ptp(self.sample.y))
        if 0 < spread < 1e-30:  # residuals would vanish in single precision, as LightGBM has them
            raise Unfit(f"y: values that differ by {spread:.1g} are too small; use other units")
        self.encoding = encoding.with_fills_of(self.sample.X)
        self._reference = reference_of(self.sample.X, self.shard_settings)
        self._retried(self._bin_missing)
        self.initial = Initial.from_text(s.initial, known[0].model) if known else self._start()
        trees = [TreeEnsemble.of_lightgbm(str(one.model), one.constant) for one in known[1:]]
        for ensemble in trees:
            ensemble.check_rows(self.sample.X)
        self.rounds = [
            Round(ensemble, one.weight, one.gap)
            for ensemble, one in zip(trees, known[1:], strict=True)
        ]
        self.losses = [saved.loss for saved in known]
        self._retried(self._restore)
        if not known:
            self._keep(math.nan, math.nan, math.nan, self.initial.text())
        elif (loss := self._mean("loss")) != self.losses[-1]:
            raise Unfit(
                f"{self._checkpoint}: its rounds do not fit this table, or other versions made "
                f"them (loss {loss!r} instead of {self.losses[-1]!r}); choose another folder"
            )

    def _encoding(self) -> Encoding:
        """Numbers stay as they are; words are numbered by the levels in all parts."""
        words = self.table.words
        levels: dict[str, set[str]] = {name: set() for name in words}
        find = partial(levels_of, columns=words, most=MAX_LEVELS)
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

    def _start(self) -> Initial:
        s = self.settings
        if s.initial == "forest":
            X, y, categorical = self.sample.X, self.sample.y, self.encoding.categorical
            return Initial(fitted_forest(X, y, s.forest, s.bins, s.seed, categorical))
        return Initial.from_text(s.initial, repr(self._y_mean))

    # --- rounds ---------------------------------------------------------------------------------

    def _round(self, t: int, f_sample: Floats) -> None:
        constant = self._mean("residual")
        arguments = (f_sample, constant, round_seed(self.settings.seed, t))

        def train() -> list[Trained]:
            self._restore()
            everywhere = dict.fromkeys(self._at, arguments)
            trained = list(self.holders.call(Shard.train, everywhere, together=True).values())
            if len({outcome.trees_sha256 for outcome in trained}) != 1:
                raise ShardsLost("the shards of a training ended with different trees")
            return trained

        def move() -> None:
            self._restore()  # a shard that is made again has this round already
            self._each(Shard.step, dict.fromkeys(self._those_at(t), (weight,)), self._has_state)

        trained = self._retried(train)
        (model,) = (outcome.model for outcome in trained if outcome.model is not None)
        weight = self._weight(t, trained)
        self.rounds.append(Round(TreeEnsemble.of_lightgbm(model, constant), weight, math.nan))
        self._retried(move)
        gap = math.sqrt(math.fsum(state.gap for state in self._states.values()))
        self.rounds[t] = replace(self.rounds[t], gap=gap)
        self._keep(weight, gap, constant, model)

    def _keep(self, weight: float, gap: float, constant: float, model: str | None) -> None:
        """Keep the results of the last round."""
        self.losses.append(self._mean("loss"))
        if self._checkpoint is not None:
            saved = Saved(self.losses[-1], weight, gap, constant, model)
            self._checkpoint.save(len(self.losses) - 1, saved)

    def _weight(self, t: int, trained: Sequence[Trained]) -> float:
        """w_t from inner products alone, as that of a single row with the same products."""
        y_phi = math.fsum(part.y_phi for part in trained)
        norm = math.sqrt(math.fsum(part.phi_phi for part in trained))
        y, phi = np.array([y_phi / norm if norm else 0.0]), np.array([norm])
        rescaling = self.settings.rescaling
        return finite_weight(rescaling.weight(t, y, phi), rescaling, t)

    @property
    def n_rows(self) -> int:
        """The number of rows that are fitted."""
        return sum(state.n for state in self._states.values())

    def _mean(self, name: str) -> float:
        """The mean over all rows of something whose sums the shards return."""
        return math.fsum(getattr(state, name) for state in self._states.values()) / self.n_rows

    # --- shards that are lost -------------------------------------------------------------------

    def _retried(self, action: Callable[[], T]) -> T:
        """The result of an action, which is tried again if shards are lost on the way."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return action()
            except ShardsLost as lost:
                if attempt == ATTEMPTS:
                    raise
                self.tell(f"{lost}; trying again")
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
        arguments = (self.initial, tuple(self.rounds))
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
        arguments = dict.fromkeys(self._those_at(READ), (self._reference,))
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

    def _has_state(self, k: int, state: State) -> None:
        self._states[k] = state
        self._at[k] = len(self.rounds)

    def _fingerprint(self) -> dict[str, Any]:
        """All that the rounds depend on, in a readable form."""
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
