"""`flexctl separation` as a person and as a script use it."""

import json

import numpy as np
import pytest
from matplotlib.text import Text

from flexctl.model.record import BasisChoice
from flexctl.robustness.time_scales.record import Bound, Spectra, TimeScaleMargin
from flexctl.view.commands.separation import _table
from flexctl.view.figures.separation import plot_separation
from flexctl.view.output import console
from flexctl.view.to_json import to_json
from flexctl.view.words.margins import time_scale_words
from tests.numbers_in_words import sources

ARM = "subudhi-morris-2r"
QUICK = ("--truth-modes", "2")


def of(name):
    """Words that name a catalogue design of the arm."""
    return ("separation", ARM, f"subudhi-morris-{name}", *QUICK)


@pytest.mark.slow
def test_the_answers_numbers_belong_together(flexctl):
    said = flexctl(*of("lqr"), "--json")
    found = json.loads(said.out)
    poles = np.array(found["full_poles"])

    assert (said.status, said.err) == (0, "")
    assert found["s_star"] == max(*found["path"]["s_star"], *found["orders"]["s_star"])
    assert found["mu_star"] == pytest.approx(found["mu"] / np.sqrt(found["s_star"]), rel=1e-12)
    assert found["epsilon"] == pytest.approx(found["mu"] ** 2, rel=1e-12)
    assert found["stable_ranges"][-1] == [pytest.approx(found["s_star"], rel=1e-12), None]
    assert found["stable"] is bool((poles[:, 0] < 0).all())
    assert len(poles) == len(found["slow_poles"]) + len(found["fast_poles"])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lqr", "stable down to 0.0038"),
        ("slow-only", "the loop is stable at every stiffness."),
        ("too-fast", "unstable although both subsystems are stable"),
        ("printed", "the loop is stable at no stiffness on 2 modes"),
    ],
)
@pytest.mark.slow_but("too-fast-*")
def test_a_person_reads_how_far_the_arm_is_from_its_bound(flexctl, name, words):
    said = flexctl(*of(name))

    assert said.status == 0
    assert words in " ".join(said.out.split())


@pytest.mark.slow  # takes long
@pytest.mark.parametrize("name", ["lqr", "slow-only", "too-fast", "printed"])
def test_the_figure_is_drawn(flexctl, tmp_path, name):
    assert flexctl(*of(name), "--plot", tmp_path / "bound.svg").status == 0
    drawn = (tmp_path / "bound.svg").read_text(encoding="utf-8")

    assert "Bound along the motion (2 modes)" in drawn
    assert ("s* =" in drawn) == (name in {"lqr", "too-fast"})


@pytest.mark.parametrize(("largest", "status"), [(0.01, 0), (0.001, 1)])
@pytest.mark.slow_but("0.001-1")
def test_a_bound_may_be_required(flexctl, largest, status):
    assert flexctl(*of("lqr"), "--json", "--require", f"s_star<{largest}").status == status


@pytest.mark.slow  # takes long
def test_where_no_stiffness_helps_the_answer_says_so_and_why(flexctl):
    found = json.loads(flexctl(*of("printed"), "--json").out)

    assert (found["s_star"], found["mu_star"], found["stable"]) == (None, 0.0, False)
    assert "unstable fast subsystem" in found["worst"]["why"]
    assert flexctl(*of("printed"), "--json", "--require", "s_star<1").status == 1


def test_a_design_without_two_time_scales_is_refused_in_one_line(flexctl):
    said = flexctl(*of("decoupling"))

    assert (said.status, said.out) == (2, "")
    assert "method: expected composite, the one with two time scales, got decoup" in said.err
    assert said.err.strip().count("\n") == 0


def bound_of(**changes):
    """One bracketed bound with these changes."""
    return Bound(**{"t": 0.5, "order": 2, "s_star": 0.1, "exact": False, "stable": True, **changes})


def found_of(*path, others=()):
    """A separation made up by hand, of bounds along the path and over other truth orders."""
    s = np.geomspace(0.1, 100.0, 7)
    poles = tuple(np.array([-1 - 2j, -1 + 2j, 0.0]) * np.sqrt(at) for at in s)
    empty = np.zeros(0, dtype=complex)
    spectra = Spectra(slow=empty, fast=empty, full=poles[0], s=s, poles=poles, ranges=None)
    basis = BasisChoice(kind="modes", order=2)
    return TimeScaleMargin(
        model="arm",
        design="law",
        truth=basis,
        basis=basis,
        path=path,
        orders=(path[-1], *others),
        spectra=spectra,
        epsilon=0.1,
        assumptions=(),
    )


def drawn(others=(), **changes):
    """Figure of one bracketed bound with these changes, and all its words."""
    figure = plot_separation(found_of(bound_of(**changes), others=others))
    figure.draw_without_rendering()
    return figure, " ".join(text.get_text() for text in figure.findobj(Text))


LOST = {"s_star": 0.2374, "frequency": 17.83, "motion": "joint2", "t": 0.613, "order": 3}


