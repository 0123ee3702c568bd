"""Rounds of Algorithm 1: a (dataset, strategy, seed) gives a table with a row per round.

What the strategies of one (dataset, seed) have in common (the split, f_0, the engine's view of X,
the audit's trees and round 0's ensemble, which no weight has touched yet) is made once, in
`CommonGround`.
"""

import time
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from pipeline.boosting.algorithm import advance, boost, mean_squared_error, norm, round_seed
from pipeline.boosting.arrays import Floats
from pipeline.boosting.audit import Auditor, error_of, errors_of
from pipeline.boosting.audit.estimates import Reading
from pipeline.boosting.engines import Ensemble
from pipeline.boosting.engines.base import Projects
from pipeline.boosting.engines.hybrid import HybridFitter
from pipeline.boosting.initial import classifier_forest, paper_forest
from pipeline.boosting.logloss import logit, mean_log_loss
from pipeline.boosting.losses import LogLoss, Loss, SquaredLoss
from pipeline.config import schema
from pipeline.datasets.design import Design, Split, split
from pipeline.datasets.parts import require_exact, table_in_parts
from pipeline.errors import ConfigError
from pipeline.runs.engines import bound, is_native
from pipeline.runs.keys import Key, audit_seed, key_hash, run_key, seeds
from pipeline.runs.kinds.base import Kind, OnRound, Row, Run, Setting, ignore_round, record_of
from pipeline.runs.logits import Logits
from pipeline.runs.store import Initial
from pipeline.runs.strategies import rescaling_of

FITTED: Reading = "fitted_leaf_values"
Side = tuple[Floats, Floats, Floats | None]
EXACT_ROWS = 100_000  # up to which the exact engine is at its best
AUDIT_IN_TREES = 50  # a round's audit takes about as long as this many of its trees


class CommonGround:
    """All that the strategies of one (dataset, seed) share."""

    def __init__(self, config: schema.Config, design: Design, initial: Initial | None = None):
        self.config, self.data_sha256 = config, design.data_sha256
        data = split(design, config.dataset, config.seed, native=is_native(config))
        sizes = (len(data.y_train), len(data.y_test))
        if initial is None or (len(initial.train), len(initial.test)) != sizes:
            initial = fit_initial(config, data)
        self.split, self.initial = data, initial
        self.fitter, self.X_test = bound(config, data)
        self.loss = loss_of(config)
        self.measured = Measured(
            config,
            (data.X_train, data.y_train, data.w_train),
            (data.X_test, data.y_test, data.w_test),
        )
        self.auditor_train = self.measured.train

    @cached_property
    def _first_round(self) -> tuple[Ensemble, Floats]:
        return self._fit(0, self.initial.train)

    def fit_round(self, t: int, f: Floats, _: Floats) -> tuple[Ensemble, Floats]:
        """Round t's ensemble and its values on the training rows."""
        return self._first_round if t == 0 else self._fit(t, f)

    def _fit(self, t: int, f: Floats) -> tuple[Ensemble, Floats]:
        seed = round_seed(self.config.seed, t)
        data = self.split
        return self.loss.fit(self.fitter, data.y_train, f, f, seed, data.w_train)


class Measured:
    """What is recorded of the rounds of a (dataset, seed).

    train, test : the rows X (n, d), outcomes y (n,) and weights, if there are any, of both sides of
    the split.
    """

    def __init__(self, config: schema.Config, train: Side, test: Side) -> None:
        _, self.y_train, self.w_train = train
        _, self.y_test, self.w_test = test
        self.train, self.test = (auditor_of(config, X) for X, *_ in (train, test))
        self.loss = loss_of(config)

    def row(
        self, config: schema.Config, t: int, f_train: Floats, f_test: Floats, gap: float = np.nan,
        weight: float = np.nan, loss: float | None = None,
    ) -> Row:  # fmt: skip
        """A row of ``rounds.csv``: round t with its scores of both sides.

        loss : the mean loss of all training rows, where ``train`` is a sample of them.
        """
        losses, w_train, w_test = {}, self.w_train, self.w_test
        if isinstance(self.loss, LogLoss):  # what follows is about probabilities
            if loss is None:
                loss = mean_log_loss(self.y_train, f_train, w_train)
            losses = {
                "loss_train": loss,
                "loss_test": mean_log_loss(self.y_test, f_test, w_test) if len(f_test) else np.nan,
                "largest_logit": float(np.abs(f_train).max()),
            }
            f_train, f_test = self.loss.response(f_train), self.loss.response(f_test)
            loss = None
        if w_train is None:
            on_train = self.train.leaves(prediction=f_train, residual=self.y_train - f_train)
        else:
            on_train = self.train.assess(
                y=self.y_train, prediction=f_train, sample_weight=w_train, n_flips=0
            ).leaves
        on_test = self.test.assess(
            y=self.y_test, prediction=f_test, sample_weight=w_test, symmetric=True
        )
        audit = config.audit
        readings = (audit.reading, *audit.also)
        errors = {"train": errors_of(on_train, readings),
                  "test": errors_of(on_test.leaves, readings)}  # fmt: skip
        if w_train is not None:  # its leaf values count rows
            errors = {side: found | {FITTED: np.nan} for side, found in errors.items()}
        return {
            "dataset": config.dataset.label,
            "strategy": config.strategy.label,
            "seed": config.seed,
            "round": t,
            "mse_train": _mse(self.y_train, f_train, w_train) if loss is None else loss,
            "mse_test": _mse(self.y_test, f_test, w_test),
            **{f"mce_{side}": found[audit.reading] for side, found in errors.items()},
            "gap": gap,
            "weight": weight,
            **losses,
            **{f"mce_{s}_{r}": found[r] for s, found in errors.items() for r in audit.also},
            # Of leaf indicators, whatever the reading; on training rows the correction does not
            # hold.
            "mce_floor_test": on_test.floor,
            "mce2_debiased_test": on_test.debiased_square,
            "mce2_se_test": on_test.standard_error,
            "mce_p_test": on_test.p_value,
        }


