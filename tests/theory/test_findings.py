"""All findings together."""

from pipeline.chapters.theory import levels, scorecard
from pipeline.theory.findings import REGISTRY


def test_scorecard_has_every_finding_and_counts_levels_apart(study, failing, narrower):
    records = study.findings
    text = scorecard(records)
    assert [r["id"] for r in records] == list(REGISTRY.judges)
    assert all(f"{r['id']:<4}" in text for r in records)
    verdicts = {r["id"]: r["verdict"] for r in records}
    assert {i for i, v in verdicts.items() if v == "fails as stated"} == failing
    assert {i for i, v in verdicts.items() if v.startswith("holds in")} == narrower
    counted = {name: (counts, broken) for name, counts, broken in levels(records)}
    counts, broken = counted["theorems, lemmas, propositions"]
    assert (counts[1:], broken) == ([0, 2], ["W7", "W8"])
    assert counted["ours"][1] == []
    assert sum(sum(counts) for counts, _ in counted.values()) == len(records)
