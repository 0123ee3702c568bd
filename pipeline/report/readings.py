"""How the paper was read where it is silent: question, reading, config key, reason."""

from __future__ import annotations

from dataclasses import astuple, dataclass


@dataclass(frozen=True)
class Chosen:
    """The reading chosen for a question."""

    question: str
    reading: str
    key: str
    why: str


CHOSEN = (
    Chosen("Target", "raw units, unless said otherwise", "dataset.target_scaling",
           "With raw targets Relaxed's first weight delays its best round as the paper reports."),
    Chosen("Multicalibration error", "every leaf of 100 random trees of depth 3 is a weak learner",
           "audit=…", "The sample-mean estimator over random trees that the paper describes; two "
           "other readings are recorded beside it."),
    Chosen("Audit trees", "seeded by dataset and seed; thresholds uniform in a node's range",
           "audit.*", "Curves over rounds and strategies then differ by the predictor alone."),
    Chosen("Split", "train_test_split(test_size=0.2, random_state=seed); the paper's grid has "
           "seeds 0–19", "dataset.test_size",
           "The text, literally. Training curves use the same splits."),
    Chosen("Test predictions", "every round sees the test rows' own f_t and the training w_t", "—",
           "The only reading under which the result is a predictor."),
    Chosen("Tail of the log-gap", "second half of the rounds", "—",
           "R² for every other start is shown as well."),
    Chosen("Best round", "smallest mean test MCE over rounds 0 to T", "—",
           "Round 0, the initial predictor, may be best; the explanations also say what holds from "
           "round 1 on."),
    Chosen("A round's ensemble", "scikit-learn's GradientBoostingRegressor on y − f_t, its own "
           "initial mean included", "boosting.*, engine=…",
           "The exact engine grows the same trees."),
    Chosen("Initial predictor", "RandomForestRegressor(100 trees, depth 5) on the training rows",
           "initial.*", "The text, literally; the exact engine grows the same trees from the same "
           "samples."),
    Chosen("Adult", "education dropped, target education-num + hours-per-week, '?' a level, income "
           "kept", "dataset.drop, dataset.target",
           "The text; it does not give the 101 columns of Table 1."),
    Chosen("German Credit", "target credit amount; the good/bad class kept", "dataset.target",
           "Gives the paper's 48 columns."),
    Chosen("One-hot encoding", "first level dropped", "dataset.drop_first",
           "Gives the paper's 48."),
    Chosen("Crime's missing cells", "mean of the training rows", "dataset.missing",
           "The paper keeps 122 features; scikit-learn's boosting takes no missing values."),
)  # fmt: skip

ROWS = [astuple(chosen) for chosen in CHOSEN]