def _mse(y: Floats, f: Floats, weights: Floats | None) -> float:
    """The mean of (y − f)², with weights if there are any."""
    if weights is None:
        return mean_squared_error(y, f)
    return float(np.average(np.square(y - f), weights=weights))


def auditor_of(config: schema.Config, X: Floats) -> Auditor:
    """The audit of some rows; its trees depend on dataset and seed, not on strategy or round."""
    seed = audit_seed(config.dataset.label, config.seed)
    return Auditor(X, n_trees=config.audit.trees, depth=config.audit.depth, seed=seed)


def loss_of(config: schema.Config) -> Loss:
    """The loss of a config's rounds."""
    return LogLoss() if config.boosting.loss == "log" else SquaredLoss()


def fit_initial(config: schema.Config, data: Split) -> Initial:
    """f_0: the paper's random forest, on the training rows; for the log-loss its logits."""
    initial = config.initial
    if config.boosting.loss == "log":
        classifier = classifier_forest(config.seed, initial.trees, initial.max_depth)
        classifier.fit(data.X_train, data.y_train, data.w_train)
        sides = (data.X_train, data.X_test)
        return Initial(*(logit(classifier.predict_proba(X)[:, 1]) for X in sides))
    forest = paper_forest(config.seed, initial.trees, initial.max_depth, initial.engine)
    forest.fit(data.X_train, data.y_train, data.w_train)
    return Initial(forest.predict(data.X_train), forest.predict(data.X_test))


def run(config: schema.Config, ground: CommonGround, on_round: OnRound = ignore_round) -> Run:
    """Run a strategy; ``on_round`` is called after every round."""
    started = time.perf_counter()
    eta = config.boosting.eta
    f_train, f_test = ground.initial.train, ground.initial.test
    data, initial, measured = ground.split, ground.initial, ground.measured
    logits = None
    if config.boosting.loss == "log" and data.w_train is None:  # the theory's terms have no weights
        logits = Logits(data.X_train, data.y_train)
    rows = [measured.row(config, 0, f_train, f_test)]
    on_round(rows[0])
    for step in boost(
        data.y_train, initial.train, config.boosting.rounds, eta,
        ground.loss.rescaling(rescaling_of(config.strategy)), ground.fit_round, data.w_train,
    ):  # fmt: skip
        before, fitter = f_train, ground.fitter
        f_train, f_test = step.f, advance(f_test, ground.X_test, step, eta)
        rows.append(measured.row(config, step.t + 1, f_train, f_test, step.gap, step.weight))
        if isinstance(fitter, Projects):  # its Lipschitz constant is no less, per unit of the gap
            rows[-1]["movement"] = fitter.movement(before, f_train)
        if logits is not None:
            rows[-1] |= logits.of_step(before, f_train, eta, step.weight)
        if isinstance(fitter, HybridFitter):
            rows[-1] |= of_hybrid(ground, fitter, before, f_train)
        on_round(rows[-1])
    seconds = time.perf_counter() - started
    # Enough to evaluate the paper's bounds without the data.
    sizes = {
        "n_train": len(data.y_train),
        "n_test": len(data.y_test),
        "n_features": data.X_train.shape[1],
        "norm_y": norm(data.y_train, data.w_train),
        "norm_f0": norm(initial.train, data.w_train),
        "norm_residual0": norm(data.y_train - initial.train, data.w_train),
        "distinct_f0": len(np.unique(initial.train)),
        "distinct_last": len(np.unique(f_train)),
    }
    if isinstance(ground.fitter, HybridFitter):
        model, strong = ground.fitter.strong(data.y_train)
        sizes["mse_strong_train"] = mean_squared_error(data.y_train, strong)
        sizes["mse_strong_test"] = mean_squared_error(data.y_test, model.predict(data.X_test))
    record = record_of(config, ground.data_sha256, seconds, sizes, seeds=seeds(config))
    return rounds_run(rows, record)


