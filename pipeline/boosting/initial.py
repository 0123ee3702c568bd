"""The paper's initial predictor f_0: a random forest of 100 trees of depth 5."""

from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from .forest import ExactRandomForestRegressor

N_TREES, MAX_DEPTH = 100, 5
FORESTS = {"exact": ExactRandomForestRegressor, "sklearn": RandomForestRegressor}


def paper_forest(
    seed: int,
    n_trees: int = N_TREES,
    max_depth: int = MAX_DEPTH,
    engine: str = "exact",
    n_jobs: int | None = None,
) -> ExactRandomForestRegressor | RandomForestRegressor:
    """Return the paper's forest, not fitted; both engines grow the same trees, up to ties."""
    return FORESTS[engine](n_trees, max_depth=max_depth, n_jobs=n_jobs, random_state=seed)


def classifier_forest(
    seed: int,
    n_trees: int = N_TREES,
    max_depth: int = MAX_DEPTH,
    n_jobs: int | None = None,
) -> RandomForestClassifier:
    """Return the same forest for classes, which is scikit-learn's, not fitted."""
    return RandomForestClassifier(n_trees, max_depth=max_depth, n_jobs=n_jobs, random_state=seed)
