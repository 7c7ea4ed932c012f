"""Charts of what stiffness error a loop bears: every part of them is drawn."""

import numpy as np
import pytest
from matplotlib.contour import QuadContourSet

from flexctl.loop.margin.gain_chart import DampingChart, GainChart
from flexctl.loop.margin.requirement import Trial
from flexctl.view.figures.margin_charts import plot_damping_chart, plot_gain_chart
from flexctl.view.style import new_figure, styled

FACTORS = np.geomspace(0.1, 10, 5)


def drawn(plot, chart):
    with styled():
        figure = new_figure(7.0, 5.0)
        plot(figure, chart)
        figure.canvas.draw()
    (axes,) = figure.axes
    return axes


def gains(alpha_upper, own=0.02):
    return GainChart(
        design="trial",
        Gp=FACTORS,
        Gv=FACTORS,
        alpha_upper=alpha_upper,
        modes=(("link1.y.1",) * 5,) * 5,
        own=Trial(value=1.0, alpha_upper=own),
        own_gains=((400.0,), (40.0,)),
        n_poses=1,
    )


def texts(axes):
    return {text.get_text() for text in axes.texts}


def test_lines_of_equal_margin_lie_where_the_chart_says_and_are_labelled():
    # alpha_upper = 2 % Gp, whatever Gv is: 2 % is borne at the design's own, a point of the grid
    axes = drawn(plot_gain_chart, gains(np.outer(0.02 * FACTORS, np.ones(5))))

    lines = next(c for c in axes.collections if isinstance(c, QuadContourSet) and not c.filled)
    per_cent = 10.0 ** np.asarray(lines.levels)
    (two,) = np.flatnonzero(np.isclose(per_cent, 2.0))
    assert lines.get_paths()[two].vertices[:, 0] == pytest.approx(1.0)
    assert {"0.5 %", "1 %", "2 %", "5 %", "10 %"} <= texts(axes)


def test_where_no_loop_is_stable_it_is_hatched_and_says_so():
    alpha_upper = np.outer(0.02 * FACTORS, np.ones(5))
    alpha_upper[:, :2] = np.nan

    axes = drawn(plot_gain_chart, gains(alpha_upper, own=np.nan))

    assert axes.patch.get_hatch()
    assert {"unstable", "the design: unstable"} <= texts(axes)


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0, 0.013])
def test_a_chart_of_one_value_is_drawn(value):
    axes = drawn(plot_gain_chart, gains(np.full((5, 5), value), own=value))

    assert ("unstable" in texts(axes)) == bool(np.isnan(value))


def damping(known, unknown):
    return DampingChart(
        design="trial",
        ratios=np.array([0.0, 0.01, 0.1]),
        known=np.array(known),
        unknown=np.array(unknown),
        modes=(("",) * 3, ("",) * 3),
        alpha_star=0.15,
        own_ratios=(0.01, 0.02),
        second_loop=True,
        n_path=5,
    )


def test_both_curves_the_lemma_and_the_arms_own_damping_are_drawn():
    axes = drawn(plot_damping_chart, damping([0.0, 0.01, 0.1], [0.0, 0.02, np.nan]))

    lines = {line.get_label(): line for line in axes.lines}
    known = lines["damping known to the controller"]
    assert known.get_xydata().ravel() == pytest.approx([1.0, 1.0, 10.0, 10.0])
    assert lines["the lemma"].get_ydata() == pytest.approx([15.0, 15.0])
    assert lines["the arm's own"].get_xdata() == pytest.approx([1.0, 1.0])
    assert [patch.get_hatch() for patch in axes.patches] == ["////"]


def test_what_bears_any_error_is_a_triangle_at_the_top():
    axes = drawn(plot_damping_chart, damping([0.0, 0.01, np.inf], [0.0, 0.02, 0.03]))

    triangles = [line for line in axes.lines if line.get_marker() == "^" and len(line.get_xdata())]
    assert [list(line.get_xdata()) for line in triangles] == [[10.0]]
