"""How figures look: colours, sizes, saving.  One colour per design, in every figure."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure

Canvas = Figure | SubFigure

# Okabe and Ito's palette, told apart by colour-blind readers too; black is left for axes.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C564B")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (6, 1.5, 1.5, 1.5)))
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
BASELINE = "#7F7F7F"
GOOD, BAD, MUTED = "#009E73", "#C0392B", "#9AA0A6"

_RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E3E6EA",
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.4,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "svg.hashsalt": "flexctl",  # the same figure gives the same file
    "pdf.fonttype": 42,
}


@dataclass(frozen=True, kw_only=True)
class Look:
    """How one design is drawn: colour, dashes of its lines, marker of its poles."""

    colour: str
    dashes: Any
    marker: str


def looks(names: Sequence[str], baseline: str | None = None) -> dict[str, Look]:
    """Give every design its look, in the order given; the baseline is grey."""
    others = [name for name in names if name != baseline]
    given = {
        name: Look(
            colour=PALETTE[i % len(PALETTE)],
            dashes=DASHES[i % len(DASHES)],
            marker=MARKERS[i % len(MARKERS)],
        )
        for i, name in enumerate(others)
    }
    if baseline in names and len(names) > 1:
        given[str(baseline)] = Look(colour=BASELINE, dashes=DASHES[2], marker="X")
    elif baseline in names:
        given[str(baseline)] = Look(colour=PALETTE[0], dashes="-", marker="o")
    return given


def split(canvas: Canvas, rows: int, columns: int, **ratios: Any) -> list[SubFigure]:
    """Divide a canvas into parts, row by row; `width_ratios` and `height_ratios` as matplotlib."""
    parts: Any = canvas.subfigures(rows, columns, squeeze=False, **ratios)
    return list(parts.flat)


@contextmanager
def styled() -> Iterator[None]:
    """Draw in this room's style, whatever the user's own matplotlib settings are."""
    kept: Any = {"backend": mpl.rcParams["backend"]}
    with mpl.rc_context({**mpl.rcParamsDefault, **_RC, **kept}):
        yield


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure of so many inches that needs no screen."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def rendered(figure: Figure, kind: str) -> bytes:
    """Return a figure as the content of a file of this kind: svg, png or pdf, without date.

    In memory, as what writes PDF hides why a file could not be written.
    """
    drawn, date = io.BytesIO(), {"svg": "Date", "pdf": "CreationDate"}
    with styled():
        figure.savefig(drawn, format=kind, metadata={date[kind]: None} if kind in date else {})
    return drawn.getvalue()


def to_data_url(figure: Figure) -> str:
    """Return a figure as the address of an image that holds all of it (SVG in base64)."""
    engine = figure.get_layout_engine()
    if engine is not None:  # arranged now, and not again at each of the two passes of saving
        with styled():
            engine.execute(figure)
        figure.set_layout_engine("none")
    return "data:image/svg+xml;base64," + base64.b64encode(rendered(figure, "svg")).decode("ascii")
