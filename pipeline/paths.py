"""Where the parts of the project are: in a checkout, or in an installed package."""

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parent
REFERENCE = ROOT / "outputs" / "reference"
# A wheel carries configs and data inside the package, where nothing is written.
_INSTALLED = PACKAGE / "bundled"
CONF, DATA = (
    _INSTALLED / name if (_INSTALLED / name).is_dir() else ROOT / name for name in ("conf", "data")
)
_USERS = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "mcboost-replication"
CACHE = DATA / "cache" if DATA.parent == ROOT else _USERS  # of downloads
