"""All findings together."""

from pipeline.report import scorecards
from pipeline.theory.findings import REGISTRY


def test_scorecard_has_every_finding_and_counts_levels_apart(study, failing, narrower):
    records = study.findings
    text = scorecards.of_findings(records)
    assert [r["id"] for r in records] == list(REGISTRY.judges)
    assert all(f"{r['id']:<4}" in text for r in records)
    verdicts = {r["id"]: r["verdict"] for r in records}
    assert {i for i, v in verdicts.items() if v == "fails as stated"} == failing
    assert {i for i, v in verdicts.items() if v.startswith("holds in")} == narrower
    tallies = {t.level: t for t in scorecards.tally_of_findings(records)}
    results = tallies["theorems, lemmas, propositions"]
    assert (results.narrower, results.fails, results.broken) == (0, 2, ("W7", "W8"))
    assert tallies["ours"].broken == ()
    assert sum(t.holds + t.narrower + t.fails for t in tallies.values()) == len(records)
