"""Where the parts of the project are."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parent
REFERENCE = ROOT / "outputs" / "reference"
CONF, DATA = ROOT / "conf", ROOT / "data"
CACHE = DATA / "cache"  # of downloads
