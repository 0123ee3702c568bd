"""What a wheel has that a checkout keeps elsewhere: the configs and the data, in the package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

DATA = ("manifest.yaml", "*.xz")  # not the cache of downloads


class Bundle(BuildHookInterface[Any]):
    """Puts ``conf/`` and ``data/`` below ``pipeline/bundled/``; see `pipeline.paths`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """An editable install uses the checkout's own."""
        if version == "editable":
            return
        root = Path(self.root)
        tables = [path for pattern in DATA for path in sorted((root / "data").glob(pattern))]
        build_data["force_include"] = {str(root / "conf"): "pipeline/bundled/conf"} | {
            str(path): f"pipeline/bundled/data/{path.name}" for path in tables
        }
