"""``stage=compare``: experiments side by side, curves and differences paired over seeds."""

from pathlib import Path

from pipeline import files
from pipeline.chapters import comparison as page
from pipeline.chapters.base import write_table
from pipeline.chapters.comparison.differences import compare, differences
from pipeline.errors import ConfigError
from pipeline.report.place import command_of, runs_reported
from pipeline.runs.plan import Plan
from pipeline.runs.store import clear_errors
from pipeline.runs.tidy import load_runs


def main(plan: Plan) -> None:
    """Write the page and the table of differences."""
    config = plan.config
    names = config.compare.experiments
    if not names:
        raise ConfigError(
            "stage=compare: name the experiments, such as 'compare.experiments=[paper,eta03]'; one "
            "of them alone compares its strategies, or what it varies"
        )
    output = Path(config.output_dir)
    folders = [_folder(output, name) for name in names]
    runs = load_runs(*folders, only={folder: runs_reported(folder) for folder in folders})
    compared = compare(runs, config.compare.baseline)
    table = differences(compared)
    folder = output / "compare" / files.slug("-".join(names))
    with clear_errors(folder):
        write_table(folder / "differences.csv", table)
        text = page.render(compared, table, names, folder, command_of(plan.overrides))
        files.write_text(folder / "compare.html", text)
    print(f"baseline: {compared.baseline}; at the last round, paired over seeds")
    print(table.to_string(index=False, float_format=lambda v: f"{v:.4g}"))
    print(f"page: {folder / 'compare.html'}")


def _folder(output: Path, name: str) -> Path:
    """An experiment below the output folder, or a folder anywhere."""
    for folder in (output / name, Path(name).expanduser()):
        if (folder / "runs").is_dir():
            return folder
    raise ConfigError(f"compare.experiments: {name}: neither {output / name} nor {name} has runs")
