"""``stage=validate``: the error of the settings on folds of the training rows, for a sweeper."""

import sys

from tqdm import tqdm

from pipeline.errors import ConfigError, UserError
from pipeline.runs.compilation import compile_kernels
from pipeline.runs.plan import Plan
from pipeline.runs.validation import validated


def main(plan: Plan) -> float:
    """Print the error after the last round, and return it to the sweeper (such as Optuna)."""
    if plan.is_grid:
        raise ConfigError(
            "stage=validate: is of one dataset and strategy, not of a grid; sweep with -m"
        )
    config = plan.config
    compile_kernels()
    folds = config.validation.folds
    with tqdm(total=folds, unit="fold", leave=False, disable=not sys.stderr.isatty()) as bar:
        try:
            errors = validated(plan, bar.update)
        except UserError:
            raise
        except Exception as error:  # of a strategy of one's own
            raise UserError(f"{type(error).__name__}: {error}") from error
    boosting = config.boosting
    print(
        f"{config.dataset.label}/{config.strategy.label}/seed={config.seed} "
        f"eta={boosting.eta:.4g} trees={boosting.trees} max_depth={boosting.max_depth} "
        f"rounds={boosting.rounds}: validation MSE {errors.boosted:.6g} "
        f"(f_0: {errors.initial:.6g})",
        flush=True,
    )
    return errors.boosted
