"""The paper's Table 1 and ours."""

from pipeline.analysis.table1 import COUNTS
from pipeline.chapters.base import Chapter, Context, Section, write_table


class Table1(Chapter):
    """Columns and rows of the datasets, counted."""

    title = "Table 1, paper / ours"
    part = "Data and provenance"
    order = 85
    curated = {"paper/table1.csv": "table1.csv"}

    def section(self, context: Context) -> Section | None:
        if not context.scope.is_replication:
            return None
        table = context.evidence.table1
        write_table(context.folder / "table1.csv", table)
        return Section({"rows": table.to_dict("records"), "counts": COUNTS})


CHAPTER = Table1()
