"""Figures, each drawn by a function into a canvas (a figure or a part of one)."""

from flexctl.view.figures.arm import plot_modes, plot_stills
from flexctl.view.figures.bars import plot_frequencies, plot_margins
from flexctl.view.figures.curves import (
    Curve,
    plot_deflections,
    plot_joint_errors,
    plot_tip_error,
    plot_torques,
    plot_wind_up,
)
from flexctl.view.figures.eigenvalues import plot_orders, plot_path, plot_poles
from flexctl.view.figures.loci import plot_loci
from flexctl.view.figures.loci_beside import plot_beside
from flexctl.view.figures.margin import plot_margin
from flexctl.view.figures.margin_charts import plot_chart
from flexctl.view.figures.pages import (
    add_legend,
    make_curves,
    plot_comparison,
    plot_inspection,
    plot_simulation,
    ranked,
)
from flexctl.view.figures.separation import plot_separation

__all__ = [
    "Curve",
    "add_legend",
    "make_curves",
    "plot_beside",
    "plot_chart",
    "plot_comparison",
    "plot_deflections",
    "plot_frequencies",
    "plot_inspection",
    "plot_joint_errors",
    "plot_loci",
    "plot_margin",
    "plot_margins",
    "plot_modes",
    "plot_orders",
    "plot_path",
    "plot_poles",
    "plot_separation",
    "plot_simulation",
    "plot_stills",
    "plot_tip_error",
    "plot_torques",
    "plot_wind_up",
    "ranked",
]
