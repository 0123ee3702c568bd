"""Where the parts of a checkout are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONF = ROOT / "conf"
DATA = ROOT / "data"
