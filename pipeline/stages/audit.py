"""``stage=audit``: where are predictions wrong, how much, and how sure is that?

With ``audit.prediction=score`` (or ``audit.compare=[old,new]``), of a column of the dataset's own
table; with a grid, of the initial forests of its datasets on the test rows of the first seed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import files
from pipeline.boosting.display import MulticalibrationDisplay
from pipeline.chapters import audit as page
from pipeline.config.schema import Config
from pipeline.datasets.canonical import is_number
from pipeline.datasets.design import split, split_rows
from pipeline.errors import ConfigError, DataError
from pipeline.report.place import command_of, report_folder
from pipeline.runs.compilation import compile_kernels
from pipeline.runs.keys import key_hash
from pipeline.runs.kinds.rounds import fit_initial
from pipeline.runs.plan import Plan
from pipeline.runs.store import clear_errors


def main(plan: Plan) -> None:
    """Print the tables, and write the page."""
    columns = plan.config.audit.compare or (plan.config.audit.prediction or "",)
    compile_kernels()
    if plan.is_grid:
        parts = list(_forests(plan))
        title, lead = "Audit of the initial forests", "On held-out rows, before any boosting."
        path = report_folder(plan) / "audit.html"
    elif columns != ("",):
        parts = [_file(plan, columns)]
        label = plan.config.dataset.display
        title, lead = f"Audit of {label}", f"Predictions: {', '.join(columns)}."
        path = Path(plan.config.output_dir) / "audit" / plan.config.dataset.label / "audit.html"
    else:
        raise ConfigError(
            "stage=audit: name the column of predictions with audit.prediction=…, or a grid such "
            "as experiment=paper for its initial forests"
        )
    text = page.render(title, lead, parts, command_of(plan.overrides))
    with clear_errors(path.parent):
        files.write_text(path, text)
    print(f"page: {path}")


def _file(plan: Plan, predictions: tuple[str, ...]) -> dict[str, Any]:
    """A table with columns of predictions in it."""
    dataset = plan.config.dataset
    table = plan.library.table(dataset)
    target = list(table.target)
    audit = plan.config.audit
    clusters = (audit.clusters,) if audit.clusters else ()
    weight = (dataset.weight,) if dataset.weight else ()
    for name in (*target, *predictions, *dataset.drop, *audit.groups, *clusters, *weight):
        if name not in table.frame.columns:
            have = ", ".join(map(str, table.frame.columns))
            raise DataError(f"{name}: {dataset.label} has no such column; it has {have}")
    for name in (*target, *predictions, *weight):
        if not is_number(table.frame[name]) or table.frame[name].isna().any():
            raise DataError(f"{name}: must be a column of numbers without missing cells")
    y = table.frame[target].sum(axis=1).to_numpy(np.float64)
    X = table.frame.drop(columns=[*target, *predictions, *dataset.drop, *clusters, *weight])
    if X.shape[1] == 0:
        raise DataError(f"{dataset.label}: no column is left to look for segments in")
    named = {name: table.frame[name].to_numpy(np.float64) for name in predictions}
    options = {
        "groups": table.frame[list(audit.groups)] if audit.groups else None,
        "clusters": table.frame[audit.clusters] if audit.clusters else None,
        "sample_weight": table.frame[weight[0]].to_numpy(np.float64) if weight else None,
    }
    note = f"{len(X)} rows from {table.origin}; outcome {' + '.join(target)}."
    if audit.clusters:
        note += f" Rows with the same {audit.clusters} count as one in every test."
    return _part(plan.config, dataset.display, note, X, y, named, **options)


def _forests(plan: Plan) -> Iterator[dict[str, Any]]:
    """The initial forest of each dataset on the test rows of the first seed."""
    first = (task for task in plan.tasks() if task.seed == plan.seeds[0])
    for task in {key_hash(task.initial_key): task for task in first}.values():
        config = task.configs[0]
        dataset, design = config.dataset, plan.library.design(config.dataset)
        _, test = split_rows(len(design.y), dataset, config.seed)
        frame = plan.library.table(dataset).frame[list(design.covariates)].iloc[test]
        data = split(design, dataset, config.seed)
        stored = plan.store.load_initial(task.dataset, task.seed, task.initial_key)
        initial = stored or fit_initial(config, data)
        note = (
            f"{len(test)} test rows of seed {config.seed}; forest of {config.initial.trees} trees "
            f"of depth {config.initial.max_depth}; outcome {' + '.join(dataset.target_columns)}."
        )
        named = {"initial forest": initial.test}
        yield _part(
            config, dataset.display, note, frame, data.y_test, named, sample_weight=data.w_test
        )


def _part(config: Config, title: str, note: str, *rows: Any, **options: Any) -> dict[str, Any]:
    """An audit of rows: X, outcomes, and predictions by name; ``options`` are the audit's."""
    display = MulticalibrationDisplay.audited(
        *rows, **options, n_segments=config.audit.segments, random_state=config.seed
    )
    print(f"--- {title}\n{note}")
    for name, result in display.results_.items():
        print(f"{name}: {result}\n")
    return page.make_part(title, note, display)
