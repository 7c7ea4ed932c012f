"""`flexctl margin --stiffness`: what is said of a stiffness of one's own."""

import json

import numpy as np
import pytest
from matplotlib.figure import Figure

from flexctl.robustness.stiffness.lemma import Lemma
from flexctl.robustness.stiffness.record import (
    AssumedAtPose,
    AssumedStiffness,
    Interval,
    StabilityLimit,
)
from flexctl.view.figures.margin import given_answer, mark_along
from flexctl.view.figures.margin_loci import grouped, mark_errors
from flexctl.view.words.margins import given_words

ASKED = ("margin", "subudhi-morris-2r", "subudhi-morris-decoupling", "--no-structured")
ASKED += ("--truth-modes", "2", "--path", "2")
UNSTABLE_WITHOUT = AssumedAtPose(t=0.5, stable=True, abscissa=-1.0, mode="", interval=None)
GONE = "with it the loop has no equilibrium at its reference"
FLUTTER = StabilityLimit(alpha=0.25, frequency=20.0, mode="link2.y.1")


def lemma(alpha_star):
    return Lemma(
        H=np.eye(1),
        lambda_max=1.0,
        alpha_star=alpha_star,
        loss="divergence",
        basis=None,
        coordinates=("link2.y.1",),
        assumptions=(),
    )


def at(t, upper, stable, growth=-1.0):
    interval = Interval(lower=None, upper=upper)
    mode = "" if stable else "link2.y.1"
    return AssumedAtPose(t=t, stable=stable, abscissa=growth, mode=mode, interval=interval)


def given(*poses, alpha_star=3.0):
    errors = {"link1.y.1": 0.1, "link2.y.1": -0.2}
    return AssumedStiffness(errors=errors, lemma=lemma(alpha_star), at=poses)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            given(at(None, None, True), at(0.5, FLUTTER, False, 2.0)),
            "The stiffness given (link2.y.1 -20 %, the largest of 2 errors) "
            "destabilises the loop at 1 of 2 "
            "poses, worst at t = 0.5 s: there link2's first mode in y grows at 2 1/s; "
            "25 % of that error is tolerated there (limit: flutter of link2's first mode in y at "
            "20 rad/s); "
            "the lemma alone allows it. ",
        ),
        (
            given(at(None, None, True), alpha_star=0.5),
            "The stiffness given (link2.y.1 -20 %, the largest of 2 errors) "
            "is tolerated at the final "
            "pose, and any multiple of "
            "that error that leaves the stiffness positive there; the lemma "
            "alone allows 50 % of it. ",
        ),
        (
            given(AssumedAtPose(t=None, stable=False, abscissa=1.0, mode="joint1", interval=None)),
            "The stiffness given (link2.y.1 -20 %, the largest of 2 errors) "
            "destabilises the loop at the "
            "final pose: there joint1 grows at 1 1/s; none of that error is tolerated there; the "
            "lemma alone allows it. ",
        ),
        (
            given(
                AssumedAtPose(
                    t=None, stable=False, abscissa=np.inf, mode="", interval=None, why=GONE
                )
            ),
            "The stiffness given (link2.y.1 -20 %, the largest of 2 errors) "
            "destabilises the loop at the final pose: with it the loop has no equilibrium at its "
            "reference; none of that error is tolerated there; the lemma alone allows it. ",
        ),
        (
            given(at(None, None, True), at(0.5, FLUTTER, True)),
            "The stiffness given (link2.y.1 -20 %, the largest of 2 errors) "
            "is tolerated at all 2 poses, "
            "and of smaller errors only those up to 25 % of it at t = 0.5 s; the "
            "lemma alone allows it. ",
        ),
        (
            given(at(None, None, True), UNSTABLE_WITHOUT),
            "The stiffness given (link2.y.1 -20 %, the largest of 2 errors) "
            "is tolerated at all 2 poses, "
            "and the loop without it is unstable at t = 0.5 s; the lemma alone allows it. ",
        ),
    ],
)
def test_what_is_said(found, words):
    assert given_words(found, "at the final pose") == words


