"""The log-loss at work: the classifier on Adult's income label, round by round."""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
from sklearn.model_selection import train_test_split

from pipeline.boosting.arrays import Floats
from pipeline.boosting.audit import Auditor, error_of
from pipeline.boosting.classifier import MulticalibrationBoostingClassifier
from pipeline.boosting.estimator import PAPER
from pipeline.boosting.logloss import mean_log_loss, sigmoid
from pipeline.config.schema import Config
from pipeline.datasets.design import encode
from pipeline.datasets.sources import RawTable
from pipeline.runs.keys import audit_seed
from pipeline.runs.strategies import rescaling_of

LABEL, POSITIVE = "income", ">50K"
NAME = "adult-income"


def measure(configs: Sequence[Config], table: RawTable) -> pd.DataFrame:
    """Gap, log-loss and multicalibration error of every strategy.

    configs : Adult's, one for each strategy;  table : Adult. All columns but the label are
    covariates, those of the regression's target too.
    """
    dataset = configs[0].dataset
    gone = {LABEL, *dataset.drop}
    covariates = [c for c in table.frame.columns if c not in {*gone, *table.target}]
    X, _ = encode(table.frame, [*covariates, *table.target], dataset)
    y = (table.frame[LABEL] == POSITIVE).to_numpy(int)
    seed = configs[0].seed
    parts = train_test_split(X, y, test_size=dataset.test_size, random_state=seed)
    return pd.DataFrame([row for config in configs for row in _rounds(config, *parts)])


def _rounds(
    config: Config, X_train: Floats, X_test: Floats, y_train: Floats, y_test: Floats
) -> Iterator[dict[str, Any]]:
    boosting, audit = config.boosting, config.audit
    strategy = config.strategy
    own = {
        "n_rounds": boosting.rounds,
        "eta": boosting.eta,
        "rescaling": rescaling_of(strategy),
        "n_trees": boosting.trees,
        "max_depth": boosting.max_depth,
        "learning_rate": boosting.learning_rate,
        "engine": config.engine.name,
        "random_state": config.seed,
    }
    model = MulticalibrationBoostingClassifier(**(PAPER | own)).fit(X_train, y_train)
    sides = {"train": (X_train, y_train), "test": (X_test, y_test)}
    stages = {side: list(model.staged_decision_function(X)) for side, (X, _) in sides.items()}
    seed = audit_seed(NAME, config.seed)
    auditors = {
        side: Auditor(X, n_trees=audit.trees, depth=audit.depth, seed=seed)
        for side, (X, _) in sides.items()
    }
    for t in range(boosting.rounds + 1):
        row: dict[str, Any] = {"strategy": strategy.label, "round": t}
        row["gap"] = model.gaps_[t - 1] if t else None
        for side, (_, labels) in sides.items():
            f = stages[side][t]
            row[f"loss_{side}"] = mean_log_loss(labels, f)
            # The trees see the logit, the residuals are those of the probability.
            leaves = auditors[side].leaves(prediction=f, residual=labels - sigmoid(f))
            row[f"mce_{side}"] = error_of(leaves, audit.reading)
        yield row
