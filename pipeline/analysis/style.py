"""How things look: colours, labels and order of strategies and verdicts, and the figures' style."""

import io
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from pipeline import files
from pipeline.config.schema import NAMED

# Okabe and Ito's, which colour-blind readers can tell apart.
BLUE, ORANGE, GREEN, RED, YELLOW = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#F0E442"
PURPLE, SKY = "#CC79A7", "#56B4E9"


@dataclass(frozen=True)
class Look:
    """How a strategy is drawn."""

    label: str
    color: str
    marker: str
    linestyle: str

    @property
    def printed(self) -> str:
        """The label as matplotlib prints it literally."""
        return _literal(self.label)

    @property
    def line(self) -> dict[str, Any]:
        """Matplotlib's keywords for its lines."""
        return {"color": self.color, "marker": self.marker, "linestyle": self.linestyle}


# The paper's encodings (Unit blue, Relaxed orange squares dashed, Adaptive green crosses), in the
# paper's order.
LOOKS: Mapping[str, Look] = {
    "unit": Look("Unit", BLUE, "o", "-"),
    "relaxed": Look("Relaxed", ORANGE, "s", "--"),
    "adaptive": Look("Adaptive", GREEN, "x", "-"),
}
STRATEGIES = NAMED  # the paper's, in its order
# Colour, marker and line of all others, over and over; the paper's colours where they are free.
CYCLE = (
    (BLUE, "o", "-"),
    (RED, "D", "-."),
    (GREEN, "^", "-"),
    (PURPLE, "v", "--"),
    ("#555555", "P", "-"),
    (ORANGE, "s", "--"),
    (SKY, "h", "-."),
)


def papers_first(strategies: Iterable[str]) -> list[str]:
    """Some strategies: the paper's in its order, then others as they come."""
    found = list(strategies)
    return [s for s in STRATEGIES if s in found] + [s for s in found if s not in STRATEGIES]


def looks(strategies: Sequence[str]) -> dict[str, Look]:
    """How each of some strategies is drawn: the paper's always alike, others from a cycle."""
    taken = {LOOKS[s].color for s in strategies if s in LOOKS}
    others = itertools.cycle(look for look in CYCLE if look[0] not in taken)
    return {s: LOOKS[s] if s in LOOKS else Look(titled(s), *next(others)) for s in strategies}


def titled(name: str) -> str:
    """A name as it begins a line; a setting, such as ``eta=0.3``, stays as it is."""
    return name if "=" in name.split(" ")[0] else name[:1].upper() + name[1:]


PANEL = 2.35  # inches

RC: Any = {
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.labelsize": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 10,
    "lines.markersize": 3.5,
    "lines.linewidth": 1.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "pdf.fonttype": 42,
}


def styled() -> Any:
    """A context in which figures are drawn in this style."""
    return mpl.rc_context(RC)


def plain(titles: Mapping[str, str]) -> dict[str, str]:
    """Names as matplotlib prints them literally: two dollar signs would begin a formula."""
    return {key: _literal(title) for key, title in titles.items()}


def _literal(text: str) -> str:
    return text.replace("$", r"\$")


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure as PNG and PDF without dates, so that the same picture is the same bytes.

    256 colours are enough for what is drawn here, and make a PNG a third as large.
    """
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=200)
    with files.replacing(folder / f"{name}.png") as png:
        Image.open(drawn).convert("RGB").quantize(256).save(png, optimize=True)
    figure.set_layout_engine("none")  # once is enough
    with files.replacing(folder / f"{name}.pdf") as pdf:
        figure.savefig(pdf, metadata={"CreationDate": None, "Producer": None})


def legend_below(figure: Figure, axes: Axes) -> None:
    """One legend for all panels, from the entries of one, in as many rows as the width needs."""
    handles, labels = axes.get_legend_handles_labels()
    entry = 0.75 + 0.09 * max(map(len, labels))  # inches, with line and space
    columns = min(len(labels), max(1, int(figure.get_figwidth() / entry)))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)
