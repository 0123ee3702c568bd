"""Algorithm 1 against ten plain lines of scikit-learn, and against the paper's identities."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

from pipeline.boosting import PAPER, Adaptive, MulticalibrationBoostingRegressor, Relaxed, Unit
from pipeline.boosting.algorithm import boost, mean_squared_error, norm, round_seed
from pipeline.boosting.rescaling import resolve

STRATEGIES = ["unit", "relaxed", "adaptive"]


def plain_algorithm_1(rows, y, strategy, eta, n_rounds, seed):
    """The paper's Algorithm 1 with scikit-learn, as plainly as it can be written."""
    f = RandomForestRegressor(100, max_depth=5, random_state=seed).fit(rows, y).predict(rows)
    trajectory = [f]
    for t in range(n_rounds):
        Z = np.column_stack([rows, f])
        gbdt = GradientBoostingRegressor(
            n_estimators=100, max_depth=3, learning_rate=0.1, random_state=round_seed(seed, t)
        )
        phi = f + eta * gbdt.fit(Z, y - f).predict(Z)
        w = {"unit": 1, "relaxed": 1 - (t + 2) ** -3, "adaptive": y @ phi / (phi @ phi)}[strategy]
        f = w * phi
        trajectory.append(f)
    return trajectory


def paper(n_rounds, **parameters):
    return MulticalibrationBoostingRegressor(**(PAPER | {"n_rounds": n_rounds} | parameters))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "engine", "strategy"),
    [
        ("diabetes", "sklearn", "adaptive"),
        *(("german", "exact", strategy) for strategy in STRATEGIES),
        *(pytest.param("diabetes", "sklearn", strategy, marks=pytest.mark.exhaustive)
          for strategy in ("unit", "relaxed")),
    ],
)  # fmt: skip
def test_trajectory_equals_ten_plain_lines_of_sklearn(name, engine, strategy, paper_split):
    X, y, *_ = paper_split(name)
    expected = plain_algorithm_1(X, y, strategy, eta=0.5, n_rounds=4, seed=3)
    forest = RandomForestRegressor(100, max_depth=5, random_state=3)
    model = paper(4, rescaling=strategy, init=forest, engine=engine, random_state=3).fit(X, y)
    for ours, theirs in zip(model.staged_predict(X), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    gaps = [np.linalg.norm(b - a) for a, b in pairwise(expected)]
    np.testing.assert_allclose(model.gaps_, gaps, rtol=1e-10)
    losses = [np.mean((y - f) ** 2) for f in expected]
    np.testing.assert_allclose(model.losses_, losses, rtol=1e-10)


def test_adaptive_predictor_is_the_projection_of_y_on_its_own_line_after_every_round(paper_split):
    X, y, *_ = paper_split("diabetes")
    model = paper(5, eta=1.0, rescaling="adaptive", random_state=0).fit(X, y)
    for f in list(model.staged_predict(X))[1:]:
        assert y @ f == pytest.approx(f @ f, rel=1e-12)


@pytest.mark.parametrize("strategy", ["unit", "adaptive"])
def test_unit_and_adaptive_never_raise_the_training_loss(strategy, paper_split):
    X, y, *_ = paper_split("german")
    model = paper(8, rescaling=strategy, random_state=1)
    model.fit(X, y)
    assert (np.diff(model.losses_) <= 0).all()


def test_relaxed_weights_are_the_papers_power_law_from_t_0(paper_split):
    X, y, *_ = paper_split("diabetes")
    model = paper(6, rescaling="relaxed", n_trees=3, random_state=0)
    model.fit(X, y)
    # 1 - 1/8, 1 - 1/27, 1 - 1/64, ...
    expected = [7 / 8, 26 / 27, 63 / 64, 124 / 125, 215 / 216, 342 / 343]
    np.testing.assert_allclose(model.weights_, expected, rtol=1e-15)


VECTORS = hnp.arrays(np.float64, 12, elements=st.floats(-1e6, 1e6))


@given(VECTORS, VECTORS, st.floats(-10, 10))
def test_adaptive_weight_is_at_least_as_good_as_any_other(y, phi, other):
    w = Adaptive().weight(0, y, phi)
    loss, rival = norm(y - w * phi), norm(y - other * phi)
    assert loss <= rival * (1 + 1e-9) + 1e-6 * (1 + norm(y))


@given(VECTORS, st.integers(0, 100))
def test_unit_and_relaxed_weights_ignore_the_data(y, t):
    assert Unit().weight(t, y, y) == 1
    assert 0.875 <= Relaxed().weight(t, y, -y) < 1


def test_adaptive_weight_is_one_where_the_candidate_vanishes():
    assert Adaptive().weight(0, np.ones(3), np.zeros(3)) == 1.0


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_adaptive_weight_survives_extreme_scales(scale):
    phi = scale * np.array([1.0, 2.0])
    assert Adaptive().weight(0, 3 * phi, phi) == pytest.approx(3)


def test_users_own_strategy_needs_only_a_weight_method(paper_split):
    class Damped:
        def weight(self, t, y, phi):
            return 0.9 if t < 2 else 1.0

    X, y, *_ = paper_split("diabetes")
    model = paper(3, rescaling=Damped(), n_trees=2, random_state=0)
    assert list(model.fit(X, y).weights_) == [0.9, 0.9, 1.0]


@pytest.mark.parametrize(("bad", "error"), [("fast", ValueError), (3, TypeError)])
def test_unknown_strategy_is_refused(bad, error):
    with pytest.raises(error, match="rescaling="):
        resolve(bad)


def test_round_seeds_differ_between_rounds_and_seeds_and_never_change():
    seeds = {round_seed(s, t) for s in range(20) for t in range(20)}
    assert len(seeds) == 400
    assert round_seed(0, 0) == 3953331965  # stored runs depend on it
    assert mean_squared_error(np.array([1.0, 3.0]), np.array([0.0, 1.0])) == 2.5


@pytest.mark.parametrize("value", [np.nan, np.inf, None, "x", np.zeros(3)])
def test_weight_that_is_no_finite_number_is_refused_with_its_round(value):
    class Odd:
        def weight(self, t, y, phi):
            return value if t else 1.0

    y = np.array([0.0, 1.0, 2.0])
    steps = boost(y, y + 1, 3, 0.5, Odd(), lambda t, f, residual: (None, residual))
    assert next(steps).weight == 1.0
    with pytest.raises(ValueError, match=r"Odd.weight gave .* at round 1: must be a finite number"):
        next(steps)