def drawn_along(found):
    axes = Figure().add_subplot()
    mark_along(axes, found, end=2.0)
    return {line.get_label(): line for line in axes.lines}


def test_the_least_and_greatest_errors_stand_beside_the_margins():
    lines = drawn_along(given(at(None, None, True), at(0.5, None, False)))

    assert lines["given: link2.y.1 -20 %"].get_ydata() == [-20, -20]
    assert lines["given: link1.y.1 +10 %"].get_ydata() == [10, 10]


def test_poses_are_marked_where_all_given_errors_together_destabilise():
    lines = drawn_along(given(at(None, None, True), at(0.5, None, False)))

    assert list(lines["given, all parts: unstable"].get_xdata()) == [0.5]
    assert list(lines["given, all parts: stable"].get_xdata()) == [pytest.approx(2.06)]


@pytest.mark.parametrize(
    ("low", "high", "places"),
    [
        (-50.0, 50.0, {"given: link2.y.1 -20 %": -20.0, "given: link1.y.1 +10 %": 10.0}),
        (-50.0, 5.0, {"given: link2.y.1 -20 %": -20.0, "given: link1.y.1 +10 %, beyond": 5.0}),
    ],
)
def test_every_error_stands_on_the_axis_of_errors_or_at_its_edge(low, high, places):
    axes = Figure().add_subplot()
    axes.set_xlim(low, high)
    mark_errors(axes, given(at(None, None, True)))

    assert {text.get_text(): text.xy[0] for text in axes.texts} == places


def test_parts_of_one_error_are_named_together():
    errors = {"link1.y.1": 0.5, "link1.y.2": 0.5, "link2.y.1": -0.3}
    assert grouped(errors) == [(-30.0, "link2.y.1"), (50.0, "link1.y.1 and link1.y.2")]
    assert grouped(dict.fromkeys("abcd", 0.1)) == [(10.0, "4 parts")]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (given(at(None, None, True)), "given stiffness: tolerated"),
        (
            given(at(None, None, True), at(0.5, None, True)),
            "given stiffness: tolerated at all poses",
        ),
        (
            given(at(None, None, True), at(0.5, None, False)),
            "given stiffness: unstable at 1 of 2 poses",
        ),
    ],
)
def test_the_figure_answers_for_the_given_stiffness(found, words):
    assert given_answer(found) == words


@pytest.fixture
def ratios(tmp_path):
    path = tmp_path / "measured.csv"
    path.write_text("part,ratio\nlink1,1.5\nlink2.y.1,0.7\n")
    return path


def test_a_given_stiffness_is_answered_with_its_parts_and_poses(flexctl, ratios):
    heard = flexctl(*ASKED, "--stiffness", ratios, "--json")
    found = json.loads(heard.out)["given_stiffness"]

    assert (heard.status, heard.err) == (0, "")
    assert found["errors"] == pytest.approx({"link1.y.1": 0.5, "link1.y.2": 0.5, "link2.y.1": -0.3})
    assert [pose["t"] is None for pose in found["poses"]] == [True, False, False]
    assert found["stable"] == all(pose["abscissa"] < 0 for pose in found["poses"])


@pytest.mark.slow  # takes long
def test_a_given_stiffness_stands_in_the_table_and_the_verdict(flexctl, ratios):
    heard = flexctl(*ASKED, "--stiffness", ratios)

    assert "given stiffness, at" in heard.out
    assert "The stiffness given" in heard.out


def test_a_part_that_is_none_is_refused_with_the_file(flexctl, tmp_path):
    path = tmp_path / "measured.csv"
    path.write_text("part,ratio\nlink9,1.5\n")
    heard = flexctl(*ASKED, "--stiffness", path)

    assert (heard.status, heard.out) == (2, "")
    assert heard.err.startswith(f"flexctl: {path}: stiffness: expected some of ")
    assert heard.err.endswith("got 'link9'\n")
