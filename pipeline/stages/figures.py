"""``stage=figures``: figures from a table of rounds alone, one or all of them."""

from pathlib import Path

from pipeline.analysis import portable
from pipeline.chapters.figures import draw as figures
from pipeline.errors import ConfigError, DataError
from pipeline.report.place import report_folder
from pipeline.runs.plan import Plan
from pipeline.runs.store import clear_errors


def main(plan: Plan) -> None:
    """Draw them: of an experiment next to its report, of another table in ``figures/``."""
    wanted = plan.config.figures
    unknown = [name for name in wanted.only if name not in figures.FIGURES]
    if unknown:
        raise ConfigError(
            f"figures.only=[{','.join(wanted.only)}]: there is no figure {unknown[0]}; there are "
            f"{', '.join(figures.FIGURES)}"
        )
    if wanted.source is None and not plan.is_grid:
        raise ConfigError(
            "stage=figures: needs a table, such as figures.source=outputs/reference/rounds.parquet,"
            " or an experiment that has a report"
        )
    home = report_folder(plan)
    source = Path(wanted.source).expanduser() if wanted.source else home / portable.FILE
    of = source.resolve().parent.name  # whose figures they are
    folder = Path(plan.config.output_dir) / "figures" / of if wanted.source else home / "figures"
    runs = portable.read(source)
    try:
        with clear_errors(folder):
            names = figures.draw_all(runs, folder, wanted.only)
    except KeyError as error:
        raise DataError(f"{source}: has no column {error}, which a figure shows") from None
    for name in names:
        print(f"{folder / name}.png, .pdf, .csv")
