"""What the runs were made with."""

from collections.abc import Sequence

import pandas as pd

from pipeline.chapters.base import Chapter, Context, Section


class Provenance(Chapter):
    """Versions, processors, commits, seeds and the content of the tables."""

    title = "Provenance"
    part = "Data and provenance"
    order = 90

    def section(self, context: Context) -> Section:
        records = context.evidence.records
        versions = {", ".join(f"{k} {v}" for k, v in r["versions"].items()) for r in records}
        tables = sorted({(str(r["key"]["name"]), str(r["data_sha256"])) for r in records})
        return Section(
            {
                "versions": "; or ".join(sorted(versions)),
                "cpus": ", ".join(sorted({str(r["cpu"]) for r in records})),
                "commits": ", ".join(sorted({str(r["git_commit"]) for r in records})),
                "seeds": _ranges(sorted({int(r["seeds"]["split"]) for r in records})),
                "tables": pd.DataFrame(
                    tables, columns=["Dataset", "sha256 of the table's content"]
                ),
            }
        )


CHAPTER = Provenance()


def _ranges(values: Sequence[int]) -> str:
    if list(values) == list(range(values[0], values[-1] + 1)) and len(values) > 1:
        return f"{values[0]}–{values[-1]}"
    return ", ".join(map(str, values))
