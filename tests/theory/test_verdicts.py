"""Verdicts that follow from checks."""

import pytest

from pipeline.theory.checks import Check
from pipeline.theory.statements import Statement
from pipeline.theory.verdicts import Tried, ruling


def test_verdicts_are_computed_from_checks():
    good, bad = [Check(0.5, 1.0)], [Check(2.0, 1.0)]
    assert Tried(stated=good).verdict == "holds"
    assert Tried(stated=bad).verdict == "fails as stated"
    assert Tried(stated=bad, narrower=good).verdict == "holds in a narrower regime"
    assert Tried(stated=bad, narrower=bad).verdict == "fails as stated"
    assert Tried(stated=bad, corrected=good).verdict == "fails as stated"
    with pytest.raises(ValueError, match="nothing was tried"):
        _ = Tried(stated=[]).verdict


def test_regimes_are_counted_and_tell_how_much_of_a_bound_is_used():
    checks = [
        Check(0.2, 1.0, "a"),
        Check(0.4, 1.0, "a"),
        Check(0.9, 1.0, "b"),
        Check(2.0, 1.0, "b"),
    ]
    a, b = Tried(stated=checks).regimes
    median = pytest.approx(0.3)
    assert a == {"regime": "a", "checks": 2, "hold": 2, "median": median, "most": 0.4}
    assert (b["checks"], b["hold"], b["most"]) == (2, 1, 2.0)
    limit = Statement(id="x", level="result", where="", text="", limit=True)
    limit = ruling(limit, Tried(stated=checks)).details["regimes"]
    assert [r["most"] for r in limit] == [None, None]  # tolerances are not used up
