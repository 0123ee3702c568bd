"""The words of the statements, and the numbers in them."""

from fractions import Fraction
from typing import get_args

import numpy as np
import pytest

from pipeline.analysis.bounds import gap_bound, sharp_gap_bound
from pipeline.boosting.rescaling import Relaxed
from pipeline.theory.findings import REGISTRY, adaptive, error, linear, relaxed, unit
from pipeline.theory.instances import Bank
from pipeline.theory.statements import ERRATA, LEVELS, STATEMENTS, Level
from pipeline.theory.trials import LONG, VERY_LONG, Trials


def test_every_statement_has_words_and_a_function_in_the_same_order():
    assert list(REGISTRY.judges) == list(STATEMENTS)


def test_levels_are_known_and_errata_have_one_of_them():
    assert (*LEVELS, "ours") == get_args(Level)
    assert {s.level for s in STATEMENTS.values()} == set(get_args(Level))
    assert {STATEMENTS[e["id"]].level for e in ERRATA} == set(LEVELS)
    ours = [s for s in STATEMENTS.values() if s.level == "ours"]
    assert all(s.where.startswith("ours") for s in ours)


def test_statements_with_a_correction_are_those_with_an_erratum():
    corrected = {id_ for id_, s in STATEMENTS.items() if s.correction}
    assert corrected == {id_ for id_, s in STATEMENTS.items() if s.erratum}
    assert sorted(corrected) == sorted(e["id"] for e in ERRATA)


def percent(share):
    return f"{100 * share:g} %"


ONE_ROW = (1 - error.ONE_ROW) ** 2, error.ONE_ROW * (1 - error.ONE_ROW)
FIRST_WEIGHT = Relaxed().weight(0, np.ones(1), np.ones(1))
# What the code's constants would say, by statement and kind of words.
NUMBERS = [
    ("T7", "text", f"below {percent(unit.VANISHED)} after {LONG} rounds"),
    ("T11", "remark", f"hard bins for {2 * LONG} rounds"),
    ("T11", "remark", f"second half is less than {percent(unit.REST)} of the length"),
    ("M7", "remark", f"prediction {error.ONE_ROW:g} and outcome 1"),
    ("M7", "remark", f"{ONE_ROW[0]:.2g} against {ONE_ROW[1]:.3g}"),
    ("M8", "text", f"√(2L) ({error.OURS:.2g} for the log-loss)"),
    ("M8", "text", f"2/√(1 − L) ({error.PAPERS:.2g})"),
    ("L6", "remark", f"predictions {min(linear.EPSILONS):.0e} apart".replace("e-0", "e-")),
    ("R5", "remark", f"Targets {relaxed.FAR:g} ± 1"),
    ("R5", "remark", f"the first weight, {Fraction(FIRST_WEIGHT)},"),
    ("R8", "text", f"after round {LONG} it moves by less than {percent(relaxed.SETTLED)}"),
    ("W9", "text", f"below {percent(adaptive.VANISHED)} of the first after {VERY_LONG} rounds"),
    ("W3", "text", f"after {VERY_LONG} rounds, within {adaptive.NEAR_ONE:g}"),
]


@pytest.mark.parametrize(("id_", "kind", "words"), NUMBERS)
def test_numbers_in_words_are_those_of_the_code(id_, kind, words):
    assert words in getattr(STATEMENTS[id_], kind)


def test_numbers_in_errata_are_those_of_the_code():
    wrong = {e["id"]: e["wrong"] for e in ERRATA}
    left, right = ONE_ROW
    assert (
        f"prediction ${error.ONE_ROW:g}$ and outcome $1$: ${left:.2g}$ on the left" in wrong["M7"]
    )
    assert f"${right:.3g}$ on the right" in wrong["M7"]
    rise = 0.5 * (relaxed.FAR - FIRST_WEIGHT * relaxed.FAR) ** 2
    assert (
        f"$f_0 = y = {relaxed.FAR:g}$: the first weight, ${Fraction(FIRST_WEIGHT)}$" in wrong["R5"]
    )
    assert f"raises the loss from $0$ to ${rise:.2g}$" in wrong["R5"]


def test_a_third_of_the_bound_on_the_average_gap_can_be_reached():
    assert "at most a third of it is reached at η = 1/2" in STATEMENTS["T2"].remark
    ratio = sharp_gap_bound(0.5, 1.0, 1) / gap_bound(0.5, 1.0, 1)
    assert ratio**2 == pytest.approx(1 / 3)


def test_measured_values_name_the_range_of_epsilon_that_was_tried():
    largest, *_, smallest = adaptive.EPSILONS
    assert (largest, smallest) == (0.1, 1e-7)
    assert REGISTRY.judge("W8", Trials(Bank(1))).measured.endswith("for ε from 0.1 to 1e-7.")
