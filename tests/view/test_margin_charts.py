"""Charts of what stiffness error a loop tolerates: every part of them is drawn."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.contour import QuadContourSet
from matplotlib.text import Text

from flexctl.search.charts import DampingChart, GainChart
from flexctl.search.one_number import Trial
from flexctl.view.figures.margin_charts import plot_damping_chart, plot_gain_chart
from flexctl.view.figures.style import new_figure, styled

FACTORS = np.geomspace(0.1, 10, 5)


def drawn(plot, chart):
    with styled():
        figure = new_figure(7.0, 5.0)
        plot(figure, chart)
        figure.draw_without_rendering()
    return figure.axes[0]  # a second one is the colour bar


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
    # alpha_upper = 2 % Gp, whatever Gv is: 2 % at the design's own, a point of the grid
    axes = drawn(plot_gain_chart, gains(np.outer(0.02 * FACTORS, np.ones(5))))

    lines = next(c for c in axes.collections if isinstance(c, QuadContourSet) and not c.filled)
    per_cent = 10.0 ** np.asarray(lines.levels)
    (two,) = np.flatnonzero(np.isclose(per_cent, 2.0))
    assert lines.get_paths()[two].vertices[:, 0] == pytest.approx(1.0)
    assert {"0.5 %", "1 %", "2 %", "5 %", "10 %"} <= texts(axes)


def test_a_bar_names_the_levels_and_marks_the_design_at_its_margin():
    axes = drawn(plot_gain_chart, gains(np.outer(0.02 * FACTORS, np.ones(5)), own=0.013))
    bar = axes.figure.axes[1]

    names = [label.get_text() for label in bar.get_yticklabels()]
    assert names == ["0.2 %", "0.5 %", "1 %", "2 %", "5 %", "10 %", "20 %"]
    per_cent = 10.0 ** np.asarray(bar.get_yticks())
    assert [f"{level:g} %" for level in per_cent] == names
    (own,) = [line for line in bar.lines if line.get_marker() == "o"]
    assert own.get_ydata() == pytest.approx([np.log10(1.3)])


def test_a_narrow_range_has_finer_levels():
    axes = drawn(plot_gain_chart, gains(np.outer(np.linspace(0.01, 0.03, 5), np.ones(5))))

    names = [label.get_text() for label in axes.figure.axes[1].get_yticklabels()]
    assert names == ["1 %", "1.5 %", "2 %", "3 %"]


def test_a_few_loops_far_below_do_not_coarsen_the_levels():
    alpha_upper = np.outer(np.linspace(0.01, 0.03, 5), np.ones(5))
    alpha_upper[0, 0] = 1e-6

    axes = drawn(plot_gain_chart, gains(alpha_upper))

    assert next(one for one in axes.collections if one.filled).extend == "min"
    bar = axes.figure.axes[1]
    names = [label.get_text() for label in bar.get_yticklabels()]
    assert names == ["1 %", "1.5 %", "2 %", "3 %"]


def test_names_of_levels_keep_off_the_design_and_off_each_other():
    # the line of 2 % runs through the design's own point
    axes = drawn(plot_gain_chart, gains(np.outer(0.02 * FACTORS, np.ones(5))))

    renderer = axes.figure.canvas.get_renderer()
    boxes = [text.get_window_extent(renderer) for text in axes.texts]
    assert len(boxes) >= 6
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])


def test_where_no_loop_is_stable_it_is_hatched_and_says_so():
    alpha_upper = np.outer(0.02 * FACTORS, np.ones(5))
    alpha_upper[:, :2] = np.nan

    axes = drawn(plot_gain_chart, gains(alpha_upper, own=np.nan))

    assert axes.patch.get_hatch()
    assert {"unstable", "the design: unstable"} <= texts(axes)
    (crosses,) = [line for line in axes.lines if line.get_marker() == "x"]
    assert sorted(set(crosses.get_ydata())) == pytest.approx(FACTORS[:2])
    (dots,) = [line for line in axes.lines if line.get_marker() == "."]
    assert len(dots.get_xdata()) == 15


@pytest.mark.parametrize(
    ("value", "name"),
    [(np.nan, "unstable"), (np.inf, "any is tolerated"), (0.0, "none is tolerated"), (0.013, None)],
)
def test_a_chart_of_one_value_is_drawn(value, name):
    axes = drawn(plot_gain_chart, gains(np.full((5, 5), value), own=value))

    assert texts(axes) & {"unstable", "any is tolerated", "none is tolerated"} == ({name} - {None})


@pytest.mark.parametrize(
    ("value", "name"), [(np.inf, "any is tolerated"), (0.0, "none is tolerated")]
)
def test_what_has_no_number_fills_its_region_half_way_to_what_has_one(value, name):
    alpha_upper = np.full((5, 5), 0.02)
    alpha_upper[3:, :] = value

    axes = drawn(plot_gain_chart, gains(alpha_upper))

    region = [c for c in axes.collections if isinstance(c, QuadContourSet) and c.filled][-1]
    left = min(path.vertices[:, 0].min() for path in region.get_paths() if len(path.vertices))
    assert left == pytest.approx((FACTORS[2] + FACTORS[3]) / 2)
    (text,) = [text for text in axes.texts if text.get_text() == name]
    assert left < text.get_position()[0] <= FACTORS[4]


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


KNOWN_OR_NOT = damping([0.0, 0.01, 0.1], [0.0, 0.02, 0.03])


def test_both_curves_the_lemma_and_the_arms_own_damping_are_drawn():
    axes = drawn(plot_damping_chart, KNOWN_OR_NOT)

    lines = {line.get_label(): line for line in axes.lines}
    known = lines["damping known to the controller"]
    assert known.get_xydata().ravel() == pytest.approx([1.0, 1.0, 10.0, 10.0])
    assert lines["damping unknown to it"].get_ydata() == pytest.approx([2.0, 3.0])
    assert lines["the lemma: 15 %"].get_ydata() == pytest.approx([15.0, 15.0])
    assert lines["the arm's own: 1 %, 2 %"].get_xdata() == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize(
    ("known", "unknown", "names"),
    [
        (np.nan, 0.03, ["unstable: damping known to the controller"]),
        (0.03, np.nan, ["unstable: damping unknown to it"]),
        (np.nan, np.nan, ["unstable, known or not"]),
        (0.03, 0.03, []),
    ],
)
def test_what_is_unstable_is_shaded_half_way_and_named_by_who_knows(known, unknown, names):
    axes = drawn(plot_damping_chart, damping([0.0, 0.01, known], [0.0, 0.02, unknown]))

    assert [patch.get_label() for patch in axes.patches] == names
    edges = [patch.get_x() for patch in axes.patches]
    assert edges == pytest.approx([np.sqrt(10.0)] * len(names))
    legend = {text.get_text() for text in axes.get_legend().get_texts()}
    assert set(names) <= legend


@pytest.mark.parametrize(
    ("value", "marker", "name"),
    [(np.inf, "^", "any is tolerated"), (0.0, "v", "none is tolerated")],
)
def test_what_has_no_number_is_a_triangle_at_the_edge(value, marker, name):
    axes = drawn(plot_damping_chart, damping([0.0, 0.01, value], [0.0, 0.02, 0.03]))

    (triangle,) = [line for line in axes.lines if line.get_marker() == marker]
    assert list(triangle.get_xdata()) == [10.0]
    low, high = axes.get_ylim()
    assert low < triangle.get_ydata()[0] < high
    assert name in texts(axes)


@pytest.mark.slow_but(
    "changes1-at the final pose under i*",
    "changes2-at the final pose under i*",
    "changes0-at the final pose under i*",
)
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "at the final pose under its second loop and at 5 poses of the motion without it"),
        ({"n_path": 1}, "at the final pose under its second loop and without it"),
        ({"n_path": 0}, "at the final pose under its second loop; undamped"),
        ({"n_path": 1, "second_loop": False}, "\nat the final pose; undamped"),
        ({"second_loop": False}, "\nat the worst of 5 poses; undamped"),
        ({}, "undamped: none"),
        ({"known": np.array([np.nan, 0.01, 0.1])}, "undamped: unstable without error"),
        ({"known": np.array([np.inf, 0.01, 0.1])}, "undamped: any"),
    ],
)
def test_the_title_says_where_it_is_judged_and_what_is_borne_undamped(changes, words):
    axes = drawn(plot_damping_chart, replace(KNOWN_OR_NOT, **changes))

    assert words in axes.get_title(loc="left")


def test_a_lemma_without_limit_is_named_so():
    axes = drawn(plot_damping_chart, replace(KNOWN_OR_NOT, alpha_star=np.inf))

    assert "the lemma: no limit" in {text.get_text() for text in axes.get_legend().get_texts()}


def test_heights_without_a_number_have_no_ticks():
    nothing = damping([np.nan, np.inf, np.inf], [np.nan, np.inf, np.inf])
    axes = drawn(plot_damping_chart, replace(nothing, alpha_star=np.inf))

    assert list(axes.get_yticks()) == []


def test_the_legend_lies_above_the_data():
    axes = drawn(plot_damping_chart, damping([0.0, 0.01, 0.1], [0.0, 0.02, np.nan]))

    legend = axes.get_legend().get_window_extent()
    (title,) = axes.findobj(lambda one: isinstance(one, Text) and "trial:" in one.get_text())
    assert axes.get_window_extent().y1 <= legend.y0
    assert legend.y1 <= title.get_window_extent().y0
