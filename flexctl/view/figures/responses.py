"""Whole figures of `flexctl bode`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from matplotlib.figure import Figure

from flexctl.verdict import ChannelResponse, LoopResponses
from flexctl.view.figures.bode import plot_bode
from flexctl.view.figures.nichols import plot_nichols
from flexctl.view.figures.nyquist import plot_nyquist
from flexctl.view.figures.sensitivities import plot_sensitivities
from flexctl.view.figures.style import new_figure, styled

Kind = Literal["bode", "nyquist", "nichols", "sensitivity"]
MOST = 12  # channels that a figure has room for
_WIDTH, _COLUMNS = 3.6, 4  # inches of a panel, panels beside each other
_HEIGHTS = {"bode": 5.0, "nyquist": 3.8, "nichols": 3.6}  # inches of a row


@styled()
def plot_responses(
    record: LoopResponses, kind: Kind = "bode", channels: Sequence[ChannelResponse] = ()
) -> Figure:
    """Draw frequency responses of some channels, by default of the actuators."""
    chosen = list(channels or record.at("actuator"))
    left = len(chosen) - MOST
    chosen = chosen[:MOST]
    columns = min(len(chosen), _COLUMNS)
    width = max(6.2, 0.8 + _WIDTH * columns)
    if kind == "sensitivity":
        figure = new_figure(10.5, 7.0)
        plot_sensitivities(figure, record, chosen)
    else:
        figure = new_figure(width, 0.5 + _HEIGHTS[kind] * -(-len(chosen) // _COLUMNS))
        if kind == "nichols":
            plot_nichols(figure, chosen)
        else:
            draw = plot_bode if kind == "bode" else plot_nyquist
            draw(figure, record.w, chosen)
    title = " on ".join(filter(None, (record.design, record.model)))
    more = f"; {left} channels more, not drawn" if left > 0 else ""
    unstable = "; the closed loop is not stable" if record.no_margins else ""
    figure.suptitle(f"{title}{unstable}{more}", fontweight="bold", x=0.01, ha="left")
    return figure
