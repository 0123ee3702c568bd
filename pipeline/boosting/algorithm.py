"""Algorithm 1 as one loop over rounds.

f_{t+1} = w_t (f_t + η h_t), where h_t is an ensemble fitted on the features (x, f_t); for the
squared loss, to y − f_t.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .arrays import Floats
from .engines.base import Ensemble
from .rescaling import Rescaling

# (t, f_t, y − f_t) → the round's ensemble and its values h_t on the training rows.
FitRound = Callable[[int, Floats, Floats], tuple[Ensemble, Floats]]

_ROUNDS_AXIS = 1


@dataclass(frozen=True)
class Step:
    """A round of Algorithm 1."""

    t: int  # its number
    ensemble: Ensemble  # h_t
    weight: float  # w_t
    f: Floats  # (n,) the training predictions f_{t+1}
    gap: float  # ‖f_{t+1} − f_t‖₂


@dataclass(frozen=True)
class Round:
    """What a model keeps of a `Step`: its size does not depend on the number of rows."""

    ensemble: Ensemble
    weight: float
    gap: float


def boost(
    y: Floats,
    f0: Floats,
    n_rounds: int,
    eta: float,
    rescaling: Rescaling,
    fit_round: FitRound,
    row_weights: Floats | None = None,
) -> Iterator[Step]:
    """Run Algorithm 1 from f_0 on the training rows and yield one `Step` per round.

    A row with a weight counts like as many copies of it in w_t and in the gaps.
    """
    f = f0
    weights = () if row_weights is None else (row_weights,)
    for t in range(n_rounds):
        ensemble, h = fit_round(t, f, y - f)
        phi = f + eta * h
        weight = finite_weight(rescaling.weight(t, y, phi, *weights), rescaling, t)
        following = weight * phi
        yield Step(t, ensemble, weight, following, norm(following - f, row_weights))
        f = following


def finite_weight(weight: object, rescaling: Rescaling, t: int) -> float:
    """Return a weight as a float; raise ValueError if a user's strategy returned anything else."""
    try:
        number = float(weight)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        found = f"{type(weight).__name__} {np.array2string(np.asarray(weight), threshold=3)}"
        raise ValueError(
            f"{type(rescaling).__name__}.weight gave {found} at round {t}: must be a finite number"
        )
    return number


def advance(
    f: Floats, X: Floats, step: Step | Round, eta: float, feature: Floats | None = None
) -> Floats:
    """Return f_{t+1}(x) of any rows from their f_t(x), which is also the trees' feature if that is
    not given.
    """
    h = step.ensemble.predict(X, f if feature is None else feature)
    return step.weight * (f + eta * h)


def norm(v: Floats, row_weights: Floats | None = None) -> float:
    """Return ‖v‖₂, without BLAS, whose order of summation depends on the number of threads."""
    squares = np.square(v)
    return float(np.sqrt((squares if row_weights is None else row_weights * squares).sum()))


def mean_squared_error(y: Floats, f: Floats) -> float:
    """Return the mean of (y − f)²."""
    return float(np.square(y - f).mean())


def round_seed(seed: int, t: int) -> int:
    """Return the seed of round t's ensemble, the same for every strategy: they share round 0."""
    sequence = np.random.SeedSequence(seed, spawn_key=(_ROUNDS_AXIS, t))
    return int(sequence.generate_state(1, np.uint32)[0])
