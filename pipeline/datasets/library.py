"""The tables and designs of one command: each is made once, when it is first asked for."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline.config.schema import Dataset
from pipeline.datasets.design import Design, preprocess
from pipeline.datasets.manifest import manifest
from pipeline.datasets.sources import RawTable, fetch


@dataclass(frozen=True)
class Library:
    """What has been fetched and preprocessed so far."""

    _tables: dict[Dataset, RawTable] = field(default_factory=dict)
    _designs: dict[Dataset, Design] = field(default_factory=dict)

    def table(self, dataset: Dataset) -> RawTable:
        """The canonical table."""
        if dataset not in self._tables:
            self._tables[dataset] = fetch(dataset)
        return self._tables[dataset]

    def design(self, dataset: Dataset) -> Design:
        """The design matrix and target."""
        if dataset not in self._designs:
            self._designs[dataset] = preprocess(self.table(dataset), dataset)
        return self._designs[dataset]

    def sha256(self, dataset: Dataset) -> str:
        """The content hash of the table; of the paper's datasets known without fetching them."""
        spec = manifest().get(dataset.label)
        return spec.content_sha256 if spec else self.table(dataset).sha256
