"""The error of a config's settings on rows that they were not fitted to, test rows untouched.

The training rows of the seed's split are divided into folds; each is predicted by f_0 and the
rounds fitted to the others. What a sweeper minimises must not be the test error, or the test error
of the best settings would be an optimist's.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
from sklearn.model_selection import KFold

from pipeline import files
from pipeline.boosting.algorithm import advance, boost, mean_squared_error, round_seed
from pipeline.boosting.arrays import Floats
from pipeline.boosting.engines import Ensemble
from pipeline.config.schema import Config
from pipeline.datasets.design import Design, Split, split_at, split_rows
from pipeline.errors import DataError
from pipeline.runs.engines import bound, is_native
from pipeline.runs.keys import key_hash
from pipeline.runs.kinds.rounds import fit_initial
from pipeline.runs.plan import Plan
from pipeline.runs.store import clear_errors
from pipeline.runs.strategies import rescaling_of


@dataclass(frozen=True)
class Validated:
    """Mean squared errors over all training rows, each in a fold that it was not fitted to.

    initial, boosted : of f_0 and after the last round.
    """

    initial: float
    boosted: float


def validated(plan: Plan, on_fold: Callable[[], object]) -> Validated:
    """The errors of a plan's one config, kept in its store and computed once."""
    config = plan.config
    (run,) = plan.run_ids()
    key = run.key | {"folds": config.validation.folds}
    folder = plan.store.root / "validation" / run.folder.parent
    file = folder / f"seed={config.seed:03d}-{key_hash(key)}.json"
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        if kept["key"] == json.loads(json.dumps(key)):
            return Validated(float(kept["initial"]), float(kept["boosted"]))
    except (OSError, ValueError, KeyError, TypeError):
        pass  # absent, or damaged
    errors = validate(config, plan.library.design(config.dataset), on_fold)
    with clear_errors(plan.store.root):
        files.write_text(file, json.dumps({"key": key, **asdict(errors)}, indent=2))
    return errors


def validate(config: Config, design: Design, on_fold: Callable[[], object]) -> Validated:
    """Cross-validate the settings on the training rows; ``on_fold`` hears of every fold."""
    rows, _ = split_rows(len(design.y), config.dataset, config.seed)
    folds = config.validation.folds
    if len(rows) < 2 * folds:
        raise DataError(
            f"{config.dataset.label}: validation.folds={folds} are too many for {len(rows)} "
            "training rows"
        )
    losses, native = [], is_native(config)
    for fitted, held_out in KFold(folds, shuffle=True, random_state=config.seed).split(rows):
        data = split_at(design, config.dataset, rows[fitted], rows[held_out], native=native)
        errors = [mean_squared_error(data.y_test, f) for f in _predictions(config, data)]
        losses.append([len(held_out), *errors])
        on_fold()
    n, initial, boosted = np.array(losses).T
    return Validated(float(n @ initial / n.sum()), float(n @ boosted / n.sum()))


def _predictions(config: Config, data: Split) -> tuple[Floats, Floats]:
    """f_0 and f_T on the held-out rows."""
    boosting = config.boosting
    initial = fit_initial(config, data)
    engine = bound(config, data)

    def fit_round(t: int, f: Floats, residual: Floats) -> tuple[Ensemble, Floats]:
        return engine.fitter.fit(f, residual, round_seed(config.seed, t))

    f = initial.test
    for step in boost(
        data.y_train, initial.train, boosting.rounds, boosting.eta,
        rescaling_of(config.strategy), fit_round,
    ):  # fmt: skip
        f = advance(f, engine.X_test, step, boosting.eta)
    return initial.test, f
