"""The chapter about the trees' feature, from tables whose answer is known."""

import itertools

import numpy as np
import pandas as pd
import pytest

from pipeline.chapters.feedback import effects

LAST = {"in_sample": 1.5, "honest": 0.9, "initial": 1.0, "none": 1.1}


def table(last=LAST, renewal=0.1, train=0.1):
    """Runs whose loss at the end is known; in sample it grows when renewed more often."""
    rows = []
    cells = itertools.product(["a", "b"], ["forest", "boosted"], [0, 1], LAST, [10, 100])
    for dataset, situation, seed, feedback, every in cells:
        start = 2.0 + seed + (dataset == "b")
        more = renewal * (every == 10) * (feedback == "in_sample")
        losses = {"start": start, "own": start * (last[feedback] + more), "oracle": 0.8 * start}
        rows += [
            {
                "dataset": dataset, "situation": situation, "seed": seed, "feedback": feedback,
                "every": every, "rule": rule, "loss": loss, "mse": loss, "mce_floor": 2.0,
                "mce2_debiased": 4.0 * last[feedback], "mce_train": 0.5,
                "loss_train": train if feedback == "in_sample" else 0.2,
            }
            for rule, loss in losses.items()
        ]  # fmt: skip
    return effects.measure(pd.DataFrame(rows))


def verdicts(runs):
    return [judged.verdict for judged in effects.judge.judge_all(runs)]


def test_changes_are_means_of_log_ratios_over_cells():
    means = effects.summary(table())
    assert means.loc[("honest", 10), "last"] == pytest.approx(-0.1)
    assert means.loc[("in_sample", 10), "last"] == pytest.approx(0.6)
    assert means.loc[("none", 100), "best"] == pytest.approx(-0.2)
    assert means.loc[("none", 100), "mce"] == pytest.approx(1.1)


def test_statements_hold_where_the_table_says_so_and_fail_where_it_says_the_opposite():
    assert verdicts(table()) == ["holds"] * 4
    turned = {"in_sample": 0.5, "honest": 0.9, "initial": 1.0, "none": 1.1}
    assert verdicts(table(turned, renewal=0.0, train=0.3)) == [
        "does not hold",
        "does not hold",
        "partly",
        "does not hold",
    ]


def test_one_alternative_that_is_no_better_makes_it_partly():
    some = LAST | {"none": 1.7}
    assert verdicts(table(some))[0] == "partly"


def test_words_are_of_the_same_numbers():
    shown = effects.shown(table()).set_index(["Feature", "Renewed every"])
    row = shown.loc[("f_t out of fold", "10 trees")]
    assert row["Test loss, last"] == "−10.0 %"
    assert row["Training loss ratio"] == "0.20"


def test_figure_has_a_panel_for_each_loss():
    runs = table()
    assert len(effects.draw(runs).axes) == 1
    both = runs.assign(log_loss=runs["dataset"] == "b")
    figure = effects.draw(both)
    assert [axes.get_title() for axes in figure.axes] == ["squared error", "log-loss"]
    drawn = figure.axes[0].lines[1].get_ydata()
    np.testing.assert_allclose(drawn, [-10.0, -10.0])
