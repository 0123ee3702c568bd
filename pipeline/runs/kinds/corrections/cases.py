"""The model that is corrected, and the rows of a (dataset, situation, seed).

The test rows are those of every run of the seed. The others are rows to correct on and validation
rows, a fixed share of them; where the model was fitted to other rows, that is half of them. The
model sees neither validation nor test rows; a known function is given, made from the whole table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pipeline.boosting.arrays import Flags, Floats, Ints
from pipeline.boosting.initial import classifier_forest, paper_forest
from pipeline.boosting.logloss import logit, sigmoid
from pipeline.boosting.peers.base import Sample
from pipeline.boosting.peers.trees import boosted_trees
from pipeline.config.schema import Config, Situation
from pipeline.datasets.design import Design, split_at, split_rows
from pipeline.errors import DataError

VALIDATION = 0.25  # of the rows to correct on
STOPPING = 0.2  # of a boosted model's own rows
FEWEST_ROWS = 40
FOLDS = 5
TRUTH_SEED, TRUTH_TREES = 0, 40  # of the known function
NOISE, SHIFT = 1, 2  # spawn keys of what a seed draws


@dataclass(frozen=True)
class Case:
    """A model's predictions on rows to correct it on, rows to choose by, and test rows."""

    correct: Sample
    validation: Sample
    test: Sample
    named: Flags  # (n_test, g) test rows in the groups of the sensitive columns
    truth: Floats | None  # (n_test,) the expected outcomes of the test rows where they are known
    scale: float  # the outcomes' standard deviation


def make_case(config: Config, design: Design) -> Case:
    """The case of a config's dataset, situation and seed."""
    dataset, situation = config.dataset, config.situation
    train, test = split_rows(len(design.y), dataset, config.seed)
    if len(train) < FEWEST_ROWS:
        raise DataError(
            f"{dataset.label}: {len(train)} training rows are too few for a correction, which "
            f"divides them; at least {FEWEST_ROWS} are needed"
        )
    _require_columns(config, design)
    half = 0 if situation.rows == "same" else len(train) // 2
    fitted, to_correct = train[:half], train[half:]
    n_validation = round(VALIDATION * len(to_correct))
    validation, correct = to_correct[:n_validation], to_correct[n_validation:]
    if situation.rows == "same":
        fitted = correct
    groups = _groups(design, design.covariates)
    named = _groups(design, dataset.sensitive)
    cells = np.unique(named, axis=0, return_inverse=True)[1].ravel()
    X = split_at(design, dataset, train, np.arange(len(design.y))).X_test  # filled as in training
    y, truth = design.y, None
    binary = dataset.positive is not None
    if situation.model == "truth":
        # Expected outcomes that are like the table's: some trees of LightGBM on all of it.
        truth = boosted_trees(X, y, X, y, binary, TRUTH_SEED, n_trees=TRUTH_TREES).predict(X)
        y = _drawn(truth, y, binary, _rng(config.seed, NOISE))
        f = _biased(truth, _shifted_group(design, dataset.sensitive), situation.size, binary, y)
    else:
        f = _model_predictions(config, design, X, fitted, binary)
    everything = Sample(X=X, y=y, f=f, groups=groups, cells=cells, binary=binary)
    return Case(
        everything.take(correct), everything.take(validation), everything.take(test), named[test],
        None if truth is None else truth[test], float(y[to_correct].std()),
    )  # fmt: skip


def _require_columns(config: Config, design: Design) -> None:
    dataset, sensitive = config.dataset, config.dataset.sensitive
    unknown = [name for name in sensitive if name not in design.covariates]
    if unknown:
        raise DataError(
            f"dataset.sensitive={unknown[0]}: {dataset.label} has no such covariate; it has "
            f"{', '.join(design.covariates[:12])}"
        )
    if not sensitive and (config.situation.withheld or config.situation.change != "none"):
        raise DataError(
            f"dataset.sensitive: must name a column that situation={config.situation.name} is "
            "about, such as dataset.sensitive=[sex]"
        )


def _model_predictions(
    config: Config, design: Design, X: Floats, fitted: Ints, binary: bool
) -> Floats:
    """The predictions for all rows of a model that was fitted to some, as it came to be."""
    situation, sensitive = config.situation, config.dataset.sensitive
    y, rows = design.y, fitted
    rng = _rng(config.seed, SHIFT)
    if situation.change == "outcomes":
        y = _before(y, _shifted_group(design, sensitive), situation.size, binary, rng)
    elif situation.change == "sampling":
        group = _shifted_group(design, sensitive)
        rows = fitted[~group[fitted] | (rng.random(len(fitted)) < situation.size)]
    seen = X
    if situation.withheld:
        hidden = [j for name in sensitive for j in design.features_of(name)]
        seen = np.delete(X, hidden, axis=1)
    f = _fitted(situation.model, seen[rows], y[rows], binary, config.seed)(seen)
    if situation.predictions != "in_sample":
        f[rows] = _honest(situation, seen[rows], y[rows], binary, config.seed)
    if situation.change == "bias":
        f = _biased(f, _shifted_group(design, sensitive), situation.size, binary, y[fitted])
    return f


