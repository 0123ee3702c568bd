"""The tables and designs of one command: each is made once, when it is first asked for."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from pipeline.boosting.distributed.parts import Table
from pipeline.config.schema import Dataset
from pipeline.datasets.design import Design, preprocess
from pipeline.datasets.manifest import manifest
from pipeline.datasets.parts import digest_of_files, table_in_parts
from pipeline.datasets.sources import RawTable, fetch

# What a table depends on; the rest is what becomes of it.
_ORIGIN = {"name", "table", "source", "id", "server", "path", "target", "drop"}


@dataclass(frozen=True)
class Library:
    """What has been fetched and preprocessed so far."""

    _tables: dict[str, RawTable] = field(default_factory=dict)
    _designs: dict[Dataset, Design] = field(default_factory=dict)
    _digests: dict[str, str] = field(default_factory=dict)

    def table(self, dataset: Dataset) -> RawTable:
        """The canonical table."""
        origin = dataset.model_dump_json(include=_ORIGIN)
        if origin not in self._tables:
            self._tables[origin] = fetch(dataset)
        return self._tables[origin]

    def design(self, dataset: Dataset) -> Design:
        """The design matrix and target."""
        if dataset not in self._designs:
            self._designs[dataset] = preprocess(self.table(dataset), dataset)
        return self._designs[dataset]

    def parts(self, dataset: Dataset) -> Table:
        """The table in parts, none of which is read yet."""
        return table_in_parts(dataset)

    def files_sha256(self, dataset: Dataset) -> str:
        """A hash of the files behind a table in parts."""
        origin = dataset.model_dump_json(include=_ORIGIN)
        if origin not in self._digests:
            self._digests[origin] = digest_of_files(dataset)
        return self._digests[origin]

    def sha256(self, dataset: Dataset) -> str:
        """The content hash of the table; what comes with the project is known without fetching it.

        (A user's own file or server is looked at even if it is called like a dataset of the paper.)
        """
        spec = manifest().get(dataset.table_name)
        shipped = spec is not None and dataset.source in {"bundled", "sklearn"}
        if spec and shipped:
            return spec.content_sha256
        table = self.table(dataset)
        if dataset.target_columns:
            return table.sha256
        # Its origin chose the target, which two versions of one table may do differently.
        return hashlib.sha256(f"{table.sha256}/{'+'.join(table.target)}".encode()).hexdigest()
