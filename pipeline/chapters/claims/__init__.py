"""The paper's empirical claims, each judged by a rule against the measured runs.

The limits of the rules are the paper's numbers where it gives one; otherwise they were chosen by
hand, and the rule says so and with which limit the claim would be replicated. A claim's verdict is
*replicated*, *partly*, *not replicated*, or *undecided* where other seeds would give another one.
"""

from pipeline.chapters.base import Chapter, Context, Section, write_judgements
from pipeline.chapters.claims.rules import RULES, UNDECIDED, VERDICTS, claim

# Imported for their claims, in the paper's order.
from pipeline.chapters.claims import gap, training, generalization, numbers  # isort: skip  # noqa: F401


class Claims(Chapter):
    """The scorecard of a replication."""

    title = "Scorecard"
    part = "Did it replicate?"
    order = 10
    curated = {"paper/claims.json": "claims.json"}

    def section(self, context: Context) -> Section | None:
        if not context.scope.is_replication:
            return None
        judged = claim.judge_all(context.evidence)
        write_judgements(context.folder / "claims.json", judged)
        counts = {v: sum(j.verdict == v for j in judged) for v in (*VERDICTS, UNDECIDED)}
        facts = {name.replace(" ", "_"): str(n) for name, n in counts.items()}
        return Section(facts={"n": str(len(judged)), **facts}, judgements=judged)


CHAPTER = Claims()

__all__ = ["CHAPTER", "RULES", "claim"]