def _honest(situation: Situation, X: Floats, y: Floats, binary: bool, seed: int) -> Floats:
    """Predictions (n,) of a model's own rows by models that were not fitted to them."""
    if situation.predictions == "out_of_bag":
        forest = _unfitted_forest(binary, seed).set_params(oob_score=True).fit(X, y)
        return forest.oob_decision_function_[:, 1] if binary else forest.oob_prediction_
    f = np.empty(len(y))
    for others, fold in KFold(FOLDS, shuffle=True, random_state=seed).split(X):
        f[fold] = _fitted(situation.model, X[others], y[others], binary, seed)(X[fold])
    return f


def _unfitted_forest(binary: bool, seed: int) -> Any:
    return classifier_forest(seed) if binary else paper_forest(seed)


def _fitted(kind: str, X: Floats, y: Floats, binary: bool, seed: int) -> Callable[[Floats], Floats]:
    """A model's predictions, or probabilities, as a function of rows."""
    if kind == "boosted":
        aside = round(STOPPING * len(y))
        return boosted_trees(
            X[aside:], y[aside:], X[:aside], y[:aside], binary, seed, learning_rate=0.05
        ).predict
    if kind == "forest":
        model = _unfitted_forest(binary, seed)
    else:
        linear = LogisticRegression(max_iter=1000) if binary else Ridge()
        model = make_pipeline(StandardScaler(), linear)
    model.fit(X, y)
    return lambda rows: np.array(model.predict_proba(rows)[:, 1] if binary else model.predict(rows))


# --- a known function ----------------------------------------------------------------------------


def _drawn(truth: Floats, y: Floats, binary: bool, rng: np.random.Generator) -> Floats:
    """Outcomes around the truth; the noise is drawn from what the truth leaves of the table."""
    if binary:
        return (rng.random(len(truth)) < truth).astype(np.float64)
    noise = y - truth
    return truth + rng.choice(noise - noise.mean(), len(truth))


def _biased(f: Floats, group: Flags, size: float, binary: bool, y: Floats) -> Floats:
    """Predictions with a bias in a group: standard deviations, or twice as many logits."""
    if binary:
        return sigmoid(logit(f) + 2 * size * group)
    return f + size * y.std() * group


def _before(y: Floats, group: Flags, size: float, binary: bool, rng: np.random.Generator) -> Floats:
    """A group's outcomes as they were before they rose: lower, or a share of them not yet 1."""
    if binary:
        return np.where(group & (rng.random(len(y)) < size), 0.0, y)
    return y - size * y.std() * group


def _rng(seed: int, purpose: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(purpose,)))


# --- groups ---------------------------------------------------------------------------------------


def _groups(design: Design, covariates: tuple[str, ...]) -> Flags:
    """(n, g) flags: every level of every category, and the thirds of every number."""
    found = [flags for name in covariates for flags in _groups_of(design, name)]
    return np.column_stack(found) if found else np.zeros((len(design.y), 0), np.bool_)


def _groups_of(design: Design, covariate: str) -> list[Flags]:
    own = design.features_of(covariate)
    columns = design.X[:, own]
    if len(own) == 0:  # a category with one level
        return []
    if design.feature_names[own[0]] != covariate:  # indicators, of all levels but perhaps the first
        levels = [columns[:, k] > 0.5 for k in range(len(own))]
        rest = ~np.any(levels, axis=0)
        return [rest, *levels] if rest.any() else levels
    values = columns[:, 0]
    distinct = np.unique(values[~np.isnan(values)])
    if len(distinct) <= 3:
        return [values == v for v in distinct] if len(distinct) > 1 else []
    low, high = np.nanquantile(values, [1 / 3, 2 / 3])
    thirds = [values <= low, (values > low) & (values <= high), values > high]
    return [third for third in thirds if third.any()]


def _shifted_group(design: Design, sensitive: tuple[str, ...]) -> Flags:
    """The group that something happens to: the second largest of the first sensitive column."""
    groups = _groups_of(design, sensitive[0])
    if len(groups) < 2:
        raise DataError(f"dataset.sensitive: {sensitive[0]} has no two groups")
    return sorted(groups, key=lambda flags: -int(flags.sum()))[1]