def of_hybrid(
    ground: CommonGround, fitter: HybridFitter, before: Floats, after: Floats
) -> dict[str, float]:
    """What a round of the hybrid algorithm adds to a row, for the step from f_t to f_{t+1}.

    to_fixed_point : ‖f_{t+1} − f*‖ / √n, f* = (y + γŷ)/(1 + γ) being the fixed point if A = I.
    display_printed, display_corrected : the multicalibration error of what the paper's expression
    of Ê(f_t) leaves out, over that of f_t, as printed and with the factor 1/(1 + γ).
    """
    y, gamma, eta = ground.split.y_train, fitter.gamma, ground.config.boosting.eta
    _, strong = fitter.strong(y)
    fixed = (y + gamma * strong) / (1 + gamma)
    said, residual = gamma * (y - strong) + (after - before) / eta, y - before

    def error(vector: Floats) -> float:
        return error_of(ground.auditor_train.leaves(prediction=before, residual=vector))

    return {
        "to_fixed_point": norm(after - fixed) / np.sqrt(len(y)),
        "display_printed": error(residual - said) / error(residual),
        "display_corrected": error(residual - said / (1 + gamma)) / error(residual),
    }


def rounds_run(rows: list[Row], record: Row) -> Run:
    """A finished run from its rows."""
    last = rows[-1]
    headline = f"train MSE {last['mse_train']:.4g}, test MCE {last['mce_test']:.4g}"
    return Run(pd.DataFrame(rows), record, headline)


class Rounds(Kind):
    """Rounds of Algorithm 1 on a table in memory."""

    name = "rounds"
    title = "rounds of Algorithm 1"
    axes = ("dataset", "strategy")
    alternatives: ClassVar[tuple[str, ...]] = ("parts",)
    keeps_initial = True

    def check(self, config: schema.Config) -> None:
        rescaling_of(config.strategy)  # may not exist
        dataset = config.dataset
        if config.boosting.loss == "log" and dataset.positive is None:
            raise ConfigError("boosting.loss=log: needs a dataset with dataset.positive")
        if config.boosting.loss == "log" and config.boosting.gamma:
            raise ConfigError("boosting.gamma: is for boosting.loss=squared")
        by_counts = config.audit.reading == FITTED
        if dataset.weight is not None and (config.boosting.gamma or by_counts):
            raise ConfigError(f"dataset.weight: goes with boosting.gamma=0, and not with {FITTED}")
        if dataset.prediction is not None:
            raise ConfigError(
                "dataset.prediction: is for dataset.source=parquet with engine=lightgbm"
            )
        if dataset.source == "parquet" and config.engine.name == "exact":
            require_exact(dataset.label, table_in_parts(dataset).n_rows)

    def label(self, config: schema.Config) -> str:
        return config.strategy.label

    def key(self, config: schema.Config, data_sha256: str) -> Key:
        return run_key(config, data_sha256)

    def ground_key(self, config: schema.Config) -> str:
        key = run_key(config, "")
        del key["strategy"], key["boosting"]["eta"]
        return key_hash(key)

    def advice(self, config: schema.Config, material: Any) -> str:
        if config.engine.name != "exact" or len(material.y) <= EXACT_ROWS:
            return ""
        return (
            f"{config.dataset.label} has {len(material.y):,} rows: beyond {EXACT_ROWS:,}, "
            "engine=lightgbm can be many times faster than the exact engine"
        )

    def size(self, material: Any) -> float:
        # What a tree's time grows with, measured on the paper's datasets: rows and histogram bins.
        bins = sum(min(len(np.unique(column)), 256) for column in material.X[:2000].T)
        return float(len(material.y) + bins)

    def cost(self, config: schema.Config, size: float) -> float:
        return size * (config.boosting.rounds + 1) * (config.boosting.trees + AUDIT_IN_TREES)

    def ground(self, setting: Setting) -> Any:
        return CommonGround(setting.config, setting.material, setting.initial)

    def run(self, config: schema.Config, ground: Any, on_round: OnRound) -> Run:
        return run(config, ground, on_round)


KIND = Rounds()
