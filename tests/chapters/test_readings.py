"""How likely the paper's statements are under each reading of it."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.chapters.readings import CHAPTER, likelihood
from pipeline.config.compose import load
from pipeline.errors import ConfigError
from pipeline.runs.plan import make_plan
from pipeline.stages import reproduce
from tests.chapters.test_claims import SEEDS, evidence, on, rise_always

AUDIT = SimpleNamespace(reading="leaf_indicators", also=())
PLAN = SimpleNamespace(config=SimpleNamespace(audit=AUDIT))


def variant(rows="80 %", target="raw", t="from 0"):
    return likelihood.Variant(rows, target, t, PLAN)


def test_statement_that_every_run_satisfies_or_none_is_as_sure_as_the_seeds_allow():
    rising = evidence(on(["german"], ["unit"], "mse_train", rise_always))
    for runs, share in ((evidence(), (SEEDS + 1) / (SEEDS + 2)), (rising, 1 / (SEEDS + 2))):
        table = likelihood.probabilities([(variant(), runs)])
        assert len(table) == 2 * 3 * 2  # curves, tails, round 0
        assert table["MSE monotone"].unique() == [pytest.approx(share)]


def test_posterior_follows_the_statement_that_tells_readings_apart():
    rising = evidence(on(["german"], ["unit"], "mse_train", rise_always))
    table = likelihood.probabilities([(variant(), rising), (variant(t="from 1"), evidence())])
    options = likelihood.by_choice(table).set_index(["choice", "option"])["posterior"]
    assert options["t", "from 1"] == pytest.approx((SEEDS + 1) / (SEEDS + 2))
    for choice in likelihood.AXES:
        assert options[choice].sum() == pytest.approx(1)


def test_rows_that_no_split_held_out_say_nothing_of_test_errors():
    both = [(variant(), evidence()), (variant(rows="all"), evidence())]
    table = likelihood.probabilities(both)
    assert len(table) == 2 * 2 * 3 * 2
    np.testing.assert_allclose(
        *(table.loc[table["rows"] == rows, likelihood.STATEMENTS] for rows in ("80 %", "all"))
    )


def test_rise_counts_if_there_is_one_and_it_is_within_the_papers():
    for rise, share in ((0.0, 1), (0.06, SEEDS + 1), (0.2, 1)):
        bent = on(["german"], ["unit"], "gap", lambda g, _, r=rise: bend(g, r))
        table = likelihood.probabilities([(variant(), evidence(bent))])
        assert table["gaps rise, by ≤ 10 %"].unique() == [pytest.approx(share / (SEEDS + 2))]


def bend(gap, rise):
    """A curve with one step of the given rise."""
    gap = gap.copy()
    gap[7] = gap[6] * (1 + rise)
    return gap


@given(share=st.floats(0, 1), n=st.integers(1, 1000))
def test_smoothed_share_is_never_certain(share, n):
    assert 0 < likelihood.smoothed(share, n) < 1
    assert abs(likelihood.smoothed(share, n) - share) <= 1 / (n + 2) + 1e-12


def test_runs_of_all_readings_are_each_computed_once():
    some = ["experiment.seeds=[0]", "experiment.datasets=[german]"]
    plan, everything = (
        make_plan(load([f"experiment={name}", *some]), [f"experiment={name}", *some])
        for name in ("paper", "readings")
    )
    assert everything.n_runs == 2 * 2 * 4  # rows x scalings x (unit, relaxed twice, adaptive)
    assert len({r.folder for r in everything.run_ids()}) == 16
    variants = likelihood.variants(plan)
    assert (variants[0].rows, variants[0].target, variants[0].t) == ("80 %", "raw", "from 0")
    assert {r.folder for v in variants for r in v.plan.run_ids()} == {
        r.folder for r in everything.run_ids()
    }
    assert [r.folder for r in variants[0].plan.run_ids()] == [r.folder for r in plan.run_ids()]


def test_grid_that_is_no_replication_is_refused_before_anything_runs(tmp_path):
    small = ["experiment=readings", "experiment.datasets=[german]", f"output_dir={tmp_path}"]
    with pytest.raises(ConfigError, match="readings needs the paper's datasets"):
        reproduce.main(make_plan(load(small), small))
    assert not list(tmp_path.iterdir())


def test_the_default_reading_is_among_those_of_the_experiment():
    lines = ["experiment=readings"]
    CHAPTER.check(make_plan(load(lines), lines))
