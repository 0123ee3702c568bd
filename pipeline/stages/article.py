"""``stage=article``: the replication report as a PDF, from an experiment's report."""

from pipeline import files
from pipeline.analysis.scope import scope_of
from pipeline.errors import ConfigError
from pipeline.report import article
from pipeline.report.place import report_folder
from pipeline.runs.plan import Plan
from pipeline.stages.report import FACTS


def main(plan: Plan) -> None:
    """Write ``article.pdf`` beside the page."""
    if not plan.is_grid or not scope_of(plan).is_replication:
        raise ConfigError("stage=article: is about the paper's grid, experiment=paper")
    folder = report_folder(plan)
    if not (folder / FACTS).is_file():
        raise ConfigError(
            f"stage=article: there is no report in {folder}; stage=reproduce makes it"
        )
    document = article.write(folder)
    with files.replacing(folder / "article.pdf") as scratch:
        scratch.write_bytes(document)
    print(f"article: {folder / 'article.pdf'}")