@pytest.mark.parametrize(
    ("changes", "places", "words"),
    [
        (LOST, {"s_star", "frequency", "order", "t"}, "joint2"),
        (LOST | {"frequency": 0.0}, {"s_star", "order", "t"}, "(real eigenvalue)"),
        (LOST | {"s_star": 1.374, "stable": False}, {"s_star", "frequency", "order", "t"}, "unst"),
        (
            LOST | {"s_star": 1.374},
            {"s_star", "frequency", "order", "t"},
            "stable as it is, but unstable at some",
        ),
        ({"s_star": np.inf, "why": "the fast one"}, {"order", "t"}, "the fast one"),
        (LOST | {"refused": "it falls"}, {"s_star"}, "it falls"),
        ({"s_star": 0.0, "exact": True}, set(), "stable at every stiffness"),
    ],
)
def test_the_verdict_says_the_worst_bound_in_its_numbers(changes, places, words):
    worst = bound_of(**changes)
    near = bound_of(s_star=0.0, t=0.9, order=5) if worst.s_star else worst
    said = time_scale_words(found_of(near, worst, near, others=(near,)))
    record = {"s_star": worst.s_star, "frequency": worst.frequency, "t": worst.t}
    found = sources(said, record | {"order": worst.order}, {"frequency": "rad/s", "t": "s"})

    assert set(found) == places
    assert words in said


def test_the_worst_is_the_largest_factor_of_all_poses_and_orders():
    a, b, c = (bound_of(s_star=s, order=k) for s, k in ((0.11, 1), (0.35, 2), (0.27, 3)))
    assert found_of(a, b, c).worst is b
    assert found_of(a, c, others=(b,)).worst is b
    found = found_of(a, b, c)
    assert found.mu == pytest.approx(0.1**0.5)
    assert found.mu_star == pytest.approx((0.1 / 0.35) ** 0.5)
    answer = to_json(found)
    assert answer["path"] == {"t": [0.5] * 3, "s_star": [0.11, 0.35, 0.27]}
    assert (answer["s_star"], answer["worst"]["modes"]) == (0.35, 2)


def tabled(found):
    """Give what the terminal shows of it."""
    with (printer := console()).capture() as heard:
        printer.print(_table(found, "so"))
    return " ".join(heard.get().split())


@pytest.mark.parametrize(
    ("path", "others", "words"),
    [
        ([{"t": 0.1}, {"t": 0.5}], [{"order": 3}], "at all poses and orders"),
        ([{"t": 0.1}, {"t": 0.5}], [], "at all poses found by"),
        ([{}], [{"order": 3}], "at all orders"),
        ([{}], [], "at the only pose and order"),
    ],
)
def test_the_table_says_at_what_it_was_judged(path, others, words):
    path, others = ([bound_of(**changes) for changes in these] for these in (path, others))

    assert f"stable at its own stiffness yes {words}" in tabled(found_of(*path, others=others))


def test_an_order_at_which_nothing_crosses_has_a_dash():
    assert "what crosses" in (shown := tabled(found_of(bound_of(s_star=0.0))))
    assert " 2 0 - " in shown


@pytest.mark.parametrize(
    ("several", "expected"),
    [
        ([True, True], True), ([True, "marginal"], "marginal"), (["marginal", False], False),
        ([True, False, True], False),
    ],
)  # fmt: skip
def test_several_loops_are_as_stable_as_the_least_stable(several, expected):
    path = [bound_of(s_star=0.1, stable=stable) for stable in several]
    assert found_of(*path).stable == expected


@pytest.mark.slow_but("changes0-*", "changes2-*")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"s_star": 0.0}, "stable at every stiffness\nsearched, down to s = 0.1"),
        ({"s_star": 0.0, "exact": True}, "stable at every stiffness"),
        ({"s_star": np.inf, "why": "the fast one"}, "unstable at every stiffness:\nthe fast one"),
        ({"refused": "too soft", "no_equilibrium": True}, "s* = 0.1: no equilibrium below"),
        ({"refused": "the law has no gains"}, "s* = 0.1: no loop below"),
        ({"s_star": 0.3}, "law on arm (bracketed)"),
        ({"s_star": 0.3}, "arm too soft: unstable"),
    ],
)
def test_the_figure_says_in_words_what_no_line_shows(changes, words):
    assert words in drawn(**changes)[1]


def test_an_order_without_a_bound_is_drawn_within_the_axes():
    hopeless = Bound(t=0.5, order=4, s_star=np.inf, exact=True, stable=False, why="fast")
    figure, said = drawn([hopeless], s_star=0.3)

    assert "unstable at every stiffness" in said
    assert np.isfinite(figure.axes[-1].get_ylim()).all()


def test_what_is_said_of_a_refused_arm_stays_in_the_axes():
    figure, _ = drawn(refused="too soft", no_equilibrium=True)
    axes = figure.axes[0]
    (label,) = (text for text in axes.texts if "below" in text.get_text())

    box, frame = label.get_window_extent(), axes.get_window_extent()
    assert frame.x0 < box.x0 < box.x1 < frame.x1
