"""``stage=validate``: the error of the settings on folds of the training rows, for a sweeper."""

from __future__ import annotations

import sys

from tqdm import tqdm

from pipeline.errors import ConfigError
from pipeline.runs.compilation import compile_kernels
from pipeline.runs.plan import Plan
from pipeline.runs.validation import validate


def main(plan: Plan) -> float:
    """Print the error after the last round, and give it to whoever asked (such as Optuna)."""
    if plan.is_grid:
        raise ConfigError(
            "stage=validate: is of one dataset and strategy, not of a grid; sweep with -m"
        )
    config = plan.config
    compile_kernels()
    folds = config.validation.folds
    with tqdm(total=folds, unit="fold", leave=False, disable=not sys.stderr.isatty()) as bar:
        errors = validate(config, plan.library.design(config.dataset), bar.update)
    boosting = config.boosting
    print(
        f"{config.dataset.label}/{config.strategy.label}/seed={config.seed} "
        f"eta={boosting.eta:.4g} trees={boosting.trees} max_depth={boosting.max_depth} "
        f"rounds={boosting.rounds}: validation MSE {errors.boosted:.6g} "
        f"({errors.boosted / errors.initial - 1:+.1%} against f_0)",
        flush=True,
    )
    return errors.boosted
