"""Where the parts of the project are: in a checkout, or in an installed package."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parent
# A wheel carries the configs and the data inside the package.
INSTALLED = PACKAGE / "bundled"
CONF, DATA = (
    INSTALLED / name if (INSTALLED / name).is_dir() else ROOT / name for name in ("conf", "data")
)
REFERENCE = ROOT / "outputs" / "reference"
